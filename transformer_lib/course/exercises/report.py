"""Writes a verdict as a few lines of text: what is wrong, and the smallest example that shows it."""

from __future__ import annotations

import math

import numpy as np
import torch

from .compare import Stranger, as_tensors
from .model import Case, Exercise
from .sandbox import Outcome

LARGEST_SHOWN = 25  # entries of an array
LONGEST_LINE = 300  # characters


def show(value: object) -> str:
    """Return anything as short text: numbers rounded, a matrix one row a line, large arrays only by their shape."""
    try:
        text = _show(value)
    except Exception:  # a learner may return an object that cannot be printed
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + " …"


def _show(value: object) -> str:
    if isinstance(value, np.ndarray | torch.Tensor):
        return _show_array(value)
    if isinstance(value, Stranger):
        return f"<{value.type_name}>"
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_show, value[:LONGEST_LINE]))  # the line is cut before that many
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, str):
        return repr(value[:LONGEST_LINE])
    if isinstance(value, int | float):
        return number(value)
    return getattr(value, "__name__", f"<{type(value).__name__}>")


def number(value: object) -> str:
    """Return a number with four significant digits, and with no minus in front of zero."""
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.4g}"
    return "0" if text == "-0" else text


def _show_array(array: np.ndarray | torch.Tensor) -> str:
    shape = tuple(array.shape)
    if math.prod(shape) > LARGEST_SHOWN:
        return f"array of shape {list(shape)}"
    nested = array.tolist()
    return _nested(nested, max(map(len, _entries(nested)), default=0) if len(shape) > 1 else 0)


def _entries(nested: object) -> list[str]:
    """Return every number of a nested list as text."""
    return [text for item in nested for text in _entries(item)] if isinstance(nested, list) else [number(nested)]


def _nested(nested: object, width: int, depth: int = 0) -> str:
    """Return a nested list with aligned columns; the rows of a matrix stand on lines of their own."""
    if not isinstance(nested, list):
        return number(nested).rjust(width)
    between = ",\n" + " " * (depth + 1) if nested and isinstance(nested[0], list) else ", "
    return "[" + between.join(_nested(item, width, depth + 1) for item in nested) + "]"


def first_difference(expected: object, got: object) -> str | None:
    """Say where two large arrays of one shape first differ, since they are not printed in full."""
    expected, got = as_tensors(expected), as_tensors(got)
    if not isinstance(expected, torch.Tensor) or not isinstance(got, torch.Tensor):
        return None
    if expected.shape != got.shape or expected.numel() <= LARGEST_SHOWN or got.is_sparse:
        return None
    pair = expected.detach().double(), got.detach().double()
    wrong = ~torch.isclose(*pair, rtol=1e-4, atol=1e-5, equal_nan=True)
    if not bool(wrong.any()):
        return None
    place = wrong.nonzero()[0].tolist()
    wanted, came = (number(tensor[tuple(place)].item()) for tensor in (expected, got))
    return f"first difference at {place}: expected {wanted}, got {came}"


def example(exercise: Exercise, case: Case, expected: object, outcome: Outcome) -> list[str]:
    """Return the failing case line by line: each input, what was expected (if only that is right), what came."""
    width = max(map(len, (*exercise.arguments, "expected"))) + 2
    rows = [f"  smallest example that fails ({case.label}):"]
    named = zip(exercise.arguments, case.args, strict=True)
    rows += [_row(name, show(arg), width) for name, arg in named]
    if not exercise.judge:
        rows += _results("expected", expected, exercise.returns, width)
    if outcome.kind == "returned":
        rows += _results("got", outcome.value, exercise.returns, width)
    if outcome.kind == "returned" and not exercise.judge:
        pairs = zip(_parts(expected), _parts(outcome.value), strict=False)
        rows += [f"    {where}" for where in (first_difference(a, b) for a, b in pairs) if where]
    return rows


def _parts(value: object) -> list[object]:
    return list(value) if isinstance(value, tuple) else [value]


def _results(word: str, value: object, names: tuple[str, ...], width: int) -> list[str]:
    """Return one line, or one line for each named result."""
    if not names or not isinstance(value, tuple) or len(value) != len(names):
        return [_row(word, show(value), width)]
    return [_row(word, f"{name} = ", width, show(part)) for name, part in zip(names, value, strict=True)]


def _row(word: str, text: str, width: int, more: str = "") -> str:
    """Return a word and its value; further lines of the value start where the first one does."""
    head = f"    {word:<{width}}{text if more else ''}"
    return head + (more or text).replace("\n", "\n" + " " * len(head))
