"""Who learns to copy what it has never seen? Attention layers on letters that repeat (notebook 21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.circuits import AttentionOnly
from . import stored
from .descending import Watch, descend

load_results = stored.loader("copying.json")
LETTERS, LENGTH = 26, 32
PERIODS = (8, 9, 10, 11, 13, 14, 15, 16)
UNSEEN = (12, 18)  # never in training: one between the others, one beyond them
D_MODEL, BATCH_SIZE, RATE, WARMUP = 64, 64, 3e-3, 20
TESTED, TEST_SEED = 512, 99


def batch(
    size: int, generator: torch.Generator, periods: Sequence[int] = PERIODS, *, distinct: bool = False
) -> tuple[Tensor, Tensor]:
    """Return sequences of random letters that repeat, [size, LENGTH], and the period of each, [size].

    Args:
        periods: each sequence draws one of them. distinct: no letter occurs twice within a period.
    """
    chosen = torch.tensor(periods)[torch.randint(len(periods), (size,), generator=generator)]
    if distinct:
        letters = torch.rand(size, LETTERS, generator=generator).argsort(dim=1)
    else:
        letters = torch.randint(LETTERS, (size, LENGTH), generator=generator)
    return letters.gather(1, torch.arange(LENGTH) % chosen[:, None]), chosen


def new_model(n_layers: int, n_heads: int, seed: int, *, norm_first: bool = False) -> AttentionOnly:
    """Return an untrained model with learned positions."""
    torch.manual_seed(seed)
    return AttentionOnly(LETTERS, n_layers, D_MODEL, n_heads, max_len=LENGTH, norm_first=norm_first)


def on_repeat(periods: Tensor, length: int = LENGTH) -> Tensor:
    """Return which rows can know the next letter, [batch, length − 1]: those from the first repeated letter on."""
    return torch.arange(length - 1) >= periods[:, None]


def repeat_loss(logits: Tensor, ids: Tensor, periods: Tensor) -> Tensor:
    """Return the mean loss of the next letter where it can be known, a scalar.

    Args:
        logits: [batch, seq_len, LETTERS]. ids: [batch, seq_len]. periods: [batch].
    """
    known = on_repeat(periods, ids.shape[1])
    return F.cross_entropy(logits[:, :-1][known], ids[:, 1:][known])


def fit(
    model: nn.Module,
    steps: int,
    seed: int = 0,
    rate: float = RATE,
    *,
    distinct: bool = False,
    watch: Watch | None = None,
) -> list[float]:
    """Train a model on the repeat by Adam, with warm-up and a cosine to zero; return the loss of each step.

    Args:
        model: ids [batch, LENGTH] -> logits [batch, LENGTH, LETTERS]. rate: the peak. distinct: as for `batch`.
        watch: called with the number of steps done, from 0, and the model, before each step and after the last.
    """
    generator = torch.Generator().manual_seed(seed)

    def loss_of() -> Tensor:
        ids, periods = batch(BATCH_SIZE, generator, distinct=distinct)
        return repeat_loss(model(ids), ids, periods)

    return descend(model, loss_of, steps, rate, WARMUP, watch)


def tested(periods: Sequence[int] = PERIODS, *, distinct: bool = False) -> tuple[Tensor, Tensor]:
    """Return the sequences that are measured on, [TESTED, LENGTH], and their periods; always the same."""
    return batch(TESTED, torch.Generator().manual_seed(TEST_SEED), periods, distinct=distinct)


@torch.no_grad()
def loss_of(model: nn.Module, ids: Tensor, periods: Tensor) -> float:
    """Return the loss on the repeat."""
    return round(repeat_loss(model(ids), ids, periods).item(), 4)


def runs_of(results: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return the stored runs whose set-up has these fields, such as n_layers=2, n_heads=1, steps=400."""
    return stored.runs_of(results, **{"distinct": False} | fields)


def losses_of(results: dict[str, Any], setups: Sequence[tuple[int, int, int]]) -> dict[str, dict[str, list[float]]]:
    """Return {"periods of the training": {set-up: a loss for each seed}, "period 12": …}, at each seed's best rate.

    Args:
        setups: layers, heads and steps.

    Raises:
        ValueError: nothing is stored of a set-up.
    """
    trained: dict[str, list[float]] = {}
    unseen: dict[str, list[float]] = {}
    for n_layers, n_heads, steps in setups:
        runs = runs_of(results, n_layers=n_layers, n_heads=n_heads, steps=steps)
        if not runs:
            raise ValueError(f"setups must be stored ones, got {n_layers} layers, {n_heads} heads, {steps} steps")
        seeds = sorted({run["seed"] for run in runs})
        best = [min((run for run in runs if run["seed"] == seed), key=lambda run: run["loss"]) for seed in seeds]
        plural = ["s" * (number > 1) for number in (n_layers, n_heads)]
        name = f"{n_layers} layer{plural[0]}, {n_heads} head{plural[1]}, {steps:,} steps"
        trained[name] = [run["loss"] for run in best]
        unseen[name] = [run["unseen"]["12"] for run in best]
    return {"periods of the training": trained, "period 12": unseen}
