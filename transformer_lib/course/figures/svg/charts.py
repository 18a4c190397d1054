"""What small charts share: the axes of a box, bars in a strip, lines over a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .elements import LINE, line, polyline, rect, ring, text, text_width

DASHES = ("", "6 4", "2 3")
Box = tuple[float, float, float, float]  # x, y, width, height


@dataclass(frozen=True)
class Axes:
    """The box of a chart, with the ends of its two axes; what lies above or below them is drawn at the edge."""

    box: Box
    across: tuple[float, float]
    up: tuple[float, float]
    log_x: bool = False

    def place(self, across: float, up: float) -> tuple[float, float]:
        """Return where a point is drawn, in px."""
        (x, y, width, height), (low, high) = self.box, self.up
        at, first, last = map(math.log, (across, *self.across)) if self.log_x else (across, *self.across)
        return x + width * (at - first) / (last - first), y + height * (high - min(max(up, low), high)) / (high - low)

    def frame(self) -> str:
        """Draw the left and the lower edge."""
        x, y, width, height = self.box
        return line(x, y, x, y + height) + line(x, y + height, x + width, y + height)

    def levels(self, labels: Mapping[float, object], grid: str | None = None, apart: float = 5) -> str:
        """Label heights at the left edge, each with a line across if ``grid`` is its look."""
        x, _, width, _ = self.box
        parts = []
        for level, label in labels.items():
            y = self.place(self.across[0], level)[1]
            parts.append("" if grid is None else line(x, y, x + width, y, LINE, grid))
            parts.append(text(x - apart, y + 4, label, "end soft", size=11))
        return "".join(parts)

    def ticks(self, labels: Mapping[float, object], below: float = 14) -> str:
        """Label places below the lower edge."""
        y = self.box[1] + self.box[3] + below
        return "".join(text(self.place(tick, 0)[0], y, label, "mid soft", size=11) for tick, label in labels.items())

    def curve(self, xs: Iterable[float], ys: Iterable[float], look: str) -> str:
        """Draw a line through points."""
        return polyline((self.place(*point) for point in zip(xs, ys, strict=True)), look)


def bar_strip(values: np.ndarray, colours: Sequence[str], box: Box, limits: tuple[float, float]) -> str:
    """Draw one bar per value inside ``box``, from 0 up or down; ``limits`` bound the axis."""
    x, y, width, height = box
    low, high = limits
    step = width / len(values)
    zero = y + height * high / (high - low)
    parts = [line(x, zero, x + width, zero, LINE)]
    for i, (value, colour) in enumerate(zip(values, colours, strict=True)):
        tall = abs(min(max(value, low), high)) / (high - low) * height
        top = zero - tall if value > 0 else zero
        parts.append(rect(x + i * step, top, max(1.0, step - 1), max(tall, 0.7), colour))
    labels = {tick: f"{tick:g}".replace("-", "−") for tick in sorted({low, high, 0.0})}
    return "".join(parts) + Axes(box, (0, 1), limits).levels(labels)


def log_chart(
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    box: Box,
    *,
    high: float,
    colours: Sequence[str],
    marked: tuple[float, float] | None = None,
) -> str:
    """Draw lines over a logarithmic x, from 0 to ``high``, told apart by colour and dash, with their names below.

    ``box`` is (x, y, width, height); ``marked`` is one point (x, y) to stand out.
    """
    axes = Axes(box, (xs[0], xs[-1]), (0.0, high), log_x=True)
    parts = [axes.frame(), axes.levels({0.0: "0", high: f"{high:g}"}), axes.ticks({x: f"{x:g}" for x in xs[::2]})]
    start, y = box[0], box[1] + box[3] + 27
    for (name, ys), dash, colour in zip(series.items(), DASHES, colours, strict=False):
        look = f'fill="none" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(axes.curve(xs, ys, f'stroke="{colour}" {look}'))
        parts += [line(start, y, start + 26, y, colour, look), text(start + 32, y + 4, name, size=11)]
        start += 48 + text_width(name, 11)
    if marked:
        parts.append(ring(*axes.place(*marked), width=2.5, radius=6))
    return "".join(parts)
