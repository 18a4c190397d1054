"""The cells of a new exercise, written from what is registered: those of a published one come out as they are."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from transformer_lib.course import exercises
from transformer_lib.course.notebooks import file_of, notebook
from transformer_lib.course.teaching import exercise_cells
from transformer_lib.course.teaching.notebook_files import read

pytestmark = pytest.mark.fast


@pytest.fixture
def without(tmp_path):
    """Notebook 03 without exercise 03.2."""
    path = tmp_path / "03.ipynb"
    shutil.copy(file_of(notebook("03")), path)
    content = read(path)
    content["cells"] = [cell for cell in content["cells"] if "output_without" not in "".join(cell["source"])]
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("exercise", exercises.all_exercises(), ids=lambda exercise: exercise.id)
def test_the_written_solution_of_every_exercise_is_python(exercise):
    task, stub, check, _, solution, solved = ("".join(cell["source"]) for cell in exercise_cells.cells_of(exercise))
    name = exercise.reference.__name__
    assert task.startswith(f"### Exercise {exercise.id} · {exercise.title} ({exercise.minutes} minutes, ")
    assert stub.startswith(f"def {name}(") and "NotImplementedError" in stub
    compile(stub + "\n" + solution, exercise.id, "exec")
    assert f'check("{exercise.id}", {name})' == check and solved.endswith(f", {name}_solution)")


def test_the_cells_are_where_they_should_be_and_pass(without):
    after = read(without)["cells"][20]["id"]
    assert exercise_cells.write("03.2", after, without) == without
    cells = read(without)["cells"]
    parts = ("task", "stub", "check", "hints", "solution", "solved")
    assert [cell["id"] for cell in cells[21:27]] == [f"03-2-{part}" for part in parts]
    assert [cell["metadata"].get("tags", []) for cell in cells[22:27]] == [
        ["exercise"], ["check"], [], ["solution", "hide-input"], ["check"],
    ]  # fmt: skip
    scope = {"torch": torch}
    exec("".join(cells[25]["source"]), scope)
    assert exercises.examine(exercises.get("03.2"), scope["output_without_solution"]).status == "passed"


def test_what_is_there_already_and_unknown_places_are_refused(without, capsys):
    path = file_of(notebook("03"))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="the notebook must not have the exercise yet"):
        exercise_cells.write("03.2", read(path)["cells"][3]["id"])
    with pytest.raises(ValueError, match="after must be the id of a cell, such as .*, got 'nowhere'"):
        exercise_cells.write("03.2", "nowhere", without)
    with pytest.raises(SystemExit):
        exercise_cells.main(["03.9", "--after", "03-001"])
    assert "exercise_id must be one of 03.1, " in capsys.readouterr().err and path.read_bytes() == before
