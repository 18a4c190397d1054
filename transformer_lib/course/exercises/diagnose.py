"""Finds the sentence that tells a learner what is wrong.

The known mistakes are the engine: each is run on the same cases, and the one that does exactly what the
learner's function did, everywhere, names the problem. Only then come probes and general comparisons.
"""

from __future__ import annotations

import dis
import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import torch

from .compare import Finding, as_tensors, difference, holds_arrays, same, same_form
from .errors import explained, left_over
from .model import Case, Exercise, Probe
from .patterns import shared_claim
from .sandbox import Outcome, copy_of, run_directly

_ENDLESS = (
    "Your function did not come to an end in time: does every loop reach its last step? (If the computer is busy with "
    "something else, run the check again.)"
)


@dataclass(frozen=True)
class Trial:
    """One case: what was expected, what the learner's function did, and what is wrong with it (None if it is right)."""

    case: Case
    expected: object
    outcome: Outcome
    problem: Finding | None


def problem_of(exercise: Exercise, expected: object, outcome: Outcome, names: tuple[str, ...] = ()) -> str | None:
    """Say what is wrong with one outcome, as a general comparison sees it; None when it is right."""
    found = finding(exercise, expected, outcome, names)
    return found.text if found else None


def finding(exercise: Exercise, expected: object, outcome: Outcome, names: tuple[str, ...] = ()) -> Finding | None:
    """Do the same as `problem_of`, with the kind of error."""
    if outcome.kind == "endless":
        return Finding("endless", _ENDLESS)
    if outcome.error is not None:
        said = explained(outcome.error, outcome.line, exercise.gradients, arrays=holds_arrays(expected))
        return Finding(type(outcome.error).__name__, said)
    try:
        accepted = exercise.judge is not None and expected is outcome.value  # `wanted` says so: in whatever form
        if accepted:
            found = None
        else:
            found = difference(
                expected,
                outcome.value,
                names or exercise.returns,
                exercise.rtol,
                any_float=not exercise.gradients,
                items=exercise.items,
            )
    except Exception as error:  # a learner may return an object that cannot even be compared
        name = type(error).__name__
        return Finding(name, f"Your result could not be compared ({name}): return what the docstring says.")
    if found and found.kind == "not a tensor" and exercise.gradients and isinstance(outcome.value, np.ndarray):
        return Finding(found.kind, f"{found.text} It also compares gradients, which end at NumPy: compute with torch.")
    if found is None and outcome.changed:
        changed = " and ".join(outcome.changed)
        return Finding(
            "changed", f"Right values, but your function changes its input {changed} in place: work on a copy."
        )
    return found


def wanted(exercise: Exercise, args: tuple[object, ...], outcome: Outcome) -> object:
    """Return the right answer: what came, if the judge has nothing against it, else the reference's."""
    if exercise.judge and outcome.kind == "returned":
        with suppress(Exception):  # a learner may return anything
            if exercise.judge(*map(copy_of, args), outcome.value) is None:
                return outcome.value
    return run_directly(exercise.reference, args, exercise.arguments).value


def judged(exercise: Exercise, failing: Sequence[Trial]) -> str | None:
    """Return what the judge has against the smallest failing case, if its result has the right form."""
    first = failing[0]
    if not exercise.judge or not first.problem:
        return None
    came = first.outcome.value
    parts = bool(exercise.returns) and isinstance(came, list | tuple) and len(came) == len(exercise.returns)
    if not parts and first.problem.kind not in ("values", "entries", "items"):
        return None
    with suppress(Exception):  # what came may have the right form and be nothing that can be judged
        return exercise.judge(*map(copy_of, first.case.args), first.outcome.value)
    return None


Wrap = Callable[[Callable[..., object]], Callable[..., object]]


def matching_mistake(exercise: Exercise, trials: Sequence[Trial], wrap: Wrap = lambda function: function) -> str | None:
    """Return the diagnosis of the known mistake that behaves as the learner's function did on every trial.

    None if there are two such, as there may be when an endless loop cut the trials short.

    `wrap` turns a function into what was tried: itself, or its gradients.
    """
    # An error can have many reasons, so where nothing else is known it must be the same to the letter.
    exactly = all(trial.outcome.kind == "raised" for trial in trials if trial.problem)
    return _only_one(
        mistake.diagnosis
        for mistake in exercise.mistakes
        if all(_alike(exercise, wrap(mistake.function), trial, exactly) for trial in trials)
    )


def _only_one(diagnoses: Iterable[str]) -> str | None:
    found = set(diagnoses)
    return found.pop() if len(found) == 1 else None


