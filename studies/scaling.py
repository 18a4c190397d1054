"""What is the division by √d_k for? One lookup learned with it and without, at many learning rates (notebook 04)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from transformer_lib.course.lab.scaling import CONTROLS, STEPS, VERSIONS, WIDTHS, Lookup

from .engine import Step, Steps, Study

LEARNED = 0.9  # accuracy; chance is 1 / SYMBOLS
RATES = {
    "Adam": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    "SGD": (1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0),
}


def steps_to_learn(
    d_k: int, version: str, optimizer: str, rate: float, seeds: Sequence[int], limit: int = STEPS
) -> list[int | None]:
    """Return for each model the first step before which its accuracy is above LEARNED; None within `limit`."""
    reached: list[int | None] = [None] * len(seeds)
    for step, (loss, accuracy) in enumerate(Lookup(d_k, version, seeds).train(optimizer, rate, limit)):
        for model in (accuracy > LEARNED).nonzero().flatten().tolist():
            reached[model] = step if reached[model] is None else reached[model]
        gone = ~loss.isfinite()
        if all(step_reached is not None or lost for step_reached, lost in zip(reached, gone.tolist(), strict=True)):
            break
    return reached


def at_every_rate(optimizer: str, d_k: int, version: str, seeds: Sequence[int]) -> list[list[int | None]]:
    """Return `steps_to_learn` for each of the optimizer's rates."""
    return [steps_to_learn(d_k, version, optimizer, rate, seeds) for rate in RATES[optimizer]]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every version at every width."""
    sweep = [*itertools.product(RATES, WIDTHS, VERSIONS), *itertools.product(["Adam"], WIDTHS[-1:], CONTROLS)]
    for optimizer, d_k, version in sweep:
        yield Step(("steps", optimizer, str(d_k), version), at_every_rate, optimizer, d_k, version, seeds)


GIVEN = {"limit": STEPS, "rates": {name: list(rates) for name, rates in RATES.items()}}
STUDY = Study("scaling", __doc__, steps, seeds=range(5), constants=GIVEN)


if __name__ == "__main__":
    STUDY.command()
