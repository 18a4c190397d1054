"""`check`: runs a learner's function on every case of an exercise and prints the verdict."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .. import mine, progress
from .compare import Finding
from .diagnose import (
    Trial,
    finding,
    general,
    judged,
    matching_mistake,
    nearly_matching_mistake,
    only_right_values,
    probed,
    size_of,
    unattempted,
    wanted,
)
from .edits import FailedEdit, failed_edit, told
from .errors import error_text, left_over
from .look import say
from .lookup import get
from .model import Case, Exercise
from .plain import Printed
from .report import example
from .sandbox import Outcome, copy_of, preserved_state, with_gradients
from .worker import Guarded, guarded_calls


class CheckFailed(AssertionError):
    """Raised instead of only printed when NBGRADER_EXECUTION is set, so that grading notices."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check: `status` is "passed", "failed" or "unattempted". True when passed.

    `printed` is what the learner's function printed, each text once, and cut.
    """

    exercise_id: str
    status: str
    diagnosis: str
    text: str
    printed: str = field(default="", repr=False)

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
    exercise = get(exercise_id)
    if verdict and not exercise.original:  # variants are no part of the course
        closing = progress.passed("exercise", exercise_id)
        mine.announce(exercise.part, function)
        if closing:
            progress.show(closing)
    return verdict


def check_solution(exercise_id: str, function: Callable[..., object], *, time_limit: float = 5.0) -> Verdict:
    """Run the same check on the notebook's own solution, which never counts as the learner's progress."""
    exercise = get(exercise_id)
    edit = failed_edit(function)
    verdict = _not_run(exercise, edit) if edit else examine(exercise, function, time_limit=time_limit)
    ours = verdict and getattr(function, "__name__", "").endswith("_solution")
    if verdict.printed:
        print(verdict.printed, end="" if verdict.printed.endswith("\n") else "\n")
    say(f"{verdict.text} (The notebook's solution.)" if ours else verdict.text)
    if not verdict and os.environ.get("NBGRADER_EXECUTION"):
        raise CheckFailed(verdict.text)
    return verdict


def yours(exercise_id: str, function: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """Return a learner's function where its check accepts it, else the notebook's, and print which of the two it is.

    Raises:
        ValueError: if there is no such exercise.
    """
    accepted = failed_edit(function) is None and bool(examine(get(exercise_id), function))
    name = getattr(function, "__name__", exercise_id)
    print(f"{name}: yours" if accepted else f"{name}: the notebook's, until yours has passed check {exercise_id}")
    return function if accepted else stand_in


def examine(exercise: Exercise, function: Callable[..., object], *, time_limit: float = 5.0) -> Verdict:
    """Check without printing or recording."""
    misuse = _misuse(exercise, function)
    if misuse:
        return _failed(exercise, misuse, [])
    # The learner's code runs, and the inputs are made, with the default dtype of the notebook.
    with preserved_state(default_dtype=None):
        cases = exercise.cases()
        position = [exercise.arguments.index(name) for name in exercise.gradients]
        measured = tuple((partial(demand.measure, function), demand.case()) for demand in exercise.demands)
        forms = _Forms(function, with_gradients(function, position), position, measured)
        given = [*cases, *(case for _, case in measured)]
        with guarded_calls(forms.all, function, given, exercise.arguments, time_limit) as call:
            heard = _Listener(call)
            verdict = _examine(exercise, forms, cases, heard)
    return replace(verdict, printed=heard.text)


@dataclass(frozen=True)
class _Forms:
    """What is called: the learner's function, and the same for its gradients at the arguments in `position`.

    `measured` has for each demand what measures the function, and the case on which it does.
    """

    function: Callable[..., object]
    gradients: Callable[..., object]
    position: list[int]
    measured: tuple[tuple[Callable[..., object], Case], ...] = ()

    @property
    def all(self) -> tuple[Callable[..., object], ...]:
        return self.function, self.gradients, *(measure for measure, _ in self.measured)


class _Listener:
    """Calls a function, and keeps what is printed: each text once, in the order of the calls."""

    def __init__(self, call: Guarded) -> None:
        self._call = call
        self._printed = Printed()
        self._known: set[str] = set()

    def __call__(self, function: Callable[..., object], args: tuple[object, ...]) -> Outcome:
        """Do what the call does, and listen."""
        outcome = self._call(function, args)
        if outcome.printed not in self._known:
            self._known.add(outcome.printed)
            self._printed.write(outcome.printed)
        return outcome

    @property
    def text(self) -> str:
        """What was printed."""
        return self._printed.text


def _examine(exercise: Exercise, forms: _Forms, cases: list[Case], call: Guarded) -> Verdict:
    first = call(forms.function, cases[0].args)
    if unattempted(first, forms.function):
        return Verdict(exercise.id, "unattempted", "", f"○ {exercise.id} not attempted yet")
    trials = _trials(exercise, forms.function, cases, first, call)
    if any(trial.problem for trial in trials):
        return _explain(exercise, forms.function, trials, call)
    wrong_gradients = _gradients(only_right_values(exercise, trials), forms, cases, call)
    if wrong_gradients is not None:
        return wrong_gradients
    undemanded = _demanded(exercise, forms, call)
    return _passed(exercise, cases) if undemanded is None else undemanded


def _trials(
    exercise: Exercise, function: Callable[..., object], cases: list[Case], first: Outcome, call: Guarded
) -> list[Trial]:
    """Run every case after the first; stop at one that does not end, since the next would take as long."""
    trials: list[Trial] = []
    for case in cases:
        outcome = call(function, case.args) if trials else first
        expected = wanted(exercise, case.args, outcome)
        trials.append(Trial(case, expected, outcome, finding(exercise, expected, outcome)))
        if outcome.kind == "endless":
            break
    return trials


def _explain(exercise: Exercise, function: Callable[..., object], trials: list[Trial], call: Guarded) -> Verdict:
    """Name a known mistake, else ask the probes, else compare; then show the smallest example."""
    failing = sorted((trial for trial in trials if trial.problem), key=lambda trial: size_of(trial.case))
    passing = [trial for trial in trials if not trial.problem]
    worst = failing[0]
    diagnosis = (
        matching_mistake(exercise, trials)
        or nearly_matching_mistake(exercise, trials)
        or judged(exercise, failing)
        or probed(exercise, failing, lambda *args: call(function, args).value)
        or general(exercise, failing, passing)
    )
    rows = _error_rows(worst.outcome, diagnosis)
    if worst.outcome.changed and "in place" not in diagnosis:
        rows.append(f"  it also changes its input {' and '.join(worst.outcome.changed)} in place: work on a copy")
    rows += example(exercise, worst.case, worst.expected, worst.outcome)
    if len(failing) < len(trials):
        right = len(trials) - len(failing)
        rows.append(f"  {right} of {len(trials)} cases are right; wrong: {_labels(failing)}")
    return _failed(exercise, diagnosis, rows)


def _labels(trials: list[Trial]) -> str:
    return "; ".join(trial.case.label for trial in trials)


def _error_rows(outcome: Outcome, diagnosis: str) -> list[str]:
    """Return the learner's own line, and the error itself where a known mistake explained it."""
    if outcome.error is None or left_over(outcome.error, outcome.line):
        return []
    rows = [f"  in your line: {outcome.line}"] if outcome.line else []
    error = error_text(outcome.error).partition(". Use ")[0]
    return rows if error in diagnosis else [f"  it stopped with {error}", *rows]