def nearly_matching_mistake(exercise: Exercise, trials: Sequence[Trial]) -> str | None:
    """Do the same as `matching_mistake`, leaving out the trials where either of the two overflows, meets NaN or stops.

    A learner who makes a known mistake may write it so that it breaks down elsewhere than ours does.
    At least two failing trials must remain.
    """
    return _only_one(
        mistake.diagnosis for mistake in exercise.mistakes if _nearly_alike(exercise, mistake.function, trials)
    )


def _nearly_alike(exercise: Exercise, function: Callable[..., object], trials: Sequence[Trial]) -> bool:
    failing = 0
    for trial in trials:
        outcome = _tried(exercise, function, trial)
        if not (_finite(outcome) and _finite(trial.outcome)):
            continue
        wrong = problem_of(exercise, trial.expected, outcome) is not None
        if not same_outcome(outcome, trial.outcome, exercise.rtol) or wrong != bool(trial.problem):
            return False
        failing += wrong
    return failing > 1


def _finite(outcome: Outcome) -> bool:
    """Return True when a value came back that holds neither NaN nor infinity."""

    def fine(value: object) -> bool:
        value = as_tensors(value)
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


def _alike(exercise: Exercise, function: Callable[..., object], trial: Trial, exactly: bool = False) -> bool:
    """Return True when `function` did what the learner's did on this case, and is wrong where that was."""
    outcome = _tried(exercise, function, trial)
    if not same_outcome(outcome, trial.outcome, exercise.rtol):
        return False
    if exactly and trial.outcome.error and str(outcome.error) != str(trial.outcome.error):
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
        return type(first.error).__name__ == type(second.error).__name__
    if first.kind == "endless":
        return True
    try:
        return same(first.value, second.value, rtol)
    except Exception:  # an object that cannot be compared equals nothing else
        return False


def probed(exercise: Exercise, failing: Sequence[Trial], call: Callable[..., object]) -> str | None:
    """Return what the exercise's own probes say about wrong results, if they have the right form.

    A probe must find something in the smallest failing case; where others fail differently, that case is named.
    """
    for probe in exercise.probes:
        said = [_said(probe, trial, call) for trial in failing]
        if said[0]:
            here = "" if len({_without_numbers(text) for text in said}) == 1 else _in_case(failing[0])
            return here + said[0]
    return None


def _said(probe: Probe, trial: Trial, call: Callable[..., object]) -> str:
    if not same_form(trial.expected, trial.outcome.value):
        return ""
    try:
        return probe(call, trial.case, trial.outcome.value) or ""
    except Exception:  # a probe calls the learner's function again, and this time it may return anything
        return ""


def _without_numbers(text: str) -> str:
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?|inf", "#", text)


def _in_case(trial: Trial) -> str:
    return f"In the case “{trial.case.label}”: "


def general(exercise: Exercise, failing: Sequence[Trial], passing: Sequence[Trial], names: tuple[str, ...] = ()) -> str:
    """Say what all wrong results have in common, or else what is wrong with the smallest, and of which case it is."""
    first = failing[0]
    problems = [trial.problem for trial in failing if trial.problem]
    claim = None
    if all(problem.about_values for problem in problems):
        wrong, right = (
            [(as_tensors(trial.expected), as_tensors(trial.outcome.value)) for trial in some]
            for some in (failing, passing)
        )
        claim = shared_claim(wrong, right, names or exercise.returns, exercise.rtol)
    here = "" if len({problem.kind for problem in problems}) == 1 else _in_case(first)
    return claim or here + problems[0].text


def size_of(case: Case) -> int:
    """Count the entries of the inputs, to find the smallest failing example."""
    return sum(_entries(arg) for arg in case.args)


def _entries(value: object) -> int:
    if isinstance(value, torch.Tensor | np.ndarray):
        return math.prod(value.shape)
    return sum(map(_entries, value)) if isinstance(value, list | tuple) else 1


def unattempted(outcome: Outcome, function: Callable[..., object]) -> bool:
    """Return True when the stub still stands: it does nothing but raise NotImplementedError, or returns `...`."""
    if outcome.kind == "returned":
        return outcome.value is ...
    return left_over(outcome.error, outcome.line) and not _does_something(function)


def _does_something(function: Callable[..., object]) -> bool:
    """Return True when there is code beside the stub's own line; comments are no code."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return False
    raised = list(takewhile(lambda step: step.opname != "RAISE_VARARGS", dis.get_instructions(code)))
    names = {step.argval for step in raised if step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST"}
    stored = any(step.opname.startswith(("STORE_", "IMPORT_", "POP_", "RETURN_", "FOR_")) for step in raised)
    return stored or bool(names - {"NotImplementedError"})
