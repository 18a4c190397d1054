"""Learning rates as functions of the step, counted from 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

from .._validate import check_choice, check_int, check_positive

ScheduleName = Literal["cosine", "paper", "constant"]
SCHEDULES: tuple[str, ...] = get_args(ScheduleName)


def paper_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Return d_model^−0.5 · min(step^−0.5, step · warmup_steps^−1.5) (Vaswani et al. 2017, eq. 3)."""
    check_int("step", step)
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def cosine_rate(step: int, total_steps: int, peak: float, warmup_steps: int) -> float:
    """Return a rate that rises linearly to `peak` at warmup_steps and falls on a cosine towards zero at total_steps."""
    check_int("step", step)
    if step <= warmup_steps:
        return peak * step / warmup_steps
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps + 1)
    return peak * cosine_fall(done)


def make_schedule(
    kind: str, *, total_steps: int, learning_rate: float, warmup_steps: int, d_model: int
) -> Callable[[int], float]:
    """Return step -> rate. "paper" takes learning_rate as a factor on eq. 3; "constant" warms up and stays.

    Raises:
        ValueError: unknown kind, or a rate or length that is not positive.
    """
    check_choice("schedule", kind, SCHEDULES)
    check_int("warmup_steps", warmup_steps)
    check_int("total_steps", total_steps)
    check_positive("learning_rate", learning_rate)
    if kind == "paper":
        return lambda step: learning_rate * paper_rate(step, d_model, warmup_steps)
    if kind == "cosine":
        return lambda step: cosine_rate(step, total_steps, learning_rate, warmup_steps)
    return lambda step: learning_rate * min(1.0, step / warmup_steps)


def make_timed_schedule(
    kind: str, *, learning_rate: float, warmup_steps: int, d_model: int
) -> Callable[[int, float], float]:
    """Return (step, fraction of the time spent) -> rate, for a run that ends by the clock and not by its steps.

    "cosine" warms up by steps and falls on a cosine by the clock: learning_rate · min(1, step / warmup_steps) ·
    (1 + cos(π · fraction)) / 2, which is 0 at the end. "paper" and "constant" have no end; they go by steps alone.

    Raises:
        ValueError: as for `make_schedule`; the schedule itself refuses a negative fraction.
    """
    kind_of_warmup = "constant" if kind == "cosine" else kind
    by_step = make_schedule(
        kind_of_warmup, total_steps=1, learning_rate=learning_rate, warmup_steps=warmup_steps, d_model=d_model
    )
    if kind != "cosine":
        return lambda step, _fraction: by_step(step)
    return lambda step, fraction: by_step(step) * cosine_fall(fraction)


def cosine_fall(fraction: float) -> float:
    """Return (1 + cos(π · fraction)) / 2: 1 at the beginning, 1/2 half-way, 0 at the end and after it."""
    if not fraction >= 0:
        raise ValueError(f"fraction must be at least 0, got {fraction}")
    return (1 + math.cos(math.pi * min(1.0, fraction))) / 2
