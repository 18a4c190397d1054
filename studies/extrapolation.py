"""Which positions work, and which beyond the trained length? Copying the token two back (notebook 06)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from transformer_lib.course.lab import extrapolation as lab

from .engine import Step, Steps, Study, rounded

CHANCE = 1 / lab.SYMBOLS
MEASURES = ("accuracy", "windowed", "weight", "score")


def _test_ids(examples: int) -> Tensor:
    return torch.randint(lab.SYMBOLS, (examples, lab.TESTED), generator=torch.Generator().manual_seed(lab.TESTED))


@torch.no_grad()
def accuracy(copier: lab.Copier, examples: int = 500, window: int = lab.TESTED) -> list[float]:
    """Return the share of right answers at each position from BACK to TESTED − 1, on new rows of TESTED symbols.

    Attention is causal, so the answers up to position TRAINED − 1 are those to rows of the trained length. With
    window=TRAINED no token is farther back than in training.
    """
    ids = _test_ids(examples)
    right = copier(ids, window)[:, lab.BACK :].argmax(dim=-1) == ids[:, : -lab.BACK]
    return [round(share, 3) for share in right.double().mean(dim=0).tolist()]


def _looking_head(weights: Tensor) -> int:
    """Return the head of weights [batch, n_heads, length, length] that looks `BACK` positions back most."""
    return int(weights.mean(dim=0).diagonal(-lab.BACK, dim1=-2, dim2=-1).mean(dim=-1).argmax())


@torch.no_grad()
def weight_on_answer(copier: lab.Copier, examples: int = 500) -> list[float]:
    """Return the mean weight on the token BACK positions before, in the head that looks there most, by position.

    The positions are those of `accuracy`.
    """
    weights = copier.weights(_test_ids(examples))
    looked = weights[:, _looking_head(weights)].mean(dim=0).diagonal(-lab.BACK)  # [positions from BACK on]
    return [round(weight, 3) for weight in looked.tolist()]


@torch.no_grad()
def score_by_offset(copier: lab.Copier, examples: int = 500) -> list[float]:
    """Return how far the last position's score for the token k back is above that for BACK, for k from 0 to TESTED − 1.

    Means over the examples, in the head of `weight_on_answer`. The logarithms of two weights of a row differ by their
    scores' difference; a weight that rounds to 0 counts as the smallest number of its type.
    """
    weights = copier.weights(_test_ids(examples))
    last = weights[:, _looking_head(weights), -1].clamp_min(torch.finfo(weights.dtype).tiny)
    last = last.double().log().flip(-1)  # [examples, positions back]
    return [round(score, 2) for score in (last - last[:, lab.BACK, None]).mean(dim=0).tolist()]


def measure(copier: lab.Copier) -> dict[str, list[float]]:
    """Return {one of MEASURES: its list}."""
    results = (
        accuracy(copier),
        accuracy(copier, window=lab.TRAINED),
        weight_on_answer(copier),
        score_by_offset(copier),
    )
    return dict(zip(MEASURES, results, strict=True))


@lru_cache(maxsize=1)
def measured_at_budgets(scheme: str, seed: int) -> dict[int, dict[str, list[float]]]:
    """Train once, and return {steps: what `measure` finds after them}."""
    return {
        steps: measure(copier)
        for steps, copier in zip(lab.BUDGETS, lab.train_copier(scheme, seed, lab.BUDGETS), strict=True)
    }


def measured_after(number: int, scheme: str, seed: int) -> dict[str, list[float]]:
    """Return what `measure` finds after this number of steps."""
    return measured_at_budgets(scheme, seed)[number]


def hands_after(number: int, seed: int, examples: int = 500) -> dict[str, list[list[float]]]:
    """Train a rotary copier for this number of steps; return the waves of which its looking head's scores are made."""
    *_, copier = lab.train_copier("rotary", seed, (number,))
    with torch.no_grad():
        waves = copier.hands(_looking_head(copier.weights(_test_ids(examples))))
    return {"waves": rounded(waves, 3)}


def steps(seeds: Sequence[int]) -> Steps:
    """Train every scheme with every seed, and look at the hands of the rotary ones."""
    for seed, scheme, number in itertools.product(seeds, lab.SCHEMES, lab.BUDGETS):
        where = ("runs", {"scheme": scheme, "seed": seed, "steps": number})
        yield Step(where, measured_after, number, scheme, seed)
    for seed, number in itertools.product(seeds, lab.BUDGETS):
        yield Step(("hands", {"seed": seed, "steps": number}), hands_after, number, seed)


LENGTHS = {"trained": lab.TRAINED, "tested": lab.TESTED, "budgets": list(lab.BUDGETS)}
STUDY = Study("extrapolation", __doc__, steps, by_seed=True, constants=LENGTHS)


if __name__ == "__main__":
    STUDY.command()
