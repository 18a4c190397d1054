"""How does a model learn to count in its context? Markov chains, a new one in each sequence (notebook 21).

The task is that of Edelman et al. (2024). `python -m studies.chains` trains one layer and two and writes
data/chains.json after each run: how far the model is from three predictors, all along the training. What the file
already has is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib._streams import run_command
from transformer_lib.course.lab.chains import (
    LENGTH,
    PREDICTORS,
    STATES,
    batch,
    losses_of_predictors,
    next_loss,
    tested,
)
from transformer_lib.course.lab.descending import Watch, descend
from transformer_lib.model.circuits import AttentionOnly

from .engine import Step, Steps, Study

D_MODEL, BATCH_SIZE, WARMUP = 32, 64, 20
RATE = 3e-3
RATES = (1e-3, 3e-3, 1e-2)  # what one layer is given to choose from
STEPS = (1500, 4500)
SHORT = 12  # steps of a run that a test repeats
PREDICTORS: dict[str, Callable[[Tensor, int], Tensor]]


@dataclass(frozen=True)
class Setup:
    """One run: the layers, with one head each, the steps, the peak rate, and the seed of weights and chains."""

    n_layers: int
    steps: int
    rate: float
    seed: int


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order: the shorter budget, the longer one, the other rates."""
    found = [Setup(n, STEPS[0], RATE, seed) for seed in seeds for n in (2, 1)]
    found += [Setup(n, STEPS[1], RATE, seeds[0]) for n in (2, 1)]
    return found + [Setup(1, STEPS[0], rate, seeds[0]) for rate in RATES if rate != RATE]


def measured_at(steps: int) -> list[int]:
    """Return after how many steps a run is measured: often at first, then at every sixtieth part of it."""
    return sorted({*range(0, 50, 5), *range(50, 200, 10), *range(200, steps, steps // 60), steps})


def new_model(n_layers: int, seed: int, n_heads: int = 1) -> AttentionOnly:
    """Return an untrained model with learned positions."""
    torch.manual_seed(seed)
    return AttentionOnly(STATES, n_layers, D_MODEL, n_heads, max_len=LENGTH)


def fit(
    model: nn.Module,
    steps: int,
    seed: int = 0,
    rate: float = RATE,
    *,
    watch: Watch | None = None,
) -> list[float]:
    """Train a model by Adam, with warm-up and a cosine to zero; return the loss of each step.

    Args:
        model: ids [batch, LENGTH] -> logits [batch, LENGTH, STATES]. rate: the peak.
        watch: called with the number of steps done, from 0, and the model, before each step and after the last.
    """
    generator = torch.Generator().manual_seed(seed)

    def loss_of() -> Tensor:
        ids, _ = batch(BATCH_SIZE, generator)
        return next_loss(model(ids), ids)

    return descend(model, loss_of, steps, rate, WARMUP, watch)


@torch.no_grad()
def distances(model: nn.Module, ids: Tensor) -> dict[str, float]:
    """Return how far a model is from each predictor: the mean of KL(predictor ‖ model) over all positions, in nats.

    Args:
        ids: [batch, seq_len].
    """
    log_p = model(ids).log_softmax(dim=-1)
    found = {name: predict(ids, STATES) for name, predict in PREDICTORS.items()}
    return {name: (p * (p.log() - log_p)).sum(dim=-1).mean().item() for name, p in found.items()}


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up; return its last loss on the tested chains and the distances all along."""
    model, (ids, _), at = new_model(setup.n_layers, setup.seed), tested(), measured_at(setup.steps)
    found: dict[str, Any] = {"after": at} | {name: [] for name in PREDICTORS}

    def watch(step: int, model: nn.Module) -> None:
        if step in at:
            for name, distance in distances(model, ids).items():
                found[name].append(round(distance, 4))

    fit(model, setup.steps, setup.seed, setup.rate, watch=watch)
    with torch.no_grad():
        found["loss"] = round(next_loss(model(ids), ids).item(), 4)
    print(setup, found["loss"], *(found[name][-1] for name in PREDICTORS), flush=True)
    return found


def short_run(n_layers: int) -> list[float]:
    """Return the losses of SHORT steps, seed 0: quick to repeat."""
    return [round(loss, 4) for loss in fit(new_model(n_layers, 0), SHORT)]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    yield Step("losses", losses_of_predictors)
    for layers in (1, 2):
        yield Step(("short", str(layers)), short_run, layers)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("chains", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    run_command(STUDY.main)
