"""Puts the cells of a submission in order before nbgrader reads them, whatever an editor did to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader.api import Gradebook, Notebook
from nbgrader.coursedir import CourseDirectory

from .grading import Resources, Step

KINDS = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}
TWICE = (
    "**The cell `{name}` appears twice.** The one that was handed out counts. The one below is run as a cell of your "
    "own; of functions with the same name, a check tries the one that was defined last before it."
)
MISSING = "**The cell `{name}` was missing** in the notebook that was handed in. It was put back."


@dataclass(frozen=True)
class Given:
    """A cell that was handed out with a name of nbgrader's, its `grade_id`."""

    source: str
    cell_type: str
    marks: dict[str, object]
    """nbgrader's metadata"""
    cell_id: str | None = None
    """Jupyter's id; a copy of the cell has another"""

    @property
    def is_needed(self) -> bool:
        """Whether it is put back: an answer is not, since a function may stand anywhere."""
        return any(self.marks[kind] for kind in ("locked", "grade", "task"))

    def would_replace(self, cell: NotebookNode) -> bool:
        """Whether the cell, as this one, would lose a text of the student's own."""
        return bool(self.marks["locked"]) and not self.source.startswith(str(cell.source).strip())


class RepairCells(Step):
    """Recognises the cells that were handed out, makes all others the student's own, and puts back what is missing.

    nbgrader stops at cells that appear twice or whose metadata are damaged, and then nothing of a submission counts.
    """

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Repair one submission."""
        names = resources["nbgrader"]
        course = CourseDirectory(parent=self)
        folder = course.format_path(course.source_directory, ".", names["assignment"])
        ids = cell_ids(Path(folder) / f"{names['notebook']}.ipynb")
        with Gradebook(names["db_url"]) as gradebook:
            given = given_cells(gradebook.find_notebook(names["notebook"], names["assignment"]), ids)
        return repaired(nb, given), resources


def cell_ids(source: Path) -> dict[str, str]:
    """Return {nbgrader's name: Jupyter's id} of the cells in the source of an assignment; nothing if there is none."""
    if not source.is_file():
        return {}
    cells = nbformat.read(source, as_version=4).cells
    return {name: cell.id for cell in cells if (name := grade_id(cell)) and "id" in cell}


def given_cells(notebook: Notebook, ids: dict[str, str]) -> dict[str, Given]:
    """Return the cells with names that were handed out, in their order, as the gradebook knows them."""
    graded, tasks = ({cell.name: cell for cell in cells} for cells in (notebook.grade_cells, notebook.task_cells))
    answers = {cell.name for cell in notebook.solution_cells}
    given, order = {}, [*ids]
    for cell in sorted(notebook.source_cells, key=lambda cell: order.index(cell.name) if cell.name in ids else -1):
        marks = {"grade_id": cell.name, "schema_version": 3, "checksum": cell.checksum, "cell_type": cell.cell_type}
        marks |= {"grade": cell.name in graded, "solution": cell.name in answers, "task": cell.name in tasks}
        points = graded.get(cell.name) or tasks.get(cell.name)
        marks |= {"locked": bool(cell.locked)} | ({"points": points.max_score} if points else {})
        given[cell.name] = Given(cell.source, cell.cell_type, marks, ids.get(cell.name))
    return given


def repaired(nb: NotebookNode, given: dict[str, Given]) -> NotebookNode:
    """Return the notebook with each given cell at most once, as nbgrader wants it, and the others as a student's own.

    Args:
        nb: the submission, in nbformat 4.
        given: the cells that were handed out, {nbgrader's name: cell}, in their order.
    """
    names = named_cells(nb.cells, given)
    placed: list[tuple[str | None, NotebookNode]] = []
    for place, cell in enumerate(nb.cells):
        name = names.get(place)
        if name:
            placed.append((name, as_given(cell, given[name])))
            continue
        if grade_id(cell) in given:
            placed.append((None, new_markdown_cell(TWICE.format(name=grade_id(cell)))))
        placed.append((None, rebuilt(cell, cell.cell_type)))
    for name in given:
        if given[name].is_needed and name not in names.values():
            at = place_of(name, list(given), [name for name, _ in placed])
            back = KINDS[given[name].cell_type](given[name].source, metadata={"nbgrader": dict(given[name].marks)})
            placed[at:at] = [(None, new_markdown_cell(MISSING.format(name=name))), (name, back)]
    nb.cells = [cell for _, cell in placed]
    nb.nbformat_minor = max(nb.nbformat_minor, 5)  # in which cells have ids
    _make_ids_unique(nb.cells)
    return nb


def grade_id(cell: NotebookNode) -> str | None:
    """Return nbgrader's name of a cell; None where its metadata hold none."""
    marks = cell.metadata.get("nbgrader")
    name = marks.get("grade_id") if isinstance(marks, dict) else None
    return name if isinstance(name, str) else None


def named_cells(cells: list[NotebookNode], given: dict[str, Given]) -> dict[int, str]:
    """Return {place: name} of the given cells: those with Jupyter's id of then, else the first with nbgrader's name."""
    of_id = {cell.cell_id: name for name, cell in given.items() if cell.cell_id}
    found: dict[str, int] = {}
    for place, cell in enumerate(cells):
        name = of_id.get(cell.get("id"))
        if name and (grade_id(cell) == name or not given[name].would_replace(cell)):
            found.setdefault(name, place)
    for place, cell in enumerate(cells):
        name = grade_id(cell)
        if name in given and place not in found.values():
            found.setdefault(name, place)
    return {place: name for name, place in found.items()}


def place_of(name: str, order: list[str], present: list[str | None]) -> int:
    """Return where a missing cell belongs: after the one that stood before it, else before the next one there is."""
    index = order.index(name)
    if index and order[index - 1] in present:
        return present.index(order[index - 1]) + 1
    return next((present.index(after) for after in order[index + 1 :] if after in present), len(present))


def as_given(cell: NotebookNode, given: Given) -> NotebookNode:
    """Return a cell of a submission with nbgrader's metadata as they were; its text, too, where that is locked."""
    new = rebuilt(cell, given.cell_type)
    new.metadata["nbgrader"] = dict(given.marks)
    if given.marks["locked"]:
        new.source = given.source
    return new


def rebuilt(cell: NotebookNode, cell_type: str) -> NotebookNode:
    """Return a cell of this type without outputs and nbgrader's metadata, and without the others if those are wrong."""
    new = KINDS.get(cell_type, new_raw_cell)
    kept = {"metadata": {key: value for key, value in cell.metadata.items() if key != "nbgrader"}}
    kept |= {key: cell[key] for key in ("id", "attachments") if key in cell}
    if cell_type == "code":
        kept.pop("attachments", None)
    try:
        return new(str(cell.source), **kept)
    except nbformat.ValidationError:
        return new(str(cell.source))


def _make_ids_unique(cells: list[NotebookNode]) -> None:
    seen = set()
    for cell in cells:
        if cell.id in seen:
            cell.id = new_raw_cell().id
        seen.add(cell.id)
