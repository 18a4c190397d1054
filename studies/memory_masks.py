"""What a causal mask on the memory costs, where the task needs later source words (notebook 11).

Six letters are written in reverse, with and without an encoder layer, with and without the wrong mask.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from transformer_lib.course.lab.memory_masks import NAMES, new_letters, train
from transformer_lib.model.transformer import Transformer

from .engine import Step, Steps, Study

STEPS = (80, 150, 750)


@torch.no_grad()
def right_letters(model: Transformer) -> list[float]:
    """Return the share of right letters at each of the six places, the right earlier letters given."""
    src, tgt_in, tgt_out = new_letters()
    right = (model(src, tgt_in).argmax(dim=-1) == tgt_out).double().mean(dim=0)
    return [round(share, 3) for share in right.tolist()]


def right_of_seeds(name: str, number: int, seeds: Sequence[int]) -> list[list[float]]:
    """Return the six shares of each seed."""
    return [right_letters(train(name, seed, number)) for seed in seeds]


def steps(seeds: Sequence[int]) -> Steps:
    """Train each of the four for every number of steps."""
    for name, number in itertools.product(NAMES, STEPS):
        yield Step(("right", name, str(number)), right_of_seeds, name, number, seeds)


STUDY = Study("memory_masks", __doc__, steps)


if __name__ == "__main__":
    STUDY.command()
