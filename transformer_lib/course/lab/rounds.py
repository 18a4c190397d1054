"""Batches that wait for their longest sentence, and batches that are joined: steps counted (notebook 22).

`python -m studies.rounds` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "rounds.json"
SENTENCES, DRAWN = "held-out sentences", "drawn lengths"


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what `measure` found, with the command and the date."""
    return stored.read(path)
