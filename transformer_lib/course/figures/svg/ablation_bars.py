"""Scores as dots, one row per part of the model, against the line of the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .elements import LINE, TEXT, circle, line, rect, text

DOT, WHOLE = "#d55e00", "#0072b2"
ROW = 27
_SHADE = "#8883"


def row_names(names: Sequence[str], chosen: str, y: float, width: float) -> str:
    """Draw the names at the left, the chosen one bold on a band across the picture."""
    parts = []
    for i, name in enumerate(names):
        if name == chosen:
            parts.append(rect(4, y + i * ROW, width - 8, ROW, _SHADE))
        parts.append(text(12, y + i * ROW + ROW / 2 + 4, name, "bold" if name == chosen else ""))
    return "".join(parts)


def dot_rows(rows: Mapping[str, Sequence[float]], whole: Sequence[float], x: float, y: float, width: float) -> str:
    """Draw one dot per value from 0 (at x) to 1 (at x + width), row under row.

    ``whole`` are the whole model's values: their mean is a dashed line. Dots of a row differ a little in
    height, in their order, so that equal ones are seen.
    """
    bottom = y + ROW * len(rows)
    parts = [line(x, bottom, x + width, bottom, LINE)]
    for tick in (0.0, 0.5, 1.0):
        parts.append(line(x + width * tick, y, x + width * tick, bottom, LINE, 'stroke-width="0.6"'))
        parts.append(text(x + width * tick, bottom + 15, f"{tick:g}", "mid soft", size=11))
    mean = x + width * sum(whole) / len(whole)
    parts.append(line(mean, y, mean, bottom, WHOLE, 'stroke-width="2" stroke-dasharray="5 3"'))
    for i, values in enumerate(rows.values()):
        middle = y + ROW * (i + 0.5)
        for j, value in enumerate(values):
            apart = 14 * (j / (len(values) - 1) - 0.5) if len(values) > 1 else 0.0
            parts.append(_dot(x + width * value, middle + apart))
    return "".join(parts)


def _dot(x: float, y: float) -> str:
    return circle(x, y, 4, DOT, f'stroke="{TEXT}" stroke-width="0.7"')


def key(x: float, y: float, dots: str, whole: str) -> str:
    """Explain what a dot and the dashed line are."""
    parts = [_dot(x + 5, y - 4), text(x + 16, y, dots, "soft")]
    start = x + 40 + 6.5 * len(dots)
    parts.append(line(start, y - 4, start + 26, y - 4, WHOLE, 'stroke-width="2" stroke-dasharray="5 3"'))
    return "".join([*parts, text(start + 32, y, whole, "soft")])
