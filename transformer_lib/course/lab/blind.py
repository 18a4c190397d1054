"""What is left of a translator that was never shown the source: a language model of German (notebook 11).

`load_results()["without the source"][seed]` has a loss for each of `["passes"]`.
"""

from __future__ import annotations

from typing import Any

from . import ladder, stored

load_results = stored.loader("blind.json")
RUNG = "11"


def sighted(results: dict[str, Any]) -> list[list[float]]:
    """Return the losses of the same translators with their sources, from the ladder: [seed][passes]."""
    runs = ladder.load_results()["runs"][RUNG]
    return [[run["curves"][str(ladder.PASSES[-1])][str(passes)] for passes in results["passes"]] for run in runs]
