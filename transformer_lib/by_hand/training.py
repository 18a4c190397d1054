"""How the parameters learn: Adam, gradient clipping, and a learning rate that warms up and falls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from .blocks import Parameters
from .model import Sizes, loss_and_gradients
from .parts import Array, Ids


def adam_step(
    parameter: Array,
    g: Array,
    mean: Array,
    square: Array,
    step: int,
    rate: float,
    beta_1: float = 0.9,
    beta_2: float = 0.98,
    eps: float = 1e-9,
) -> tuple[Array, Array, Array]:
    """Return θ − rate · m̂ / (√v̂ + ε), m and v, where m̂ = m / (1 − β₁ᵗ) and v̂ = v / (1 − β₂ᵗ) at step t, from 1."""
    mean = beta_1 * mean + (1 - beta_1) * g
    square = beta_2 * square + (1 - beta_2) * g**2
    corrected = mean / (1 - beta_1**step)  # both began at 0, and are still too small
    size = np.sqrt(square / (1 - beta_2**step)) + eps
    return parameter - rate * corrected / size, mean, square


class Adam:
    """Adam with bias correction (Kingma and Ba 2015, algorithm 1); β and ε as in Vaswani et al. (2017), §5.3.

    Args:
        parameters: a dictionary whose arrays `step` replaces.
    """

    def __init__(self, parameters: Parameters, betas: tuple[float, float] = (0.9, 0.98), eps: float = 1e-9) -> None:
        self.parameters, self.betas, self.eps = parameters, betas, eps
        self.steps = 0
        self.mean = {name: np.zeros_like(array) for name, array in parameters.items()}  # of the gradients
        self.square = {name: np.zeros_like(array) for name, array in parameters.items()}  # mean of their squares

    def step(self, gradients: Parameters, rate: float) -> None:
        """Take one step with every parameter that has a gradient."""
        self.steps += 1
        for name, g in gradients.items():
            before = self.parameters[name], g, self.mean[name], self.square[name]
            after = adam_step(*before, self.steps, rate, *self.betas, self.eps)
            self.parameters[name], self.mean[name], self.square[name] = after


def clip(gradients: Parameters, max_norm: float = 1.0) -> Parameters:
    """Return the gradients, scaled down together so that their norm is at most `max_norm`."""
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients.values()))
    scale = min(1.0, max_norm / (norm + 1e-6))  # as PyTorch's clip_grad_norm_
    return {name: g * scale for name, g in gradients.items()}


def cosine_rate(step: int, total_steps: int, peak: float, warmup_steps: int) -> float:
    """Return the rate of a step, from 1: a linear rise to `peak` at warmup_steps, then a cosine towards 0."""
    if step <= warmup_steps:
        return peak * step / warmup_steps
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps + 1)
    return peak * (1 + math.cos(math.pi * done)) / 2


def train(
    parameters: Parameters,
    sizes: Sizes,
    batches: Iterable[tuple[Ids, Ids]],
    rate: Callable[[int], float],
    *,
    label_smoothing: float = 0.0,
    clip_norm: float | None = 1.0,
) -> list[float]:
    """Take one step per batch, replacing the arrays in `parameters`; return the loss of each.

    Args:
        batches: (src [batch, src_len], tgt [batch, tgt_len + 1]), tgt from bos to eos. rate: of a step, from 1.
        clip_norm: the gradient is clipped to this norm; None leaves it as it is.
    """
    adam, losses = Adam(parameters), []
    for step, (src, tgt) in enumerate(batches, start=1):
        loss, gradients = loss_and_gradients(parameters, sizes, src, tgt, label_smoothing)
        adam.step(gradients if clip_norm is None else clip(gradients, clip_norm), rate(step))
        losses.append(loss)
    return losses
