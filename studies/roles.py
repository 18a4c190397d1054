"""What are queries, keys and values each for? Heads in which two roles share one matrix (notebook 03).

`python -m studies.roles` trains every version at every width and writes data/roles.json after
each; what the file already has is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from transformer_lib._streams import run_command
from transformer_lib.course.lab.roles import RATE, RESULTS, VERSIONS, Heads, load_results

from . import stored

BUDGETS = (300, 1500)  # steps
LONGER = {("V = K", 3): (4000,)}  # budgets beyond these
"""How a query is made from the key: scores are symmetric with all but "shifted", and squares with "key" alone."""


def measure(version: str, d_k: int, seeds: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Return for each budget, in steps, what the heads of these seeds have reached."""
    results = {}
    for steps in (*BUDGETS, *LONGER.get((version, d_k), ())):
        heads = Heads(version, d_k, seeds).train(steps)
        found = {"right": heads.share_right(), "tokens ahead": heads.tokens_ahead()}
        found["moved by colours"] = heads.moved_by_colours()
        results[str(steps)] = {name: [round(one, 4) for one in values] for name, values in found.items()}
    return results


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict[str, Any]:
    """Run what `path` does not have yet, and write it after each run."""
    content = load_results(path) if path.exists() else {"versions": {}}
    content |= {"command": stored.command("roles", seeds), "date": date.today().isoformat(), "seeds": list(seeds)}
    content |= {"budgets": list(BUDGETS), "rate": RATE}
    for version in VERSIONS:
        found = content["versions"].setdefault(version, {})
        for d_k in VERSIONS[version].widths:
            if str(d_k) not in found:
                found[str(d_k)] = measure(version, d_k, seeds)
                stored.save(path, content)
                print(version, d_k, found[str(d_k)], flush=True)
    return content


def main() -> None:
    """Run the command line."""
    run(*stored.arguments(__doc__, RESULTS, seeds=range(8)))


if __name__ == "__main__":
    run_command(main)
