"""What are queries, keys and values each for? Heads in which two roles share one matrix (notebook 03)."""

from __future__ import annotations

from collections.abc import Sequence

from transformer_lib.course.lab.roles import RATE, VERSIONS, Heads

from .engine import Step, Steps, Study, rounded

BUDGETS = (300, 1500)  # steps
LONGER = {("V = K", 3): (4000,)}  # budgets beyond these


def measure(version: str, d_k: int, seeds: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Return for each budget, in steps, what the heads of these seeds have reached."""
    results = {}
    for steps in (*BUDGETS, *LONGER.get((version, d_k), ())):
        heads = Heads(version, d_k, seeds).train(steps)
        reached = {"right": heads.share_right(), "tokens ahead": heads.tokens_ahead()}
        results[str(steps)] = reached | {"moved by colours": heads.moved_by_colours()}
    return rounded(results)


def steps(seeds: Sequence[int]) -> Steps:
    """Train every version at every width."""
    for version in VERSIONS:
        for d_k in VERSIONS[version].widths:
            yield Step(("versions", version, str(d_k)), measure, version, d_k, seeds)


STUDY = Study("roles", __doc__, steps, seeds=range(8), constants={"budgets": list(BUDGETS), "rate": RATE})


if __name__ == "__main__":
    STUDY.command()
