"""Turns a notebook of the course into the source of an nbgrader assignment.

Each exercise is a stub, a check, hints, a folded solution and often a check of that solution. In the source the
stub holds the solution between nbgrader's marks, so that a student version gets the stub back; the check is a
locked test with points and hidden cases; the solution and its check are gone, and the hints stay, all or the first of
them. A cell elsewhere that spells out the answer to an exercise with points is run without being shown. A variant may
stand in the place of an exercise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, replace

from ...cells import folded, for_readers, is_telling, source_of, tags_of
from ...exercises import Exercise, get
from .changed import stub_and_body, told, variant_of
from .covered import covering

STUB = "raise NotImplementedError"
CHECK = re.compile(r'^check\("(?P<id>[^"]+)", (?P<name>\w+)\)\s*$')
HINT = re.compile(r"<details><summary>Hint \d+</summary>")  # each stands inside the one before
CHECK_SOLUTION = re.compile(r'^check_solution\("[^"]+", \w+_solution\)\s*$')
WRONG_ON_PURPOSE = re.compile(r'^check_solution\("(?P<id>[^"]+)", (?P<name>\w+)\)$', flags=re.MULTILINE)


@dataclass(frozen=True)
class Group:
    """The cells of one exercise, by their places in the notebook; `solution_check` is None where it is folded in."""

    exercise: Exercise
    name: str
    stub: int
    check: int
    solution: int
    solution_check: int | None


def groups_of(cells: list[dict]) -> list[Group]:
    """Return the exercises of a notebook.

    Raises:
        ValueError: if a stub is not followed by its check and its solution.
    """
    stubs = [place for place, cell in enumerate(cells) if "exercise" in tags_of(cell)]
    return [_group(cells, start, end) for start, end in zip(stubs, [*stubs, len(cells)][1:], strict=True)]


def _group(cells: list[dict], start: int, end: int) -> Group:
    code = [place for place in range(start + 1, end) if cells[place]["cell_type"] == "code"]
    found = CHECK.match(source_of(cells[code[0]])) if code else None
    if not found or len(code) < 2 or "solution" not in tags_of(cells[code[1]]):
        raise ValueError(f"cells must have a check and a solution after the stub in cell {start}")
    after = code[2] if len(code) > 2 and CHECK_SOLUTION.match(source_of(cells[code[2]])) else None
    return Group(get(found["id"]), found["name"], start, code[0], code[1], after)


def course_source(
    notebook: dict,
    *,
    seed: int,
    graded: Collection[str] | None = None,
    hints: int | None = None,
    variants: Collection[str] = (),
) -> dict:
    """Return the source of an assignment, as a notebook with nbgrader's metadata (schema version 3).

    Args:
        notebook: a notebook of the course, in nbformat 4; it is not changed.
        seed: of the hidden cases, at least 1,000,000.
        graded: ids of the exercises that give points; the others stay for practice. All by default.
        hints: how many hints of each exercise stay; all by default.
        variants: ids of graded exercises in whose place a variant stands, without hints.

    Raises:
        ValueError: if an exercise is not complete, or `graded` names none of this notebook, or one of `variants` has
            no variant.
    """
    result = deepcopy(notebook)
    result["cells"] = [_told(cell) for cell in for_readers(result["cells"])]
    groups = groups_of(result["cells"])
    chosen = [group for group in groups if graded is None or group.exercise.id in graded]
    if not chosen:
        raise ValueError(f"graded must be some of {[g.exercise.id for g in groups]}, got {graded!r}")
    ids = {group.exercise.id for group in chosen}
    cells: dict[int, dict | None] = {place: covering(cell, ids) for place, cell in enumerate(result["cells"])}
    for group in groups:
        cells[group.stub] = _stub_with_solution(result["cells"], groups, group)
        cells[group.check] = _test(result["cells"][group.check], group, seed) if group in chosen else cells[group.check]
        for place in range(group.check + 1, group.solution):
            cells[place] = _with_hints(result["cells"][place], hints)
        cells[group.solution] = _right_answer(result["cells"], group)
        if group.solution_check is not None:
            cells[group.solution_check] = None
        if group in chosen and group.exercise.id in variants:
            cells |= _changed(result["cells"], group, seed)
    result["cells"] = [_plain(cell) for cell in cells.values() if cell]
    given = [variant_of(each.id).exercise if each.id in variants else each for each in (g.exercise for g in chosen)]
    result["cells"].insert(1, _notice(given))
    return result


def _told(cell: dict) -> dict:
    """Return a cell; what tells the result of a prediction opens with a click."""
    return cell | {"source": folded(source_of(cell))} if is_telling(cell) else cell


def points_of(exercise: Exercise) -> int:
    """Return one point for each star of difficulty."""
    return exercise.difficulty


def _with_hints(cell: dict, hints: int | None) -> dict | None:
    """Return the cell below a check with its first hints; None when no text is left."""
    text = source_of(cell)
    starts = [found.start() for found in HINT.finditer(text)]
    if hints is None or len(starts) <= hints:
        return cell
    kept = text[: starts[hints]].rstrip()
    return cell | {"source": f"{kept}\n{'</details>' * hints}"} if kept else None


def _nbgrader(cell: dict, kind: str, exercise: Exercise, **settings: object) -> dict:
    grade_id = f"{kind}-{exercise.id.replace('.', '-')}"
    marks = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3}
    cell["metadata"]["nbgrader"] = marks | {"grade_id": grade_id} | settings
    return cell


def _stub_with_solution(cells: list[dict], groups: list[Group], group: Group) -> dict:
    """Return the stub, its `raise` replaced by the body of the solution between nbgrader's marks."""
    head, found, rest = source_of(cells[group.stub]).partition(f"    {STUB}")
    if not found or rest.strip():
        raise ValueError(f"the stub of {group.exercise.id} must end with `{STUB}`")
    body = _body(source_of(cells[group.solution]), f"{group.name}_solution")
    for other in groups:  # a solution that builds on another one builds on the student's own
        body = re.sub(rf"\b{other.name}_solution\b", other.name, body)
    cell = deepcopy(cells[group.stub])
    cell["source"] = f"{head}    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
    return _nbgrader(cell, "exercise", group.exercise, solution=True)


