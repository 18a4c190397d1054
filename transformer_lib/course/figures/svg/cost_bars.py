"""What a stack costs, drawn: a bar of shares, lines over the length, and a table of bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .charts import Axes, Box
from .elements import LINE, TEXT, line, rect, ring, text, text_width
from .signals import power

WIDTH, HEIGHT = 710, 340
PARTS = {"projections": "#0072b2", "pairs (scores, blends)": "#d55e00", "feed-forward": "#009e73"}


def share_bar(parts: Mapping[str, int], x: float, y: float, width: float) -> str:
    """Draw one bar divided by share; below it are each part's name and per cent, with a square of its colour."""
    total, start, label = sum(parts.values()), x, x
    drawn = []
    for name, value in parts.items():
        wide = width * value / total
        drawn.append(rect(start, y, max(wide - 1, 0.5), 20, PARTS[name]))
        words = f"{name} {100 * value / total:.1f} %"
        drawn += [rect(label, y + 28, 11, 11, PARTS[name]), text(label + 17, y + 38, words)]
        start, label = start + wide, label + 41 + text_width(words)
    return "".join(drawn)


def length_chart(
    lengths: Sequence[int],
    series: Mapping[str, tuple[Sequence[int], str]],
    box: Box,
    *,
    here: int,
    crossing: int,
) -> str:
    """Draw multiply-adds against length on logarithmic axes; `series` gives each name its values and colour.

    A dashed line marks `crossing`, if it lies within the axis, and a ring on each line marks the length `here`.
    """
    x, y, _, height = box
    values = [value for ys, _ in series.values() for value in ys]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    axes = Axes(box, (lengths[0], lengths[-1]), (low, high), log_x=True)
    parts = [line(x, y, x, y + height, LINE)]
    parts.append(axes.levels({exponent: power(exponent) for exponent in range(low, high + 1, 2)}, "", 6))
    parts.append(axes.ticks({n: f"{n:,}" for n in lengths[::4]}, 16))
    if lengths[0] <= crossing <= lengths[-1]:
        at, _ = axes.place(crossing, low)
        parts.append(line(at, y, at, y + height, TEXT, 'stroke-dasharray="4 4"'))
        parts.append(text(at, y - 5, f"crossover {crossing:,}", "mid", size=11))
    for i, (ys, colour) in enumerate(series.values()):
        dash = "" if i == 0 else ' stroke-dasharray="7 4"'
        look = f'fill="none" stroke-width="2.5" stroke="{colour}"{dash}'
        parts.append(axes.curve(lengths, map(math.log10, ys), look))
        there = ys[lengths.index(here)] if here in lengths else _between(lengths, ys, here)
        parts.append(ring(*axes.place(here, math.log10(there))))
    return "".join(parts) + _legend(series, x, y + height + 32)


def _between(lengths: Sequence[int], ys: Sequence[int], here: int) -> float:
    """Return the height of the drawn line at `here`: straight between two marked lengths on logarithmic axes."""
    after = next(i for i, n in enumerate(lengths) if n >= here)
    along = math.log(here / lengths[after - 1]) / math.log(lengths[after] / lengths[after - 1])
    return ys[after - 1] * (ys[after] / ys[after - 1]) ** along


def _legend(series: Mapping[str, tuple[Sequence[int], str]], x: float, y: float) -> str:
    parts = []
    for i, (name, (_, colour)) in enumerate(series.items()):
        look = 'stroke-width="2.5"' + ("" if i == 0 else ' stroke-dasharray="7 4"')
        parts += [line(x, y, x + 28, y, colour, look), text(x + 34, y + 4, name, size=11)]
        x += 50 + text_width(name, 11)
    return "".join(parts)


def byte_table(title: str, rows: Mapping[str, str], x: float, y: float, width: float) -> str:
    """Draw a framed table: a title, and rows of a name and a size."""
    parts = [rect(x, y, width, 34 + 24 * len(rows), "none", f'rx="5" stroke="{LINE}"')]
    parts.append(text(x + 10, y + 20, title, "bold"))
    for i, (name, size) in enumerate(rows.items()):
        parts.append(text(x + 10, y + 46 + 24 * i, name, size=11))
        parts.append(text(x + width - 10, y + 46 + 24 * i, size, "end"))
    return "".join(parts)
