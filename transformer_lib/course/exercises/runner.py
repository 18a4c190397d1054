"""`check`: runs a learner's function on every case of an exercise and prints the verdict."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass

from .. import mine, progress
from .diagnose import (
    Trial,
    error_text,
    learner_line,
    matching_mistake,
    nearly_matching_mistake,
    only_right_values,
    probed,
    problem_of,
    size_of,
    unattempted,
)
from .model import Case, Exercise
from .registry import get
from .report import example
from .sandbox import Outcome, copy_of, preserved_state, run_directly, run_guarded, with_gradients


class CheckFailed(AssertionError):
    """Raised instead of only printed when NBGRADER_EXECUTION is set, so that grading notices."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check: `status` is "passed", "failed" or "unattempted". True when passed."""

    exercise_id: str
    status: str
    diagnosis: str
    text: str

    def __bool__(self) -> bool:
        """Return True when the check passed."""
        return self.status == "passed"

    def _ipython_display_(self) -> None:
        """Show nothing as the last expression of a cell: the text has been printed already."""


def check(exercise_id: str, function: Callable[..., object], *, time_limit: float = 5.0) -> Verdict:
    """Check a learner's function, print the verdict, and remember it when it passed.

    Args:
        exercise_id: such as "01.2".
        function: the function itself, not a call of it.
        time_limit: seconds that one call may take.

    Raises:
        ValueError: if there is no such exercise.
        CheckFailed: if the check does not pass and the environment variable NBGRADER_EXECUTION is set.
    """
    verdict = check_solution(exercise_id, function, time_limit=time_limit)
    if verdict:
        progress.mark("exercise", exercise_id)
        mine.announce(get(exercise_id).part, function)
    return verdict


def check_solution(exercise_id: str, function: Callable[..., object], *, time_limit: float = 5.0) -> Verdict:
    """Run the same check on the notebook's own solution, which never counts as the learner's progress."""
    verdict = examine(get(exercise_id), function, time_limit=time_limit)
    ours = verdict and getattr(function, "__name__", "").endswith("_solution")
    print(f"{verdict.text} (The notebook's solution.)" if ours else verdict.text)
    if not verdict and os.environ.get("NBGRADER_EXECUTION"):
        raise CheckFailed(verdict.text)
    return verdict


def examine(exercise: Exercise, function: Callable[..., object], *, time_limit: float = 5.0) -> Verdict:
    """Check without printing or recording."""
    misuse = _misuse(exercise, function)
    if misuse:
        return _failed(exercise, misuse, [])
    with preserved_state():
        return _examine(exercise, function, time_limit)


def _examine(exercise: Exercise, function: Callable[..., object], time_limit: float) -> Verdict:
    cases = exercise.cases()
    first = run_guarded(function, cases[0].args, exercise.arguments, time_limit)
    if unattempted(first, function):
        text = f"○ {exercise.id} not attempted yet"
        return Verdict(exercise.id, "unattempted", "", text)
    trials = _trials(exercise, function, cases, first, time_limit)
    if any(trial.problem for trial in trials):
        return _explain(exercise, function, trials, time_limit)
    wrong_gradients = _gradients(only_right_values(exercise, trials), function, cases, time_limit)
    return _passed(exercise, cases) if wrong_gradients is None else wrong_gradients


def _trials(
    exercise: Exercise, function: Callable[..., object], cases: list[Case], first: Outcome, time_limit: float
) -> list[Trial]:
    """Run every case after the first; stop at one that does not end, since the next would take as long."""
    trials: list[Trial] = []
    for case in cases:
        expected = run_directly(exercise.reference, case.args, exercise.arguments).value
        outcome = run_guarded(function, case.args, exercise.arguments, time_limit) if trials else first
        trials.append(Trial(case, expected, outcome, problem_of(exercise, expected, outcome) or ""))
        if outcome.kind == "endless":
            break
    return trials


