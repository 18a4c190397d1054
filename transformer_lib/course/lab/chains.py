"""How does a model learn to count in its context? Markov chains, a new one in each sequence (notebook 21)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._validate import check_ids
from . import stored

load_results = stored.loader("chains.json")
STATES, LENGTH = 3, 64
TESTED, TEST_SEED = 256, 99


def batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return chains [size, LENGTH], and the matrix [size, STATES, STATES] that each was drawn with.

    Each row of a matrix is drawn evenly from all distributions (a flat Dirichlet distribution); so is no first state
    likelier than another.
    """
    spaces = -torch.rand(size, STATES, STATES, generator=generator).clamp(min=1e-12).log()
    matrices = spaces / spaces.sum(dim=-1, keepdim=True)
    states = [torch.randint(STATES, (size,), generator=generator)]
    edges, drawn = matrices.cumsum(dim=-1)[..., :-1], torch.rand(LENGTH - 1, size, 1, generator=generator)
    for each in drawn:
        states.append((each > edges[torch.arange(size), states[-1]]).sum(dim=-1))
    return torch.stack(states, dim=1), matrices


def uniform(ids: Tensor, vocab_size: int) -> Tensor:
    """Return 1 / vocab_size for each state, [batch, seq_len, vocab_size]."""
    return torch.full((*ids.shape, vocab_size), 1 / vocab_size)


def unigram(ids: Tensor, vocab_size: int) -> Tensor:
    """Return how often each state came so far, one added to each count, as probabilities of the next state.

    Args:
        ids: [batch, seq_len].

    Returns:
        [batch, seq_len, vocab_size]; row t has counted the states up to t.
    """
    ids = check_ids("ids", ids, vocab_size)
    return _shares(F.one_hot(ids, vocab_size).cumsum(dim=1))


def bigram(ids: Tensor, vocab_size: int) -> Tensor:
    """Return how often each state followed the present one so far, one added to each count, as probabilities.

    For chains whose rows are drawn from a flat Dirichlet distribution no predictor is better. Where the present state
    came for the first time, it is uniform.

    Args:
        ids: [batch, seq_len].

    Returns:
        [batch, seq_len, vocab_size]; row t has counted the pairs up to (t − 1, t).
    """
    ids = check_ids("ids", ids, vocab_size)
    one_hot = F.one_hot(ids, vocab_size)
    pairs = F.pad((one_hot[:, :-1, :, None] * one_hot[:, 1:, None, :]).cumsum(dim=1), (0, 0, 0, 0, 1, 0))
    index = ids[..., None, None].expand(*ids.shape, 1, vocab_size)
    return _shares(pairs.gather(2, index)[:, :, 0])


def _shares(counts: Tensor) -> Tensor:
    return (counts + 1) / (counts + 1).sum(dim=-1, keepdim=True)


PREDICTORS = {"uniform": uniform, "unigram": unigram, "bigram": bigram}


def next_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the mean loss of the next state, a scalar: logits [batch, seq_len, STATES], ids [batch, seq_len]."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def tested() -> tuple[Tensor, Tensor]:
    """Return the chains that are measured on, [TESTED, LENGTH], and their matrices; always the same."""
    return batch(TESTED, torch.Generator().manual_seed(TEST_SEED))


def losses_of_predictors() -> dict[str, float]:
    """Return the loss of the next state of each predictor on the tested chains, and of the true matrices."""
    ids, matrices = tested()
    predicted = {name: predict(ids, STATES) for name, predict in PREDICTORS.items()}
    predicted["true matrix"] = matrices.gather(1, ids[..., None].expand(*ids.shape, STATES))
    return {name: round(next_loss(p.log(), ids).item(), 4) for name, p in predicted.items()}


def runs_of(results: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return the stored runs whose set-up has these fields, such as n_layers=2, steps=1500, rate=3e-3."""
    return stored.runs_of(results, **fields)


def nearest(run: dict[str, Any]) -> dict[str, int]:
    """Return the predictors to which a stored run was nearest, each with the step from which it first was."""
    names = [min(PREDICTORS, key=lambda name: run[name][i]) for i in range(len(run["after"]))]
    return {name: run["after"][names.index(name)] for name in dict.fromkeys(names)}


def curves(runs: list[dict[str, Any]]) -> dict[str, tuple[list[int], list[list[float]]]]:
    """Return {predictor: (steps, the distances of each run)} of stored runs, from the first measurement after step 0.

    The runs must have been measured after the same steps.
    """
    steps = runs[0]["after"]
    if any(run["after"] != steps for run in runs):
        raise ValueError("runs must have been measured after the same steps")
    return {name: (steps[1:], [run[name][1:] for run in runs]) for name in PREDICTORS}
