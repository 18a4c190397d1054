"""How many people one processor can translate for, and how long they wait (notebook 22)."""

from __future__ import annotations

from typing import Any

from . import stored

load_results = stored.loader("laptop.json")


def latencies(results: dict[str, Any], mix: str) -> dict[str, tuple[list[float], list[float]]]:
    """Return {way: (requests a second, milliseconds below which 95 % of them wait)}, as far as each way keeps up."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in sorted(results["queue"], key=lambda row: float(row["rate"])):
        if row["mix"] == mix and row["steady"] and row["way"] != "CTranslate2":
            rates, waits = found.setdefault(row["way"], ([], []))
            rates.append(row["rate"])
            waits.append(1000 * row["p95"])
    return found
