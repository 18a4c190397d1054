"""W26, gradient descent on the loss of the smallest lookup that can learn: its sharpness and a fee."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..plotting.base import softmax
from ..svg.descent import descent_map, loss_curve
from ..svg.elements import Picture
from .controls import number
from .panel import Panel

# Notebook 01's price list and what a stall asks for something sweet and for something sour. The scores of these two
# questions are how sweet and how sour the entries are.
SCORES = np.array([[3.0, 1.0, 0.0, -1.0], [0.0, 2.0, 3.0, 1.0]])
PRICES = np.array([9.0, 3.0, 2.0, 1.0])
WANTED = np.array([7.2, 3.8])
LAST = 60
LIMITS = ((-1.2, 3.7), (-2.3, 4.3))
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LEVELS = (32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.1)


def gradient_descent(rate: float = 0.05, steps: int = 20, sharpness: float = 1.0, fee: float = 0.0) -> Panel:
    """Show gradient descent on a loss of two numbers, with the learning rate, the steps and the start to choose."""
    controls = {
        "rate": number("learning rate", rate, 1 / 1024, 2.0, powers=True),
        "steps": number("steps", steps, 0, LAST, 1),
        "sharpness": number("start at c", sharpness, -1.0, 3.5, 0.5),
        "fee": number("start at b", fee, -2.0, 4.0, 0.5),
    }
    few = {"steps": (0, 1, 2, 3, 10, 20, 40, LAST), "sharpness": (-1.0, 1.0, 2.0, 3.5), "fee": (-2.0, 0.0, 2.0, 4.0)}
    return Panel(draw_descent, controls, widget_id="W26", carried=few)


def loss_and_gradient(sharpness: float, fee: float) -> tuple[float, np.ndarray]:
    """Return the mean squared error of both quotes, and its derivatives with respect to sharpness and fee, [2]."""
    quotes, slopes = _quotes(np.array([sharpness]))
    errors = quotes[0] + fee - WANTED
    return float(np.mean(errors**2)), np.array([np.mean(2 * errors * slopes[0]), np.mean(2 * errors)])


def descend(rate: float, steps: int, sharpness: float, fee: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the two numbers [steps + 1, 2] before the first step and after each, and the loss there [steps + 1]."""
    at = np.array([sharpness, fee])
    path, losses = [], []
    for _ in range(steps + 1):
        loss, gradient = loss_and_gradient(*at)
        path.append(at)
        losses.append(loss)
        at = at - rate * gradient
    return np.array(path), np.array(losses)


def draw_descent(rate: float, steps: int, sharpness: float, fee: float) -> Picture:
    """Draw the path on the map of the loss, and the loss step by step."""
    path, losses = descend(rate, steps, sharpness, fee)
    drawn = descent_map(_outlines(), path, lowest(), LIMITS) + loss_curve(losses, LAST)
    numbers = [[_brief(value) for value in (*place, loss)] for place, loss in zip(path, losses, strict=True)]
    start, end = ("c {}, b {}, loss {}".format(*numbers[i]) for i in (0, -1))
    says = f"learning rate {rate:g}, steps {steps}: from {start} to {end}"
    c, b = lowest()
    alt = f"Map of the loss over sharpness c and fee b, lowest at c {c:.2f}, b {b:.2f}. "
    alt += f"Path of gradient descent, {says}."
    rows = [[step, *numbers[step]] for step in (0, 1, 2, 3, 5, 10, 20, 40, 60) if step <= steps]
    return Picture(drawn, 714, 412, alt, says, table=[["step", "c", "b", "loss"], *rows])


@cache
def lowest() -> tuple[float, float]:
    """Return the sharpness and the fee at which the loss is smallest."""
    c, b = descend(0.05, 1000, 1.0, 0.0)[0][-1]
    return float(c), float(b)


def _quotes(sharpness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two quotes without a fee, and how fast they rise with the sharpness, both [n, 2]."""
    weights = softmax(sharpness[:, None, None] * SCORES)  # [n, 2 questions, 4 entries]
    above = SCORES - (weights * SCORES).sum(axis=-1, keepdims=True)
    return weights @ PRICES, (weights * above) @ PRICES


def _misses(sharpness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each sharpness the loss with the best fee, and that fee: what is missing on average."""
    missing = WANTED - _quotes(sharpness)[0]
    return missing.var(axis=1), missing.mean(axis=1)


@cache
def _outlines() -> dict[float, list[np.ndarray]]:
    """Return the lines of equal loss. With the best fee m(c) the loss is v(c), so elsewhere v(c) + (b − m(c))²."""
    sharpness = np.linspace(LIMITS[0][0] - 0.1, LIMITS[0][1] + 0.1, 161)
    left, best = _misses(sharpness)
    outlines = {}
    for level in _LEVELS:
        inside = np.flatnonzero(left < level)
        runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
        outlines[level] = [_closed(sharpness[run], best[run], np.sqrt(level - left[run])) for run in runs if len(run)]
    return outlines


def _closed(sharpness: np.ndarray, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return the upper edge from left to right, then the lower one back, [2 n, 2]."""
    across = np.concatenate([sharpness, sharpness[::-1]])
    return np.stack([across, np.concatenate([middle + half, (middle - half)[::-1]])], axis=1)


def _brief(value: float) -> str:
    """Write a number with two decimals, a small one with more, a huge one as a power of ten."""
    size = abs(value)
    if size >= 1e5:
        digits, power = f"{value:.1e}".split("e+")
        return f"{digits} × 10{power.lstrip('0').translate(_RAISED)}".replace("-", "−")
    return (f"{value:.4f}" if 5e-5 <= size < 0.1 else f"{value + 0.0:.2f}").replace("-", "−")
