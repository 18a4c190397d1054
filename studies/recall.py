"""Who still knows the first token at the end? Recurrent nets beside attention, over length and seeds (notebook 01)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.course.lab.recall import BATCH_SIZE, KINDS, LEARNING_RATE, LENGTHS, SYMBOLS, Reader

from .engine import Step, Steps, Study

BUDGETS = (500, 2500)  # steps: accuracy is measured after each
OTHER_RATES, RATE_LENGTHS = (1e-3, 1e-2, 3e-2), (20, 40)  # the RNN only
RADII, RADIUS_LENGTH = (1.1, 1.4, 1.7, 2.0, 3.0, 5.0), 20  # spectral radii at which an RNN starts, and its rows
DAMPED = (1.7, 0.5)  # a start, and the factor of the gradient at each step back
ASKING, ASKED_LENGTHS = ("LSTM, open gate", "RNN + attention", "attention"), (5, 10, 20)
MORE_SEEDS = 10  # of a start that helps some seeds only
CHANCE = 1 / SYMBOLS


def train_readers(
    kind: str, length: int, seed: int, budgets: Sequence[int] = BUDGETS, *, rate: float = LEARNING_RATE, **start: Any
) -> Iterator[Reader]:
    """Yield the same reader after each of these numbers of steps, which must rise; `start` is that of `Reader`."""
    torch.manual_seed(seed)
    reader = Reader(kind, **start)
    optimizer = torch.optim.Adam(reader.parameters(), rate)
    for before, budget in pairwise((0, *budgets)):
        for _ in range(budget - before):
            ids, answers = rows(BATCH_SIZE, length, start.get("questions", 0))
            loss = F.cross_entropy(reader(ids), answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield reader


def rows(count: int, length: int, questions: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Return random rows of ids and the symbol that each asks for: the first, or with questions one anywhere."""
    ids = torch.randint(SYMBOLS, (count, length), generator=generator)
    if not questions:
        return ids, ids[:, 0]
    asked = torch.randint(questions, (count, 1), generator=generator)
    return torch.cat([ids, SYMBOLS + asked], dim=1), ids.gather(1, asked)[:, 0]


@torch.no_grad()
def accuracy(reader: Reader, length: int, examples: int = 2000, questions: int = 0) -> float:
    """Return the share of new rows whose first symbol the reader names; with questions, the one that is asked for."""
    ids, answers = rows(examples, length, questions, torch.Generator().manual_seed(length))
    return (reader(ids).argmax(dim=-1) == answers).double().mean().item()


def accuracies(kind: str, length: int, seed: int, budgets: Sequence[int] = BUDGETS, **start: Any) -> list[float]:
    """Return the accuracy after each of the budgets."""
    questions = start.get("questions", 0)
    return [
        accuracy(reader, length, questions=questions) for reader in train_readers(kind, length, seed, budgets, **start)
    ]


def at_lengths(
    kind: str, seeds: Sequence[int], lengths: Sequence[int], *, asked: bool = False, budgets: Sequence[int] = BUDGETS
) -> list[list[list[float]]]:
    """Return accuracies [budgets, seeds, lengths]; if `asked`, a question at the end asks for any symbol of the row."""
    by_seed = [[accuracies(kind, n, seed, budgets, questions=n * asked) for n in lengths] for seed in seeds]
    return [[[row[b] for row in of_seed] for of_seed in by_seed] for b in range(len(budgets))]


def at_radius(radius: float, **start: Any) -> list[list[float]]:
    """Return accuracies [budgets, seeds] of RNNs that start with this spectral radius, on rows of RADIUS_LENGTH."""
    by_seed = [accuracies("RNN", RADIUS_LENGTH, seed, radius=radius, **start) for seed in range(MORE_SEEDS)]
    return [list(column) for column in zip(*by_seed, strict=True)]


def at_rate(rate: float, seeds: Sequence[int], budget: int = BUDGETS[-1]) -> list[list[float]]:
    """Return accuracies [lengths, seeds] of the RNN trained at this learning rate."""
    return [[accuracies("RNN", n, seed, (budget,), rate=rate)[0] for seed in seeds] for n in RATE_LENGTHS]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every kind, then those that are asked, and the RNN from other starts and at other rates."""
    for kind in KINDS:
        yield Step(("accuracy", kind), at_lengths, kind, seeds, LENGTHS)
    for kind in ASKING:
        yield Step(("asked", kind), partial(at_lengths, asked=True), kind, seeds, ASKED_LENGTHS)
    for radius in RADII:
        yield Step(("radii", f"{radius:g}"), at_radius, radius)
    yield Step("damped", partial(at_radius, DAMPED[0], damping=DAMPED[1]))
    for rate in OTHER_RATES:
        yield Step(("rates", f"{rate:g}"), at_rate, rate, seeds)


GIVEN = {"lengths": list(LENGTHS), "steps": list(BUDGETS)}
STUDY = Study("recall", __doc__, steps, constants=GIVEN, indent=1)


if __name__ == "__main__":
    STUDY.command()
