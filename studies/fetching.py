"""When does a second head help? Tokens that must fetch two letters at once, with one head and with more (notebook 08).

`python -m studies.fetching` trains every set-up at every rate, looks for specialists, clones and spare heads, splits X
in place of Q, K and V, and writes data/fetching.json.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib._streams import run_command
from transformer_lib.course.lab import roles
from transformer_lib.course.lab.fetching import BATCH_SIZE, FIRST, LONGER, OFFSETS, SETUPS, STEPS, Fetchers

from .engine import Study, at_once

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
        found = (query @ key.mT / math.sqrt(width)).softmax(dim=-1) @ value
        return found.transpose(1, 2).flatten(2) @ matrices[3]

    optimizer, test, right = torch.optim.Adam(matrices, lr=roles.RATE), roles.tested(), []
    for step in range(1, max(budgets) + 1):
        batch = roles.sentences(BATCH_SIZE, generator)
        optimizer.zero_grad()
        F.cross_entropy(logits(batch.x).flatten(0, 1), batch.answer.flatten()).backward()
        optimizer.step()
        if step in budgets:
            right.append((logits(test.x).argmax(dim=-1) == test.answer).double().mean().item())
    return right


def run(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what is stored: shares and mean weights, for each model."""
    found: dict[str, Any] = {"setups": [], "blind": [], "specialists": [], "clones": [], "spare": [], "split": []}
    for name, (n_heads, hidden) in SETUPS.items():
        for rate in RATES:
            models = Fetchers(n_heads, seeds, hidden=hidden)
            for steps, more in ((STEPS, STEPS), (LONGER, LONGER - STEPS)):
                right = models.train(more, rate).right()
                found["setups"].append({"setup": name, "rate": rate, "steps": steps, "right": _rounded(right)})
            print(found["setups"][-2:], flush=True)
    found["blind"] = blind(seeds)
    found["specialists"] = _examined(Fetchers(2, SPECIALISTS))
    found["spare"] = _examined(Fetchers(4, seeds, OFFSETS[:1]))
    for nudge in NUDGES:
        models = Fetchers(2, seeds).clone(nudge)
        found["clones"] += [{"nudge": nudge} | row for row in _examined(models)]
    for whole, mixed in ((True, False), (True, True), (False, False), (False, True)):
        right = [split_x(seed, whole=whole, mixed=mixed) for seed in seeds]
        found["split"].append({"whole": whole, "mixed": mixed, "right": _rounded(torch.tensor(right))})
    return found


def blind(seeds: Sequence[int]) -> list[list[float]]:
    """Return the shares right of one head and a hidden layer while the position three back is hidden from it."""
    return _rounded(Fetchers(1, seeds, hidden=SETUPS["1 head, hidden layer"][1]).train().right_blind(FIRST))


def _examined(models: Fetchers) -> list[dict[str, Any]]:
    """Train with both budgets; after each: what is right, what each head reads, and what is right without it."""
    rows = []
    for steps, more in ((STEPS, STEPS), (LONGER, LONGER - STEPS)):
        models.train(more)
        without = torch.stack([models.right_without(head) for head in range(models.n_heads)], dim=1)
        row = {"steps": steps, "right": models.right(), "reads": models.reads(*OFFSETS), "without": without}
        rows.append({name: _rounded(value) if isinstance(value, Tensor) else value for name, value in row.items()})
        print(rows[-1], flush=True)
    return rows


def _rounded(found: Tensor) -> Any:
    return (found.double() * 1000).round().div(1000).tolist()


STUDY = Study("fetching", __doc__, at_once(run))


if __name__ == "__main__":
    run_command(STUDY.main)
