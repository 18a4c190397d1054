"""Two heads that copy, tested and read: mistakes made on purpose, matrices, and heads that count (notebook 21)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ..._validate import check_ids, check_int
from ...model import circuits
from ...model.circuits import AttentionOnly
from . import copying, stored

load_results = stored.loader("circuit.json")
BUDGETS = {3e-3: 400, 1e-3: 1000}  # peak rate: steps
PERIOD, STRINGS, SEED = 16, 256, 1


def strings() -> Tensor:
    """Return letters that are shown exactly twice, none of them twice within the period, [STRINGS, 32]."""
    return copying.batch(STRINGS, torch.Generator().manual_seed(SEED), [PERIOD], distinct=True)[0]


@torch.no_grad()
def swap_map(model: AttentionOnly, ids: Tensor, period: int = PERIOD) -> Tensor:
    """Return how often each predicted mistake is made, [period, period], if two outputs of the first head are swapped.

    Entry [i, j] is the share of sequences in which the model says letter j where letter i is right, if the first head's
    outputs at the positions i and j of the first time are swapped. Row and column 0, which have no letter before them,
    and the diagonal hold no number (nan).

    Args:
        ids: [batch, seq_len], each of at least twice the period.

    Raises:
        ValueError: the sequences are too short.
    """
    ids = check_ids("ids", ids, model.embedding.num_embeddings, max_len=model.max_len)
    if ids.shape[1] < 2 * check_int("period", period, minimum=2):
        raise ValueError(f"ids must be at least {2 * period} long, twice the period, got {ids.shape[1]}")
    shares = torch.full((period, period), torch.nan)
    for i in range(1, period):
        for j in range(1, i):
            order = list(range(ids.shape[1]))
            order[i], order[j] = j, i
            with circuits.replace_head(model, 0, 0, lambda z, order=order: z[:, order]):
                said = model(ids).argmax(dim=-1)
            for here, there in ((i, j), (j, i)):
                shares[here, there] = (said[:, here + period - 1] == ids[:, there]).float().mean()
    return shares


def both_made(shares: Tensor) -> Tensor:
    """Return for each pair the smaller of its two shares in a map [period, period] of `swap_map`, [n_pairs]."""
    i, j = torch.tril_indices(len(shares) - 1, len(shares) - 1, -1) + 1
    return torch.minimum(shares[i, j], shares[j, i])


def composition(writes: Tensor, reads: Tensor) -> float:
    """Return how much of what one matrix writes another one reads: ‖writes reads‖ / (‖writes‖ ‖reads‖).

    Args:
        writes: [d_model, d_model], such as a W_OV. reads: [d_model, d_model].
    """
    return ((writes @ reads).norm() / writes.norm() / reads.norm()).item()


def on_diagonal(table: Tensor) -> int:
    """Return in how many rows of a square table the largest entry is on the diagonal."""
    return int((table.argmax(dim=1) == torch.arange(len(table))).sum())


def compositions(models: Iterable[dict[str, Any]]) -> dict[str, list[float]]:
    """Return {"keys": a number for each model, "queries": …, "values": …}, given what the study has read of each."""
    models = list(models)
    return {into: [one["composition"][into] for one in models] for into in ("keys", "queries", "values")}
