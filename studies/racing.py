"""How long attention takes with the whole grid, in blocks and fused, at six lengths on one machine (notebook 16).

One head, d_k = d_v = 64, float32, forward, in one thread. The grid is also timed with its memory made beforehand. All
ways take turns; the fastest of the rounds counts, in the processor's own time. Two more rates say what the machine can
do: multiply-adds in a second, and numbers moved in a second within the cache and to and from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from transformer_lib._machine import processor
from transformer_lib.course.lab import racing

from .engine import Study, at_once

LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)
ROUNDS = 7
CACHED, UNCACHED = 2**17, 2**25  # numbers: half a MiB, and 128 MiB


def measure(seeds: Sequence[int], *, rounds: int = ROUNDS, longest: int = LENGTHS[-1]) -> dict[str, Any]:
    """Time all ways on this machine.

    Args:
        seeds: of the inputs; each gives times of its own. rounds: how often everything is timed. longest: the last
            length.
    """
    lengths = [n for n in LENGTHS if n <= longest]
    machine = {"processor": processor(), "torch": torch.__version__, "threads": 1, "rounds": rounds}
    rates = {
        "multiply-adds": racing.product_rate(rounds=rounds),
        "moved in the cache": racing.moving_rate(CACHED, rounds=rounds),
        "moved in memory": racing.moving_rate(UNCACHED, rounds=rounds),
    }
    runs = [{"n": n, "seed": seed, "seconds": _times(n, seed, rounds)} for n in lengths for seed in seeds]
    return machine | {"per second": {name: round(rate) for name, rate in rates.items()}, "runs": runs}


def _times(n: int, seed: int, rounds: int) -> dict[str, float]:
    inputs = torch.randn(3, n, 64, generator=torch.Generator().manual_seed(seed))
    ready = racing.grid_in(*torch.empty(2, n, n))
    ways = {"grid": racing.grid, "grid, memory ready": ready, "blocks": racing.in_blocks, "fused": racing.fused}
    return {name: round(seconds, 6) for name, seconds in racing.race(ways, *inputs, rounds=rounds).items()}


HOW_MUCH = {"rounds": {"type": int, "default": ROUNDS}, "longest": {"type": int, "default": LENGTHS[-1]}}
STUDY = Study("racing", __doc__, at_once(measure), options=HOW_MUCH, indent=1)


if __name__ == "__main__":
    STUDY.command()
