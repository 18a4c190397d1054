"""A position as clock hands: the map of encodings, their similarity, one dial per pair of features."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..plotting.base import signed_text
from .cells import cells
from .charts import Axes
from .colours import PUOR, signed_levels
from .elements import FOCUS, LINE, TEXT, arrow, circle, line, number, polyline, rect, ring, text

FROM, TO = "#0072b2", "#d55e00"  # position p, position p + k
LEFT, CELL = 92, 10  # x of the map, side of its squares
_RADIUS = 46


def encoding_map(table: np.ndarray, y: float, p: int, q: int, pair: int) -> str:
    """Draw the encodings [n_positions, d_model], positions to the right; frame p, q and the features of ``pair``."""
    positions, features = table.shape
    levels = signed_levels(table.T, 1.0)
    parts = [cells(levels, PUOR, np.ones(levels.shape, dtype=bool), LEFT, y, CELL)]
    for feature in range(features):
        name = f"{'cos' if feature % 2 else 'sin'} {feature // 2}"
        kind = "end bold" if feature // 2 == pair else "end soft"
        parts.append(text(LEFT - 6, y + (feature + 0.5) * CELL + 4, name, kind, size=11))
    thin = f'stroke="{TEXT}" stroke-width="1.5"'
    parts.append(rect(LEFT, y + 2 * pair * CELL, positions * CELL, 2 * CELL, "none", thin))
    for position, colour in ((p, FROM), (q, TO)):
        frame = f'stroke="{colour}" stroke-width="2.5"'
        parts.append(rect(LEFT + position * CELL, y - 2, CELL, features * CELL + 4, "none", frame))
    parts.append(_mark(p, "p", y - 6) + (_mark(q, "p + k", y - 6 if abs(q - p) > 3 else y - 20) if q != p else ""))
    return "".join(parts)


def _mark(position: int, label: str, y: float) -> str:
    return text(LEFT + (position + 0.5) * CELL, y, label, "mid bold", size=11)


def similarity_curve(values: np.ndarray, y: float, height: float, p: int, q: int, limits: tuple[float, float]) -> str:
    """Draw PE(p) · PE(q) over all q on the axis of the map, with rings at p and q; ``limits`` bound the values."""
    n, high = len(values), limits[1]
    axes = Axes((LEFT, y, n * CELL, height), (-0.5, n - 0.5), limits)  # a position is the middle of its column
    parts = [line(*axes.place(-0.5, 0), *axes.place(n - 0.5, 0)), line(LEFT, y, LEFT, y + height)]
    parts.append(axes.levels({level: f"{level:g}" for level in (0.0, high / 2, high)}, apart=6))
    parts.append(axes.ticks({position: position for position in range(0, n, 10)}))
    parts.append(axes.curve(range(n), values, f'fill="none" stroke="{TEXT}" stroke-width="1.5"'))
    parts += [ring(*axes.place(position, values[position]), colour, 2.5) for position, colour in ((p, FROM), (q, TO))]
    return "".join(parts)


def dial(x: float, y: float, angles: tuple[float, float], label: str, chosen: bool) -> str:
    """Draw one pair as a clock around (x, y): two hands at these angles, clockwise from the top, and the turn between.

    A hand's tip is (sin, cos) of its angle, to the right and up: the two features of the pair.
    """
    parts = [ring(x, y, *((FOCUS, 3) if chosen else (LINE, 1.2)), _RADIUS)]
    parts.append(line(x, y - _RADIUS, x, y - _RADIUS + 6, LINE))
    parts.append(_sector(x, y, *angles))
    for angle, colour, reach in ((angles[0], FROM, 0.78), (angles[1], TO, 0.95)):
        tip = x + reach * _RADIUS * math.sin(angle), y - reach * _RADIUS * math.cos(angle)
        parts.append(arrow(x, y, *tip, colour, 3))
    parts.append(text(x, y + _RADIUS + 18, label, "mid bold" if chosen else "mid"))
    return "".join(parts)


def _sector(x: float, y: float, start: float, end: float) -> str:
    """Draw the turn from one hand to the other as a pale slice; a turn of more than 360° is the whole disc."""
    reach = 0.6 * _RADIUS
    pale = 'fill-opacity=".22"'
    if abs(end - start) >= 2 * math.pi:
        return circle(x, y, reach, TO, pale)
    corners = [(x + reach * math.sin(a), y - reach * math.cos(a)) for a in (start, end)]
    (x1, y1), (x2, y2) = ((number(a), number(b)) for a, b in corners)
    turns = f"{int(abs(end - start) > math.pi)} {int(end > start)}"  # the longer way, and clockwise
    arc = f"A{number(reach)} {number(reach)} 0 {turns} {x2} {y2}"
    return f'<path d="M{number(x)} {number(y)}L{x1} {y1}{arc}Z" fill="{TO}" {pale}/>'


def rotation_line(matrix: np.ndarray, start: Sequence[float], end: Sequence[float], x: float, y: float) -> str:
    """Write matrix [2, 2] times column = column, with brackets, at (x, y)."""
    parts, left = [], x
    for block in (matrix, np.array(start)[:, None], None, np.array(end)[:, None]):
        if block is None:
            parts.append(text(left + 4, y + 18, "=", "mid bold"))
            left += 18
            continue
        width = 40 * block.shape[1] + 6
        for edge, inward in ((left, 5), (left + width, -5)):
            corners = [(edge + inward, y - 4), (edge, y - 4), (edge, y + 34), (edge + inward, y + 34)]
            parts.append(polyline(corners, f'fill="none" stroke="{TEXT}"'))
        for i, j in np.ndindex(block.shape):
            parts.append(text(left + 40 * (j + 1) + 1, y + 10 + 18 * i, signed_text(float(block[i, j])), "end"))
        left += width + 10
    return "".join(parts)
