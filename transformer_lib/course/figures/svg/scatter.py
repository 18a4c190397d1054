"""Named points in the plane: colour and shape tell their class, and names go beside them where there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .elements import LINE, circle, line, polygon, text, text_width

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SIDE, SIDEBAR, MARGIN = 500, 200, 40
_SMALL = 11
_ARM = ((-1.2, -0.4), (-0.4, -0.4), (-0.4, -1.2))  # a quarter of the cross
_SHAPES = {
    1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    2: [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
    3: [(0, -1.3), (1.1, 0), (0, 1.3), (-1.1, 0)],
    4: [*_ARM, *((-y, x) for x, y in _ARM), *((-x, -y) for x, y in _ARM), *((y, -x) for x, y in _ARM)],
    5: [(0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
}


def mark(kind: int, x: float, y: float, size: float = 5.0) -> str:
    """Draw the mark of a class: circle, square, triangle, diamond, cross, or triangle pointing down."""
    if kind == 0:
        return circle(x, y, size, COLOURS[kind])
    return polygon([(x + size * a, y + size * b) for a, b in _SHAPES[kind]], f'fill="{COLOURS[kind]}"')


def places(points: np.ndarray, reach: float) -> np.ndarray:
    """Return points [n, 2] of a plane that reaches from −reach to reach, as px [n, 2]; up is up."""
    scale = (SIDE / 2 - MARGIN) / (reach or 1.0)
    return np.stack([SIDE / 2 + points[:, 0] * scale, SIDE / 2 - points[:, 1] * scale], axis=1)


def label_places(at: np.ndarray, words: Sequence[str]) -> list[tuple[float, float]]:
    """Return where each name goes (left end of its baseline): the nearest free place around its point.

    Names keep clear of each other and of all points as long as there is room within 150 px.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in at.tolist()]
    chosen = []
    for (x, y), word in zip(at.tolist(), words, strict=True):
        width = text_width(word, _SMALL)
        boxes = [_box(x, y, width, away, turn) for away in range(9, 150, 7) for turn in range(12)]
        inside = [box for box in boxes if min(box[:2]) >= 2 and max(box[2:]) <= SIDE - 2]
        box = next((box for box in inside if not any(_meet(box, other) for other in taken)), inside[0])
        taken.append(box)
        chosen.append((box[0], box[3] - 3))
    return chosen


def _box(x: float, y: float, width: float, away: float, turn: int) -> tuple[float, float, float, float]:
    """Return a name's box at distance ``away`` in one of twelve directions: left, top, right, bottom."""
    angle = math.pi * turn / 6
    across, up = math.cos(angle), math.sin(angle)
    middle_x, middle_y = x + across * (away + width / 2), y - up * (away + 2)
    return middle_x - width / 2, middle_y - 7, middle_x + width / 2, middle_y + 7


def _meet(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def points_part(points: np.ndarray, words: Sequence[str], kinds: Sequence[int], reach: float) -> str:
    """Draw the two axes, the marks, and the names, each with a thin line to its point if it is not beside it."""
    at = places(points, reach)
    middle = SIDE / 2
    axes = line(10, middle, SIDE - 10, middle, LINE) + line(middle, 10, middle, SIDE - 10, LINE)
    marks = [mark(kind, x, y) for kind, (x, y) in zip(kinds, at.tolist(), strict=True)]
    names, leads = [], []
    for (x, y), (left, base), word in zip(at.tolist(), label_places(at, words), words, strict=True):
        names.append(text(left, base, word, size=_SMALL))
        nearest = min(max(x, left), left + text_width(word, _SMALL))
        if math.hypot(nearest - x, base - 4 - y) > 16:
            leads.append(line(x, y, nearest, base - 4, LINE, 'stroke-width="0.8"'))
    return axes + "".join(leads) + "".join(marks) + "".join(names)


def legend_part(names: Sequence[str], facts: Sequence[str]) -> str:
    """Draw the classes with their marks, and below them lines of numbers."""
    parts = []
    for kind, name in enumerate(names):
        parts.append(mark(kind, SIDE + 24, 40 + 24 * kind) + text(SIDE + 40, 44 + 24 * kind, name))
    start = 64 + 24 * len(names)
    parts += [text(SIDE + 18, start + 22 * row, fact, size=_SMALL) for row, fact in enumerate(facts)]
    return "".join(parts)
