"""Writes the cells of a new exercise into its notebook, from what is registered: task, stub, check, hints, solution.

    python -m transformer_lib.course.teaching.exercise_cells 03.6 --after 03-059

The exercise has to be in `exercises/nb03.py` already. Its reference becomes the folded solution, its docstring the
task; edit both, and the hints, in the notebook. `make refresh` then stores the outputs.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..._files import write_atomically
from ..._streams import run_command
from ..exercises import Exercise, get
from ..exercises.model import stub_text
from ..notebooks import file_of, notebook
from .notebook_files import read

Cell = dict[str, Any]
HINTS = (
    "<details><summary>Hint 1</summary>A nudge.\n"
    "<details><summary>Hint 2</summary>What to look at.\n"
    "<details><summary>Hint 3</summary>Nearly the answer.\n</details></details></details>"
)


def cells_of(exercise: Exercise) -> list[Cell]:
    """Return the six cells of an exercise, without outputs."""
    name = exercise.reference.__name__
    stars = "★" * exercise.difficulty + "☆" * (3 - exercise.difficulty)
    task = inspect.getdoc(exercise.reference) or ""
    texts = {
        "task": f"### Exercise {exercise.id} · {exercise.title} ({exercise.minutes} minutes, {stars})\n\n{task}",
        "stub": _stub(exercise),
        "check": f'check("{exercise.id}", {name})',
        "hints": HINTS,
        "solution": f"# Solution (click to open)\n{_solution(exercise)}",
        "solved": f'check_solution("{exercise.id}", {name}_solution)',
    }
    return [_cell(f"{exercise.id.replace('.', '-')}-{part}", part, text) for part, text in texts.items()]


def insert(cells: Sequence[Cell], new: Sequence[Cell], after: str) -> list[Cell]:
    """Return the notebook's cells with the new ones behind the cell named `after`.

    Raises:
        ValueError: there is no such cell, or the exercise is in the notebook already.
    """
    names = [cell["id"] for cell in cells]
    if after not in names:
        raise ValueError(f"after must be the id of a cell, such as {names[-1]}, got {after!r}")
    check = new[2]["source"]
    if any("".join(cell["source"]) == "".join(check) for cell in cells):
        raise ValueError(f"the notebook must not have the exercise yet, got a cell with {''.join(check)}")
    place = names.index(after) + 1
    return [*cells[:place], *new, *cells[place:]]


def write(exercise_id: str, after: str, path: Path | None = None) -> Path:
    """Write the exercise's cells into its notebook, or into the one at `path`, and return that file."""
    exercise = get(exercise_id)
    path = path or file_of(notebook(exercise.notebook))
    content = read(path)
    content["cells"] = insert(content["cells"], cells_of(exercise), after)
    write_atomically(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))
    return path


def _cell(name: str, part: str, text: str) -> Cell:
    lines = text.splitlines(keepends=True)
    if part in ("task", "hints"):
        return {"cell_type": "markdown", "id": name, "metadata": {}, "source": lines}
    metadata: dict[str, Any] = {"tags": [{"stub": "exercise", "solved": "check"}.get(part, part)]}
    if part == "solution":
        metadata = {"jupyter": {"source_hidden": True}, "tags": ["solution", "hide-input"]}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": metadata,
        "outputs": [],
        "source": lines,
    }


def _stub(exercise: Exercise) -> str:
    """Return the stub; the task above it says what is asked for, so its docstring is the first line of that."""
    lines = stub_text(exercise).splitlines()
    first = (inspect.getdoc(exercise.reference) or "").partition("\n")[0]
    return f'{lines[0]}\n    """{first}"""\n    raise NotImplementedError'


def _solution(exercise: Exercise) -> str:
    """Return the reference's source without its docstring, under the solution's name."""
    source = textwrap.dedent(inspect.getsource(exercise.reference))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    lines = source.splitlines()[body[0].lineno - 1 :]
    return "\n".join([f"def {function.name}_solution({', '.join(exercise.arguments)}):", *lines])


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercise", metavar="NN.N", help="such as 03.6")
    parser.add_argument(
        "--after", required=True, metavar="CELL", help="id of the cell that comes before, such as 03-059"
    )
    given = parser.parse_args(argv)
    try:
        path = write(given.exercise, given.after)
    except ValueError as error:
        parser.error(str(error))
    print(f"written into {path}; next: make refresh NB={path.relative_to(path.parents[1])}")


if __name__ == "__main__":
    run_command(main)
