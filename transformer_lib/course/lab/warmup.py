"""When does training need a warm-up? Peak rates with and without one, for post-norm and pre-norm (notebook 13)."""

from __future__ import annotations

from typing import Any

from . import stored

load_results = stored.loader("warmup.json")
STEPS = 712  # one pass over the corpus
ARMS = (("post-norm", 0.001), ("post-norm", 0.002), ("post-norm", 0.003), ("pre-norm", 0.003))  # norm and peak rate
WARMUPS = {"with": 400, "without": 1}  # steps of the rise


def shares(results: dict[str, Any], norm: str, rate: float, warmup: str) -> list[float]:
    """Return the share of held-out sentences exactly right after one pass, one for each seed."""
    return [run["exact match"] for run in results["epoch"][norm][f"{rate:g}"][warmup]]


def dots(results: dict[str, Any], warmup: str) -> dict[str, list[float]]:
    """Return {norm and rate: shares of the seeds}, to be drawn."""
    return {f"{norm}, rate {rate:g}": shares(results, norm, rate, warmup) for norm, rate in ARMS}
