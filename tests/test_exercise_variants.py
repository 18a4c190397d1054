"""Variants of exercises: the published answer is refused and named, and assignments ask them."""

from __future__ import annotations

import ast
import json
import math
import re
from pathlib import Path

import pytest
import torch

from transformer_lib.course import exercises
from transformer_lib.course.cells import source_of
from transformer_lib.course.exercises import runner
from transformer_lib.course.exercises.sandbox import preserved_state
from transformer_lib.course.teaching.assignments import build
from transformer_lib.course.teaching.assignments import hidden as assignments_hidden
from transformer_lib.course.teaching.assignments.cases import unseen_cases
from transformer_lib.course.teaching.assignments.source import course_source, groups_of
from transformer_lib.course.teaching.notebook_files import read

SEED = 7_654_321
VARIANTS = list(exercises.all_variants().values())
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.exercise.id)


def notebook_of(exercise):
    [path] = build.chosen_notebooks([exercise.notebook])
    return path


def published_solution(exercise):
    """The function in the notebook's folded solution, which is not the reference."""
    cells = read(notebook_of(exercise))["cells"]
    names: dict = {"torch": torch, "math": math}
    for group in groups_of(cells):
        exec(re.sub(r"^check_solution.*", "", source_of(cells[group.solution]), flags=re.MULTILINE), names)
        if group.exercise.id == exercise.original:
            return names[f"{group.name}_solution"]
    raise AssertionError(exercise.original)


def test_every_notebook_from_01_to_12_has_a_variant():
    assert {f"{number:02}" for number in range(1, 13)} <= {variant.exercise.notebook for variant in VARIANTS}


def test_the_page_for_teachers_lists_them_all():
    page = (Path(__file__).parents[1] / "docs" / "teaching" / "grading.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d\d\.\db) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(variant.exercise.id, variant.sentence) for variant in VARIANTS]


@each_variant
def test_only_the_answer_to_the_variant_is_right(variant):
    exercise, original = variant.exercise, exercises.get(variant.exercise.original)
    assert exercises.get(exercise.id) is exercise and exercise not in exercises.all_exercises()
    assert exercise.reference.__name__ == original.reference.__name__ and exercise.arguments == original.arguments
    assert exercises.examine(exercise, exercise.reference)
    assert not exercises.examine(original, exercise.reference)
    for function in (original.reference, published_solution(exercise)):
        said = exercises.examine(exercise, function).diagnosis
        assert said.startswith(f"This answers {original.id} as the published notebook asks it: ")


@each_variant
def test_hidden_cases_tell_the_variant_from_the_published_exercise(variant):
    exercise = variant.exercise

    def problem(function):
        with preserved_state():
            found = assignments_hidden._answers(exercise, function, unseen_cases(exercise, SEED))
        return assignments_hidden.problem_in(exercise.id, json.loads(json.dumps(found)), seed=SEED)

    assert problem(exercise.reference) is None
    said = problem(exercises.get(exercise.original).reference)
    assert said.startswith(f"✗ {exercise.id} ") and "not right in a case that was not shown" in said


@each_variant
def test_no_other_solution_builds_on_an_exercise_that_may_be_changed(variant):
    cells = read(notebook_of(variant.exercise))["cells"]
    groups = groups_of(cells)
    [changed] = [group for group in groups if group.exercise.id == variant.exercise.original]
    others = [source_of(cells[group.solution]) for group in groups if group is not changed]
    assert not any(f"{changed.name}_solution" in text for text in others)


@each_variant
def test_an_assignment_asks_the_variant_and_holds_its_solution(variant):
    exercise, name = variant.exercise, variant.exercise.original
    notebook = read(notebook_of(exercise))
    [group] = [group for group in groups_of(notebook["cells"]) if group.exercise.id == name]
    source = course_source(notebook, seed=SEED, graded=[name], variants=[name])
    cells = {cell["id"]: cell for cell in source["cells"]}
    stub, check = (cells[notebook["cells"][place]["id"]] for place in (group.stub, group.check))
    assert source_of(check).startswith(f'check("{exercise.id}", {group.name})\n### BEGIN HIDDEN TESTS\n')
    assert f'grade("{exercise.id}", {group.name}, seed={SEED})' in source_of(check)
    marks = check["metadata"]["nbgrader"]
    assert (marks["grade_id"], marks["points"]) == (f"check-{name.replace('.', '-')}b", exercise.difficulty)
    assert f"| {exercise.id} | " in source_of(source["cells"][1])
    texts = [source_of(cell) for cell in source["cells"] if cell["cell_type"] == "markdown"]
    [statement] = [text for text in texts if variant.sentence in text]
    assert f"### Exercise {name} " in statement
    assert sum("<summary>Hint" in text for text in texts) == len(groups_of(notebook["cells"])) - 1
    names = {"torch": torch}
    exec(source_of(stub), names)
    assert exercises.examine(exercise, names[group.name])
    shown = re.sub(
        r"### BEGIN SOLUTION\n.*### END SOLUTION", "raise NotImplementedError", source_of(stub), flags=re.DOTALL
    )
    [function] = ast.parse(shown).body
    assert ast.get_docstring(function) and isinstance(function.body[-1], ast.Raise) and len(function.body) == 2


def test_a_variant_that_passes_is_no_progress_in_the_course(monkeypatch, capsys):
    def passed(*args):
        raise AssertionError(args)

    monkeypatch.setattr(runner.progress, "passed", passed)
    monkeypatch.setattr(runner.mine, "announce", passed)
    assert exercises.check("04.1b", exercises.get("04.1b").reference)
    assert "✓ 04.1b By what would you divide?, changed: right" in capsys.readouterr().out


def test_the_command_changes_what_is_named_or_all_that_can_be_changed(tmp_path, capsys):
    def checks(*arguments):
        build.main(["--out", str(tmp_path), "04", *arguments])
        [source] = (tmp_path / "source").glob("*/*.ipynb")
        return re.findall(r'grade\(\\"([\w.]+)', source.read_text(encoding="utf-8"))

    assert checks() == ["04.1", "04.3", "04.4", "04.2", "04.5", "04.6"]  # as in the notebook
    assert checks("--variant", "04.4") == ["04.1", "04.3", "04.4b", "04.2", "04.5", "04.6"]
    assert checks("--only", "04.1", "04.2", "--variant") == ["04.1b", "04.2"]
    for wrong, message in (
        (["--variant", "04.2"], "variant must be of 01.1, 01.2, "),
        (["--variant", "08.3"], "variant must name exercises that give points in the chosen notebooks, got ['08.3']"),
        (["--only", "04.2", "--variant", "04.1"], "got ['04.1']"),
        (["--only", "04.1b"], "only must name exercises of the chosen notebooks, got ['04.1b']"),
    ):
        with pytest.raises(SystemExit):
            checks(*wrong)
        assert message in capsys.readouterr().err
