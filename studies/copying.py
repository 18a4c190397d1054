"""Who learns to copy what it has never seen? Attention layers on letters that repeat (notebook 21).

`python -m studies.copying` trains one and two layers, with one head and with four, and writes data/copying.json after
each run; what the file already has is not run again. The notebook trains with `fit`, too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib._streams import run_command
from transformer_lib.course.lab.copying import (
    LENGTH,
    LETTERS,
    RATE,
    TEST_SEED,
    UNSEEN,
    fit,
    loss_of,
    new_model,
    on_repeat,
    repeat_loss,
    tested,
)
from transformer_lib.model import circuits
from transformer_lib.model.circuits import AttentionOnly

from .engine import Step, Steps, Study

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # what one layer is given to choose from
SHORT = 12  # steps of a run that a test repeats


@dataclass(frozen=True)
class Setup:
    """One run: the model's layers and heads, its steps, the peak rate, and the seed of its weights and sequences."""

    n_layers: int
    n_heads: int
    steps: int
    rate: float
    seed: int
    distinct: bool = False  # no letter twice within a period


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order: the short budget, the control, the longer budget, other rates, the longest."""
    found = [Setup(layers, heads, 400, RATE, seed) for seed in seeds for layers in (2, 1) for heads in (1, 4)]
    found += [Setup(layers, 1, 400, RATE, seed, distinct=True) for seed in seeds[:3] for layers in (2, 1)]
    found += [Setup(2, heads, 2500, RATE, seed) for seed in seeds[:3] for heads in (1, 4)]
    found += [Setup(1, heads, 2500, RATE, seed) for seed in seeds[:3] for heads in (1, 4)]
    found += [Setup(1, heads, 2500, rate, seeds[0]) for heads in (4, 1) for rate in RATES if rate != RATE]
    return found + [Setup(1, 4, 12500, rate, seeds[0]) for rate in RATES[1:4]]


@torch.no_grad()
def measure(model: AttentionOnly, *, distinct: bool = False) -> dict[str, Any]:
    """Return the loss on the repeat, the share of letters that are right, the losses at unseen periods, and scores.

    "induction" and "previous" hold a list for each layer, with a number for each head.
    """
    ids, periods = tested(distinct=distinct)
    run, known = circuits.trace(model, ids), on_repeat(periods)
    right = (run.logits[:, :-1].argmax(dim=-1) == ids[:, 1:])[known]
    return {
        "loss": round(repeat_loss(run.logits, ids, periods).item(), 4),
        "right": round(right.float().mean().item(), 4),
        "unseen": {str(each): loss_of(model, *tested([each], distinct=distinct)) for each in UNSEEN},
        "induction": [_rounded(circuits.induction_score(weights, periods)) for weights in run.weights],
        "previous": [_rounded(circuits.previous_token_score(weights)) for weights in run.weights],
    }


def _rounded(numbers: Tensor) -> list[float]:
    return [round(number, 4) for number in numbers.tolist()]


def ablated(model: AttentionOnly, how: str) -> list[list[float]]:
    """Return the loss on the repeat with each head taken out, a list for each layer; how: "zero" or "mean"."""
    ids, periods = tested()
    found: list[list[float]] = []
    for layer, attention in enumerate(model.layers):
        found.append([])
        for head in range(attention.n_heads):
            with circuits.ablate_head(model, layer, head, how):
                found[-1].append(loss_of(model, ids, periods))
    return found


def without_layer(model: AttentionOnly, layer: int) -> float:
    """Return the loss on the repeat with the outputs of all heads of one layer at zero."""
    with contextlib.ExitStack() as stack:
        for head in range(model.layers[layer].n_heads):
            stack.enter_context(circuits.ablate_head(model, layer, head))
        return loss_of(model, *tested())


def paths(model: AttentionOnly) -> dict[str, dict[str, float]]:
    """Return the loss on the repeat if the second layer's head reads one piece from other letters' run.

    The other run has the same periods. {"queries": {"token": loss, "0.0": loss}, …}
    """
    ids, periods = tested()
    other = torch.randint(LETTERS, ids.shape, generator=torch.Generator().manual_seed(TEST_SEED + 1))
    other = other.gather(1, torch.arange(LENGTH) % periods[:, None])

    def loss(sender: str, into: str) -> float:
        logits = circuits.patch_path(model, ids, other, sender=sender, layer=1, head=0, into=into)
        return round(repeat_loss(logits, ids, periods).item(), 4)

    return {into: {sender: loss(sender, into) for sender in ("token", "0.0")} for into in circuits.INTO}


def rules(*, distinct: bool = False) -> dict[str, float]:
    """Return the losses on the repeat of rules without weights.

    "any letter" guesses; "letters so far" guesses in proportion to how often each has been there; "after this letter"
    guesses in proportion to how often each has followed the present letter.
    """
    ids, periods = tested(distinct=distinct)
    one_hot, known = F.one_hot(ids, LETTERS).double(), on_repeat(periods)
    so_far = one_hot.cumsum(dim=1)
    same = (ids[:, :, None] == ids[:, None, :]).double().tril(-1)  # [batch, t, s]: an earlier s with the letter of t
    after = same[..., :-1] @ one_hot[:, 1:]  # [batch, t, LETTERS]: what followed there, t itself included
    found = {"any letter": math.log(LETTERS)}
    for name, counts in (("letters so far", so_far), ("after this letter", after)):
        shares = (counts / counts.sum(dim=-1, keepdim=True))[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
        found[name] = -shares[known].log().mean().item()
    return {name: round(loss, 4) for name, loss in found.items()}


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return what is measured of it."""
    model = new_model(setup.n_layers, setup.n_heads, setup.seed)
    fit(model, setup.steps, setup.seed, setup.rate, distinct=setup.distinct)
    found = measure(model, distinct=setup.distinct)
    if setup.n_layers == 2 and not setup.distinct:
        found["ablated"] = {how: ablated(model, how) for how in ("zero", "mean")}
        found["without layer"] = [without_layer(model, layer) for layer in (0, 1)]
        if setup.n_heads == 1:
            found["paths"] = paths(model)
    print(setup, found, flush=True)
    return found


def short_run(n_layers: int) -> list[float]:
    """Return the losses of SHORT steps of one head a layer, seed 0: quick to repeat."""
    return [round(loss, 4) for loss in fit(new_model(n_layers, 1, 0), SHORT)]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    yield Step("rules", rules)
    yield Step("rules, distinct", partial(rules, distinct=True))
    for layers in (1, 2):
        yield Step(("short", str(layers)), short_run, layers)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("copying", __doc__, steps, seeds=range(5), by_seed=True, indent=1)


if __name__ == "__main__":
    run_command(STUDY.main)
