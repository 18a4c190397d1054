"""W5, shuffle: the same tokens in another order, before and after attention, with positions or without."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..plotting.base import check_room, distinct_tokens, head_arrays
from ..svg import reorder
from ..svg.elements import Picture
from .controls import number, switch
from .panel import Panel
from .positions_panel import encodings
from .projections_panel import run_head


def attend(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, causal: bool = False) -> np.ndarray:
    """Return scaled dot-product self-attention of the rows of X [n, d_model]; ``causal`` hides later rows."""
    return run_head(X, W_Q, W_K, W_V, causal).output


def shuffle(
    X: Any,
    W_Q: Any,
    W_K: Any,
    W_V: Any,
    tokens: Sequence[str],
    *,
    order: Sequence[int] | None = None,
    positions: bool = False,
    causal: bool = False,
) -> Panel:
    """Reorder the tokens X [n, d_model] of a sentence, and see each token's output before and after.

    ``order[r]`` is the token in row r of the new order; by default the first and the last are swapped. The control
    numbers all orders, 1 being the sentence as written.
    ``positions`` adds sinusoids by row (so d_model must be even); ``causal`` masks. 2 to 5 tokens, d_v up to 4.
    Raises ValueError when the sizes do not fit together or the picture, or order is no permutation.
    """
    X, W_Q, W_K, W_V = head_arrays(X, W_Q, W_K, W_V, tokens)
    if X.shape[1] % 2:
        raise ValueError(f"X must have an even number of columns for sinusoids, got {X.shape[1]}")
    check_room("tokens", len(X), 2, 5)
    check_room("d_v", W_V.shape[1], 1, 4)
    labels, rows = distinct_tokens(tokens), list(range(len(X)))
    orders = [list(order) for order in itertools.permutations(rows)]
    first = [rows[-1], *rows[1:-1], rows[0]] if order is None else list(order)
    if first not in orders:
        raise ValueError(f"order must be a permutation of 0 to {len(X) - 1}, got {first}")

    def draw(order: int, positions: bool, causal: bool) -> Picture:
        return draw_shuffle(X, (W_Q, W_K, W_V), labels, orders[order - 1], positions, causal)

    controls = {
        "order": number(f"order, 1 to {len(orders)}", orders.index(first) + 1, 1, len(orders)),
        "positions": switch("add positions", positions),
        "causal": switch("causal mask", causal),
    }
    return Panel(draw, controls, widget_id="W5")


def draw_shuffle(
    X: np.ndarray,
    matrices: Sequence[np.ndarray],
    labels: Sequence[str],
    rows: Sequence[int],
    positions: bool,
    causal: bool,
) -> Picture:
    """Draw the outputs before and after; each token's line says whether its output is the same."""
    place = encodings(np.arange(len(X)), X.shape[1]) if positions else np.zeros_like(X)
    before, after = attend(X + place, *matrices, causal), attend(X[list(rows)] + place, *matrices, causal)
    moved = np.linalg.norm(after - before[list(rows)], axis=1)
    body = reorder.rows_before_and_after(labels, rows, before, after, moved)
    says = describe(" ".join(labels[r] for r in rows), positions, causal, moved)
    alt = f"Outputs of attention for {' '.join(labels)}, and after reordering. {says}."
    return Picture(body, int(reorder.columns(before.shape[1])[2]) + 10, reorder.height(len(X)), alt, says)


def describe(order: str, positions: bool, causal: bool, moved: np.ndarray) -> str:
    """Describe the settings, and count the outputs that are the same."""
    setting = f"{order}: {'with' if positions else 'without'} positions, {'causal' if causal else 'no'} mask"
    same = int((moved < 1e-9).sum())
    if same == len(moved):
        return f"{setting}; every token has the output it had before, in its new row"
    return f"{setting}; {same} of {len(moved)} outputs are the same; the largest change is {moved.max():.2f}"