def _body(source: str, name: str) -> str:
    """Return the lines of a function after its signature and docstring."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = node.body[1 if ast.get_docstring(node) is not None else 0]
            return "\n".join(source.splitlines()[first.lineno - 1 : node.end_lineno])
    raise ValueError(f"the solution must define {name}")


def _test(cell: dict, group: Group, seed: int) -> dict:
    cell = deepcopy(cell)
    cell["source"] = "\n".join(
        [
            source_of(cell).rstrip(),
            "### BEGIN HIDDEN TESTS",
            "from transformer_lib.course.teaching.assignments.hidden import grade",
            f'grade("{group.exercise.id}", {group.name}, seed={seed})',
            "### END HIDDEN TESTS",
        ]
    )
    return _nbgrader(cell, "check", group.exercise, grade=True, locked=True, points=points_of(group.exercise))


def _changed(cells: list[dict], group: Group, seed: int) -> dict[int, dict | None]:
    """Return the cells of an exercise that are others when its variant is asked, by their places."""
    variant = variant_of(group.exercise.id)
    head, body = stub_and_body(variant)
    stub, check = deepcopy(cells[group.stub]), deepcopy(cells[group.check])
    stub["source"] = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
    check["source"] = f'check("{variant.exercise.id}", {group.name})'
    changed = replace(group, exercise=variant.exercise)
    above = next(
        place for place in range(group.stub - 1, -1, -1) if f"Exercise {group.exercise.id}" in source_of(cells[place])
    )
    hints: dict[int, dict | None] = dict.fromkeys(range(group.check + 1, group.solution))
    return hints | {
        above: told(cells[above], variant),
        group.stub: _nbgrader(stub, "exercise", variant.exercise, solution=True),
        group.check: _test(check, changed, seed),
    }


def _right_answer(cells: list[dict], group: Group) -> dict | None:
    """Return a line that gives the solution's name to the library's answer where later cells use it; else nothing."""
    name = f"{group.name}_solution"
    others = [cell for cell in cells if cell["cell_type"] == "code" and "solution" not in tags_of(cell)]
    uses = [text for text in map(source_of, others) if not CHECK_SOLUTION.match(text)]
    if not any(re.search(rf"\b{name}\b", text) for text in uses):
        return None
    cell = deepcopy(cells[group.solution])
    cell["metadata"] = {}
    cell["source"] = (
        f"# Cells below need a right answer to exercise {group.exercise.id}, whatever yours is.\n"
        f"from transformer_lib.course.exercises import get\n\n{name} = get({group.exercise.id!r}).reference"
    )
    return _nbgrader(cell, "answer", group.exercise, locked=True)


def _plain(cell: dict) -> dict:
    """Return the cell without outputs and expected errors: in grading every check that fails raises one."""
    if cell["cell_type"] != "code":
        return cell
    source = source_of(cell)
    if WRONG_ON_PURPOSE.search(source):
        shown = WRONG_ON_PURPOSE.sub(r'print(examine(get("\g<id>"), \g<name>).text)', source)
        source = f"from transformer_lib.course.exercises import examine, get\n\n{shown}"
    return cell | {"source": source, "outputs": [], "execution_count": None}


def _notice(given: list[Exercise]) -> dict:
    rows = [f"| {each.id} | {each.title} | {points_of(each)} |" for each in given]
    total = sum(map(points_of, given))
    text = [
        "**This is an assignment.** Replace each `raise NotImplementedError` below; the check under it says at once "
        "whether your answer is right, and what is wrong with it. Cells of your own are welcome; the checks "
        "themselves are put back when the file is graded, and then also try cases that they do not show. "
        "Solutions are left out. Points of an exercise are given whole or not at all. Keep the functions' names. "
        "Before you hand in: *Kernel → Restart Kernel and Run All Cells*; save, and keep the file's name.",
        "",
        "| exercise | | points |",
        "|---|---|---|",
        *rows,
        f"| | together | **{total}** |",
    ]
    return {"cell_type": "markdown", "id": "assignment", "metadata": {}, "source": "\n".join(text)}
