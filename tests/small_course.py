"""A course of one short assignment, made from notebook 00, and what hands in and grades."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat

from transformer_lib.course.teaching.assignments import build
from transformer_lib.course.teaching.assignments.source import groups_of
from transformer_lib.course.teaching.notebook_files import read

RIGHT = {
    "mean_of_rows": "return x.mean(dim=0)",
    "weighted_mean": "return weights @ x / weights.sum()",
    "itself_and_one_more": "m = torch.eye(n, dtype=torch.bool); m[query, key] = True; return m",
}


def small_notebook(folder: Path) -> Path:
    """Notebook 00 cut down to its first cells with the set-up, a cell with formulas, and three exercises."""
    notebook = read(build.chosen_notebooks(["00"])[0])
    groups = groups_of(notebook["cells"])[:3]
    formulas = next(place for place, cell in enumerate(notebook["cells"]) if "$$" in "".join(cell["source"]))
    places = {0, 1, 2, 3, formulas, *(place for group in groups for place in range(group.stub - 1, group.solution + 1))}
    notebook["cells"] = [cell for place, cell in enumerate(notebook["cells"]) if place in places]
    path = folder / "00_start_here.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def submit(course: Path, student: str, bodies: dict[str, str], change=lambda cells: cells) -> None:
    notebook = nbformat.read(course / "release" / "00_start_here" / "00_start_here.ipynb", as_version=4)
    for cell in notebook.cells:
        name = re.match(r"def (\w+)", cell.source)
        if name and name[1] in bodies:
            cell.source = cell.source.replace("raise NotImplementedError", bodies[name[1]])
    notebook.cells = change(notebook.cells)
    folder = course / "submitted" / student / "00_start_here"
    folder.mkdir(parents=True)
    (folder / "00_start_here.ipynb").write_text(json.dumps(notebook), encoding="utf-8")  # valid or not


def nbgrader(course: Path, *arguments: str) -> None:
    """Run one of nbgrader's commands; these submissions may be graded as root, as whom a container often runs."""
    as_root = ["--ExecuteApart.allow_root=True"] if arguments[0] == "autograde" else []
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-m", "nbgrader", *arguments, *as_root]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
