"""Finds the sentence that tells a learner what is wrong.

The known mistakes are the engine: each is run on the same cases, and the one that does exactly what the
learner's function did, everywhere, names the problem. Only then come probes and general comparisons.
"""

from __future__ import annotations

import inspect
import linecache
import math
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from .compare import difference, same, same_form
from .model import Case, Exercise
from .sandbox import Outcome, run_directly


@dataclass(frozen=True)
class Trial:
    """One case: what was expected, what the learner's function did, and the problem ("" if it is right)."""

    case: Case
    expected: object
    outcome: Outcome
    problem: str


def problem_of(exercise: Exercise, expected: object, outcome: Outcome, names: tuple[str, ...] = ()) -> str | None:
    """Say what is wrong with one outcome, as a general comparison sees it; None when it is right."""
    if outcome.kind == "endless":
        return "Your function did not come to an end: does every loop reach its last step?"
    if outcome.error is not None:
        return f"Your function stopped with {error_text(outcome.error)}.{_hint(outcome.error)}"
    try:
        value = outcome.value
        if exercise.any_float and isinstance(expected, torch.Tensor) and isinstance(value, torch.Tensor):
            value = value.to(expected.dtype) if value.is_floating_point() else value
        problem = difference(expected, value, names or exercise.returns, exercise.rtol)
    except Exception as error:  # a learner may return an object that cannot even be compared
        return f"Your result could not be compared ({type(error).__name__}): return what the docstring says."
    if problem is None and outcome.changed:
        changed = " and ".join(outcome.changed)
        return f"Right values, but your function changes its input {changed} in place: work on a copy."
    return problem


def matching_mistake(
    exercise: Exercise,
    trials: Sequence[Trial],
    wrap: Callable[[Callable[..., object]], Callable[..., object]] = lambda function: function,
) -> str | None:
    """Return the diagnosis of the first known mistake that behaves as the learner's function did on every trial.

    `wrap` turns a function into what was tried: itself, or its gradients.
    """
    for mistake in exercise.mistakes:
        if all(_alike(exercise, wrap(mistake.function), trial) for trial in trials):
            return mistake.diagnosis
    return None


def nearly_matching_mistake(exercise: Exercise, trials: Sequence[Trial]) -> str | None:
    """Do the same as `matching_mistake`, leaving out the trials where either of the two overflows, meets NaN or stops.

    A learner who makes a known mistake may write it so that it breaks down elsewhere than ours does.
    At least two failing trials must remain.
    """
    for mistake in exercise.mistakes:
        failing = 0
        for trial in trials:
            outcome = _tried(exercise, mistake.function, trial)
            if not (_finite(outcome) and _finite(trial.outcome)):
                continue
            wrong = problem_of(exercise, trial.expected, outcome) is not None
            if not same_outcome(outcome, trial.outcome, exercise.rtol) or wrong != bool(trial.problem):
                break
            failing += wrong
        else:
            if failing > 1:
                return mistake.diagnosis
    return None


def _finite(outcome: Outcome) -> bool:
    """Return True when a value came back that holds neither NaN nor infinity."""

    def fine(value: object) -> bool:
        if isinstance(value, torch.Tensor):
            return not value.is_floating_point() or bool(value.isfinite().all())
        if isinstance(value, list | tuple):
            return all(map(fine, value))
        return not isinstance(value, float) or math.isfinite(value)

    try:
        return outcome.kind == "returned" and fine(outcome.value)
    except Exception:  # a learner may return a tensor of a kind that cannot be looked into
        return False


def _tried(exercise: Exercise, function: Callable[..., object], trial: Trial) -> Outcome:
    """Run a function of ours on this case; that it is wrong need not warn the learner."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_directly(function, trial.case.args, exercise.arguments)


def _alike(exercise: Exercise, function: Callable[..., object], trial: Trial) -> bool:
    """Return True when `function` did what the learner's did on this case, and is wrong where that was."""
    outcome = _tried(exercise, function, trial)
    if not same_outcome(outcome, trial.outcome, exercise.rtol):
        return False
    return not trial.problem or problem_of(exercise, trial.expected, outcome) is not None


def only_right_values(exercise: Exercise, trials: Sequence[Trial]) -> Exercise:
    """Return the exercise with only those mistakes that, like the learner's function, give the right values."""
    if not exercise.gradients:
        return exercise
    mistakes = [m for m in exercise.mistakes if all(_alike(exercise, m.function, trial) for trial in trials)]
    return replace(exercise, mistakes=tuple(mistakes))


def same_outcome(first: Outcome, second: Outcome, rtol: float | None = None) -> bool:
    """Return True for two endless loops, two errors of one type, or two values that agree within tolerance."""
    if first.kind != second.kind:
        return False
    if first.kind == "raised":
        return type(first.error) is type(second.error)
    if first.kind == "endless":
        return True
    try:
        return same(first.value, second.value, rtol)
    except Exception:  # an object that cannot be compared equals nothing else
        return False


def probed(exercise: Exercise, trial: Trial, call: Callable[..., object]) -> str | None:
    """Return what the exercise's own probes say about a wrong result, if it has the right form."""
    if not same_form(trial.expected, trial.outcome.value):
        return None
    try:
        found = (probe(call, trial.case, trial.outcome.value) for probe in exercise.probes)
        return next((text for text in found if text), None)
    except Exception:  # a probe calls the learner's function again, and this time it may return anything
        return None


def size_of(case: Case) -> int:
    """Count the entries of the inputs, to find the smallest failing example."""
    return sum(_entries(arg) for arg in case.args)


def _entries(value: object) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    return sum(map(_entries, value)) if isinstance(value, list | tuple) else 1


def error_text(error: BaseException) -> str:
    """Return type and first line of an exception, without addresses."""
    lines = str(error).strip().splitlines() or [""]
    message = re.sub(r"0x[0-9a-fA-F]+", "0x…", lines[0])[:160].rstrip(".")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _hint(error: BaseException) -> str:
    """Explain torch's message about shapes where it speaks of a matrix product."""
    if "cannot be multiplied" in str(error) or "Expected size for first two dimensions of batch2" in str(error):
        return " In A @ B the last axis of A and the last but one of B must be equal: is a transpose missing?"
    return ""


def learner_line(error: BaseException, function: Callable[..., object]) -> str | None:
    """Return the last line of the learner's own code that the exception passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    home = getattr(inspect.unwrap(function), "__code__", None)
    library = str(Path(__file__).parent)
    own = [frame for frame in frames if home and frame.filename == home.co_filename]
    own = own or [frame for frame in frames if not frame.filename.startswith(library)][:1]
    if not own:
        return None
    return linecache.getline(own[-1].filename, own[-1].lineno or 0).strip() or None


def unattempted(outcome: Outcome, function: Callable[..., object]) -> bool:
    """Return True when the stub still stands: it raises NotImplementedError itself, or returns `...`."""
    if outcome.kind == "returned":
        return outcome.value is ...
    if not isinstance(outcome.error, NotImplementedError):
        return False
    # torch raises NotImplementedError too (a softmax of integers): that is a real error to report.
    line = learner_line(outcome.error, function)
    return "NotImplementedError" in line if line else not str(outcome.error)
