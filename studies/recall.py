"""Who still knows the first token at the end? Recurrent nets beside attention, over length and seeds (notebook 01).

`python -m studies.recall` trains every kind at every length and writes data/recall.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib._streams import run_command
from transformer_lib.course.lab.recall import BATCH_SIZE, KINDS, LEARNING_RATE, LENGTHS, SYMBOLS, Reader

from .engine import Study, at_once

BUDGETS = (500, 2500)  # steps: accuracy is measured after each
OTHER_RATES, RATE_LENGTHS = (1e-3, 1e-2, 3e-2), (20, 40)  # the RNN only
RADII, RADIUS_LENGTH = (1.1, 1.4, 1.7, 2.0, 3.0, 5.0), 20  # spectral radii at which an RNN starts, and its rows
DAMPED = (1.7, 0.5)  # a start, and the factor of the gradient at each step back
ASKING, ASKED_LENGTHS = ("LSTM, open gate", "RNN + attention", "attention"), (5, 10, 20)
MORE_SEEDS = 10  # of a start that helps some seeds only
CHANCE = 1 / SYMBOLS


def train_reader(kind: str, length: int, seed: int, steps: int = BUDGETS[0]) -> Reader:
    """Train a new reader on random rows of `length` symbols, a fresh batch at every step."""
    *_, reader = _training(kind, length, seed, (steps,))
    return reader


def _training(
    kind: str, length: int, seed: int, budgets: Sequence[int], *, rate: float = LEARNING_RATE, **start: Any
) -> Iterator[Reader]:
    """Yield the same reader after each of these numbers of steps, which must rise; `start` is that of `Reader`."""
    torch.manual_seed(seed)
    reader = Reader(kind, **start)
    optimizer = torch.optim.Adam(reader.parameters(), rate)
    for before, budget in pairwise((0, *budgets)):
        for _ in range(budget - before):
            ids, answers = _rows(BATCH_SIZE, length, start.get("questions", 0))
            loss = F.cross_entropy(reader(ids), answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield reader


def _rows(count: int, length: int, questions: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Return random rows of ids and the symbol that each asks for: the first, or with questions one anywhere."""
    ids = torch.randint(SYMBOLS, (count, length), generator=generator)
    if not questions:
        return ids, ids[:, 0]
    asked = torch.randint(questions, (count, 1), generator=generator)
    return torch.cat([ids, SYMBOLS + asked], dim=1), ids.gather(1, asked)[:, 0]


@torch.no_grad()
def accuracy(reader: Reader, length: int, examples: int = 2000, questions: int = 0) -> float:
    """Return the share of new rows whose first symbol the reader names; with questions, the one that is asked for."""
    ids, answers = _rows(examples, length, questions, torch.Generator().manual_seed(length))
    return (reader(ids).argmax(dim=-1) == answers).double().mean().item()


def run(
    seeds: Sequence[int],
    kinds: Sequence[str] = KINDS,
    lengths: Sequence[int] = LENGTHS,
    budgets: Sequence[int] = BUDGETS,
) -> dict[str, list[list[list[float]]]]:
    """Return {kind: accuracy [budgets, seeds, lengths]}: each kind is trained at each length with each seed."""
    found = {}
    for kind in kinds:
        by_seed = [[_accuracies(kind, length, seed, budgets) for length in lengths] for seed in seeds]
        found[kind] = [[[row[b] for row in rows] for rows in by_seed] for b in range(len(budgets))]
    return found


def run_radii(
    seeds: Sequence[int], radii: Sequence[float] = RADII, budgets: Sequence[int] = BUDGETS, **start: Any
) -> dict[str, list[list[float]]]:
    """Return {spectral radius: accuracy [budgets, seeds]} of RNNs that start there, on rows of RADIUS_LENGTH."""
    found = {}
    for radius in radii:
        by_seed = [_accuracies("RNN", RADIUS_LENGTH, seed, budgets, radius=radius, **start) for seed in seeds]
        found[f"{radius:g}"] = [list(column) for column in zip(*by_seed, strict=True)]
    return found


def run_rates(
    seeds: Sequence[int],
    rates: Sequence[float] = OTHER_RATES,
    lengths: Sequence[int] = RATE_LENGTHS,
    steps: int = BUDGETS[-1],
) -> dict[str, list[list[float]]]:
    """Return {learning rate: accuracy [lengths, seeds]} of the RNN after these steps."""

    def row(length: int, rate: float) -> list[float]:
        return [_accuracies("RNN", length, seed, (steps,), rate=rate)[0] for seed in seeds]

    return {f"{rate:g}": [row(length, rate) for length in lengths] for rate in rates}


def run_asked(
    seeds: Sequence[int],
    kinds: Sequence[str] = ASKING,
    lengths: Sequence[int] = ASKED_LENGTHS,
    budgets: Sequence[int] = BUDGETS,
) -> dict[str, list[list[list[float]]]]:
    """Return {kind: accuracy [budgets, seeds, lengths]} where a question at the end asks for any symbol of the row."""
    found = {}
    for kind in kinds:
        by_seed = [[_accuracies(kind, length, seed, budgets, questions=length) for length in lengths] for seed in seeds]
        found[kind] = [[[row[b] for row in rows] for rows in by_seed] for b in range(len(budgets))]
    return found


def _accuracies(kind: str, length: int, seed: int, budgets: Sequence[int], **start: Any) -> list[float]:
    questions = start.get("questions", 0)
    return [accuracy(reader, length, questions=questions) for reader in _training(kind, length, seed, budgets, **start)]


def measured(seeds: Sequence[int]) -> dict:
    """Return what is stored: lengths, budgets in steps, and accuracy by kind, question, spectral radius and rate."""
    more = range(MORE_SEEDS)
    radius, damping = DAMPED
    return {
        "lengths": LENGTHS,
        "steps": BUDGETS,
        "accuracy": run(seeds),
        "asked": run_asked(seeds),
        "radii": run_radii(more),
        "damped": run_radii(more, (radius,), damping=damping)[f"{radius:g}"],
        "rates": run_rates(seeds),
    }


STUDY = Study("recall", __doc__, at_once(measured), indent=1)


if __name__ == "__main__":
    run_command(STUDY.main)
