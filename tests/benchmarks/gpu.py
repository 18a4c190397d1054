"""The training step on a GPU: the paper's base model in bfloat16, compiled, attention fused. Left out without CUDA."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from studies.speed import BASELINE, OURS

from . import candidates, measure
from .candidates import Entries
from .work import Work

BASE = Work(
    vocabulary=32_000,
    d_model=512,
    n_heads=8,
    n_layers=6,
    d_ff=2_048,
    batch=128,
    length=128,
    rounds=7,
    steps=10,
    device="cuda",
    bfloat16=True,
    compiled=True,
)
NAMES = (f"{BASELINE}, fused Adam", "transformers MarianMT", OURS)


def measured(say: Callable[[str], None], work: Work = BASE) -> dict | None:
    """Return tokens per second and utilisation of each candidate; None, and one line, without CUDA.

    A token is one of the target's, padding included, as its products are computed. Utilisation is the operations
    of the step's products (`Work.flops`) per second, as a share of the rate of the fastest of them measured alone.
    """
    if not torch.cuda.is_available():
        say("GPU: no CUDA device here, so this part is left out")
        return None
    say(f"GPU: {torch.cuda.get_device_name()} …")
    found = Entries()
    for name in NAMES:
        found.add(name, lambda name=name: candidates.trained(candidates.TRAINED[name](work)))
    products = measure.products(work)
    works = {name: entry.seconds for name, entry in found.entries.items()} | products
    seconds = measure.interleaved(works, work.rounds)
    best = max(statistics.median(seconds.pop(shape)) for shape in products)
    rows = []
    for name, own in seconds.items():
        median = statistics.median(own)
        rows.append(
            {
                "name": name,
                "seconds": measure.spread(own),
                "ratio": measure.times_faster(seconds[NAMES[0]], own),
                "tokens_per_second": round(work.batch * work.length / median),
                "utilisation": round(work.flops() / median / best, 3),
            }
        )
    return {
        "device": torch.cuda.get_device_name(),
        "best_teraflops": round(best / 1e12, 1),
        "baseline": NAMES[0],
        "rows": rows,
        "missing": found.missing,
    }
