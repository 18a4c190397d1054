"""Who learns to copy what it has never seen? Attention layers on letters that repeat (notebook 21)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from transformer_lib.course.lab import copying as lab
from transformer_lib.model import circuits
from transformer_lib.model.circuits import AttentionOnly

from .engine import Step, Steps, Study, rounded

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
    runs = [Setup(layers, heads, 400, lab.RATE, seed) for seed in seeds for layers in (2, 1) for heads in (1, 4)]
    runs += [Setup(layers, 1, 400, lab.RATE, seed, distinct=True) for seed in seeds[:3] for layers in (2, 1)]
    runs += [Setup(2, heads, 2500, lab.RATE, seed) for seed in seeds[:3] for heads in (1, 4)]
    runs += [Setup(1, heads, 2500, lab.RATE, seed) for seed in seeds[:3] for heads in (1, 4)]
    runs += [Setup(1, heads, 2500, rate, seeds[0]) for heads in (4, 1) for rate in RATES if rate != lab.RATE]
    return runs + [Setup(1, 4, 12500, rate, seeds[0]) for rate in RATES[1:4]]


@torch.no_grad()
def measure(model: AttentionOnly, *, distinct: bool = False) -> dict[str, Any]:
    """Return the loss on the repeat, the share of letters that are right, the losses at unseen periods, and scores.

    "induction" and "previous" hold a list for each layer, with a number for each head.
    """
    ids, periods = lab.tested(distinct=distinct)
    run, known = circuits.trace(model, ids), lab.on_repeat(periods)
    right = (run.logits[:, :-1].argmax(dim=-1) == ids[:, 1:])[known]
    return {
        "loss": round(lab.repeat_loss(run.logits, ids, periods).item(), 4),
        "right": round(right.float().mean().item(), 4),
        "unseen": {str(each): lab.loss_of(model, *lab.tested([each], distinct=distinct)) for each in lab.UNSEEN},
        "induction": [rounded(circuits.induction_score(weights, periods)) for weights in run.weights],
        "previous": [rounded(circuits.previous_token_score(weights)) for weights in run.weights],
    }


def ablated(model: AttentionOnly, how: str) -> list[list[float]]:
    """Return the loss on the repeat with each head taken out, a list for each layer; how: "zero" or "mean"."""
    ids, periods = lab.tested()
    losses: list[list[float]] = []
    for layer, attention in enumerate(model.layers):
        losses.append([])
        for head in range(attention.n_heads):
            with circuits.ablate_head(model, layer, head, how):
                losses[-1].append(lab.loss_of(model, ids, periods))
    return losses


def without_layer(model: AttentionOnly, layer: int) -> float:
    """Return the loss on the repeat with the outputs of all heads of one layer at zero."""
    with contextlib.ExitStack() as stack:
        for head in range(model.layers[layer].n_heads):
            stack.enter_context(circuits.ablate_head(model, layer, head))
        return lab.loss_of(model, *lab.tested())


def paths(model: AttentionOnly) -> dict[str, dict[str, float]]:
    """Return the loss on the repeat if the second layer's head reads one piece from other letters' run.

    The other run has the same periods. {"queries": {"token": loss, "0.0": loss}, …}
    """
    ids, periods = lab.tested()
    other = torch.randint(lab.LETTERS, ids.shape, generator=torch.Generator().manual_seed(lab.TEST_SEED + 1))
    other = other.gather(1, torch.arange(lab.LENGTH) % periods[:, None])

    def loss(sender: str, into: str) -> float:
        logits = circuits.patch_path(model, ids, other, sender=sender, layer=1, head=0, into=into)
        return round(lab.repeat_loss(logits, ids, periods).item(), 4)

    return {into: {sender: loss(sender, into) for sender in ("token", "0.0")} for into in circuits.INTO}


def rules(*, distinct: bool = False) -> dict[str, float]:
    """Return the losses on the repeat of rules without weights.

    "any letter" guesses; "letters so far" guesses in proportion to how often each has been there; "after this letter"
    guesses in proportion to how often each has followed the present letter.
    """
    ids, periods = lab.tested(distinct=distinct)
    one_hot, known = F.one_hot(ids, lab.LETTERS).double(), lab.on_repeat(periods)
    so_far = one_hot.cumsum(dim=1)
    same = (ids[:, :, None] == ids[:, None, :]).double().tril(-1)  # [batch, t, s]: an earlier s with the letter of t
    after = same[..., :-1] @ one_hot[:, 1:]  # [batch, t, LETTERS]: what followed there, t itself included
    losses = {"any letter": math.log(lab.LETTERS)}
    for name, counts in (("letters so far", so_far), ("after this letter", after)):
        shares = (counts / counts.sum(dim=-1, keepdim=True))[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
        losses[name] = -shares[known].log().mean().item()
    return rounded(losses)


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return what is measured of it."""
    model = lab.new_model(setup.n_layers, setup.n_heads, setup.seed)
    lab.fit(model, setup.steps, setup.seed, setup.rate, distinct=setup.distinct)
    result = measure(model, distinct=setup.distinct)
    if setup.n_layers == 2 and not setup.distinct:
        result["ablated"] = {how: ablated(model, how) for how in ("zero", "mean")}
        result["without layer"] = [without_layer(model, layer) for layer in (0, 1)]
        if setup.n_heads == 1:
            result["paths"] = paths(model)
    return result


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    yield Step("rules", rules)
    yield Step("rules, distinct", partial(rules, distinct=True))
    for layers in (1, 2):
        yield Step(
            ("short", str(layers)), lambda n_layers: rounded(lab.fit(lab.new_model(n_layers, 1, 0), SHORT)), layers
        )
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("copying", __doc__, steps, seeds=range(5), by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
