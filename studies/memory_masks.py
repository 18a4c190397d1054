"""What a causal mask on the memory costs, where the task needs later source words (notebook 11).

Six letters are written in reverse, with and without an encoder layer, with and without the wrong mask.
`python -m studies.memory_masks` trains each of the four with every seed and for every number of
steps, and writes data/memory_masks.json.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from transformer_lib._streams import run_command
from transformer_lib.course.lab.memory_masks import NAMES, RESULTS, new_letters, train
from transformer_lib.model.transformer import Transformer

from . import stored

STEPS = (80, 150, 750)


@torch.no_grad()
def right_letters(model: Transformer) -> list[float]:
    """Return the share of right letters at each of the six places, the right earlier letters given."""
    src, tgt_in, tgt_out = new_letters()
    right = (model(src, tgt_in).argmax(dim=-1) == tgt_out).double().mean(dim=0)
    return [round(share, 3) for share in right.tolist()]


def measure(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what the file stores: {name: {steps: for each seed six shares}}."""
    right: dict[str, dict[str, list[list[float]]]] = {name: {} for name in NAMES}
    for name, steps in itertools.product(NAMES, STEPS):
        right[name][str(steps)] = [right_letters(train(name, seed, steps)) for seed in seeds]
        print(name, steps, right[name][str(steps)], flush=True)
    return {"right": right}


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("memory_masks", seeds, path, measure)


if __name__ == "__main__":
    run_command(main)
