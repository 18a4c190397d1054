"""A patient's chart: training curves, and how much a second pass differs from the first at each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .elements import LINE, line, rect, text
from .run_curves import COLOURS, curve_chart, legend

WIDTH, HEIGHT = 640, 330


def curves(log: Mapping[str, Sequence[float]], control: Mapping[str, Sequence[float]], name: str) -> str:
    """Draw a patient's loss (left) and accuracy (right) over the steps, and the control's in the second colour."""
    parts = []
    for key, x, high in (("loss", 50, 4.0), ("accuracy", 370, 1.0)):
        last = len(log[key])
        steps = range(1, last + 1)
        pair = {name: (steps, log[key]), "control": (steps, control[key])}  # one curve where both are the control
        parts.append(text(x, 16, f"{key}, as its script reports it", "bold"))
        parts.append(curve_chart(pair, (x, 30, 240, 220), high=high, step=last, last=last))
        parts.append(text(x + 240, 264, f"step {last}", "end soft", size=11))
    return "".join(parts) + legend(list(dict.fromkeys([name, "control"])), 50, 300)


def bars(title: str, changes: Sequence[float], control: Sequence[float], places: Sequence[str], name: str) -> str:
    """Draw bars per place: the patient's with numbers, and beside them the control's or another patient's."""
    top, shown = max(*changes, *control, 0.1), 1 if name == "control" else 2
    x, y, height, step = 60.0, 40.0, 200.0, 560 / len(changes)
    parts = [text(x, 16, title, "bold"), line(x, y + height, x + 560, y + height, LINE)]
    for level, mark in ((y, f"{top:.2g}"), (y + height, "0")):
        parts.append(text(x - 6, level + 4, mark, "end soft", size=11))
    for i, (value, other, place) in enumerate(zip(changes, control, places, strict=True)):
        left = x + step * i + 6
        pair = [(0.0, value, COLOURS[0]), (0.42 * step, other, COLOURS[1])]
        for shift, size, colour in pair[:shown]:
            tall = max(height * size / top, 0.7)
            parts.append(rect(left + shift, y + height - tall, 0.38 * step, tall, colour))
        parts.append(text(left + 0.19 * step, y + height - height * value / top - 4, f"{value:.1f}", "mid", size=11))
        parts.append(text(left + 0.4 * step, y + height + 16, place, "mid soft", size=11))
    parts.append(rect(x, 286, 10, 10, COLOURS[0]) + text(x + 16, 296, name))
    if shown == 2:
        parts.append(rect(x + 120, 286, 10, 10, COLOURS[1]) + text(x + 136, 296, "control"))
    return "".join(parts)
