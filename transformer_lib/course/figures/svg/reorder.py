"""Rows before and after a change of order, each token tied to itself by a line that says what became of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .elements import TEXT, fit, line, text, text_width
from .projection import CELL, HIGH, vector

ROW, TOP = 44, 56
_LABEL, _BETWEEN = 66, 190
CHANGED = "#d55e00"


def columns(width: int) -> tuple[float, float, float]:
    """Return x of the left vectors, of the right ones, and of the right edge, for vectors of ``width`` numbers."""
    left = 10 + _LABEL
    right = left + width * CELL + _BETWEEN + _LABEL
    return left, right, right + width * CELL


def rows_before_and_after(
    tokens: Sequence[str], order: Sequence[int], before: np.ndarray, after: np.ndarray, moved: Sequence[float]
) -> str:
    """Draw the outputs [n, d] of the sentence as written and in its new order.

    ``order[r]`` is the token in row r afterwards; ``moved[r]`` is the distance between its two outputs.
    """
    left, right, _ = columns(before.shape[1])
    largest = float(max(np.abs(before).max(), np.abs(after).max()))
    parts = [text(left, TOP - 16, "outputs, as written", "bold"), text(right, TOP - 16, "outputs, new order", "bold")]
    ends = left + before.shape[1] * CELL + 4, right - _LABEL - 4
    for row, token in enumerate(tokens):
        parts.append(_row(row, token, before[row], left, largest))
    for row, token in enumerate(order):
        parts.append(_row(row, tokens[token], after[row], right, largest))
        parts.append(_tie(_middle(token), _middle(row), ends, moved[row], row))
    return "".join(parts)


def _middle(row: int) -> float:
    return TOP + row * ROW + HIGH / 2


def _row(row: int, token: str, values: np.ndarray, x: float, largest: float) -> str:
    y = TOP + row * ROW
    return text(x - 8, y + 16, fit(token, _LABEL - 8), "end") + vector(values, x, y, True, largest)


def _tie(y1: float, y2: float, ends: tuple[float, float], moved: float, row: int) -> str:
    """Join a token's old row to its new one by a line: solid and “same”, or dashed with the difference."""
    same = moved < 1e-9
    look = 'stroke-width="2"' if same else 'stroke-width="2" stroke-dasharray="5 4"'
    label = "same" if same else f"moved {moved:.2f}"
    stop = ends[1] - text_width(label) - 16
    drawn = line(ends[0], y1, stop, y2, TEXT if same else CHANGED, look)
    return drawn + text(ends[1] - 4, y2 + 4, label, "end bold")


def height(n_tokens: int) -> int:
    """Return the height of the picture in px."""
    return TOP + n_tokens * ROW
