"""Two grids side by side: scores with −∞ where a mask hides them, and the weights that are left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plotting.base import KEY_AXIS, QUERY_AXIS, signed_text, weight_text
from .colours import CIVIDIS, GREY, PUOR, ink_kind, signed_levels, weight_levels
from .elements import FOCUS, LINE, POINTED, fit, rect, text, text_width

CELL, LEFT, TOP, GAP, MOST = 33, 80, 96, 24, 8  # px; MOST tokens fit the page
_NOTE = 84  # px for "sees nothing" beside a row


def size(n_tokens: int) -> tuple[int, int]:
    """Return width and height of the picture in px."""
    return max(LEFT + 2 * CELL * n_tokens + GAP + _NOTE, 480), TOP + CELL * n_tokens + 36


def right_edge(n_tokens: int) -> int:
    """Return the x of the second grid."""
    return LEFT + CELL * n_tokens + GAP


def labels(tokens: Sequence[str], row: int, column: int) -> str:
    """Write the queries down the left and the keys at a slant above both grids, the chosen ones in bold."""
    parts = [text(4, TOP - 26, QUERY_AXIS, "soft", size=11)]
    for i, token in enumerate(tokens):
        kind = "end bold" if i == row else "end"
        parts.append(text(LEFT - 6, TOP + (i + 0.5) * CELL + 4, fit(token, LEFT - 12), kind))
    for x, title in ((LEFT, "scores"), (right_edge(len(tokens)), "weights")):
        parts.append(text(x, 16, title, "bold"))
        parts.append(text(x + text_width(title) + 10, 16, KEY_AXIS, "soft", size=11))
        for j, token in enumerate(tokens):
            kind = "bold" if j == column else ""
            parts.append(text(x + (j + 0.5) * CELL + 4, TOP - 6, fit(token, LEFT - 12), kind, turn=-55))
    return "".join(parts)


def score_grid(scores: np.ndarray, mask: np.ndarray) -> str:
    """Draw scores [n, n] in PuOr about 0, and −∞ on grey where the mask is False."""
    return "".join(score_cell(scores, i, j, bool(mask[i, j])) for i, j in np.ndindex(*scores.shape))


def score_cell(scores: np.ndarray, i: int, j: int, seen: bool) -> str:
    """Draw one score, or −∞ where it is not seen."""
    if not seen:
        return _cell(LEFT, i, j, GREY, "−∞")
    level = signed_levels(scores, float(np.abs(scores).max()))[i, j]
    return _cell(LEFT, i, j, PUOR[level], signed_text(round(float(scores[i, j]), 1)).removesuffix("0"))


def weight_grid(weights: np.ndarray, mask: np.ndarray) -> str:
    """Draw weights [n, n] in cividis, and 0 on grey where the mask is False; allowed later keys have a frame."""
    n = len(mask)
    parts = [weight_row(weights[i], mask[i], i) for i in range(n)]
    parts += [sees_nothing(n, i) for i in np.flatnonzero(~mask.any(axis=1))]
    parts += [later_frame(n, i, j) for i, j in np.argwhere(np.triu(mask, 1))]
    return "".join(parts)


def weight_row(weights: np.ndarray, mask: np.ndarray, i: int) -> str:
    """Draw the weights [n] of query ``i``."""
    levels, x, parts = weight_levels(weights), right_edge(len(mask)), []
    for j, seen in enumerate(mask):
        shown = weight_text(float(weights[j]), short=True) if seen else "0"
        parts.append(_cell(x, i, j, CIVIDIS[levels[j]] if seen else GREY, shown))
    return "".join(parts)


def sees_nothing(n_tokens: int, i: int) -> str:
    """Write beside row ``i`` that its query sees nothing."""
    middle = TOP + (i + 0.5) * CELL + 4
    return text(right_edge(n_tokens) + CELL * n_tokens + 6, middle, "sees nothing", "bold", size=11)


def later_frame(n_tokens: int, i: int, j: int) -> str:
    """Frame a weight on a later token."""
    return _frame(right_edge(n_tokens), i, j, POINTED)


def chosen_cell(n_tokens: int, row: int, column: int) -> str:
    """Frame the chosen cell in both grids, and explain the frames."""
    parts = [_frame(x, row, column, FOCUS) for x in (LEFT, right_edge(n_tokens))]
    y = TOP + CELL * n_tokens + 22
    legend = "blue frame: chosen cell; orange frame: a later token is seen"
    return "".join(parts) + text(LEFT, y, legend, "soft", size=11)


def _cell(x: float, i: int, j: int, fill: str, shown: str) -> str:
    left, top = x + j * CELL, TOP + i * CELL
    box = rect(left, top, CELL - 1, CELL - 1, fill, f'stroke="{LINE}" stroke-width="0.5"')
    return box + text(left + CELL / 2, top + CELL / 2 + 4, shown, f"mid {ink_kind(fill)}", size=11)


def _frame(x: float, i: int, j: int, colour: str) -> str:
    extra = f'stroke="{colour}" stroke-width="2.5"'
    return rect(x + j * CELL + 1, TOP + i * CELL + 1, CELL - 3, CELL - 3, "none", extra)
