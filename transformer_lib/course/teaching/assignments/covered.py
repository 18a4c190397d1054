"""Cells of a notebook whose code is an answer: in an assignment they are run, and only their results are seen."""

from __future__ import annotations

from collections.abc import Collection

from ... import notebooks as course
from ...cells import source_of, tags_of
from ..notebook_files import read

TAG = "answers:"
"""Begins the tag of a code cell that spells out the answer to an exercise, such as answers:08.1."""


def answered_by(cell: dict) -> list[str]:
    """Return the ids of the exercises that a cell answers."""
    return [tag.removeprefix(TAG) for tag in tags_of(cell) if tag.startswith(TAG)]


def covering(cell: dict, graded: Collection[str]) -> dict:
    """Return the cell as an assignment has it: with a line that runs its code, if that answers a graded exercise."""
    answers = [name for name in answered_by(cell) if name in graded]
    if not answers:
        return cell
    lines = [
        f"# The code of this cell answers exercise {' and '.join(answers)}, so you see only its result.",
        "from transformer_lib.course.teaching.assignments.covered import run_covered",
        "",
        f'run_covered("{answers[0].partition(".")[0]}", "{cell["id"]}", globals())',
    ]
    return cell | {"source": "\n".join(lines)}


def run_covered(notebook_id: str, cell_id: str, names: dict[str, object]) -> None:
    """Run the code of a published cell as if it stood in the cell that calls this.

    Args:
        notebook_id: the notebook's number, such as "08", or A.
        cell_id: id of the cell in the published notebook.
        names: what the calling cell knows, globals(); what the code defines is put there.

    Raises:
        ValueError: if there is no such notebook or cell.
        FileNotFoundError: if the published notebook does not lie beside the library.
    """
    entry = course.notebook(notebook_id)
    found = [cell for cell in read(course.file_of(entry))["cells"] if cell["id"] == cell_id]
    if not found:
        raise ValueError(f"cell_id must be a cell of {entry.filename}, got {cell_id!r}")
    source = source_of(found[0])
    if "run_covered(" in source:  # the assignment itself, in the working directory
        raise FileNotFoundError(f"{entry.filename} must lie beside the library: install with pip install -e")
    exec(compile(source, f"<cell {cell_id}>", "exec"), names)
