"""Which head comes first, the one that looks back by one or the one that copies? (notebook 21).

`load_results()["runs"]` has curves, measured "every" n-th step, and crossings in steps.
"""

from __future__ import annotations

from typing import Any

from . import stored

load_results = stored.loader("order.json")
BUDGETS = {3e-3: 400, 1e-3: 1000}  # peak rate: steps


def leads(results: dict[str, Any], share: float = 0.5, score: str = "previous", **fields: Any) -> list[float]:
    """Return by how many steps the induction score crosses before a previous-token score, one for each run.

    Args:
        share: one of SHARES. score: "previous" or "first time".
        fields: of the set-ups that count, such as rate=3e-3 or norm_first=False.
    """
    return [
        round(run[f"{score} crosses"][str(share)] - run["induction crosses"][str(share)], 1)
        for run in stored.runs_of(results, **fields)
    ]
