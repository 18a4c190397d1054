"""What does each change since 2017 buy? One at a time, in the language model of notebook 19 (notebook 20)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model import modern
from . import masks, stored

load_results = stored.loader("one_change.json")
STEPS = masks.STEPS
ANOTHER = 1000  # added to a seed where only the weights are drawn again
BEST = {400: 2.0, 2000: 1.0}  # times the rate of notebook 19: the best for the base, of ½, 1, 2, 4 and, at 400 steps, 8
D_FF = masks.SIZES[3]

# The 97.5 % quantile of Student's t, by degrees of freedom.
QUANTILES = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

TODAY: dict[str, Any] = {
    **{"norm": "rms", "feed_forward": "swiglu", "d_ff": D_FF * 2 // 3, "n_kv_heads": 2},
    **{"qk_norm": True, "window": 8, "pairs": "halves"},
}
CHANGES: dict[str, dict[str, Any]] = {
    "base": {},
    "base drawn again": {},
    "RMSNorm": {"norm": "rms"},
    "SwiGLU": {"feed_forward": "swiglu", "d_ff": D_FF * 2 // 3},
    "QK-norm": {"qk_norm": True},
    "one head of keys": {"n_kv_heads": 1},
    "window 2": {"window": 2},
    "window 4": {"window": 4},
    "window 8": {"window": 8},
    "experts": {"feed_forward": "experts", "d_ff": D_FF // 3},  # 4, of which each word goes to 2: active as SwiGLU
    "dense, total size": {"feed_forward": "swiglu", "d_ff": D_FF * 4 // 3},
    "slow W_Q, W_K": {},
    "slow W_V, W_O": {},
    "today": TODAY,
    "today, no QK-norm": TODAY | {"qk_norm": False},
}


def config(arm: str) -> modern.Config:
    """Return the sizes and choices of an arm; those of "base" make the model of notebook 19."""
    layers, d_model, heads, d_ff = masks.SIZES
    base = modern.Config(
        vocab_size=len(masks.german()[0]),
        n_layers=layers,
        d_model=d_model,
        n_heads=heads,
        d_ff=d_ff,
        norm="layer",
        eps=1e-5,
        feed_forward="gelu",
        pairs="neighbours",
        embedding_scale=math.sqrt(d_model),
    )
    return replace(base, **CHANGES[arm])


def new_model(arm: str, seed: int) -> modern.LanguageModel:
    """Return the untrained model of an arm."""
    torch.manual_seed(seed + (ANOTHER if arm == "base drawn again" else 0))
    return modern.LanguageModel(config(arm))


def next_word_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the mean cross-entropy of each word after the first of sentences [batch, n], padding left out."""
    return F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], ignore_index=masks.PAD)


@torch.no_grad()
def nats(model: nn.Module) -> float:
    """Return the cross-entropy of the held-out sentences, in nats a word."""
    losses = [masks.summed(model(ids[:, :-1]), ids[:, 1:]) for ids in masks.heldout()]
    return sum(float(loss) for loss, _ in losses) / sum(count for _, count in losses)


def runs_of(results: dict[str, Any], arm: str, steps: int, rate: float | None = None) -> dict[int, float]:
    """Return the nats a word of the stored runs of one arm, {seed: nats}; the rate is the base's best by default."""
    wanted = (arm, steps, BEST[steps] if rate is None else rate)
    return {run["seed"]: run["nats"] for run in results["runs"] if (run["arm"], run["steps"], run["rate"]) == wanted}


def sweep(results: dict[str, Any], arm: str, steps: int, seeds: int = 3) -> dict[float, list[float]]:
    """Return the nats a word of an arm at each rate that it was trained at: {rate: a number for each of `seeds`}.

    Raises:
        ValueError: the results have no run of this arm with so many steps.
    """
    rates = sorted({run["rate"] for run in results["runs"] if (run["arm"], run["steps"]) == (arm, steps)})
    if not rates:
        raise ValueError(f"results must have runs of {arm!r} with {steps} steps, got none")
    found = {rate: runs_of(results, arm, steps, rate) for rate in rates}
    return {rate: [found[rate][seed] for seed in range(seeds)] for rate in rates}


def best_rate(results: dict[str, Any], arm: str, steps: int) -> float:
    """Return the rate, of those tried, at which the arm has the lowest mean: times the rate of notebook 19."""
    found = sweep(results, arm, steps)
    return min(found, key=lambda rate: statistics.mean(found[rate]))


def scores_of(results: dict[str, Any], arm: str, rate: float, layer: int) -> list[float]:
    """Return how large the scores of a layer may be, for each stored run in which they were looked at."""
    runs = stored.runs_of(results, arm=arm, rate=rate)
    return [run["scores"][layer] for run in runs if "scores" in run]


def difference(
    results: dict[str, Any],
    arm: str,
    steps: int,
    rate: float | None = None,
    *,
    of: tuple[str, float | None] = ("base", None),
) -> tuple[float, float, int]:
    """Return how many nats an arm has more than the base of the same seed: the mean, ± for 95 %, and the seeds.

    Args:
        arm, steps, rate: which runs. of: the arm and the rate that they are compared with. Both rates are by default
            the one that is best for the base.
    """
    before, after = runs_of(results, of[0], steps, of[1]), runs_of(results, arm, steps, rate)
    each = [after[seed] - before[seed] for seed in after if seed in before]
    if len(each) < 2:
        raise ValueError(f"results must have two seeds of {arm!r} and of {of[0]!r} at {steps} steps, got {len(each)}")
    return statistics.mean(each), half_width(each), len(each)


def half_width(numbers: Sequence[float]) -> float:
    """Return the half-width of the 95 % interval of a mean, from Student's t."""
    return QUANTILES[len(numbers) - 1] * statistics.stdev(numbers) / math.sqrt(len(numbers))
