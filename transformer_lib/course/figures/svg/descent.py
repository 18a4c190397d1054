"""A loss over two numbers as a map: lines of equal loss, the path of the steps, and the loss beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .elements import LINE, TEXT, line, number, text

PATH = "#d55e00"
_LAND = "#0072b2"
_FRAME = (52.0, 30.0, 376.0, 336.0)  # x, y, width, height of the map
_CURVE = (492.0, 60.0, 200.0, 230.0)  # and of the loss step by step
_POWERS = (-4, 4)  # the loss is drawn from 10⁻⁴ to 10⁴
_FAR = 1e6  # px: what is further out is drawn there, since a diverging path leaves every picture

Limits = tuple[tuple[float, float], tuple[float, float]]


def descent_map(
    outlines: Mapping[float, Sequence[np.ndarray]], path: np.ndarray, lowest: Sequence[float], limits: Limits
) -> str:
    """Draw the map of a loss and a path on it.

    Args:
        outlines: {loss: closed lines [n, 2] around the places where it is smaller}, from large to small.
        path: the two numbers before the first step and after each, [steps + 1, 2].
        lowest: where the loss is smallest, [2].
        limits: (low, high) of each number; the first goes right, the second up.
    """
    x, y, width, height = _FRAME
    land = "".join(_outline(loss, places, limits) for loss, lines in outlines.items() for places in lines)
    cx, cy = _places(np.array([lowest]), limits)[0]
    cross = line(cx - 6, cy, cx + 6, cy, TEXT, 'stroke-width="2"') + line(
        cx, cy - 6, cx, cy + 6, TEXT, 'stroke-width="2"'
    )
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    inside = f'<svg {size} overflow="hidden">{land}{cross}{_walk(path, limits)}</svg>'  # it cuts what is outside
    border = f'<rect {size} fill="none" stroke="{LINE}"/>'
    return inside + border + _ticks(limits)


def loss_curve(losses: np.ndarray, last: int) -> str:
    """Draw the loss before each step and after the last, on a logarithmic axis over the steps 0 to `last`."""
    x, y, width, height = _CURVE
    low, high = _POWERS

    def place(step: float, power: float) -> tuple[float, float]:
        return x + width * step / last, y + height * (high - min(max(power, low), high)) / (high - low)

    drawn = [line(x, y, x, y + height, LINE), line(x, y + height, x + width, y + height, LINE)]
    for power, label in zip(range(low, high + 1, 2), ("0.0001", "0.01", "1", "100", "10,000"), strict=True):
        at = place(0, power)[1]
        drawn.append(line(x, at, x + width, at, LINE, 'stroke-width="0.6" stroke-dasharray="2 3"'))
        drawn.append(text(x - 5, at + 4, label, "end soft", size=11))
    for step in range(0, last + 1, last // 3):
        drawn.append(text(place(step, 0)[0], y + height + 15, step, "mid soft", size=11))
    powers = np.log10(np.maximum(losses, 10.0**low))
    points = " ".join(f"{number(a)},{number(b)}" for a, b in (place(*pair) for pair in enumerate(powers)))
    drawn.append(f'<polyline points="{points}" fill="none" stroke="{PATH}" stroke-width="2"/>')
    cx, cy = place(len(losses) - 1, powers[-1])
    drawn.append(f'<circle cx="{number(cx)}" cy="{number(cy)}" r="4" fill="{PATH}"/>')
    drawn.append(text(x + width / 2, y + height + 32, "step →", "mid soft", size=11))
    return "".join(drawn) + text(x - 40, y - 30, "loss at each step", "bold")


def _places(values: np.ndarray, limits: Limits) -> np.ndarray:
    """Return where pairs of numbers [n, 2] lie within the map, in px from its upper left corner."""
    _, _, width, height = _FRAME
    (left, right), (low, high) = limits
    across = width * (values[:, 0] - left) / (right - left)
    down = height * (high - values[:, 1]) / (high - low)
    return np.clip(np.stack([across, down], axis=1), -_FAR, _FAR)


def _points(at: np.ndarray) -> str:
    return " ".join(f"{number(a)},{number(b)}" for a, b in at.tolist())


def _outline(loss: float, line_of_equal: np.ndarray, limits: Limits) -> str:
    at = _places(line_of_equal, limits)
    look = f'fill="{_LAND}" fill-opacity=".09" stroke="{_LAND}" stroke-opacity=".6"'
    top = at[at[:, 1].argmin()]
    label = text(top[0] + 3, top[1] - 3, f"{loss:g}", "mid soft", size=11) if top[1] > 16 else ""
    return f'<polygon points="{_points(at)}" {look}/>{label}'


def _walk(path: np.ndarray, limits: Limits) -> str:
    """Draw the steps, a ring around the start, and the last place as a large dot."""
    at = _places(path, limits)
    drawn = [f'<polyline points="{_points(at)}" fill="none" stroke="{PATH}" stroke-width="1.6"/>']
    drawn += [f'<circle cx="{number(a)}" cy="{number(b)}" r="2.2" fill="{PATH}"/>' for a, b in at[1:-1].tolist()]
    (a, b), (c, d) = at[0].tolist(), at[-1].tolist()
    drawn.append(f'<circle cx="{number(a)}" cy="{number(b)}" r="6" fill="none" stroke="{TEXT}" stroke-width="2"/>')
    drawn.append(f'<circle cx="{number(c)}" cy="{number(d)}" r="5" fill="{PATH}" stroke="{TEXT}"/>')
    return "".join(drawn)


def _ticks(limits: Limits) -> str:
    x, y, width, height = _FRAME
    (left, right), (low, high) = limits
    drawn = []
    for tick in range(math.ceil(left), math.floor(right) + 1):
        at = x + width * (tick - left) / (right - left)
        drawn.append(text(at, y + height + 15, f"{tick}".replace("-", "−"), "mid soft", size=11))
    for tick in range(math.ceil(low), math.floor(high) + 1):
        at = y + height * (high - tick) / (high - low)
        drawn.append(text(x - 6, at + 4, f"{tick}".replace("-", "−"), "end soft", size=11))
    drawn.append(text(x + width / 2, y + height + 32, "sharpness c →", "mid"))
    drawn.append(text(16, y + height / 2, "fee b →", "mid", turn=-90))
    drawn.append(text(x, 16, "lines of equal loss; ○ start, ● last step, + lowest", "bold"))
    return "".join(drawn)
