"""What a wider beam finds, and what label smoothing does to samples, over several trainings (notebook 14).

`python -m studies.decoding` measured what `load_results` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._files import DATA
from . import stored

RESULTS = DATA / "decoding.json"
FILTERS: dict[str, dict[str, Any]] = {"all words": {}, "top-k 10": {"top_k": 10}, "top-p 0.9": {"top_p": 0.9}}


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote; `["runs"]` has a record for each `Training`."""
    return stored.read(path)


def runs(content: dict[str, Any], *, smoothing: float, passes: int) -> list[dict[str, Any]]:
    """Return the stored records of these trainings, one for each seed."""
    wanted = {"smoothing": smoothing, "passes": passes}
    return [record for record in content["runs"] if {key: record[key] for key in wanted} == wanted]
