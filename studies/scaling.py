"""What is the division by √d_k for? One lookup learned with it and without, at many learning rates (notebook 04).

`python -m studies.scaling` trains every version at every width and rate, and writes
data/scaling.json after each; what the file already has is not run again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from transformer_lib._streams import run_command
from transformer_lib.course.lab.scaling import CONTROLS, RESULTS, STEPS, VERSIONS, WIDTHS, Lookup, load_results

from . import stored

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
        if all(found is not None or lost for found, lost in zip(reached, gone.tolist(), strict=True)):
            break
    return reached


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each run."""
    content = load_results(path) if path.exists() else {"steps": {}}
    content |= {"command": stored.command("scaling", seeds), "date": date.today().isoformat(), "seeds": list(seeds)}
    content |= {"limit": STEPS, "rates": {name: list(rates) for name, rates in RATES.items()}}
    sweep = [*itertools.product(RATES, WIDTHS, VERSIONS), *itertools.product(["Adam"], WIDTHS[-1:], CONTROLS)]
    for optimizer, d_k, version in sweep:
        found = content["steps"].setdefault(optimizer, {}).setdefault(str(d_k), {}).setdefault(version, [])
        for rate in RATES[optimizer][len(found) :]:
            found.append(steps_to_learn(d_k, version, optimizer, rate, seeds))
            stored.save(path, content)
        print(optimizer, d_k, version, found, flush=True)
    return content


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS, seeds=(0, 1, 2, 3, 4)))


if __name__ == "__main__":
    run_command(main)
