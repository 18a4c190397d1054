"""Bars in a strip and small line charts, to be put together into a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .elements import LINE, TEXT, line, number, rect, text, text_width

DASHES = ("", "6 4", "2 3")


def bar_strip(
    values: np.ndarray,
    colours: Sequence[str],
    box: tuple[float, float, float, float],
    limits: tuple[float, float],
) -> str:
    """Draw one bar per value inside ``box`` (x, y, width, height), from 0 up or down; ``limits`` bound the axis."""
    x, y, width, height = box
    low, high = limits
    step = width / len(values)
    zero = y + height * high / (high - low)
    parts = [line(x, zero, x + width, zero, LINE)]
    for i, (value, colour) in enumerate(zip(values, colours, strict=True)):
        tall = abs(min(max(value, low), high)) / (high - low) * height
        top = zero - tall if value > 0 else zero
        parts.append(rect(x + i * step, top, max(1.0, step - 1), max(tall, 0.7), colour))
    for tick in sorted({low, high, 0.0}):
        at = y + height * (high - tick) / (high - low)
        parts.append(text(x - 5, at + 4, f"{tick:g}".replace("-", "−"), "end soft", size=11))
    return "".join(parts)


def log_chart(
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    box: tuple[float, float, float, float],
    *,
    high: float,
    colours: Sequence[str],
    marked: tuple[float, float] | None = None,
) -> str:
    """Draw lines over a logarithmic x, from 0 to ``high``, told apart by colour and dash, with their names below.

    ``box`` is (x, y, width, height); ``marked`` is one point (x, y) to stand out.
    """
    x, y, width, height = box
    span = math.log(xs[-1] / xs[0])

    def place(a: float, b: float) -> tuple[float, float]:
        return x + width * math.log(a / xs[0]) / span, y + height * (1 - min(b, high) / high)

    parts = [line(x, y, x, y + height, LINE), line(x, y + height, x + width, y + height, LINE)]
    start = x
    for tick in (0.0, high):
        parts.append(text(x - 5, place(xs[0], tick)[1] + 4, f"{tick:g}", "end soft", size=11))
    for tick in xs[::2]:
        parts.append(text(place(tick, 0)[0], y + height + 14, f"{tick:g}", "mid soft", size=11))
    for (name, ys), dash, colour in zip(series.items(), DASHES, colours, strict=False):
        points = " ".join(",".join(map(number, place(a, b))) for a, b in zip(xs, ys, strict=True))
        look = f'fill="none" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" stroke="{colour}" {look}/>')
        parts.append(line(start, y + height + 27, start + 26, y + height + 27, colour, look))
        parts.append(text(start + 32, y + height + 31, name, size=11))
        start += 48 + text_width(name, 11)
    if marked:
        cx, cy = map(number, place(*marked))
        parts.append(f'<circle cx="{cx}" cy="{cy}" r="6" fill="none" stroke="{TEXT}" stroke-width="2.5"/>')
    return "".join(parts)
