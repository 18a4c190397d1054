"""A string shown twice, and two heads at one position of it: where each looks, and what is said with and without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .elements import FOCUS, LINE, POINTED, TEXT, line, rect, text

WIDTH, HEIGHT = 720, 396
CELL, LEFT, MOST = 20, 76, 32  # px; MOST letters fit the page
FIRST, SECOND, ALL = "#e69f00", "#0072b2", "#009e73"  # of the first head, of the second, of both together
_LETTERS, _BARS, _ROOM = 44, (138, 238), 58  # baselines of the letters and of the two rows of bars; px of the weight 1
_WORDS, _BAR = 300, 110  # where the predictions begin, and the width of the probability 1


def letters(string: str, position: int, period: int, source: int) -> str:
    """Draw the string; a frame around the position looked at, a line below the letter that the second head reads."""
    parts = [text(LEFT - 8, _LETTERS, "string", "end bold")]
    for i, letter in enumerate(string):
        x = LEFT + (i + 0.5) * CELL
        parts.append(text(x, _LETTERS, letter, "mid bold" if i in (position, source) else "mid"))
    at = f'stroke="{FOCUS}" stroke-width="2.5"'
    parts.append(rect(LEFT + position * CELL, _LETTERS - 17, CELL, 24, "none", at))
    parts.append(rect(LEFT + source * CELL + 3, _LETTERS + 6, CELL - 6, 4, SECOND))
    seam = LEFT + period * CELL
    parts.append(line(seam, 20, seam, _BARS[1], LINE, 'stroke-dasharray="3 3"'))
    parts.append(text(seam - 5, 16, "first time", "end soft", size=11))
    parts.append(text(seam + 5, 16, "second time", "soft", size=11))
    return "".join(parts)


def bars(weights: np.ndarray, row: int, title: str, colour: str, asking: int) -> str:
    """Draw one head's weights [n] as a row of bars over the positions, and mark the position that asks."""
    base = _BARS[row]
    parts = [text(LEFT, base - _ROOM - 8, title, size=11), text(LEFT - 8, base - _ROOM + 8, "1", "end soft", size=11)]
    parts.append(text(LEFT - 8, base, "0", "end soft", size=11))
    for i, weight in enumerate(weights):
        parts.append(rect(LEFT + i * CELL + 2, base - weight * _ROOM, CELL - 4, max(0.5, weight * _ROOM), colour))
    parts.append(line(LEFT, base, LEFT + CELL * len(weights), base, TEXT))
    x = LEFT + (asking + 0.5) * CELL
    parts.append(rect(x - 3, base + 3, 6, 6, POINTED if row else FOCUS))
    return "".join(parts)


def said(column: int, title: str, likely: Sequence[tuple[str, float]], colour: str) -> str:
    """Draw the likeliest next letters with their probabilities as bars, in one of three columns."""
    left = LEFT + column * 214
    parts = [text(left - 14, _WORDS, title, "bold")]
    for i, (letter, p) in enumerate(likely):
        base = _WORDS + 24 + 22 * i
        parts.append(text(left - 4, base, letter, "end"))
        parts.append(rect(left + 2, base - 12, max(1.0, p * _BAR), 15, colour))
        parts.append(text(left + 8 + p * _BAR, base, f"{p:.2f}".lstrip("0") if p < 0.995 else "1.00", size=11))
    return "".join(parts)
