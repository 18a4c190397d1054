"""What is left of a translator that was never shown the source: a language model of German (notebook 11).

`python -m studies.blind` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import ladder, stored

RESULTS = DATA / "blind.json"
RUNG = "11"


def sighted(results: dict[str, Any]) -> list[list[float]]:
    """Return the losses of the same translators with their sources, from the ladder: [seed][passes]."""
    runs = ladder.load_results()["runs"][RUNG]
    return [[run["curves"][str(ladder.PASSES[-1])][str(passes)] for passes in results["passes"]] for run in runs]


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote; `["without the source"][seed]` has a loss for each of `["passes"]`."""
    return stored.read(path)
