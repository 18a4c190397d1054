"""Which head comes first, the one that looks back by one or the one that copies? (notebook 21).

`python -m studies.order` trains two layers with one head each on the letters of `copying`, with and without norms, at
two rates, and writes data/order.json after each run: both heads' scores all along the training. What the file already
has is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib._streams import run_command
from transformer_lib.course.lab import copying
from transformer_lib.course.lab.order import BUDGETS
from transformer_lib.model import circuits

from .engine import Step, Steps, Study

MEASUREMENTS = 160  # in each run, at least
SHARES = (0.25, 0.5)  # of a score's rise
SCORES = ("previous", "first time", "induction")
TESTED = 128  # sequences of those of `copying`
SHORT = 6  # steps of a run that a test repeats


@dataclass(frozen=True)
class Setup:
    """One run: the peak rate, whether there are norms, and the seed of weights and sequences."""

    rate: float
    norm_first: bool
    seed: int


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order."""
    return [Setup(rate, norms, seed) for seed in seeds for norms in (False, True) for rate in BUDGETS]


def first_time(weights: Tensor, periods: Tensor) -> Tensor:
    """Return each head's previous-token score before anything repeats: the mean over queries 0 < t < period.

    Args:
        weights: [batch, n_heads, seq_len, seq_len]. periods: [batch].
    """
    before = torch.arange(1, weights.shape[-1]) < periods[:, None, None]  # [batch, 1, seq_len - 1]
    return (weights.diagonal(-1, -2, -1) * before).sum((0, 2)) / before.sum()


def curves(setup: Setup, steps: int, every: int) -> dict[str, list[float]]:
    """Train a set-up; return loss and scores every `every` steps, the first from before the first step.

    "previous" is the previous-token score of the first layer over all queries, "first time" the same before anything
    repeats, "induction" the induction score of the second layer.
    """
    ids, periods = (each[:TESTED] for each in copying.tested())
    found: dict[str, list[float]] = {name: [] for name in ("loss", *SCORES)}

    def watch(step: int, model: nn.Module) -> None:
        if step % every:
            return
        run = circuits.trace(model, ids)
        scores = {
            "loss": copying.repeat_loss(run.logits, ids, periods),
            "previous": circuits.previous_token_score(run.weights[0]),
            "first time": first_time(run.weights[0], periods),
            "induction": circuits.induction_score(run.weights[1], periods),
        }
        for name, score in scores.items():
            found[name].append(round(score.item(), 4))

    model = copying.new_model(2, 1, setup.seed, norm_first=setup.norm_first)
    copying.fit(model, steps, setup.seed, setup.rate, watch=watch)
    return found


def crossings(curve: Sequence[float], share: float) -> float:
    """Return where a curve has risen by this share of its rise from first to last, counted in measurements.

    Between two measurements the curve is taken as a straight line; the first crossing counts.
    """
    level = curve[0] + share * (curve[-1] - curve[0])
    for index, (low, high) in enumerate(zip(curve, curve[1:], strict=False)):
        if low < level <= high:
            return index + (level - low) / (high - low)
    raise ValueError(f"curve must rise by the share {share}, got {curve[0]} … {curve[-1]}")


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return its curves and where each score crosses each share of its rise, in steps."""
    steps = BUDGETS[setup.rate]
    every = steps // MEASUREMENTS
    found: dict[str, Any] = {"every": every} | curves(setup, steps, every)
    for name in SCORES:
        found[f"{name} crosses"] = {str(share): round(every * crossings(found[name], share), 1) for share in SHARES}
    print(setup, found["loss"][-1], *(found[f"{name} crosses"] for name in SCORES), flush=True)
    return found


def short_run(norm_first: bool) -> dict[str, list[float]]:
    """Return the curves of SHORT steps, seed 0, measured at each: quick to repeat."""
    return curves(Setup(3e-3, norm_first, 0), SHORT, 1)


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    for norms in (False, True):
        yield Step(("short", str(norms)), short_run, norms)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("order", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    run_command(STUDY.main)
