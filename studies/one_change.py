"""What does each change since 2017 buy? One at a time, in the language model of notebook 19 (notebook 20).

A run is measured in nats a word on the held-out sentences, and compared with the base of its seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.baselines import count_parameters
from transformer_lib.course.lab import masks, one_stack
from transformer_lib.course.lab.one_change import BEST, CHANGES, STEPS, nats, new_model, next_word_loss
from transformer_lib.model import modern

from .engine import Step, Steps, Study, rounded

FEWER = 3  # how many of them the longer budget and the controls have
LARGE = 8.0  # times the rate: where the controls of QK-norm are run
SHORT = 12  # steps of a run that a test repeats
MAIN = ("base", "base drawn again", "RMSNorm", "SwiGLU", "QK-norm", "one head of keys", "window 2")
SLOW = {"slow W_Q, W_K": ("w_q.weight", "w_k.weight"), "slow W_V, W_O": ("w_v.weight", "w_o.weight")}
SLOWER = 0.1  # of the rate, for the matrices of SLOW


@dataclass(frozen=True)
class Setup:
    """One run: a name of CHANGES, its steps, the seed of weights and order, and what the rate is multiplied by."""

    arm: str
    steps: int
    seed: int
    rate: float = 1.0


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order: what notebook 20 needs most comes first."""
    main = [Setup(arm, STEPS[0], seed, rate) for rate in (1.0, BEST[STEPS[0]]) for seed in seeds for arm in MAIN]
    return main + [
        Setup(arm, budget, seed, rate)
        for budget, arms, rate in (
            (2000, MAIN, BEST[2000]),
            (400, ("base", "QK-norm", *SLOW), LARGE),
            *((400, ("base", "QK-norm"), rate) for rate in (0.5, 4.0)),
            (400, ("window 4", "window 8", "experts", "dense, total size"), BEST[400]),
            (400, ("SwiGLU",), 4.0),
            *((2000, ("base",), rate) for rate in (0.5, 2.0)),
            (2000, ("window 4", "window 8"), BEST[2000]),
            (2000, ("base", "QK-norm"), 4.0),
            *((400, ("today",), rate) for rate in (1.0, 2.0, 4.0, LARGE)),
            *((400, ("today, no QK-norm",), rate) for rate in (LARGE, 4.0, 2.0)),
            (400, ("base drawn again", "RMSNorm", "one head of keys", "window 8"), 4.0),
            *((2000, ("today",), rate) for rate in (2.0, 4.0)),
        )
        for seed in seeds[:FEWER]
        for arm in arms
    ]


def train(setup: Setup) -> tuple[modern.LanguageModel, list[float]]:
    """Train the model of a set-up by the recipe of notebook 19; return it and the loss of each step."""
    model = new_model(setup.arm, setup.seed)
    slow, fast = [], []
    for name, parameter in model.named_parameters():
        (slow if name.endswith(SLOW.get(setup.arm, ())) else fast).append(parameter)
    groups: list[dict[str, Any]] = [{"params": fast}, {"params": slow, "factor": SLOWER}]
    adam = torch.optim.Adam([group for group in groups if group["params"]], betas=(0.9, 0.98), fused=True)
    rate = setup.rate * masks.RATE
    losses = one_stack.fit(model, next_word_loss, setup.steps, setup.seed, rate=rate, optimizer=adam)
    return model.eval(), losses


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return what is measured of it."""
    model, losses = train(setup)
    result: dict[str, Any] = {"nats": round(nats(model), 4), "loss": round(sum(losses[-20:]) / len(losses[-20:]), 4)}
    if setup.arm == "experts":
        result["loads"] = [loads_of(layer.feed_forward) for layer in model.layers]
    if has_scores(setup):
        result["scores"] = score_sizes(model)
    return result


def loads_of(experts: modern.MixtureOfExperts) -> list[float]:
    """Return the share of all choices that went to each expert in the last forward pass."""
    assert experts.loads is not None
    return [round(share, 3) for share in experts.loads.tolist()]


def has_scores(setup: Setup) -> bool:
    """Return True for the runs whose scores are looked at: the controls of QK-norm, and the base at its best rate."""
    base = Setup("base", STEPS[0], setup.seed, BEST[STEPS[0]])
    return setup.seed < FEWER and (setup.rate == LARGE or setup == base)


@torch.no_grad()
def score_sizes(model: modern.LanguageModel) -> list[float]:
    """Return, for each layer, the mean |q| times the mean |k| over √d: how large scores may be, at held-out words.

    Rotary positions change no length, so both are taken before them, and after QK-norm where there is one.
    """
    ids = one_stack.heldout()
    lengths: list[float] = []  # of queries and of keys, layer by layer

    def measure(_: nn.Module, __: Any, vectors: Tensor) -> None:
        lengths.append(vectors.norm(dim=-1).transpose(1, 2)[ids != masks.PAD].mean().item())

    norms = [norm for layer in model.layers for norm in (layer.attention.q_norm, layer.attention.k_norm)]
    hooks = [norm.register_forward_hook(measure) for norm in norms]
    model(ids)
    for hook in hooks:
        hook.remove()
    root = math.sqrt(model.config.head_width)
    return [round(q * k / root, 1) for q, k in zip(lengths[::2], lengths[1::2], strict=True)]


def parameters() -> dict[str, int]:
    """Return the number of parameters of each arm."""
    return {arm: count_parameters(new_model(arm, 0)) for arm in CHANGES}


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    yield Step("parameters", parameters)
    for arm in CHANGES:
        yield Step(("short", arm), lambda arm: rounded(train(Setup(arm, SHORT, 0))[1]), arm)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, setup)


RATES = {"large": LARGE, "slower": SLOWER}
STUDY = Study("one_change", __doc__, steps, seeds=range(5), by_seed=True, constants=RATES, indent=1)


if __name__ == "__main__":
    STUDY.command()
