"""Measure everything, and put it together as one JSON object."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import date
from importlib import metadata

import torch

from studies.speed import BASELINE
from transformer_lib._machine import processor
from transformer_lib.training.precision import bfloat16_units

from . import candidates, gpu, measure, memory
from .candidates import Entries
from .work import FULL, Work


def command(option: str, work: Work) -> str:
    """Return the command that measures so, with --rounds unless they are those of work.FULL."""
    rounds = "" if work.rounds == FULL.rounds else f" --rounds {work.rounds}"
    return f'make bench BENCH="{option}{rounds}"' if rounds else f"make bench BENCH={option}"


def measured(work: Work, say: Callable[[str], None] = print) -> dict:
    """Return all that `make bench` stores."""
    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    say("training step …")
    training = trained(work)
    say("decoding …")
    decoding = decoded(work)
    say("memory …")
    peaks = memory.measured(work.memory_lengths)
    return {
        "command": command("--store", work),
        "date": date.today().isoformat(),
        "machine": machine(),
        "work": asdict(work),
        "baseline": BASELINE,
        "training": training,
        "decoding": decoding,
        "memory": peaks,
        "gpu": gpu.measured(say),
    }


def trained(work: Work) -> dict:
    """Return the rows of the training step, and the rate of the machine's matrix products between the rounds."""
    found, products = candidates.training(work), measure.products(work)
    low = {f"{shape}, bfloat16": rate for shape, rate in measure.products(replace(work, bfloat16=True)).items()}
    works = {name: entry.seconds for name, entry in found.entries.items()} | products | low
    seconds = measure.interleaved(works, work.rounds)
    rates, low_rates = ({shape: statistics.median(seconds.pop(shape)) for shape in own} for own in (products, low))
    best = max(rates.values())
    result = table(found, seconds)
    for row in result["rows"]:
        counted = row["counted_flops"]
        row["share_of_product_rate"] = round(counted / row["seconds"]["median"] / best, 3) if counted else None
    gigaflops = {shape: round(rate / 1e9, 1) for shape, rate in rates.items()}
    peaks = {"best_gigaflops": best, "best_bfloat16_gigaflops": max(low_rates.values())}
    peaks = {name: round(rate / 1e9, 1) for name, rate in peaks.items()}
    return result | {"flops": work.flops(), "product_gigaflops": gigaflops} | peaks


def decoded(work: Work) -> dict:
    """Return the rows of decoding."""
    found = candidates.decoding(work)
    return table(found, measure.interleaved({name: e.seconds for name, e in found.entries.items()}, work.rounds))


def table(found: Entries, seconds: Mapping[str, list[float]]) -> dict:
    """Return one row per candidate: its seconds, how many times faster than the baseline, and what is known of it."""
    rows = [
        {"name": name, "seconds": measure.spread(own), "ratio": measure.times_faster(seconds[BASELINE], own)}
        | found.entries[name].facts
        for name, own in seconds.items()
    ]
    return {"rows": rows, "missing": found.missing}


def machine() -> dict:
    """Return what the numbers depend on: processor, threads, units for bfloat16, versions."""
    packages = ("torch", "transformers", "x-transformers")
    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "bfloat16_units": bfloat16_units(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def version(package: str) -> str | None:
    """Return the installed version, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
