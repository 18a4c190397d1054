"""One step through an encoder layer: the chain of operations with its residual paths, and small tables of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .colours import CIVIDIS, PUOR, ink_kind, signed_levels, weight_levels
from .elements import rect, text
from .flow import Box, around, draw_box, up

WIDTH, HEIGHT = 712, 366
_CELL, _LEFT, _TOP, _GAP = 31, 254, 122, 22  # px of a square; where the tables begin; between tables


def chain(names: Sequence[str], kinds: Sequence[str], first: int, step: int, layer: str) -> str:
    """Draw the operations from the bottom up, numbered from ``first``, ``step`` framed; dashed paths lead to the sums.

    The last eight are one layer: two sub-layers of two operations, each followed by an addition and a norm.
    """
    boxes = [
        Box(104, 320 - 32 * i, name, kind, first + i, width=150, height=23)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    parts = [draw_box(box, step) for box in boxes]
    parts += [up(lower, upper) for lower, upper in zip(boxes, boxes[1:], strict=False)]
    for start in (len(boxes) - 8, len(boxes) - 4):
        parts.append(around(boxes[start], boxes[start + 2]))
    parts.append(text(104, 18, layer, "mid bold"))
    return "".join(parts)


def table(values: np.ndarray, x: float, y: float, *, weights: bool = False, largest: float = 3.0) -> str:
    """Draw numbers [rows, columns] with two decimals on their colours: PuOr about 0, or cividis for weights."""
    levels, colours = (weight_levels(values), CIVIDIS) if weights else (signed_levels(values, largest), PUOR)
    parts = []
    for i, j in np.ndindex(*values.shape):
        colour = colours[levels[i, j]]
        parts.append(rect(x + j * _CELL, y + i * _CELL, _CELL - 1, _CELL - 1, colour))
        place = (x + (j + 0.5) * _CELL - 0.5, y + (i + 0.5) * _CELL + 3.5)
        parts.append(text(*place, f"{values[i, j] + 0.0:.2f}", f"mid {ink_kind(colour)}", size=10))
    return "".join(parts)


def tables(
    tokens: Sequence[str], parts: Sequence[tuple[str, np.ndarray]], *, weights: bool, lines: Sequence[str]
) -> str:
    """Draw named tables side by side, a row per token, under two lines (operation, shapes) and above the others."""
    drawn = [text(196, 28, lines[0], "bold"), text(196, 48, lines[1])]
    for i, token in enumerate(tokens):
        drawn.append(text(_LEFT - 8, _TOP + (i + 0.5) * _CELL + 4, token, "end"))
    x = float(_LEFT)
    for name, values in parts:
        wide = values.shape[1] * _CELL
        drawn.append(text(x + wide / 2, _TOP - 10, name, "mid bold"))
        drawn.append(table(values, x, _TOP, weights=weights))
        x += wide + _GAP
    for i, line in enumerate(lines[2:]):
        drawn.append(text(196, _TOP + 5 * _CELL + 30 + 20 * i, line))
    return "".join(drawn)
