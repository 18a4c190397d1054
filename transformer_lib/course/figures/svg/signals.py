"""What passes through a stack of blocks: curves over the blocks, and a small table of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .charts import DASHES, Axes, Box
from .elements import LINE, line, rect, text, text_width

COLOURS = ("#0072b2", "#d55e00")
WIDTH, HEIGHT = 710, 330
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


def score_table(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]], x: float, y: float) -> str:
    """Draw a framed table: a title, a row of headings, and named rows of short texts; a comma breaks a heading."""
    parts = [rect(x, y, WIDTH - 2 * x, 44 + 18 * (len(rows) + 1), "none", f'rx="5" stroke="{LINE}"')]
    apart = min(116, 520 / max(len(columns), 1))
    parts.append(text(x + 10, y + 18, title, "bold"))
    for line_number, (name, cells) in enumerate({"": columns, **rows}.items()):
        level = y + 38 + 18 * line_number + (12 if name else 0)
        parts.append(text(x + 10, level, name))
        for i, cell in enumerate(cells):
            for below, words in enumerate(cell.split(", ")):
                kind = "mid" if name else "mid soft"
                parts.append(text(x + 150 + apart * i, level + 12 * below, words, kind, size=11))
    return "".join(parts)
