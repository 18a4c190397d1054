"""A narrow valley, and how optimisers walk in it (notebook 13): the loss ½ (x² + 50 y²) of two numbers x and y."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

CURVATURES = np.array([1.0, 50.0])  # along the valley, and across
START = (-4.0, 1.0)
OPTIMIZERS = ("SGD", "momentum", "Adam")
BETA_2, EPS = 0.98, 1e-9
NOISE, RATE, RUNS = 8.0, 0.03, 200  # of the task to plan a rate: deviation of a gradient, peak, walks


def loss(places: Any) -> Any:
    """Return the loss [...] of places [..., 2]: an array, or a tensor."""
    x, y = places[..., 0], places[..., 1]
    return (CURVATURES[0] * x**2 + CURVATURES[1] * y**2) / 2


def walk(optimizer: str, rate: float, steps: int, memory: float = 0.9, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Return the places [steps + 1, 2] before the first step and after each.

    Args:
        optimizer: one of OPTIMIZERS. memory: the share of the past that is kept: of momentum, and Adam's β₁.
        noise: the standard deviation of what is added to each number of each gradient.

    Raises:
        ValueError: another optimizer.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {', '.join(map(repr, OPTIMIZERS))}, got {optimizer!r}")
    random, at = np.random.default_rng(seed), np.array(START)
    path, mean, square = [at], np.zeros(2), np.zeros(2)
    for step in range(1, steps + 1):
        gradient = CURVATURES * at + noise * random.normal(size=2)
        if optimizer == "Adam":
            mean = memory * mean + (1 - memory) * gradient
            square = BETA_2 * square + (1 - BETA_2) * gradient**2
            move = mean / (1 - memory**step) / (np.sqrt(square / (1 - BETA_2**step)) + EPS)
        else:
            move = mean = (memory if optimizer == "momentum" else 0.0) * mean + gradient
        at = at - rate * move
        path.append(at)
    return np.array(path)


def after(plan: Sequence[float]) -> float:
    """Return the mean loss after SGD in a noisy valley, its rate RATE times each entry of `plan` in turn."""
    random, at = np.random.default_rng(0), np.tile(START, (RUNS, 1))
    for share in plan:
        at = at - RATE * share * (CURVATURES * at + NOISE * random.normal(size=(RUNS, 2)))
    return float(loss(at).mean())
