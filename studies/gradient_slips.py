"""Nine slips in the backward pass: who would notice? (notebook 18).

A model of `transformer_lib.by_hand` with two layers on each side learns to write six letters in reverse, with a slip in
one of its backward functions. A gradient check is asked, too. It takes about four minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from transformer_lib import by_hand
from transformer_lib.by_hand import Array, Ids, Parameters
from transformer_lib.course.lab import gradient_slips as lab

from .engine import Step, Steps, Study

WORST, LOWER_PEAKS = "softmax without its second term", (0.003, 0.001)
STEP, TOLERANCE = 1e-6, 1e-5  # of the gradient check; larger steps cross the bends of some ReLUs


def angle(slip: str, parameters: Parameters, seed: int) -> float:
    """Return the angle between the slip's gradient and the right one in degrees, all parameters taken together."""
    double = {name: array.astype(np.float64) for name, array in parameters.items()}
    both = [lab._gradients(name, double, *lab.scene(seed)[1:]) for name in ("none", slip)]
    right, wrong = (np.concatenate([gradients[name].ravel() for name in double]) for gradients in both)
    cosine = right @ wrong / np.linalg.norm(right) / np.linalg.norm(wrong)
    return math.degrees(math.acos(min(1.0, cosine)))


@cache
def slopes(seed: int) -> dict[str, tuple[Array, float]]:
    """Return for each array of the scene a random unit direction, and the loss's slope along it: two runs forward."""
    parameters, src, tgt = lab.scene(seed)
    rng, slope_of = np.random.default_rng(seed), {}
    for name, array in parameters.items():
        direction = rng.normal(size=array.shape)
        direction /= np.linalg.norm(direction)
        ends = [_loss(parameters | {name: array + h * direction}, src, tgt) for h in (STEP, -STEP)]
        slope_of[name] = direction, (ends[0] - ends[1]) / (2 * STEP)
    return slope_of


def _loss(parameters: Parameters, src: Ids, tgt: Ids) -> float:
    logits, _ = by_hand.forward(parameters, lab.SIZES, src, tgt[:, :-1])
    return by_hand.cross_entropy(logits, tgt[:, 1:], pad_id=lab.SIZES.pad_id)[0]


def found_wrong(slip: str, seed: int) -> list[str]:
    """Return the arrays whose gradient does not agree with the slope along its direction."""
    gradients = lab.gradients_of(slip, seed)
    checks = {name: (float((gradients[name] * way).sum()), slope) for name, (way, slope) in slopes(seed).items()}
    return [
        name for name, (ours, slope) in checks.items() if not math.isclose(ours, slope, rel_tol=TOLERANCE, abs_tol=1e-9)
    ]


def shares(slip: str, seeds: Sequence[int], steps: int, peak: float = lab.PEAK) -> list[float]:
    """Return the share of letters right for each seed."""
    return [round(lab.share_right(lab.trained(slip, seed, steps, peak=peak)), 4) for seed in seeds]


def at_the_end(slip: str, seed: int) -> dict[str, float]:
    """Return where a run of 150 steps ends: letters right, loss of the last ten steps, angle of the gradient there."""
    parameters, losses = lab.run(slip, seed, lab.BUDGETS[0])
    return {
        "right": round(lab.share_right(parameters), 4),
        "loss": round(float(np.mean(losses[-10:])), 4),
        "angle": round(angle(slip, parameters, seed), 1),
    }


def measure(slip: str, seeds: Sequence[int]) -> dict[str, list[Any]]:
    """Return what a slip does, as lists over the seeds."""
    ends = [at_the_end(slip, seed) for seed in seeds]
    return {name: [end[name] for end in ends] for name in ends[0]} | {
        "right later": shares(slip, seeds, lab.BUDGETS[1]),
        "found wrong": [len(found_wrong(slip, seed)) for seed in seeds],
    }


def steps(seeds: Sequence[int]) -> Steps:
    """Measure every slip, and the worst of them at lower learning rates."""
    yield Step("arrays", lambda: len(lab.scene(seeds[0])[0]))
    for slip in lab.SLIPS:
        yield Step(("slips", slip), measure, slip, seeds)
    for peak in LOWER_PEAKS:
        yield Step(("lower rates", str(peak)), shares, WORST, seeds, lab.BUDGETS[-1], peak)


STUDY = Study("gradient_slips", __doc__, steps, indent=1)


if __name__ == "__main__":
    STUDY.command()
