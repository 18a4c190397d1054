"""From a matrix to heads and back: a ribbon of shapes, and the blocks of numbers as they lie at one stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .elements import LINE, arrow, rect, text
from .flow import CURRENT, FILLS

TOKEN_FILLS = ("#cfe3f5", "#fbd9b5", "#d3ebd2", "#e2d5ee")
"""One fill per token; the numbers on them are black in either theme."""

MIXED = "#e8e8e8"
"""What belongs to no single token or comes from all of them."""

WIDTH, HEIGHT = 710, 300
_BOX, _TOP = 78, 120  # width of a stage in the ribbon; y of the blocks


def ribbon(names: Sequence[str], shapes: Sequence[Sequence[int]], stage: int) -> str:
    """Draw one box per stage with its name and shape, an arrow between neighbours; ``stage`` (from 1) is framed."""
    parts = []
    for i, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        x, here = 8 + i * (_BOX + 10), i + 1 == stage
        fill = FILLS["attention"] if here else FILLS["data"]
        look = f'rx="4" stroke="{CURRENT if here else "#777"}" stroke-width="{3 if here else 1}"'
        parts.append(rect(x, 12, _BOX, 46, fill, look))
        parts.append(text(x + _BOX / 2, 31, name, "mid black bold" if here else "mid black"))
        parts.append(text(x + _BOX / 2, 49, " · ".join(map(str, shape)), "mid black", size=11))
        if here:
            parts.append(text(x + _BOX / 2, 76, "▲", "mid"))
        if i:
            parts.append(arrow(x - 9, 35, x - 1, 35, "#777", 1.5))
    return "".join(parts)


def block(places: np.ndarray, owner: np.ndarray, x: float, y: float, size: float) -> str:
    """Draw cells [rows, columns] with a number in each, in the colour of the token it belongs to (−1: none)."""
    parts = []
    for i, j in np.ndindex(*places.shape):
        left, top = x + j * size, y + i * size
        fill = TOKEN_FILLS[owner[i, j]] if owner[i, j] >= 0 else MIXED
        parts.append(rect(left, top, size - 1, size - 1, fill, f'stroke="{LINE}"'))
        if places[i, j] >= 0 and size >= 20:
            parts.append(text(left + size / 2 - 0.5, top + size / 2 + 4, places[i, j], "mid black", size=11))
    return "".join(parts)


def row_names(tokens: Sequence[str], y: float, size: float) -> str:
    """Write the tokens at the left of the blocks, each with a patch of its fill."""
    parts = []
    for i, token in enumerate(tokens):
        parts.append(rect(10, y + i * size + size / 2 - 5, 10, 10, TOKEN_FILLS[i], f'stroke="{LINE}"'))
        parts.append(text(26, y + i * size + size / 2 + 4, token))
    return "".join(parts)


def blocks(
    tokens: Sequence[str],
    grids: Sequence[np.ndarray],
    owners: Sequence[np.ndarray],
    *,
    gap: float,
    heads: bool,
    note: str,
) -> str:
    """Draw blocks ``gap`` px apart, named head 1, head 2, … if ``heads``, with a line of explanation below."""
    columns, left = sum(grid.shape[1] for grid in grids), 84
    size = min(34.0, (WIDTH - left - 10 - gap * (len(grids) - 1)) / columns)
    y, x = _TOP, float(left)
    parts = [row_names(tokens, y, size)]
    for h, (grid, owner) in enumerate(zip(grids, owners, strict=True)):
        wide = grid.shape[1] * size
        if heads:
            parts.append(text(x + wide / 2, y - 10, f"head {h + 1}" if wide > 48 else h + 1, "mid bold"))
        parts.append(block(grid, owner, x, y, size))
        x += wide + gap
    parts.append(text(10, HEIGHT - 14, note))
    return "".join(parts)


def message(lines: Sequence[str]) -> str:
    """Write a few lines where the blocks would be."""
    return "".join(text(10, _TOP + 20 + 22 * i, line, "bold" if i == 0 else "") for i, line in enumerate(lines))
