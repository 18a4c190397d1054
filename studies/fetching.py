"""When does a second head help? Tokens that must fetch two letters at once, with one head or more (notebook 08)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.course.lab import roles
from transformer_lib.course.lab.fetching import BATCH_SIZE, FIRST, LONGER, OFFSETS, SETUPS, STEPS, Fetchers

from .engine import Step, Steps, Study, rounded

RATES = (0.003, 0.01, 0.03)
SPECIALISTS = range(10)  # seeds of the models in which we look for specialised heads
NUDGES = (0.0, 1e-6)  # standard deviation of what is added to the second of two equal heads
PIECES = 3  # heads in the task of notebook 03, whose tokens have 12 features: symbols 1-4, symbols 5-8, colours


def split_x(seed: int, *, whole: bool, mixed: bool, budgets: Sequence[int] = (STEPS, LONGER)) -> list[float]:
    """Train heads that see the whole token, or one piece of it each, on the task of notebook 03.

    whole: whether every head projects all features. mixed: whether the features are first mixed by a random rotation.
    Returns the share of right answers after each of the `budgets`, numbers of steps in rising order.
    """
    generator, width = torch.Generator().manual_seed(seed), roles.FEATURES // PIECES
    turn = torch.linalg.qr(torch.randn(roles.FEATURES, roles.FEATURES, generator=generator))[0]
    turn = turn if mixed else torch.eye(roles.FEATURES)
    rows = PIECES if whole else 1  # pieces of the token that a head sees
    matrices = [torch.randn(PIECES, rows * width, width, generator=generator) for _ in range(3)]
    matrices.append(torch.randn(roles.FEATURES, roles.COLOURS, generator=generator))
    matrices = [(matrix * matrix.shape[-2] ** -0.5).requires_grad_() for matrix in matrices]

    def logits(x: Tensor) -> Tensor:
        x = x @ turn
        seen = x[:, None] if whole else x.unflatten(-1, (PIECES, width)).transpose(1, 2)  # [batch, heads or 1, 8, ...]
        query, key, value = (seen @ matrix for matrix in matrices[:3])
        fetched = (query @ key.mT / math.sqrt(width)).softmax(dim=-1) @ value
        return fetched.transpose(1, 2).flatten(2) @ matrices[3]

    optimizer, test, right = torch.optim.Adam(matrices, lr=roles.RATE), roles.tested(), []
    for step in range(1, max(budgets) + 1):
        batch = roles.sentences(BATCH_SIZE, generator)
        optimizer.zero_grad()
        F.cross_entropy(logits(batch.x).flatten(0, 1), batch.answer.flatten()).backward()
        optimizer.step()
        if step in budgets:
            right.append((logits(test.x).argmax(dim=-1) == test.answer).double().mean().item())
    return right


def shares(setup: str, rate: float, number: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Return what the models of a set-up get right after this number of steps, for each seed and letter."""
    n_heads, hidden = SETUPS[setup]
    return {"right": rounded(Fetchers(n_heads, seeds, hidden=hidden).train(number, rate).right(), 3)}


def blind(seeds: Sequence[int]) -> list[list[float]]:
    """Return the shares right of one head and a hidden layer while the position three back is hidden from it."""
    return rounded(Fetchers(1, seeds, hidden=SETUPS["1 head, hidden layer"][1]).train().right_blind(FIRST), 3)


def examined(new_models: Callable[[], Fetchers], number: int) -> dict[str, Any]:
    """Train for this number of steps; return what is right, what each head reads, and what is right without it."""
    models = new_models().train(number)
    without = torch.stack([models.right_without(head) for head in range(models.n_heads)], dim=1)
    return rounded({"right": models.right(), "reads": models.reads(*OFFSETS), "without": without}, 3)


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up at every rate; then look for specialists, clones and spare heads, and split X."""
    for setup, rate, number in itertools.product(SETUPS, RATES, (STEPS, LONGER)):
        where = ("setups", {"setup": setup, "rate": rate, "steps": number})
        yield Step(where, shares, setup, rate, number, seeds)
    yield Step("blind", blind, seeds)
    for number in (STEPS, LONGER):
        yield Step(("specialists", {"steps": number}), examined, lambda: Fetchers(2, SPECIALISTS), number)
    for nudge, number in itertools.product(NUDGES, (STEPS, LONGER)):
        clones = partial(Fetchers(2, seeds).clone, nudge)
        yield Step(("clones", {"nudge": nudge, "steps": number}), examined, clones, number)
    for number in (STEPS, LONGER):
        yield Step(("spare", {"steps": number}), examined, lambda: Fetchers(4, seeds, OFFSETS[:1]), number)
    for whole, mixed in itertools.product((True, False), (False, True)):
        sees = {"whole": whole, "mixed": mixed}
        yield Step(("split", sees), lambda sees: {"right": rounded([split_x(seed, **sees) for seed in seeds], 3)}, sees)


STUDY = Study("fetching", __doc__, steps)


if __name__ == "__main__":
    STUDY.command()
