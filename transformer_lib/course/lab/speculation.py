"""How many calls of the translator does a draft save, and what does the formula say? (notebook 22)"""

from __future__ import annotations

from typing import Any

from . import stored

load_results = stored.loader("speculation.json")
KINDS = ("small", "short", "narrow", "blind")


def rows(results: dict[str, Any], draft: str, split: str) -> list[dict[str, Any]]:
    """Return the rows of one kind of draft and split, one for each seed and γ, each with its "seed"."""
    runs = [run for run in results["runs"] if run["draft"] == draft]
    return [{"seed": run["seed"], **row} for run in runs for row in run["splits"][split]["rows"]]
