"""What does each change since 2017 buy? One at a time, in the language model of notebook 19 (notebook 20).

`python -m transformer_lib.course.studies.one_change` trains the model of 19 on the German sentences of the context
corpus, as it is and with one thing changed, and writes data/one_change.json after each run; what the file already has
is not run again. A run is measured in nats a word on the held-out sentences, and compared with the base of its seed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ..._streams import run_command
from ...model import modern
from . import masks, one_stack, stored

RESULTS = DATA / "one_change.json"
STEPS = masks.STEPS
SEEDS = (0, 1, 2, 3, 4)
FEWER = 3  # how many of them the longer budget and the controls have
LARGE = 8.0  # times the rate: where the controls of QK-norm are run
ANOTHER = 1000  # added to a seed where only the weights are drawn anew
BEST = {400: 2.0, 2000: 1.0}  # times the rate of notebook 19: the best for the base, of ½, 1, 2, 4 and, at 400 steps, 8
SHORT = 12  # steps of a run that a test repeats
D_FF = masks.SIZES[3]
# The 97.5 % quantile of Student's t, by degrees of freedom.
QUANTILES = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

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
}
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


def setups(seeds: Sequence[int] = SEEDS) -> list[Setup]:
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
        )
        for seed in seeds[:FEWER]
        for arm in arms
    ]


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


@torch.no_grad()
def nats(model: nn.Module) -> float:
    """Return the cross-entropy of the held-out sentences, in nats a word."""
    found = [masks.summed(model(ids[:, :-1]), ids[:, 1:]) for ids in masks.heldout()]
    return sum(float(loss) for loss, _ in found) / sum(count for _, count in found)


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return what is measured of it."""
    model, losses = train(setup)
    found: dict[str, Any] = {"nats": round(nats(model), 4), "loss": round(sum(losses[-20:]) / len(losses[-20:]), 4)}
    if setup.arm == "experts":
        found["loads"] = [loads_of(layer.feed_forward) for layer in model.layers]
    if has_scores(setup):
        found["scores"] = score_sizes(model)
    print(setup, found, flush=True)
    return found


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


def short_run(arm: str) -> list[float]:
    """Return the losses of SHORT steps, seed 0: quick to repeat."""
    return [round(loss, 4) for loss in train(Setup(arm, SHORT, 0))[1]]


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each run."""
    content = stored.head("one_change", seeds) | {"large": LARGE, "slower": SLOWER}
    content["parameters"] = {arm: sum(p.numel() for p in new_model(arm, 0).parameters()) for arm in CHANGES}
    content["short"] = {arm: short_run(arm) for arm in CHANGES}
    return stored.fill(content, path, setups(seeds), run_setup)


def runs_of(results: dict[str, Any], arm: str, steps: int, rate: float | None = None) -> dict[int, float]:
    """Return the nats a word of the stored runs of one arm, {seed: nats}; the rate is the base's best by default."""
    wanted = (arm, steps, BEST[steps] if rate is None else rate)
    return {run["seed"]: run["nats"] for run in results["runs"] if (run["arm"], run["steps"], run["rate"]) == wanted}


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


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote: parameters of each arm, its short run, and a record for each set-up."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS, SEEDS))


if __name__ == "__main__":
    run_command(main)
