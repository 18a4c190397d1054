"""Which positions work, and which beyond the trained length? Copying the token two back (notebook 06).

`python -m studies.extrapolation` trains every scheme, measures it after 500 and 2,500 steps, and writes
data/extrapolation.json after each training; what the file already has is not trained again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor

from transformer_lib._streams import run_command
from transformer_lib.course.lab.extrapolation import (
    BACK,
    BUDGETS,
    SCHEMES,
    SYMBOLS,
    TESTED,
    TRAINED,
    Copier,
    train_copier,
)

from .engine import Step, Steps, Study

CHANCE = 1 / SYMBOLS
MEASURES = ("accuracy", "windowed", "weight", "score")


def _test_ids(examples: int) -> Tensor:
    return torch.randint(SYMBOLS, (examples, TESTED), generator=torch.Generator().manual_seed(TESTED))


@torch.no_grad()
def accuracy(copier: Copier, examples: int = 500, window: int = TESTED) -> list[float]:
    """Return the share of right answers at each position from BACK to TESTED − 1, on new rows of TESTED symbols.

    Attention is causal, so the answers up to position TRAINED − 1 are those to rows of the trained length. With
    window=TRAINED no token is farther back than in training.
    """
    ids = _test_ids(examples)
    right = copier(ids, window)[:, BACK:].argmax(dim=-1) == ids[:, :-BACK]
    return [round(share, 3) for share in right.double().mean(dim=0).tolist()]


def _looking_head(weights: Tensor) -> int:
    """Return the head of weights [batch, n_heads, length, length] that looks `BACK` positions back most."""
    return int(weights.mean(dim=0).diagonal(-BACK, dim1=-2, dim2=-1).mean(dim=-1).argmax())


@torch.no_grad()
def weight_on_answer(copier: Copier, examples: int = 500) -> list[float]:
    """Return the mean weight on the token BACK positions before, in the head that looks there most, by position.

    The positions are those of `accuracy`.
    """
    weights = copier.weights(_test_ids(examples))
    looked = weights[:, _looking_head(weights)].mean(dim=0).diagonal(-BACK)  # [positions from BACK on]
    return [round(weight, 3) for weight in looked.tolist()]


@torch.no_grad()
def score_by_offset(copier: Copier, examples: int = 500) -> list[float]:
    """Return how far the last position's score for the token k back is above that for BACK, for k from 0 to TESTED − 1.

    Means over the examples, in the head of `weight_on_answer`. The logarithms of two weights of a row differ by their
    scores' difference; a weight that rounds to 0 counts as the smallest number of its type.
    """
    weights = copier.weights(_test_ids(examples))
    last = weights[:, _looking_head(weights), -1].clamp_min(torch.finfo(weights.dtype).tiny)
    last = last.double().log().flip(-1)  # [examples, positions back]
    return [round(score, 2) for score in (last - last[:, BACK, None]).mean(dim=0).tolist()]


def measure(copier: Copier) -> dict[str, list[float]]:
    """Return {one of MEASURES: its list}."""
    found = (accuracy(copier), accuracy(copier, window=TRAINED), weight_on_answer(copier), score_by_offset(copier))
    return dict(zip(MEASURES, found, strict=True))


@lru_cache(maxsize=1)
def measured_at_budgets(scheme: str, seed: int) -> dict[int, dict[str, list[float]]]:
    """Train once, and return {steps: what `measure` finds after them}."""
    return {steps: measure(copier) for steps, copier in zip(BUDGETS, train_copier(scheme, seed, BUDGETS), strict=True)}


def run_setup(scheme: str, seed: int, steps: int) -> dict[str, list[float]]:
    """Return what is measured of a copier after this number of steps."""
    return measured_at_budgets(scheme, seed)[steps]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every scheme with every seed."""
    for seed, scheme, number in itertools.product(seeds, SCHEMES, BUDGETS):
        setup = {"scheme": scheme, "seed": seed, "steps": number}
        yield Step(("runs", setup), partial(run_setup, **setup))


LENGTHS = {"trained": TRAINED, "tested": TESTED, "budgets": list(BUDGETS)}
STUDY = Study("extrapolation", __doc__, steps, by_seed=True, constants=LENGTHS)


if __name__ == "__main__":
    run_command(STUDY.main)
