"""How the models of notebook 21 are trained: Adam, a new batch at each step, and a look at the model if wanted."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...training.schedules import make_schedule

Watch = Callable[[int, nn.Module], None]
"""Called with the number of steps done, from 0, and the model, before each step and after the last."""


def descend(
    model: nn.Module, loss_of: Callable[[], Tensor], steps: int, rate: float, warmup: int, watch: Watch | None = None
) -> list[float]:
    """Train a model by Adam, with warm-up and a cosine to zero; return the loss of each step.

    Args:
        loss_of: returns the model's loss on a batch of its own, a scalar. rate: the peak.
    """
    adam, losses = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), fused=True), []
    # a cosine asks for no width
    rate_of = make_schedule("cosine", total_steps=steps, learning_rate=rate, warmup_steps=warmup, d_model=1)
    for step in range(1, steps + 1):
        if watch:
            watch(step - 1, model)
        for group in adam.param_groups:
            group["lr"] = rate_of(step)
        loss = loss_of()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    if watch:
        watch(steps, model)
    return losses
