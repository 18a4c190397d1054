"""What does a second encoder layer buy? Tokens follow pointers, one or several hops (notebook 10)."""

from __future__ import annotations

from collections.abc import Sequence

from . import stored

load_results = stored.loader("hops.json")
HOPS = (1, 2, 3)


def table(content: dict) -> str:
    """Return the steps needed as a table; where the cap was reached, the share of right answers then in brackets."""
    rows = [["", "parameters", *(f"{hops} hop{'s' * (hops > 1)}" for hops in HOPS)]]
    for shape, found in content["steps"].items():
        last = content["unreached"].get(shape, {})
        cells = [_cell(steps, last.get(hops, []), content["cap"]) for hops, steps in found.items()]
        rows.append([shape, f"{content['parameters'][shape]:,}", *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(f"{each:<{width}}" for each, width in zip(row, widths, strict=True)) for row in rows)
    return "steps needed, three seeds each\n" + "\n".join(line.rstrip() for line in lines)


def _cell(steps: Sequence[int | None], last: Sequence[float], cap: int) -> str:
    if set(steps) != {None}:
        return " / ".join(f">{cap}" if step is None else str(step) for step in steps)
    return f">{cap} ({', '.join(f'{share:.2f}' for share in last)})"
