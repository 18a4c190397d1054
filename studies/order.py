"""Which head comes first, the one that looks back by one or the one that copies? (notebook 21)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

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
    scores_of: dict[str, list[float]] = {name: [] for name in ("loss", *SCORES)}

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
            scores_of[name].append(round(score.item(), 4))

    model = copying.new_model(2, 1, setup.seed, norm_first=setup.norm_first)
    copying.fit(model, steps, setup.seed, setup.rate, watch=watch)
    return scores_of


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
    result: dict[str, Any] = {"every": every} | curves(setup, steps, every)
    for name in SCORES:
        result[f"{name} crosses"] = {str(share): round(every * crossings(result[name], share), 1) for share in SHARES}
    return result


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    for norms in (False, True):
        yield Step(("short", str(norms)), curves, Setup(3e-3, norms, 0), SHORT, 1)
    for seed, norms, rate in itertools.product(seeds, (False, True), BUDGETS):
        setup = Setup(rate, norms, seed)
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("order", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
