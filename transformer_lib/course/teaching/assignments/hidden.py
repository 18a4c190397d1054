"""Hidden tests: a submission answers cases it has not seen, and the grader compares the answers.

In the kernel `grade` runs the student's function on unseen cases and shows its answers as data. Whether they
are right is decided there, for the feedback, and once more by `problem_in` outside the kernel, for the marks:
nothing that a submission does to its own kernel can make a wrong answer right.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable

import numpy as np
import torch
from IPython.display import display

from ...exercises import CheckFailed, get
from ...exercises.diagnose import problem_of, wanted
from ...exercises.errors import error_text
from ...exercises.model import Case, Exercise
from ...exercises.sandbox import Outcome, copy_of, preserved_state, run_directly, run_guarded, with_gradients
from .cases import unseen_cases
from .run import MIME

TIME_LIMIT = 5.0  # seconds for one call, as in `check`
DTYPES = {
    str(dtype): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
        torch.complex64,
        torch.complex128,
    )
}


def grade(exercise_id: str, function: Callable, *, seed: int) -> None:
    """Run a function on the unseen cases of an exercise, show the answers as data, and raise if one is wrong.

    Raises:
        ValueError: if there is no such exercise, or the seed is below 1,000,000.
        CheckFailed: if an answer is wrong.
        RuntimeError: if nbgrader grades without the settings of the course.
    """
    if os.environ.get("NBGRADER_EXECUTION") == "autograde" and os.environ.get("TRANSFORMER_COURSE_GRADER") != "apart":
        raise RuntimeError("nbgrader did not read nbgrader_config.py of this course, so nothing here is graded safely")
    exercise = get(exercise_id)
    with preserved_state():
        cases = unseen_cases(exercise, seed)
        answers = _answers(exercise, function, cases)
    display({MIME: answers}, raw=True)
    problem = problem_in(exercise_id, answers, seed=seed)
    if problem:
        raise CheckFailed(problem)


def problem_in(exercise_id: str, answers: object, *, seed: int) -> str | None:
    """Say what is wrong with answers to the unseen cases; None when all are right.

    `answers` comes out of a kernel that may have done anything, so it is only read, never executed.
    """
    exercise = get(exercise_id)
    with preserved_state():
        cases = unseen_cases(exercise, seed)
        rounds = _rounds(exercise)
        if not isinstance(answers, list) or len(answers) != len(rounds) * len(cases):
            return f"✗ {exercise_id} {exercise.title}: the hidden cases were not all answered."
        for (wrap, names), start in zip(rounds, range(0, len(answers), len(cases)), strict=True):
            for case, answer in zip(cases, answers[start:], strict=False):
                problem = _problem(exercise, wrap, names, case, answer)
                if problem:
                    head = f"✗ {exercise_id} {exercise.title}: not right in a case that was not shown."
                    return f"{head}\n  {problem}\n  seen with: {case.label}"
    return None


def _rounds(exercise: Exercise) -> list[tuple[Callable, tuple[str, ...]]]:
    """Return what is asked, with the names of the results: the values, and the gradients if the exercise has any."""
    position = [exercise.arguments.index(name) for name in exercise.gradients]
    rounds = [(lambda function: function, exercise.returns)]
    if position:
        names = tuple(f"gradient of {name}" for name in exercise.gradients)
        rounds.append((lambda function: with_gradients(function, position), names))
    return rounds


def _answers(exercise: Exercise, function: Callable, cases: list[Case]) -> list:
    """Return the function's answers as JSON; none after a call that did not finish."""
    found = []
    for wrap, _ in _rounds(exercise):
        for case in cases:
            outcome = run_guarded(wrap(function), case.args, exercise.arguments, TIME_LIMIT)
            found.append(_packed_outcome(outcome))
            if outcome.kind == "endless":
                return found
    return found


def _problem(exercise: Exercise, wrap: Callable, names: tuple, case: Case, answer: object) -> str | None:
    try:
        outcome = _unpacked_outcome(answer)
    except Exception:  # a submission may have put anything in its place
        return "The answer could not be read."
    args = tuple(map(copy_of, case.args))
    if names == exercise.returns:
        expected = wanted(exercise, args, outcome)
    else:  # gradients, as a list
        expected = tuple(run_directly(wrap(exercise.reference), args, exercise.arguments).value)
    return problem_of(exercise, expected, outcome, names)


def _packed_outcome(outcome: Outcome) -> dict:
    name, _, message = (error_text(outcome.error) if outcome.error else "").partition(": ")
    changed = list(outcome.changed)
    return {"kind": outcome.kind, "value": packed(outcome.value), "error": [name, message], "changed": changed}


def _unpacked_outcome(data: dict) -> Outcome:
    name, message = map(str, data["error"])
    error = type(name, (Exception,), {})(message) if data["kind"] == "raised" else None
    return Outcome(str(data["kind"]), unpacked(data["value"]), error, tuple(map(str, data["changed"])))


def packed(value: object) -> object:
    """Return a result as JSON that keeps every bit; what no exercise asks for becomes the name of its type."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, torch.Tensor) and str(value.dtype) in DTYPES and value.layout == torch.strided:
        dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        return {"tensor": str(dense.dtype), "shape": list(dense.shape), "bytes": _text(dense)}
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufc":
        kind = "scalar" if isinstance(value, np.generic) else "array"
        return {kind: packed(torch.from_numpy(np.array(value)))}
    if isinstance(value, list | tuple):
        return {"list" if isinstance(value, list) else "tuple": [packed(item) for item in value]}
    return {"other": type(value).__name__}


def _text(dense: torch.Tensor) -> str:
    return base64.b64encode(dense.reshape(-1).view(torch.uint8).numpy().tobytes()).decode("ascii")


def unpacked(data: object) -> object:
    """Return the result that was packed.

    Raises:
        Exception: of any kind, if this is not what `packed` makes.
    """
    if not isinstance(data, dict):
        return data
    if "tensor" in data:
        raw = bytearray(base64.b64decode(data["bytes"]))
        flat = torch.frombuffer(raw, dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
        return flat.view(DTYPES[data["tensor"]]).reshape(data["shape"])
    if "array" in data or "scalar" in data:
        array = unpacked(data.get("array", data.get("scalar"))).numpy()
        return array if "array" in data else array[()]
    if "list" in data:
        return [unpacked(item) for item in data["list"]]
    if "tuple" in data:
        return tuple(unpacked(item) for item in data["tuple"])
    return float.fromhex(data["float"]) if "float" in data else object()
