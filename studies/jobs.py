"""Does the job decide where *saw* lies? One model, two jobs, three rates, two budgets (notebook 05)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

from transformer_lib.course.lab import jobs as lab

from .engine import Step, Steps, Study

RATES = (3e-3, lab.LEARNING_RATE, 2e-2)
BUDGETS = (lab.STEPS, 3 * lab.STEPS)


def run(job: str, rate: float, seed: int) -> dict[str, Any]:
    """Train once; return how many forms have their partner, and one of their own tense, nearest after each budget."""
    tables = lab.train(lab.JOBS[job], seed, rate, BUDGETS)
    counted = {"partners": lab.partners, "same_tense": lab.same_tense}
    return {name: [count(table) for table in tables] for name, count in counted.items()}


def steps(seeds: Sequence[int]) -> Steps:
    """Train for both jobs at every rate."""
    for job, rate, seed in itertools.product(lab.JOBS, RATES, seeds):
        setup = {"job": job, "rate": rate, "seed": seed}
        yield Step(("runs", setup), partial(run, **setup))


STUDY = Study("jobs", __doc__, steps, by_seed=True)


if __name__ == "__main__":
    STUDY.command()
