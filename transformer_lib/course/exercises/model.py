"""What an exercise is made of: cases, a reference, known mistakes, and probes for properties."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch


class Endless(Exception):
    """Raised by a mistake where a learner who made it would loop for ever."""


@dataclass(frozen=True)
class Case:
    """One set of arguments with a few words that say what is special about it."""

    label: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: a short name, the wrong function, and what to tell whoever wrote it."""

    name: str
    function: Callable[..., object]
    diagnosis: str


# A probe looks at a wrong result for a property that says more than "the numbers differ". It gets
# `call` (runs the learner's function on fresh arguments; None if that fails), the case and the result.
Probe = Callable[[Callable[..., object], Case, object], "str | None"]


@dataclass(frozen=True)
class Demand:
    """What a right answer must satisfy beside its values and gradients, such as how much it holds at once.

    Args:
        case: gives the inputs on which it is measured.
        measure: called with the learner's function and the inputs, returns what `problem` judges: numbers that can be
            sent from one process to another.
        problem: says what is wrong with what was measured, in a sentence; None if nothing is.
        kept: what a passing verdict adds, such as "and no grid is built".
    """

    case: Callable[[], Case]
    measure: Callable[..., object]
    problem: Callable[[Any], str | None]
    kept: str


@dataclass(frozen=True)
class Exercise:
    """A task that can be checked.

    Args:
        id: notebook and number, such as "01.2".
        title: a few words.
        minutes: how long a newcomer takes.
        difficulty: 1 (apply), 2 (combine) or 3 (derive).
        reference: an independent right answer. Its name, arguments and docstring are those of the stub.
        cases: gives the seeded inputs: several sizes (distinct primes) and edge cases.
        mistakes: known wrong answers, each with its own diagnosis.
        gradients: names of the arguments whose gradients are compared too.
        returns: names of the results when there is more than one.
        probes: extra questions about a wrong result that no known mistake explains.
        demands: what is measured of an answer that is right.
        items: what the strings are, where a list of strings is returned.
        rtol: relative tolerance; by default 1e-4 in float32 and 1e-7 in float64.
        part: of a keystone, the part of the learner's own Transformer that it is (`transformer_lib.course.mine`).
        original: of a variant, the id of the exercise that it changes (`variants`).
        judge: where many answers are right: called with a case's arguments and a result, it says in a sentence what is
            wrong with the result, or returns None. The reference is then one example, which no report shows.
    """

    id: str
    title: str
    minutes: int
    difficulty: int
    reference: Callable[..., object]
    cases: Callable[[], list[Case]]
    mistakes: tuple[Mistake, ...]
    gradients: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()
    demands: tuple[Demand, ...] = ()
    items: str = "tokens"
    rtol: float | None = None
    judge: Callable[..., str | None] | None = None
    part: str = ""
    original: str = ""

    @property
    def notebook(self) -> str:
        """Number of the notebook that the exercise belongs to, such as "01"."""
        return self.id.split(".")[0]

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return tuple(inspect.signature(self.reference).parameters)


SMALLEST_SEED = 1_000_000
"""The smallest seed of unseen cases; those of shown cases are smaller."""

_shift: ContextVar[int] = ContextVar("shift of every seed", default=0)


@contextmanager
def other_numbers(seed: int) -> Iterator[None]:
    """Make `normal`, `arrays` and `integers` draw other numbers, the same for the same seed: unseen cases for grading.

    Raises:
        ValueError: if `seed` is below 1,000,000; shown cases have smaller seeds, and none may come back.
    """
    if not isinstance(seed, int) or seed < SMALLEST_SEED:
        raise ValueError(f"seed must be an integer of at least {SMALLEST_SEED}, got {seed!r}")
    token = _shift.set(seed)
    try:
        yield
    finally:
        _shift.reset(token)


def normal(seed: int, *shapes: tuple[int, ...], dtype: torch.dtype | None = None) -> list[torch.Tensor]:
    """Return standard normal tensors of the given shapes, the same on every run; by default in the default dtype."""
    dtype = dtype or torch.get_default_dtype()
    generator = torch.Generator().manual_seed(seed + _shift.get())
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def arrays(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return standard normal NumPy arrays in double precision, the same on every run."""
    return [tensor.numpy() for tensor in normal(seed, *shapes, dtype=torch.float64)]


def integers(seed: int, shape: tuple[int, ...], low: int, high: int) -> torch.Tensor:
    """Return integers in [low, high), the same on every run."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed + _shift.get()))


STUB = '''def {name}({arguments}):
    """{title}  ({minutes} minutes, {stars})

    {task}
    """
    raise NotImplementedError
'''


def stub_text(exercise: Exercise) -> str:
    """Return the source of the stub that a learner fills in."""
    return STUB.format(
        name=exercise.reference.__name__,
        arguments=", ".join(exercise.arguments),
        title=exercise.title,
        minutes=exercise.minutes,
        stars="★" * exercise.difficulty + "☆" * (3 - exercise.difficulty),
        task=(inspect.getdoc(exercise.reference) or "").replace("\n", "\n    ").replace("\n    \n", "\n\n"),
    )
