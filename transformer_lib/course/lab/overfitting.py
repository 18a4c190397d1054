"""What does a translator learn from few sentences? Its loss on them, and on sentences it never saw (notebook 13)."""

from __future__ import annotations

from statistics import mean
from typing import Any

from . import stored

load_results = stored.loader("overfitting.json")
STEPS = 712  # one pass over the whole corpus
SIZES = (256, 1024, 22776)  # pairs; the last has all


def runs_of(
    results: dict[str, Any], pairs: int, dropout: float = 0.0, smoothing: float = 0.0, steps: int = STEPS
) -> list[dict[str, Any]]:
    """Return the stored runs of one row, one for each seed."""
    wanted = (pairs, dropout, smoothing, steps)
    return [run for run in results["runs"] if (run["pairs"], run["dropout"], run["smoothing"], run["steps"]) == wanted]


def best_and_last(results: dict[str, Any], *row: float) -> tuple[float, float, float, float]:
    """Return the validation loss where it is lowest and at the end, and the share of words right then: means.

    Args:
        row: pairs, and what differs from no dropout, no smoothing, STEPS steps, as for `runs_of`.
    """
    curves = [run["curve"] for run in runs_of(results, *row)]  # type: ignore[arg-type]
    best = [curve["validation"].index(min(curve["validation"])) for curve in curves]
    loss, late, words, last = (
        mean(curve[what][at] for curve, at in zip(curves, ends, strict=True))
        for what in ("validation", "words right")
        for ends in (best, [-1] * len(curves))
    )
    return loss, late, words, last


def panels(results: dict[str, Any]) -> dict[str, dict[str, tuple[list[int], list[list[float]]]]]:
    """Return {number of pairs: {"training" and "validation": (steps, a curve for each seed)}}, to be drawn."""
    drawn = {}
    for size in SIZES:
        curves = [run["curve"] for run in runs_of(results, size)]
        drawn[f"{size:,} pairs"] = {
            split: (curves[0]["steps"], [curve[split] for curve in curves]) for split in ("training", "validation")
        }
    return drawn
