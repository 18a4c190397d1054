"""Notices a cell that should have defined a function again, and did not run, so that the earlier one is still there.

IPython tells of every cell before and after it runs; outside IPython nothing is noticed.
"""

from __future__ import annotations

import re
import sys
import traceback
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .errors import error_text

# A definition at the margin, also with the commonest slips in "def", or a name for a function.
_DEFINITION = (
    r"(?:async\s+)?(?:def|Def|DEF|dfe|edf|df|de|function|func|class)\s+(\w+)|(\w+)\s*=\s*(?:lambda\b|[\w.]+\s*$)"
)
# Python's reason, and what it means for somebody who does not know it yet.
_MEANING = (
    (r"expected ':'", "a colon is missing at its end"),
    (r"'(.)' was never closed", r"its \1 is never closed"),
    (r"unmatched '(.)'", r"its \1 closes nothing"),
    (r"unterminated string", "a quotation mark is missing"),
    (r"incomplete input", "the cell ends too early: is a bracket left open, or is the body missing?"),
    (r"expected an indented block", "what belongs to the line above must be indented"),
    (r"unexpected indent", "it is indented further than the line above"),
    (r"unindent does not match", "it is indented like no line above it"),
    (r"TabError|inconsistent use of tabs", "it mixes tabs and spaces"),
)


@dataclass(frozen=True)
class FailedEdit:
    """A definition that did not run: its name, what this name means all the same, and what stopped the cell."""

    name: str
    earlier: object
    reason: str
    line: int = 0  # of the cell, counted from 1; 0 where it is not known
    source: str = ""  # of that line
    before: bool = False  # whether the cell stopped before it came to the definition


_failed: dict[str, FailedEdit] = {}
_defined: dict[str, object] = {}  # the functions and classes before the cell that runs


def listen(shell: Any = None) -> None:
    """Hear of every cell that this shell runs, by default IPython's own; nothing happens where there is none."""
    if shell is None and "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return

    def before(info: object) -> None:
        _defined.clear()
        _defined.update(
            {name: value for name, value in shell.user_ns.items() if isinstance(value, FunctionType | type)}
        )

    def after(result: Any) -> None:
        _heard(result.info.raw_cell, result.error_before_exec or result.error_in_exec, shell.user_ns)

    if not getattr(shell, "_tells_of_cells", False):
        shell._tells_of_cells = True
        shell.events.register("pre_run_cell", before)
        shell.events.register("post_run_cell", after)


def failed_edit(function: object) -> FailedEdit | None:
    """Return the edit that should have replaced a function and did not run, or None."""
    return next((edit for edit in _failed.values() if edit.earlier is function), None)


def told(edit: FailedEdit) -> list[str]:
    """Return the lines that say what happened, and how to go on."""
    where = f"Line {edit.line} of that cell" if edit.line else "That cell"
    shown = [f"      {edit.source}"] if edit.source else []
    late = [f"  It stopped there, before it came to {edit.name}."] if edit.before else []
    return [
        f"  {where}: {edit.reason}",
        *shown,
        *late,
        f"  So {edit.name} is still the version before that edit, and a check would tell you nothing of your new one.",
        "  Mend it, run that cell again, and then this one. (To go back, run the cell of the earlier version again.)",
    ]


def _heard(cell: str, error: BaseException | None, names: dict[str, Any]) -> None:
    """Remember or forget what a cell defines: `names` are the notebook's, after it ran."""
    for name, line in definitions(cell).items():
        unchanged = name in _defined and names.get(name) is _defined[name]
        if error is None or not unchanged:
            _failed.pop(name, None)
        else:
            _failed[name] = _edit(name, line, cell, error, names)


def definitions(cell: str) -> dict[str, int]:
    """Return the names that a cell defines, Python or not, each with the line of its last definition."""
    margin = re.match(r"(?:[ \t]*\n)*([ \t]*)", cell)
    pattern = re.compile(rf"{margin[1] if margin else ''}(?:{_DEFINITION})")
    found = [(pattern.match(line), number) for number, line in enumerate(cell.splitlines(), start=1)]
    return {match[1] or match[2]: number for match, number in found if match}


def _edit(name: str, definition: int, cell: str, error: BaseException, names: dict[str, Any]) -> FailedEdit:
    line, lines = _line(error, names), cell.splitlines()
    if line:
        line += next((number for number, text in enumerate(lines) if text.strip()), 0)  # IPython skips empty lines
    if line and cell.lstrip().startswith("%%") and isinstance(error, SyntaxError):
        line += 1  # the magic counts from the line below its own
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    before = 0 < line < definition and not isinstance(error, SyntaxError)
    return FailedEdit(name, names[name], _reason(error), line if source else 0, source, before)


def _line(error: BaseException, names: dict[str, Any]) -> int:
    """Return the line of the cell that an error is about, or 0."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    frames = traceback.walk_tb(error.__traceback__)
    own = (line for frame, line in frames if frame.f_globals is names and frame.f_code.co_name == "<module>")
    return next(own, 0)


def _reason(error: BaseException) -> str:
    if not isinstance(error, SyntaxError):
        return f"{error_text(error)}."
    return unreadable(f"{type(error).__name__}: {error.msg}")


def unreadable(said: str) -> str:
    """Return what it means that Python cannot read a cell, from what it said, such as "SyntaxError: invalid syntax"."""
    for pattern, meaning in _MEANING:
        if found := re.search(pattern, said):
            return f"{found.expand(meaning)} ({said})."
    return f"Python cannot read it ({said})."
