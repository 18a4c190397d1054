"""Says why a function that is to be tested is not there, in place of the NameError in which its test ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from ...cells import source_of
from ...exercises import get
from ...exercises.edits import definitions, unreadable

Cell = dict[str, Any]
SYNTAX = re.compile(r"(?P<said>.*) \([^()]*, line (?P<line>\d+)\)", flags=re.DOTALL)
"""How IPython writes a SyntaxError."""


def is_missing(outputs: Sequence[dict[str, Any]], name: str) -> bool:
    """Return whether a test ended since there is nothing of this name."""
    wanted = f"name '{name}' is not defined"
    return any(_error_of(output) == "NameError" and str(output["evalue"]).startswith(wanted) for output in outputs)


def why_missing(cells: Sequence[Cell], place: int, exercise_id: str, name: str) -> str:
    """Return the verdict on an exercise whose function is missing: a first line, and the reason.

    Args:
        cells: of the notebook, as it was executed.
        place: of the cell that tests the function.
        exercise_id: such as "04.1".
        name: of the function.
    """
    head = f"✗ {exercise_id} {get(exercise_id).title}: not checked."
    return f"{head}\n  Your function is missing: {_reason(cells, place, name)}"


def _reason(cells: Sequence[Cell], place: int, name: str) -> str:
    code = [(at, source_of(cell)) for at, cell in enumerate(cells) if cell["cell_type"] == "code"]
    defining = [at for at, source in code if name in definitions(source)]
    above = [at for at in defining if at < place]
    if above:
        return _stopped(cells[above[-1]], name)
    if defining:
        return f"{name} is defined only in a cell below this check, which is run later."
    others = {other for _, source in code for other in definitions(source) if not other.endswith("_solution")}
    nearly = get_close_matches(name, others, n=1, cutoff=0.75)
    return f"no cell defines {name}." + (f" Is it {nearly[0]}? Its name must stay {name}." if nearly else "")


def _stopped(cell: Cell, name: str) -> str:
    """Return what stopped the cell that should have defined a function."""
    errors = [output for output in cell.get("outputs", []) if _error_of(output)]
    if not errors:
        return f"its cell ran, but {name} was gone afterwards. Is it deleted, or defined inside of something?"
    ename, evalue = errors[-1]["ename"], str(errors[-1]["evalue"])
    read = SYNTAX.fullmatch(evalue)
    if not read:
        first = evalue.partition("\n")[0]
        return f"its cell did not run to its end. It stopped with {ename}: {first}"
    line, lines = int(read["line"]), source_of(cell).splitlines()
    shown = f"\n      {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
    meaning = unreadable(f"{ename}: {read['said']}")
    return f"its cell did not run. Line {line}: {meaning}{shown}"


def _error_of(output: dict[str, Any]) -> str:
    return str(output["ename"]) if output["output_type"] == "error" else ""
