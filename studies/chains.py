"""How does a model learn to count in its context? Markov chains, a new one in each sequence (notebook 21).

The task is that of Edelman et al. (2024). All along the training, the distance of one layer and of two from three
predictors is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.course.lab import chains as lab
from transformer_lib.course.lab.descending import Watch, descend
from transformer_lib.model.circuits import AttentionOnly

from .engine import Step, Steps, Study, rounded

D_MODEL, BATCH_SIZE, WARMUP = 32, 64, 20
RATE = 3e-3
RATES = (1e-3, 3e-3, 1e-2)  # what one layer is given to choose from
STEPS = (1500, 4500)
SHORT = 12  # steps of a run that a test repeats


@dataclass(frozen=True)
class Setup:
    """One run: the layers, with one head each, the steps, the peak rate, and the seed of weights and chains."""

    n_layers: int
    steps: int
    rate: float
    seed: int


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order: the shorter budget, the longer one, the other rates."""
    runs = [Setup(n, STEPS[0], RATE, seed) for seed in seeds for n in (2, 1)]
    runs += [Setup(n, STEPS[1], RATE, seeds[0]) for n in (2, 1)]
    return runs + [Setup(1, STEPS[0], rate, seeds[0]) for rate in RATES if rate != RATE]


def measured_at(steps: int) -> list[int]:
    """Return after how many steps a run is measured: often at first, then at every sixtieth part of it."""
    return sorted({*range(0, 50, 5), *range(50, 200, 10), *range(200, steps, steps // 60), steps})


def new_model(n_layers: int, seed: int, n_heads: int = 1) -> AttentionOnly:
    """Return an untrained model with learned positions."""
    torch.manual_seed(seed)
    return AttentionOnly(lab.STATES, n_layers, D_MODEL, n_heads, max_len=lab.LENGTH)


def fit(model: nn.Module, steps: int, seed: int = 0, rate: float = RATE, watch: Watch | None = None) -> list[float]:
    """Train a model of chains as `descend` does, from the peak `rate`; return the loss of each step."""
    generator = torch.Generator().manual_seed(seed)

    def loss_of() -> Tensor:
        ids, _ = lab.batch(BATCH_SIZE, generator)
        return lab.next_loss(model(ids), ids)

    return descend(model, loss_of, steps, rate, WARMUP, watch)


@torch.no_grad()
def distances(model: nn.Module, ids: Tensor) -> dict[str, float]:
    """Return how far a model is from each predictor: the mean of KL(predictor ‖ model) over all positions, in nats.

    Args:
        ids: [batch, seq_len].
    """
    log_p = model(ids).log_softmax(dim=-1)
    predicted = {name: predict(ids, lab.STATES) for name, predict in lab.PREDICTORS.items()}
    return {name: (p * (p.log() - log_p)).sum(dim=-1).mean().item() for name, p in predicted.items()}


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up; return its last loss on the tested chains and the distances all along."""
    model, (ids, _), at = new_model(setup.n_layers, setup.seed), lab.tested(), measured_at(setup.steps)
    curves: dict[str, Any] = {"after": at} | {name: [] for name in lab.PREDICTORS}

    def watch(step: int, model: nn.Module) -> None:
        if step in at:
            for name, distance in distances(model, ids).items():
                curves[name].append(round(distance, 4))

    fit(model, setup.steps, setup.seed, setup.rate, watch)
    with torch.no_grad():
        curves["loss"] = round(lab.next_loss(model(ids), ids).item(), 4)
    return curves


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    yield Step("losses", lab.losses_of_predictors)
    for layers in (1, 2):
        yield Step(("short", str(layers)), lambda n_layers: rounded(fit(new_model(n_layers, 0), SHORT)), layers)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("chains", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
