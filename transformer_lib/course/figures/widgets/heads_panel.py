"""W20, the attention view: every head small, or one head large as a map or as lines, with one token's weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..plotting.base import as_array, check_weights
from ..svg import Picture, attention_map, token_lines
from .controls import choice, number
from .panel import Panel


def attention_view(
    weights: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    *,
    mask: Any = None,
    widget_id: str | None = None,
) -> Panel:
    """Look through attention weights by layer, head and token.

    Args:
        weights: [n_heads, q_len, k_len], or {layer name: weights}; a leading batch axis of 1 is dropped. The buttons
            call a name of `tl.record_attention`, such as "encoder.layers.0.self_attention", "encoder layer 1".
        q_tokens, k_tokens: the tokens that read, and those that are read (the same by default).
        mask: boolean [q_len, k_len], True = may attend; ruled-out cells are hatched.
        widget_id: as in `Panel`.
    Raises:
        ValueError: shapes that do not fit the tokens, or weights outside [0, 1].
    """
    layers = dict(weights) if isinstance(weights, Mapping) else {"": weights}
    if not layers:
        raise ValueError("weights must hold at least one layer, got none")
    q_tokens = list(q_tokens)
    k_tokens = list(q_tokens if k_tokens is None else k_tokens)
    grids = {str(name): _heads(name, data, len(q_tokens), len(k_tokens)) for name, data in layers.items()}

    def draw(head: Any, show: str, token: int, layer: str = next(iter(grids))) -> Picture:
        return draw_attention(grids[layer], q_tokens, k_tokens, head, show, token, mask, layer)

    n_heads = max(len(grid) for grid in grids.values())
    controls: dict[str, Any] = {}
    if len(grids) > 1:
        controls["layer"] = choice("layer", list(grids), names=[layer_label(name) for name in grids])
    controls["head"] = choice("head", ["all", *range(1, n_heads + 1)] if n_heads > 1 else [1])
    controls["show"] = choice("one head as", ["map", "lines"])
    controls["token"] = number("query token", 1, 1, len(q_tokens))
    return Panel(draw, controls, widget_id=widget_id)


def layer_label(name: str) -> str:
    """Return what a learner calls a recorded module, counted from 1; any other name stays as it is.

    >>> layer_label("decoder.layers.1.cross_attention")
    'decoder layer 2, cross'
    """
    recorded = re.fullmatch(r"(encoder|decoder)\.layers\.(\d+)\.(self|cross)_attention", name)
    if not recorded:
        return name
    stack, number, kind = recorded.groups()
    return f"{stack} layer {int(number) + 1}" + (f", {kind}" if stack == "decoder" else "")


def draw_attention(
    grid: np.ndarray,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str],
    head: int | str,
    show: str,
    token: int,
    mask: Any = None,
    layer: str = "",
) -> Picture:
    """Draw all heads of [n_heads, q_len, k_len], or one; ``token`` is the query outlined. Both count from 1."""
    where = f"{layer_label(layer)}, " if layer else ""
    if head == "all":
        titles = [f"head {i + 1}" for i in range(len(grid))]
        return attention_map(grid, q_tokens, k_tokens, mask=mask, titles=titles, query=token - 1)
    one = grid[min(int(head), len(grid)) - 1]
    if show == "lines":
        return token_lines(one, q_tokens, k_tokens, query=token - 1)
    return attention_map(one, q_tokens, k_tokens, mask=mask, titles=[f"{where}head {head}"], query=token - 1)


def _heads(name: Any, data: Any, q_len: int, k_len: int) -> np.ndarray:
    """Return one layer's weights as [n_heads, q_len, k_len]."""
    label = f"weights[{name!r}]" if name else "weights"
    grid = as_array(label, data, 2, 3, 4)
    if grid.ndim == 4:
        if len(grid) != 1:
            raise ValueError(f"{label} must be of one sentence, got a batch of {len(grid)}: choose one")
        grid = grid[0]
    grid = grid[None] if grid.ndim == 2 else grid
    if grid.shape[1:] != (q_len, k_len) or 0 in grid.shape:
        raise ValueError(f"{label} must end in shape {(q_len, k_len)} for these tokens, got {grid.shape}")
    check_weights(label, grid)
    return grid
