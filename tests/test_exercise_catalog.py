"""Every exercise of the course: the reference passes, and each known mistake gets its own diagnosis."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path

import pytest
import torch

from transformer_lib.course import exercises, notebooks
from transformer_lib.course.exercises import model, stub
from transformer_lib.course.exercises.compare import same
from transformer_lib.course.exercises.sandbox import run_directly

ALL = exercises.all_exercises()
MISTAKES = [pytest.param(e, m, id=f"{e.id}-{m.name}".replace(" ", "_")) for e in ALL for m in e.mistakes]
PATIENT = 60.0  # seconds for a call: on a busy machine five have passed with nothing wrong
each_exercise = pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)


@each_exercise
def test_the_reference_passes(exercise):
    verdict = exercises.examine(exercise, exercise.reference, time_limit=PATIENT)
    assert verdict.status == "passed"
    assert verdict.text.startswith(f"✓ {exercise.id} {exercise.title}")


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
def test_each_mistake_is_rejected_with_its_own_diagnosis(exercise, mistake):
    verdict = exercises.examine(exercise, mistake.function, time_limit=PATIENT)
    assert (verdict.status, verdict.diagnosis) == ("failed", mistake.diagnosis)
    assert mistake.diagnosis in verdict.text


@each_exercise
def test_there_is_enough_of_everything(exercise):
    cases = exercise.cases()
    assert len(exercise.mistakes) >= 5
    assert len(cases) >= 4
    assert len({case.label for case in cases}) == len(cases)
    assert 1 <= exercise.difficulty <= 3
    assert exercise.minutes > 0
    assert set(exercise.gradients) <= set(exercise.arguments)
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes)
    assert len({mistake.diagnosis for mistake in exercise.mistakes}) == len(exercise.mistakes)
    for mistake in exercise.mistakes:
        assert mistake.diagnosis.endswith((".", ")"))
    if exercise.judge:  # many answers, of which the reference is one; gradients are not judged
        assert not exercise.gradients
        assert all(exercise.judge(*case.args, exercise.reference(*case.args)) is None for case in cases)


@each_exercise
def test_cases_are_the_same_every_time_and_the_reference_changes_no_input(exercise):
    for first, second in zip(exercise.cases(), exercise.cases(), strict=True):
        for one, other in zip(first.args, second.args, strict=True):
            assert callable(one) or same(one, other) or one == other
        assert run_directly(exercise.reference, first.args, exercise.arguments).changed == ()


@each_exercise
def test_the_stub_is_python_and_counts_as_not_attempted(exercise):
    text = stub(exercise.id)
    tree = ast.parse(text).body[0]
    assert tree.name == exercise.reference.__name__
    assert tuple(argument.arg for argument in tree.args.args) == exercise.arguments
    assert f"{exercise.minutes} minutes" in ast.get_docstring(tree)
    assert max(map(len, text.splitlines())) <= 120
    space = {}
    exec(text, space)
    assert exercises.examine(exercise, space[tree.name]).status == "unattempted"


def test_the_course_list_knows_every_exercise():
    for entry in notebooks.NOTEBOOKS:
        ids = [exercise.id for exercise in ALL if exercise.notebook == entry.id]
        assert ids == [name for kind, name in entry.parts if kind == "exercise"]


def test_difficulty_rises_within_the_first_notebooks():
    for notebook in ("01", "04"):
        levels = [exercise.difficulty for exercise in ALL if exercise.notebook == notebook]
        assert levels[0] == min(levels)
        assert levels[-1] == 3


def test_references_do_not_lean_on_the_library():
    """Of the library nothing is imported; of the lab what makes cases, judges or measures, never a right answer."""
    folder = Path(exercises.__file__).parent
    allowed = {"slips", "model", "probes", "__future__", "torch", "numpy", "math", "itertools", "typing", "collections"}
    for file in folder.glob("nb*.py"):
        tree, of_lab = ast.parse(file.read_text(encoding="utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level, node.module) == (2, "lab"):
                of_lab |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.module in allowed, f"{file.name} imports {node.module}"
            elif isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed
        used = {node.name: _names_in(node) for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for exercise in ALL:
            if exercise.reference.__module__.endswith(file.stem):
                assert not _reached(exercise.reference.__name__, used) & of_lab, f"{exercise.id} leans on the lab"


def _names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _reached(name: str, used: dict[str, set[str]]) -> set[str]:
    """Return every name that a function of the file uses, itself or by those that it calls."""
    found, waiting = set(), [name]
    while waiting:
        new = used.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("file", sorted(Path(exercises.__file__).parent.glob("nb*.py")), ids=lambda file: file.stem)
def test_a_file_holds_one_notebooks_exercises_and_no_name_twice(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names += [target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    assert sorted(set(names)) == sorted(names)  # a later helper would take an earlier one's place
    module = importlib.import_module(f"{exercises.__name__}.{file.stem}")
    assert {exercise.notebook for exercise in module.EXERCISES} == {file.stem.removeprefix("nb")}


def test_normal_and_integers_are_seeded():
    assert torch.equal(model.normal(1, (2, 3))[0], model.normal(1, (2, 3))[0])
    assert not torch.equal(model.normal(1, (2, 3))[0], model.normal(2, (2, 3))[0])
    numbers = model.integers(3, (7, 11), 5, 13)
    assert (int(numbers.min()), int(numbers.max())) == (5, 12)


def test_an_unknown_id_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"exercise_id must be one of 04\.1, .*04\.6, got '04\.9'"):
        exercises.get("04.9")
    with pytest.raises(ValueError, match=r"must be one of 00\.1, .*A\.4, got 7"):
        exercises.get(7)


@each_exercise
def test_the_heading_in_the_notebook_gives_the_minutes_and_the_stars(exercise):
    path = next((Path(__file__).parents[1] / "notebooks").glob(f"{exercise.notebook}_*.ipynb"))
    text = "".join("".join(cell["source"]) + "\n" for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
    stars = "★" * exercise.difficulty + "☆" * (3 - exercise.difficulty)
    heading = rf"^### Exercise {re.escape(exercise.id)} · .+ \({exercise.minutes} minutes, {stars}\)$"
    assert re.search(heading, text, flags=re.MULTILINE), f"no such heading in {path.name}: {heading}"
