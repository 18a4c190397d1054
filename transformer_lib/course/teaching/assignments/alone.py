"""Grades one notebook by itself, without a course folder and a gradebook: the same cells, cases and points.

The source of its assignment says which exercises give points. What runs the notebook is `grading.ExecuteApart`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from ...cells import source_of
from ...exercises import Exercise, get
from ..diagnoses import diagnosis_in, verdict_of
from . import hidden
from .grading import HIDDEN, CompareAnswers, ExecuteApart, is_root
from .repair import Given, repaired
from .source import points_of

LARGEST = 50_000_000  # bytes of a notebook that is handed in


@dataclass(frozen=True)
class Result:
    """What became of one exercise."""

    exercise: Exercise
    score: int
    points: int
    text: str
    """The whole verdict, as a student reads it."""
    diagnosis: str
    """What is not right, in one sentence; "" where all is."""

    @property
    def right(self) -> bool:
        """Whether it got its points."""
        return self.score == self.points


def read_submission(path: Path) -> NotebookNode:
    """Return a notebook that was handed in.

    Raises:
        ValueError: if the file is too large, or holds no notebook.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.name} must have at most {LARGEST // 1_000_000} MB, got {path.stat().st_size} bytes")
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # of many kinds, for what is no JSON, no notebook, or one of another age
        kind = type(error).__name__
        raise ValueError(f"{path.name} must be a Jupyter notebook, got what cannot be read as one ({kind})") from None


def given_in(source: dict) -> dict[str, Given]:
    """Return the cells with nbgrader's names of an assignment's source, in their order."""
    marked = [(cell, cell["metadata"]["nbgrader"]) for cell in source["cells"] if "nbgrader" in cell["metadata"]]
    return {
        marks["grade_id"]: Given(
            source_of(cell), cell["cell_type"], marks | {"cell_type": cell["cell_type"]}, cell.get("id")
        )
        for cell, marks in marked
    }


def graded(submission: NotebookNode, source: dict, apart: ExecuteApart) -> list[Result]:
    """Execute a notebook and return what became of each exercise that gives points.

    Args:
        submission: as it was handed in: a student version with or without nbgrader's marks, or one's own copy of the
            course's notebook. It is changed.
        source: of the assignment, as `course_source` returns it.
        apart: what executes it.

    Raises:
        grading.NotStarted: if nothing could be executed, whatever the submission.
    """
    notebook = repaired(submission, given_in(source))
    notebook.metadata["kernelspec"] = source["metadata"]["kernelspec"]
    return _results(notebook, apart)


def graded_functions(text: str, names: Mapping[str, str], apart: ExecuteApart, *, seed: int) -> list[Result]:
    """Execute a file with functions, and return what became of each exercise that one of them answers.

    Args:
        text: the file, in Python.
        names: {id of the exercise: name of the function}.
        apart: what executes it.
        seed: of the hidden cases.

    Raises:
        grading.NotStarted: if nothing could be executed, whatever the file.
    """
    notebook = new_notebook(cells=[new_code_cell(text)])
    for exercise_id, name in names.items():
        marks = {"grade": True, "points": points_of(get(exercise_id)), "grade_id": exercise_id}
        test = f'from {hidden.__name__} import grade\n\ngrade("{exercise_id}", {name}, seed={seed})'
        notebook.cells.append(new_code_cell(test, metadata={"nbgrader": marks}))
    return _results(notebook, apart)


def executor(user: str = "", *, allow_root: bool = False, **limits: int) -> ExecuteApart:
    """Return what executes a notebook apart, in this process's right or in that of another user.

    Raises:
        ValueError: if this is root, and nobody else is named.
    """
    if is_root() and not user and not allow_root:
        raise ValueError("user must be named where root grades (--user nobody), since whatever is graded would be root")
    return ExecuteApart(user=user, **limits)


def _results(notebook: NotebookNode, apart: ExecuteApart) -> list[Result]:
    for step in (apart, CompareAnswers()):
        notebook, _ = step(notebook, {})
    tests = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    return [_result(cell) for cell in tests]


def _result(cell: NotebookNode) -> Result:
    tested = HIDDEN.search(cell.source)
    exercise, points = get(tested["id"]), int(cell.metadata["nbgrader"]["points"])
    wrong = verdict_of(cell.outputs)
    text = "\n".join(wrong) or f"✓ {exercise.id} {exercise.title}: right, also in the cases that are not shown."
    return Result(exercise, 0 if wrong else points, points, text, diagnosis_in(cell.outputs))