def _gradients(exercise: Exercise, forms: _Forms, cases: list[Case], call: Guarded) -> Verdict | None:
    """Compare gradients on every case; None when they are right or the exercise does not ask."""
    if not forms.position:
        return None
    names = tuple(f"gradient of {name}" for name in exercise.gradients)
    trials = []
    for case in cases:
        wanted = tuple(with_gradients(exercise.reference, forms.position)(*map(copy_of, case.args)))
        outcome = call(forms.gradients, case.args)
        trials.append(Trial(case, wanted, outcome, _gradient_problem(exercise, wanted, outcome, names)))
        if outcome.kind == "endless":
            break
    failing = sorted((trial for trial in trials if trial.problem), key=lambda trial: size_of(trial.case))
    if not failing:
        return None
    passing = [trial for trial in trials if not trial.problem]
    known = matching_mistake(exercise, trials, lambda wrong: with_gradients(wrong, forms.position))
    said = known or f"The values are right, but not the gradients. {general(exercise, failing, passing, names)}"
    rows = [f"  seen with: {failing[0].case.label}", *_error_rows(failing[0].outcome, said)]
    return _failed(exercise, said, rows)


def _demanded(exercise: Exercise, forms: _Forms, call: Guarded) -> Verdict | None:
    """Measure a right answer; None if it is as demanded, or if it could not be measured."""
    for demand, (measure, case) in zip(exercise.demands, forms.measured, strict=True):
        outcome = call(measure, case.args)
        problem = demand.problem(outcome.value) if outcome.kind == "returned" else None
        if problem:
            said = f"The values are right, but {problem}"
            return _failed(exercise, said, [f"  measured with: {case.label}"])
    return None


def _gradient_problem(
    exercise: Exercise, wanted: tuple[object, ...], outcome: Outcome, names: tuple[str, ...]
) -> Finding | None:
    if isinstance(outcome.value, list):
        for name, gradient in zip(exercise.gradients, outcome.value, strict=True):
            if gradient is None:
                text = f"No gradient reaches {name}: was it detached, or taken through NumPy or .item()?"
                return Finding(f"no gradient of {name}", f"{text} Do every step with torch.")
    return finding(exercise, wanted, outcome, names)


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


def _not_run(exercise: Exercise, edit: FailedEdit) -> Verdict:
    said = f"Your last edit of {edit.name} did not run."
    head = f"✗ {exercise.id} {exercise.title}: not checked, because your last edit of {edit.name} did not run."
    return Verdict(exercise.id, "failed", said, "\n".join([head, *told(edit)]))


def _failed(exercise: Exercise, diagnosis: str, rows: list[str]) -> Verdict:
    text = "\n".join([f"✗ {exercise.id} {exercise.title}: not right yet.", f"  {diagnosis}", *rows])
    return Verdict(exercise.id, "failed", diagnosis, text)


def _passed(exercise: Exercise, cases: list[Case]) -> Verdict:
    what = "values and gradients are right" if exercise.gradients else "right"
    kept = "".join(f", {demand.kept}" for demand in exercise.demands)
    text = f"✓ {exercise.id} {exercise.title}: {what} in all {len(cases)} cases{kept}."
    return Verdict(exercise.id, "passed", "", text)
