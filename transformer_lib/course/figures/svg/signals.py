"""What passes through a stack of blocks: curves over the blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .charts import DASHES, Axes, Box
from .elements import LINE, line, text, text_width

COLOURS = ("#0072b2", "#d55e00")
WIDTH, HEIGHT = 710, 222
REACHES = (2, 5, 10, 15, 30, 60, 110, 300)
"""The largest powers of ten that the axis may show."""


def reach(exponents: Sequence[float]) -> int:
    """Return the smallest of REACHES that holds every exponent, up or down; the largest when none does."""
    most = max(map(abs, exponents))
    return next((limit for limit in REACHES if most <= limit), REACHES[-1])


def power(exponent: int) -> str:
    """Write a power of ten as text: "1", or "10" with its exponent raised."""
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if exponent else "1"


def block_chart(
    series: Mapping[str, Sequence[float]],
    box: Box,
    ticks: Mapping[float, str],
) -> str:
    """Draw lines over block 0 (the input), 1, 2, …, told apart by colour and dash, with their names below.

    ``box`` is (x, y, width, height); ``ticks`` are the marked heights with their labels, and their ends those of
    the axis; what lies beyond is drawn at the edge.
    """
    x, y, width, height = box
    last = len(next(iter(series.values()))) - 1
    axes = Axes(box, (0, last), (min(ticks), max(ticks)))
    parts = [line(x, y, x, y + height, LINE), axes.levels(ticks, "", 6)]
    parts.append(axes.ticks({i: i for i in sorted({0, last // 2, last})}, 16))
    parts.append(text(x + width / 2, y + height + 31, "after block", "mid soft", size=11))
    start = x
    for (name, values), dash, colour in zip(series.items(), DASHES, COLOURS, strict=False):
        look = f'fill="none" stroke-width="2.5" stroke-dasharray="{dash}"'
        parts.append(axes.curve(range(last + 1), values, f'stroke="{colour}" {look}'))
        parts.append(line(start, y + height + 45, start + 26, y + height + 45, colour, look))
        parts.append(text(start + 32, y + height + 49, name, size=11))
        start += 44 + text_width(name, 11)
    return "".join(parts)
