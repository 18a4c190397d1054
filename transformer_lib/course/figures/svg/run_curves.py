"""A training run to look back on: curves with a mark at one step, and what was translated by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .charts import Axes, Box
from .elements import SOFT, fit, line, rect, ring, text, text_width

COLOURS = ("#0072b2", "#d55e00")
"""Of the two runs; the second is dashed too."""

_DASHES = ("", "5 3")
Curve = tuple[Sequence[float], Sequence[float]]


def curve_chart(curves: Mapping[str, Curve], box: Box, *, high: float, step: float, last: float) -> str:
    """Draw curves {name: (steps, values)} from 0 to ``high`` over the steps 0 to ``last``; rings mark ``step``.

    ``box`` is (x, y, width, height). Values above ``high`` are drawn at the upper edge.
    """
    axes = Axes(box, (0, last), (0.0, 1.0))  # of the height, in shares of ``high``
    parts = [axes.frame(), axes.levels({0.0: "0", 1.0: f"{high:g}"})]
    parts.append(axes.ticks({tick: f"{tick:,}" for tick in range(0, int(last) + 1, 250)}))
    parts.append(line(*axes.place(step, 1.0), *axes.place(step, 0), SOFT, 'stroke-dasharray="2 3"'))
    rings = []
    for (steps, values), colour, dash in zip(curves.values(), COLOURS, _DASHES, strict=False):
        look = f'fill="none" stroke-width="1.5" stroke-dasharray="{dash}"'
        parts.append(axes.curve(steps, (value / high for value in values), f'stroke="{colour}" {look}'))
        rings.append(ring(*axes.place(step, values[list(steps).index(step)] / high)))
    return "".join(parts + rings)


def legend(names: Sequence[str], x: float, y: float) -> str:
    """Write the names of the runs, each with a piece of its line."""
    parts = []
    for name, colour, dash in zip(names, COLOURS, _DASHES, strict=False):
        parts.append(line(x, y - 4, x + 26, y - 4, colour, f'stroke-width="2.5" stroke-dasharray="{dash}"'))
        parts.append(text(x + 32, y, name))
        x += 56 + text_width(name)
    return "".join(parts)


def sample_lines(
    sentences: Sequence[str], references: Sequence[str], said: Sequence[Sequence[str]], y: float, width: float
) -> str:
    """Write each sentence with the translation of each run; a right one has a tick and is bold."""
    parts = []
    for i, (sentence, reference) in enumerate(zip(sentences, references, strict=True)):
        top = y + 58 * i
        parts.append(text(10, top, sentence, "soft"))
        for row, (translations, colour) in enumerate(zip(said, COLOURS, strict=False)):
            right = translations[i] == reference
            parts.append(rect(12, top + 9 + 17 * row, 8, 8, colour))
            parts.append(text(26, top + 17 + 17 * row, "✓" if right else "·"))
            shown = fit(translations[i] or "(nothing)", width - 50)
            parts.append(text(42, top + 17 + 17 * row, shown, "bold" if right else ""))
    return "".join(parts)
