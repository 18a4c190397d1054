"""Which positions let a head look as far back as the word says? Tokens such as "b3" (notebook 06)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from transformer_lib.course.lab import look_back as lab

from .engine import Step, Steps, Study

ARMS = (*((scheme, 1) for scheme in lab.SCHEMES), ("relative", lab.FARTHEST))


@torch.no_grad()
def measure(reader: lab.Reader, rows: int = 500) -> tuple[float, float]:
    """Return the share of right answers at the trained positions and beyond, on new rows of TESTED tokens.

    Attention is causal, so the answers up to position TRAINED − 1 are those to rows of the trained length.
    """
    ids, answers = lab.draw_rows(rows, lab.TESTED, torch.Generator().manual_seed(lab.TESTED))
    right = (reader(ids)[:, lab.FARTHEST :].argmax(dim=-1) == answers).double()
    inside, beyond = right[:, : lab.TRAINED - lab.FARTHEST], right[:, lab.TRAINED - lab.FARTHEST :]
    return round(inside.mean().item(), 3), round(beyond.mean().item(), 3)


def run_setup(setup: lab.Setup) -> dict[str, list[float]]:
    """Train once, and return the shares of `measure` after each budget."""
    inside, beyond = zip(*map(measure, lab.train_reader(setup)), strict=True)
    return {"inside": list(inside), "beyond": list(beyond)}


def steps(seeds: Sequence[int]) -> Steps:
    """Train every arm at every rate with every seed."""
    for seed, (scheme, heads), rate in itertools.product(seeds, ARMS, lab.RATES):
        setup = lab.Setup(scheme, heads, rate, seed)
        yield Step(("runs", setup), run_setup, setup)


SIZES = {"trained": lab.TRAINED, "tested": lab.TESTED, "farthest": lab.FARTHEST, "budgets": list(lab.BUDGETS)}
STUDY = Study("look_back", __doc__, steps, by_seed=True, constants=SIZES)


if __name__ == "__main__":
    STUDY.command()
