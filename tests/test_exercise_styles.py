"""A right answer passes in whatever style it is written: exercise_styles_NN solves each exercise in another one."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from transformer_lib.course import exercises

FILES = sorted(Path(__file__).parent.glob("exercise_styles_*.py"))
STYLES = {file.stem.removeprefix("exercise_styles_"): importlib.import_module(file.stem).STYLES for file in FILES}


@pytest.mark.parametrize(("exercise_id", "function"), [style for styles in STYLES.values() for style in styles])
def test_a_right_answer_in_another_style_passes(exercise_id, function):
    verdict = exercises.examine(exercises.get(exercise_id), function, time_limit=60.0)  # the machine may be busy
    assert verdict.status == "passed", verdict.text


@pytest.mark.parametrize("notebook", sorted({exercise.notebook for exercise in exercises.all_exercises()}))
def test_a_notebooks_file_solves_each_of_its_exercises_and_no_other(notebook):
    here = {exercise.id for exercise in exercises.all_exercises() if exercise.notebook == notebook}
    assert here == {exercise_id for exercise_id, _ in STYLES[notebook]}
