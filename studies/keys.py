"""What must a key know, that one layer of attention copies? Letters that repeat, as in `copying` (notebook 21).

One layer, in which nobody, the queries, the keys or the values are told the previous letter by a table of their own;
and keys that are mixed with the one before them, the "smeared keys" of Olsson et al. (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer_lib.course.lab import copying
from transformer_lib.course.lab import keys as lab

from .engine import Step, Steps, Study, rounded

SHORT = 12  # steps of a run that a test repeats


@dataclass(frozen=True)
class Setup:
    """One run: who knows the previous letter, the steps, the peak rate, and the seed of weights and sequences."""

    who: str
    steps: int
    rate: float
    seed: int


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order: each budget, each seed, each arm."""
    return [Setup(who, *budget, seed) for budget in lab.BUDGETS for seed in seeds for who in lab.ARMS]


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up; return its losses on new strings, at unseen periods, and there without a letter twice."""
    model = lab.new_model(setup.who, setup.seed)
    copying.fit(model, setup.steps, setup.seed, setup.rate)
    tests = {
        "loss": copying.tested(),
        "unseen": copying.tested(copying.UNSEEN),
        "unseen distinct": copying.tested(copying.UNSEEN, distinct=True),
    }
    return {name: copying.loss_of(model, *test) for name, test in tests.items()}


def short(who: str) -> list[float]:
    """Return the losses of the first steps of an arm."""
    return rounded(copying.fit(lab.new_model(who, 0), SHORT))


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    for who in lab.ARMS:
        yield Step(("short", who), short, who)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("keys", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
