"""Two heads that copy, tested and read: mistakes made on purpose, matrices, and heads that count (notebook 21)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transformer_lib.course.lab import chains as chains_lab
from transformer_lib.course.lab import circuit as lab
from transformer_lib.course.lab import copying
from transformer_lib.model import circuits
from transformer_lib.model.circuits import AttentionOnly

from . import chains
from .engine import Step, Steps, Study, rounded

FROM = 16  # the first query of a chain whose attention is measured; before it there is little to count


@dataclass(frozen=True)
class Setup:
    """A copier of two layers: the peak rate, which says how many steps, and the seed of weights and sequences."""

    rate: float
    seed: int


def read(model: AttentionOnly) -> dict[str, Any]:
    """Return what is in the matrices of the two heads, without any data.

    "asks", "says": in how many of the 26 rows the largest entry is on the diagonal, where the second head's query meets
    what the first head writes, and from the letter that the second head reads to the logits; "asks the letter itself",
    "first says": the same without the first head, and for it; "looks back": for how many of the positions 1 to 15 the
    first head's largest score is the one before. "strength": the mean diagonal of both says. "composition": of the
    first head's W_OV with what the second reads for its queries, keys and values.
    """
    (look, first), (match, second) = (circuits.head_matrices(model, layer, 0) for layer in (0, 1))
    letters, table = model.embedding.weight.detach(), model.unembedding.weight.detach().T
    positions = model.position.table.detach()[: lab.PERIOD]
    scores = (positions @ look @ positions.T).masked_fill(~torch.ones(lab.PERIOD, lab.PERIOD).tril().bool(), -torch.inf)
    says, first_says = letters @ second @ table, letters @ first @ table
    reads = {"queries": match, "keys": match.T, "values": second}
    return {
        "asks": lab.on_diagonal(letters @ match @ (letters @ first).T),
        "asks the letter itself": lab.on_diagonal(letters @ match @ letters.T),
        "says": lab.on_diagonal(says),
        "first says": lab.on_diagonal(first_says),
        "looks back": int((scores.argmax(dim=1)[1:] == torch.arange(lab.PERIOD - 1)).sum()),
        "strength": {"first": rounded(first_says.diagonal().mean()), "second": rounded(says.diagonal().mean())},
        "composition": {into: round(lab.composition(first, matrix), 4) for into, matrix in reads.items()},
    }


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train a copier; return what its matrices say, and how often swaps make the two predicted mistakes."""
    model = copying.new_model(2, 1, setup.seed)
    copying.fit(model, lab.BUDGETS[setup.rate], setup.seed, setup.rate)
    both = lab.both_made(lab.swap_map(model, lab.strings()))
    made = {str(share): int((both > share).sum()) for share in (0.5, 0.9)}
    return {"loss": copying.loss_of(model, *copying.tested()), "swaps": made, "weights": read(model)}


@torch.no_grad()
def counting(model: AttentionOnly) -> dict[str, float]:
    """Return where the two heads of a model of chains look, on average over the queries from FROM on.

    "previous": the first head's weight on the position before. "followed": the second head's weight on all positions
    that follow an earlier occurrence of the present state; "share": how many of the positions these are.
    "evenness": the entropy of the weights there, over that of equal weights.
    """
    ids, _ = chains_lab.tested()
    first, second = (weights[:, 0] for weights in circuits.trace(model, ids).weights)
    follows = torch.zeros_like(second, dtype=torch.bool)
    follows[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1]
    follows &= torch.ones_like(follows[0]).tril()
    there = (second * follows)[:, FROM:]
    count, weight = follows[:, FROM:].sum(dim=-1), there.sum(dim=-1)
    shares = (there / weight[..., None]).clamp(min=1e-12)
    entropy, several = -(shares * shares.log()).sum(dim=-1), count > 1
    return rounded({
        "previous": first.diagonal(-1, 1, 2)[:, FROM - 1 :].mean(),
        "followed": weight.mean(),
        "share": (count / torch.arange(FROM + 1, ids.shape[1] + 1)).mean(),
        "evenness": (entropy / count.log())[several].mean(),
    })  # fmt: skip


def run_chain(seed: int, n_steps: int) -> dict[str, Any]:
    """Train two layers on chains; return where their heads look before and after."""
    model = chains.new_model(2, seed)
    before = counting(model)
    chains.fit(model, n_steps, seed)
    return {"before": before, "after": counting(model)}


def steps(seeds: Sequence[int]) -> Steps:
    """Read untrained models, train every set-up, and follow heads that learn to count."""
    for seed in seeds:
        yield Step(("untrained", str(seed)), lambda seed: read(copying.new_model(2, 1, 100 + seed)), seed)
    for rate, seed in itertools.product(lab.BUDGETS, seeds):
        yield Step(("runs", Setup(rate, seed)), run_setup, Setup(rate, seed))
    for n_steps, seed in itertools.product((chains.STEPS[0], 500), seeds[:3]):
        yield Step(("chains", {"steps": n_steps, "seed": seed}), run_chain, seed, n_steps)


STUDY = Study("circuit", __doc__, steps, seeds=range(4), by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
