"""Grades one submission at Gradescope and writes results.json: `python -m …gradescope.grade /autograder`.

Whatever happens, a results.json is written: that of a failure says so, and gives no points.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...._files import write_atomically
from ...._streams import run_command
from ..assignments.alone import Result, graded, read_submission
from ..assignments.grading import ExecuteApart

FAILED = "The autograder itself failed, so nothing was graded. Please tell whoever teaches the course: {error!r}"


def grade(root: Path, user: str = "") -> dict[str, Any]:
    """Return what became of the submission in a folder that is laid out as Gradescope's /autograder.

    Args:
        root: holds `source` (what the archive held) and `submission`.
        user: as whom the submission runs; by default the one who grades.
    """
    assignment = json.loads((root / "source" / "assignment.json").read_text(encoding="utf-8"))
    source, settings = assignment["source"], assignment["settings"]
    try:
        notebook = read_submission(handed_in(root / "submission", settings["name"]))
    except ValueError as error:
        return {"score": 0, "output": f"Nothing was graded. {error}", "output_format": "text"}
    limits = {name: settings[name] for name in ("cell_seconds", "notebook_seconds")}
    results = graded(notebook, source, ExecuteApart(user=user, **limits))
    return {"tests": [_test(each, settings["visibility"]) for each in results], "stdout_visibility": "hidden"}


def handed_in(folder: Path, name: str) -> Path:
    """Return the notebook that was handed in: the one with the assignment's name, or the only one there is.

    Raises:
        ValueError: if there is none, or several of other names.
    """
    found = sorted(path for path in folder.rglob("*.ipynb") if _is_own(path, folder))
    named = [path for path in found if path.stem == name] or found
    if len(named) != 1:
        others = ", ".join(path.name for path in found) or "none"
        raise ValueError(f"Hand in one notebook, {name}.ipynb; got {others}.")
    return named[0]


def _is_own(path: Path, folder: Path) -> bool:
    """Return whether a file was handed in itself: a link could lead to what no student may read."""
    inside = path.resolve().is_relative_to(folder.resolve())
    return inside and path.is_file() and ".ipynb_checkpoints" not in path.parts


def _test(result: Result, visibility: str) -> dict[str, Any]:
    return {
        "number": result.exercise.id,
        "name": result.exercise.title,
        "score": result.score,
        "max_score": result.points,
        "status": "passed" if result.right else "failed",
        "output": result.text,
        "output_format": "text",
        "visibility": visibility,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, grade, and write results.json."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.gradescope.grade", description=__doc__
    )
    parser.add_argument("root", type=Path, help="the folder with source, submission and results")
    parser.add_argument("--user", default="", help="as whom the submission runs; by default whoever grades")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        results = grade(given.root, given.user)
    except Exception as error:  # a student must read something, whatever it is
        results = {"score": 0, "output": FAILED.format(error=error), "output_format": "text"}
    results["execution_time"] = round(time.monotonic() - began)
    text = json.dumps(results, ensure_ascii=False, indent=1) + "\n"
    write_atomically(given.root / "results" / "results.json", text.encode())


if __name__ == "__main__":
    run_command(main)
