"""A training run to look back on: curves with a mark at one step, and what was translated by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .elements import LINE, SOFT, TEXT, fit, line, number, rect, text, text_width

COLOURS = ("#0072b2", "#d55e00")
"""Of the two runs; the second is dashed too."""

_DASHES = ("", "5 3")
Curve = tuple[Sequence[float], Sequence[float]]


def curve_chart(
    curves: Mapping[str, Curve], box: tuple[float, float, float, float], *, high: float, step: float, last: float
) -> str:
    """Draw curves {name: (steps, values)} from 0 to ``high`` over the steps 0 to ``last``; rings mark ``step``.

    ``box`` is (x, y, width, height). Values above ``high`` are drawn at the upper edge.
    """
    x, y, width, height = box

    def place(at: float, value: float) -> tuple[str, str]:
        return number(x + width * at / last), number(y + height * (1 - min(value, high) / high))

    parts = [line(x, y, x, y + height, LINE), line(x, y + height, x + width, y + height, LINE)]
    for value in (0.0, high):
        parts.append(text(x - 5, y + height * (1 - value / high) + 4, f"{value:g}", "end soft", size=11))
    for tick in range(0, int(last) + 1, 250):
        parts.append(text(x + width * tick / last, y + height + 14, f"{tick:,}", "mid soft", size=11))
    here = x + width * step / last
    parts.append(line(here, y, here, y + height, SOFT, 'stroke-dasharray="2 3"'))
    rings = []
    for (steps, values), colour, dash in zip(curves.values(), COLOURS, _DASHES, strict=False):
        points = " ".join(",".join(place(a, b)) for a, b in zip(steps, values, strict=True))
        look = f'fill="none" stroke-width="1.5" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" stroke="{colour}" {look}/>')
        cx, cy = place(step, values[list(steps).index(step)])
        rings.append(f'<circle cx="{cx}" cy="{cy}" r="5" fill="none" stroke="{TEXT}" stroke-width="2"/>')
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