def _explain(exercise: Exercise, function: Callable[..., object], trials: list[Trial], time_limit: float) -> Verdict:
    """Name a known mistake, else ask the probes, else compare; then show the smallest example."""
    failing = sorted((trial for trial in trials if trial.problem), key=lambda trial: size_of(trial.case))
    worst = failing[0]

    def call(*args: object) -> object:
        return run_guarded(function, args, exercise.arguments, time_limit).value

    diagnosis = (
        matching_mistake(exercise, trials)
        or nearly_matching_mistake(exercise, trials)
        or probed(exercise, worst, call)
        or worst.problem
    )
    rows = _error_rows(worst.outcome, function, diagnosis)
    rows += example(exercise, worst.case, worst.expected, worst.outcome)
    if len(failing) < len(trials):
        right = len(trials) - len(failing)
        rows.append(f"  {right} of {len(trials)} cases are right; wrong: {_labels(failing)}")
    return _failed(exercise, diagnosis, rows)


def _labels(trials: list[Trial]) -> str:
    return "; ".join(trial.case.label for trial in trials)


def _error_rows(outcome: Outcome, function: Callable[..., object], diagnosis: str) -> list[str]:
    """Return the learner's own line, and the error itself where a known mistake explained it."""
    if outcome.error is None:
        return []
    line = learner_line(outcome.error, function)
    rows = [f"  in your line: {line}"] if line else []
    error = error_text(outcome.error)
    return rows if error in diagnosis else [f"  it stopped with {error}", *rows]


def _gradients(
    exercise: Exercise, function: Callable[..., object], cases: list[Case], time_limit: float
) -> Verdict | None:
    """Compare gradients on every case; None when they are right or the exercise does not ask."""
    position = [exercise.arguments.index(name) for name in exercise.gradients]
    if not position:
        return None
    names = tuple(f"gradient of {name}" for name in exercise.gradients)
    trials = []
    for case in cases:
        wanted = tuple(with_gradients(exercise.reference, position)(*map(copy_of, case.args)))
        outcome = run_guarded(with_gradients(function, position), case.args, exercise.arguments, time_limit)
        trials.append(Trial(case, wanted, outcome, _gradient_problem(exercise, wanted, outcome, names) or ""))
    failing = [trial for trial in trials if trial.problem]
    if not failing:
        return None
    worst = min(failing, key=lambda trial: size_of(trial.case))
    known = matching_mistake(exercise, trials, lambda wrong: with_gradients(wrong, position))
    rows = [f"  seen with: {worst.case.label}", *_error_rows(worst.outcome, function, worst.problem)]
    return _failed(exercise, known or f"The values are right, but not the gradients. {worst.problem}", rows)


def _gradient_problem(
    exercise: Exercise, wanted: tuple[object, ...], outcome: Outcome, names: tuple[str, ...]
) -> str | None:
    if isinstance(outcome.value, list):
        for name, gradient in zip(exercise.gradients, outcome.value, strict=True):
            if gradient is None:
                return f"No gradient reaches {name}: was it detached, or taken through NumPy or .item()?"
    return problem_of(exercise, wanted, outcome, names)


def _misuse(exercise: Exercise, function: object) -> str | None:
    """Say why `function` cannot be called as the exercise asks; None when it can."""
    name = exercise.reference.__name__
    if not callable(function):
        return f"Pass the function itself, without calling it: check({exercise.id!r}, {name})."
    try:
        inspect.signature(function).bind(*exercise.arguments)
    except TypeError:
        return f"Your function must take these arguments: ({', '.join(exercise.arguments)})."
    except ValueError:  # a built-in function that does not say what it takes
        return None
    return None


def _failed(exercise: Exercise, diagnosis: str, rows: list[str]) -> Verdict:
    text = "\n".join([f"✗ {exercise.id} {exercise.title}: not right yet.", f"  {diagnosis}", *rows])
    return Verdict(exercise.id, "failed", diagnosis, text)


def _passed(exercise: Exercise, cases: list[Case]) -> Verdict:
    what = "values and gradients are right" if exercise.gradients else "right"
    text = f"✓ {exercise.id} {exercise.title}: {what} in all {len(cases)} cases."
    return Verdict(exercise.id, "passed", "", text)
