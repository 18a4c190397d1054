"""W28, the way back: the gradient through a decoder layer of a real model, fork by fork, soundly or with a slip."""

from __future__ import annotations

import numpy as np

from ...lab import gradient_slips, walking_back
from ..svg import walking_back as drawing
from ..svg.elements import Picture
from .controls import number
from .panel import Panel

SLIPS = tuple(gradient_slips.SLIPS)
STOPS = 7


def backward_walk(*, step: int = 1, slip: int = 0) -> Panel:
    """Walk back through the first decoder layer of a model that learns to reverse letters; plant a slip.

    ``slip`` counts the slips of notebook 18 from 1; 0 is none. Raises ValueError when step is not 1 to 7 or slip not
    0 to 9.
    """
    controls = {"step": number("step back", step, 1, STOPS), "slip": number("slip (0: none)", slip, 0, len(SLIPS) - 1)}
    return Panel(draw_back, controls, widget_id="W28", says_lines=2)


def draw_back(step: int, slip: int) -> Picture:
    """Draw one stop: the gradients there, how long each is, and how far off with the slip."""
    name = SLIPS[slip]
    sound, slipped = walking_back.walk()[step - 1], walking_back.walk(name)[step - 1]
    unit = _length(walking_back.walk()[0].gradients["arrives"])
    rows = []
    for part, right in sound.gradients.items():
        wrong = slipped.gradients[part]
        off = _length(wrong - right) / _length(right)
        rows.append((part, _length(right) / unit, _length(wrong) / unit, off if off > 1e-6 else 0.0))
    groups = walking_back.wrong_arrays(name)
    body = drawing.layer(step) + drawing.bars(sound.title, rows) + drawing.tally(name, groups)
    wrong_count, count = (sum(pair[index] for pair in groups.values()) for index in (0, 1))
    spoken = [f"{part} {right:.2f}{f', off by {off:.0%}' if off else ''}" for part, right, _, off in rows]
    here = f"step {step} of {STOPS}, {sound.title}: {'; '.join(spoken)}"
    says = f"{here}. Slip: {name}, {wrong_count} of {count} arrays wrong"
    table = [["gradient", "sound", "with the slip", "off by"]]
    table += [[part, f"{right:.2f}", f"{wrong:.2f}", f"{off:.0%}"] for part, right, wrong, off in rows]
    alt = f"A decoder layer with arrows down, and the lengths of the gradients at one stop. {says}."
    return Picture(body, drawing.WIDTH, drawing.HEIGHT, alt, says, table=table)


def _length(g: np.ndarray) -> float:
    return float(np.linalg.norm(g))
