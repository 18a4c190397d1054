"""Grades one notebook by itself, without a course folder and a gradebook: the same cells, cases and points.

The source of its assignment says which exercises give points. What runs the notebook is `grading.ExecuteApart`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ...cells import source_of
from ...exercises import Exercise, get
from ..diagnoses import diagnosis_in, verdict_of
from .grading import HIDDEN, CompareAnswers, ExecuteApart
from .repair import Given, repaired

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
    for step in (apart, CompareAnswers()):
        notebook, _ = step(notebook, {})
    tests = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    return [_result(cell) for cell in tests]


def _result(cell: NotebookNode) -> Result:
    hidden = HIDDEN.search(cell.source)
    exercise, points = get(hidden["id"]), int(cell.metadata["nbgrader"]["points"])
    wrong = verdict_of(cell.outputs)
    text = "\n".join(wrong) or f"✓ {exercise.id} {exercise.title}: right, also in the cases that are not shown."
    return Result(exercise, 0 if wrong else points, points, text, diagnosis_in(cell.outputs))
