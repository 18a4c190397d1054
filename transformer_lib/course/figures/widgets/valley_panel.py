"""W35, a narrow valley: how SGD, momentum and Adam walk in it, with the rate, the memory and the noise to choose."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...lab.valley import CURVATURES, OPTIMIZERS, loss, walk
from ..svg.descent import descent_map, loss_curve
from ..svg.elements import Picture
from .controls import choice, number, switch
from .panel import Panel

LAST = 90
NOISE = 4.0  # the standard deviation that the switch adds to each number of a gradient
LIMITS = ((-4.6, 2.6), (-2.2, 2.2))
_LEVELS = (100.0, 50.0, 20.0, 8.0, 3.0, 1.0, 0.2)


def valley(
    optimizer: str = "SGD", rate: float = 0.03, memory: float = 0.9, steps: int = 30, noise: bool = False
) -> Panel:
    """Show the walk of an optimiser in the valley ½ (x² + 50 y²), and its loss step by step."""
    controls = {
        "optimizer": choice("optimiser", OPTIMIZERS, optimizer),
        "rate": number("learning rate", rate, 1 / 1024, 1.0, powers=True),
        "memory": number("memory β₁", memory, 0.0, 0.98, 0.02),
        "steps": number("steps", steps, 0, LAST, 1),
        "noise": switch("noise on every gradient", noise),
    }
    few = {
        "rate": [2.0**k for k in range(-8, 1)],
        "memory": (0.0, 0.5, 0.9, 0.98),
        "steps": (0, 1, 2, 5, 10, 30, LAST),
    }
    return Panel(draw_valley, controls, widget_id="W35", carried=few)


def draw_valley(optimizer: str, rate: float, memory: float, steps: int, noise: bool) -> Picture:
    """Draw the path on the map of the loss, and the loss step by step. SGD has no memory."""
    path = walk(optimizer, rate, steps, memory, NOISE * noise)
    with np.errstate(over="ignore"):  # a rate that is too large soon leaves every number
        losses = np.minimum(loss(path), 1e300)
    drawn = descent_map(_outlines(), path, (0.0, 0.0), LIMITS, ("x", "y")) + loss_curve(losses, LAST)
    kept = "" if optimizer == "SGD" else f", memory {memory:g}"
    ends = [f"x {_brief(x)}, y {_brief(y)}, loss {_brief(lost)}" for (x, y), lost in zip(path, losses, strict=True)]
    says = f"{optimizer}, rate {rate:g}{kept}, {steps} steps{', noise' * noise}: from {ends[0]} to {ends[-1]}"
    alt = f"Map of a narrow valley, lowest at x 0, y 0, and the path of an optimiser in it. {says}."
    shown = [step for step in (0, 1, 2, 5, 10, 20, 30, 60, 90) if step <= steps]
    rows = [[step, *map(_brief, (*path[step], losses[step]))] for step in shown]
    return Picture(drawn, 714, 412, alt, says, table=[["step", "x", "y", "loss"], *rows])


@cache
def _outlines() -> dict[float, list[np.ndarray]]:
    """Return the lines of equal loss, which are ellipses."""
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return {level: [circle * np.sqrt(2 * level / CURVATURES)] for level in _LEVELS}


def _brief(value: float) -> str:
    small = 0 < abs(value) < 0.005
    return (f"{value:.0e}" if small or abs(value) >= 1e5 else f"{value:.2f}").replace("-", "−")
