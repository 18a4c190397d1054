"""What a wider beam finds, and what label smoothing does to samples, over several trainings (notebook 14).

`load_results()["runs"]` has a record for each training.
"""

from __future__ import annotations

from typing import Any

from . import stored

load_results = stored.loader("decoding.json")
FILTERS: dict[str, dict[str, Any]] = {"all words": {}, "top-k 10": {"top_k": 10}, "top-p 0.9": {"top_p": 0.9}}


def runs(content: dict[str, Any], *, smoothing: float, passes: int) -> list[dict[str, Any]]:
    """Return the stored records of these trainings, one for each seed."""
    wanted = {"smoothing": smoothing, "passes": passes}
    return [record for record in content["runs"] if {key: record[key] for key in wanted} == wanted]
