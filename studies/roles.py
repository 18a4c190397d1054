"""What are queries, keys and values each for? Heads in which two roles share one matrix (notebook 03).

`python -m studies.roles` trains every version at every width and writes data/roles.json after each; what the file
already has is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from transformer_lib._streams import run_command
from transformer_lib.course.lab.roles import RATE, VERSIONS, Heads

from .engine import Step, Steps, Study

BUDGETS = (300, 1500)  # steps
LONGER = {("V = K", 3): (4000,)}  # budgets beyond these


def measure(version: str, d_k: int, seeds: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Return for each budget, in steps, what the heads of these seeds have reached."""
    results = {}
    for steps in (*BUDGETS, *LONGER.get((version, d_k), ())):
        heads = Heads(version, d_k, seeds).train(steps)
        found = {"right": heads.share_right(), "tokens ahead": heads.tokens_ahead()}
        found["moved by colours"] = heads.moved_by_colours()
        results[str(steps)] = {name: [round(one, 4) for one in values] for name, values in found.items()}
    return results


def steps(seeds: Sequence[int]) -> Steps:
    """Train every version at every width."""
    for version in VERSIONS:
        for d_k in VERSIONS[version].widths:
            yield Step(("versions", version, str(d_k)), measure, version, d_k, seeds)


STUDY = Study("roles", __doc__, steps, seeds=range(8), constants={"budgets": list(BUDGETS), "rate": RATE})


if __name__ == "__main__":
    run_command(STUDY.main)
