"""A loss over two numbers as a map: lines of equal loss, the path of the steps, and the loss beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .charts import Axes
from .elements import LINE, TEXT, circle, line, number, polygon, polyline, rect, ring, text

PATH = "#d55e00"
_LAND = "#0072b2"
_FRAME = (52.0, 30.0, 376.0, 336.0)  # x, y, width, height of the map
_CURVE = (492.0, 60.0, 200.0, 230.0)  # and of the loss step by step
_POWERS = (-4, 4)  # the loss is drawn from 10⁻⁴ to 10⁴
_FAR = 1e6  # px: what is further out is drawn there, since a diverging path leaves every picture

Limits = tuple[tuple[float, float], tuple[float, float]]


def descent_map(
    outlines: Mapping[float, Sequence[np.ndarray]],
    path: np.ndarray,
    lowest: Sequence[float],
    limits: Limits,
    names: tuple[str, str] = ("sharpness c", "fee b"),
) -> str:
    """Draw the map of a loss and a path on it.

    Args:
        outlines: {loss: closed lines [n, 2] around the places where it is smaller}, from large to small.
        path: the two numbers before the first step and after each, [steps + 1, 2].
        lowest: where the loss is smallest, [2].
        limits: (low, high) of each number; the first goes right, the second up.
        names: of the two numbers.
    """
    x, y, width, height = _FRAME
    land = _land(outlines, limits)
    cx, cy = _places(np.array([lowest]), limits)[0]
    heavy = 'stroke-width="2"'
    cross = line(cx - 6, cy, cx + 6, cy, TEXT, heavy) + line(cx, cy - 6, cx, cy + 6, TEXT, heavy)
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    inside = f'<svg {size} overflow="hidden">{land}{cross}{_walk(path, limits)}</svg>'  # it cuts what is outside
    return inside + rect(*_FRAME, "none", f'stroke="{LINE}"') + _ticks(limits, names)


def loss_curve(losses: np.ndarray, last: int) -> str:
    """Draw the loss before each step and after the last, on a logarithmic axis over the steps 0 to `last`."""
    x, y, width, height = _CURVE
    axes = Axes(_CURVE, (0, last), _POWERS)
    labels = {-4: "0.0001", -2: "0.01", 0: "1", 2: "100", 4: "10,000"}
    drawn = [axes.frame(), axes.levels(labels, 'stroke-width="0.6" stroke-dasharray="2 3"')]
    drawn.append(axes.ticks({step: step for step in range(0, last + 1, last // 3)}, 15))
    powers = np.log10(np.maximum(losses, 10.0 ** _POWERS[0]))
    drawn.append(axes.curve(range(len(losses)), powers, f'fill="none" stroke="{PATH}" stroke-width="2"'))
    drawn.append(circle(*axes.place(len(losses) - 1, powers[-1]), 4, PATH))
    drawn.append(text(x + width / 2, y + height + 32, "step →", "mid soft", size=11))
    return "".join(drawn) + text(x - 40, y - 30, "loss at each step", "bold")


def _places(values: np.ndarray, limits: Limits) -> np.ndarray:
    """Return where pairs of numbers [n, 2] lie within the map, in px from its upper left corner."""
    _, _, width, height = _FRAME
    (left, right), (low, high) = limits
    across = width * (values[:, 0] - left) / (right - left)
    down = height * (high - values[:, 1]) / (high - low)
    return np.clip(np.stack([across, down], axis=1), -_FAR, _FAR)


def _land(outlines: Mapping[float, Sequence[np.ndarray]], limits: Limits) -> str:
    """Draw the lines of equal loss; at the top of each its loss, unless that would lie on the number before."""
    look = f'fill="{_LAND}" fill-opacity=".09" stroke="{_LAND}" stroke-opacity=".6"'
    drawn: list[str] = []
    labelled: list[np.ndarray] = []
    for loss, lines in outlines.items():
        for places in lines:
            at = _places(places, limits)
            drawn.append(polygon(at.tolist(), look))
            top = at[at[:, 1].argmin()]
            if top[1] > 16 and all(abs(top[1] - y) >= 13 or abs(top[0] - x) >= 26 for x, y in labelled):
                labelled.append(top)
                drawn.append(text(top[0] + 3, top[1] - 3, f"{loss:g}", "mid soft", size=11))
    return "".join(drawn)


def _walk(path: np.ndarray, limits: Limits) -> str:
    """Draw the steps, a ring around the start, and the last place as a large dot."""
    at = _places(path, limits).tolist()
    drawn = [polyline(at, f'fill="none" stroke="{PATH}" stroke-width="1.6"')]
    drawn += [circle(*place, 2.2, PATH) for place in at[1:-1]]
    drawn += [ring(*at[0], radius=6), circle(*at[-1], 5, PATH, f'stroke="{TEXT}"')]
    return "".join(drawn)


def _ticks(limits: Limits, names: tuple[str, str]) -> str:
    x, y, width, height = _FRAME
    across, up = (
        {tick: f"{tick}".replace("-", "−") for tick in range(math.ceil(low), math.floor(high) + 1)}
        for low, high in limits
    )
    axes = Axes(_FRAME, *limits)
    drawn = [axes.ticks(across, 15), axes.levels(up, apart=6)]
    drawn.append(text(x + width / 2, y + height + 32, f"{names[0]} →", "mid"))
    drawn.append(text(16, y + height / 2, f"{names[1]} →", "mid", turn=-90))
    drawn.append(text(x, 16, "lines of equal loss; ○ start, ● last step, + lowest", "bold"))
    return "".join(drawn)
