"""Compares a result with the expected one and says, in the learner's terms, how it differs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat, TypeGuard

import numpy as np
import torch

Number = int | float


@dataclass(frozen=True)
class Stranger:
    """Stands for a learner's object that no exercise asks for, or that is too large to keep."""

    type_name: str
    described: str


def as_tensors(value: object) -> object:
    """Return NumPy's arrays as tensors, those within tuples and lists too: they are compared alike."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
        return torch.from_numpy(value.copy())
    if isinstance(value, list | tuple):
        return type(value)(map(as_tensors, value)) if any(map(holds_arrays, value)) else value
    return value


def holds_arrays(value: object) -> bool:
    """Return True for an array of NumPy's, or a tuple or list with one in it."""
    return isinstance(value, np.ndarray) or (isinstance(value, list | tuple) and any(map(holds_arrays, value)))


def identical(first: object, second: object) -> bool:
    """Return True when nothing changed: same shape, dtype and values, NaN equal to NaN; a model may be trained."""
    if isinstance(first, np.ndarray):
        return isinstance(second, np.ndarray) and identical(as_tensors(first), as_tensors(second))
    if isinstance(first, torch.Tensor):
        if not isinstance(second, torch.Tensor) or (first.shape, first.dtype) != (second.shape, second.dtype):
            return False
        return torch.equal(first.detach().nan_to_num(nan=7.25), second.detach().nan_to_num(nan=7.25))
    if isinstance(first, list | tuple):
        if not isinstance(second, list | tuple) or len(first) != len(second):
            return False
        return all(map(identical, first, second))
    if type(first) is dict:
        if type(second) is not dict or list(first) != list(second):
            return False
        return all(identical(item, second[key]) for key, item in first.items())
    if getattr(first, "given_to_be_trained", False):
        return type(first) is type(second)
    return first is second or first == second


def same(first: object, second: object, rtol: float | None = None) -> bool:
    """Return True when two results are alike: same kind, same shape, same values within tolerance."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        first, second = as_tensors(first), as_tensors(second)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(same(a, b, rtol) for a, b in zip(first, second, strict=True))
    if is_number(first) and is_number(second) and not isinstance(first, torch.Tensor):
        return equal_numbers(float(first), float(second), rtol)
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return first.shape == second.shape and kind(first) == kind(second) and close(first, second, rtol)
    if isinstance(first, str) or isinstance(second, str):
        return isinstance(first, str) and isinstance(second, str) and first == second
    return first is None and second is None


def same_form(expected: object, got: object) -> bool:
    """Return True when a result has the parts and shapes that are expected, whatever its values are."""
    if isinstance(expected, tuple):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            return False
        return all(map(same_form, expected, got))
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        expected, got = as_tensors(expected), as_tensors(got)
    if isinstance(expected, torch.Tensor):
        return isinstance(got, torch.Tensor) and got.shape == expected.shape and kind(got) == kind(expected)
    return True


def close(first: torch.Tensor, second: torch.Tensor, rtol: float | None = None) -> bool:
    """Return True when two tensors agree within the tolerance of the less precise one; NaN equals NaN."""
    low = torch.float32 in (first.dtype, second.dtype) or torch.float16 in (first.dtype, second.dtype)
    rtol = rtol or (1e-4 if low else 1e-7)
    return torch.allclose(first.detach().double(), second.detach().double(), rtol=rtol, atol=rtol / 10, equal_nan=True)


def equal_numbers(first: float, second: float, rtol: float | None = None) -> bool:
    """Return True when two numbers agree within the tolerance, however small they are; NaN equals NaN."""
    rtol = 1e-4 if rtol is None else rtol
    both_nan = math.isnan(first) and math.isnan(second)
    return both_nan or math.isclose(first, second, rel_tol=rtol, abs_tol=rtol * 1e-6)


def is_number(value: object) -> TypeGuard[SupportsFloat]:
    """Return True for a real number, also as a NumPy scalar or a tensor with one entry and no axes; not for a bool."""
    if isinstance(value, torch.Tensor):
        return value.dim() == 0 and value.dtype != torch.bool and not value.is_complex()
    return isinstance(value, Number | np.integer | np.floating) and not isinstance(value, bool)


def kind(tensor: torch.Tensor) -> str:
    """Say what sort of entries a tensor has."""
    if tensor.dtype == torch.bool:
        return "booleans"
    if tensor.is_complex():
        return "complex numbers"
    return "floating-point numbers" if tensor.is_floating_point() else "integers"


LONGEST_QUOTED = 80  # characters


@dataclass(frozen=True)
class Finding:
    """What is wrong with one result, as a plain fact: a sentence, and a word for errors that are alike."""

    kind: str
    text: str

    @property
    def about_values(self) -> bool:
        """Return True if results of the right sort hold other values than expected, or other shapes."""
        return self.kind.split()[-1] in ("values", "entries", "number", "shape")


def difference(
    expected: object,
    got: object,
    names: tuple[str, ...] = (),
    rtol: float | None = None,
    any_float: bool = False,
    items: str = "tokens",
) -> Finding | None:
    """Say how `got` differs from `expected`; None when it is right.

    Only facts about this one result; what may explain several wrong results is found in `claims`.

    Args:
        expected: a tensor, an array, a number, a string, a list of integers, strings or arrays, or a tuple of these.
        got: anything at all.
        names: what the parts of a tuple are called.
        rtol: relative tolerance.
        any_float: any floating-point dtype will do.
        items: what the strings of a list are.

    Raises:
        TypeError: if `expected` is something else.
    """
    if got is None:
        return Finding("none", "Your function returned None: is there a `return` in every branch?")
    if isinstance(expected, tuple):
        return _tuple_difference(expected, got, names, rtol, any_float)
    if isinstance(expected, list) and holds_arrays(expected):
        numbered = tuple(f"result {number}" for number in range(len(expected)))
        return _tuple_difference(tuple(expected), got, numbered, rtol, any_float)
    if isinstance(expected, list):
        return _list_difference(expected, got, items)
    if isinstance(expected, str):
        came = cut(repr(got)) if isinstance(got, str) else describe(got)
        return None if got == expected else Finding("text", f"Expected {cut(repr(expected))}; you returned {came}.")
    if is_number(expected) and not isinstance(expected, torch.Tensor):
        return _number_difference(expected, got, rtol)
    if isinstance(expected, np.ndarray):
        return _array_difference(expected, got, rtol)
    if not isinstance(expected, torch.Tensor):
        raise TypeError(f"expected must be a tensor, a number, a string, a list or a tuple, got {describe(expected)}")
    return _tensor_difference(expected, got, rtol, any_float)


def cut(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= LONGEST_QUOTED else text[:LONGEST_QUOTED] + "…"


def _tuple_difference(
    expected: tuple[object, ...], got: object, names: tuple[str, ...], rtol: float | None, any_float: bool
) -> Finding | None:
    wanted = f"Return {len(expected)} results, ({', '.join(names)}); you returned"
    if not isinstance(got, list | tuple):
        return Finding("results", f"{wanted} {describe(got)}.")
    if len(got) != len(expected):
        numbers = isinstance(got, list) and all(map(is_number, got))
        return Finding("results", f"{wanted} one list of {len(got)} numbers." if numbers else f"{wanted} {len(got)}.")
    for name, one, other in zip(names, expected, got, strict=True):
        found = difference(one, other, rtol=rtol, any_float=any_float)
        if other is None:
            return Finding(f"{name} none", f"{name}: None came in its place.")
        if found:
            return Finding(f"{name} {found.kind}", f"{name}: {found.text}")
    return None


def _list_difference(expected: list[object], got: object, items: str) -> Finding | None:
    kinds, short = _what_is_listed(expected, items)
    if isinstance(got, torch.Tensor | np.ndarray) and got.ndim == 1 and not _has_no_values(got):
        got = got.tolist()
    if not isinstance(got, list | tuple):
        return Finding("not a list", f"Return a list of {kinds}; you returned {describe(got)}.")
    if len(got) != len(expected):
        return Finding("length", f"The list has {len(got)} {short}; expected {len(expected)}.")
    got = [item.item() if isinstance(item, torch.Tensor) and item.numel() == 1 else item for item in got]
    form = {"pairs": tuple, "lists": list}.get(kinds)
    if form:
        got = [form(item) if isinstance(item, list | tuple) else item for item in got]
    if got == expected:
        return None
    first = next(index for index, pair in enumerate(zip(expected, got, strict=True)) if pair[0] != pair[1])
    return Finding("items", f"The {short} differ from index {first} on (counted from 0).")


def _has_no_values(got: object) -> bool:
    """Return True for a tensor of which only the shape was kept."""
    return isinstance(got, torch.Tensor) and got.is_meta


def _what_is_listed(expected: list[object], items: str) -> tuple[str, str]:
    """Say what a list holds, in words that fit after "a list of" and after a number."""
    named: dict[type[object], str] = {tuple: "pairs", str: items, list: "lists"}
    kinds = {named.get(type(item), "integers") for item in expected}
    word = kinds.pop() if len(kinds) == 1 else "integers"
    if word == "integers" and any(isinstance(item, float) for item in expected):
        word = "numbers"
    return word, "entries" if word in ("integers", "numbers") else word


def _number_difference(expected: SupportsFloat, got: object, rtol: float | None) -> Finding | None:
    if not is_number(got):
        return Finding("not a number", f"Return a single number; you returned {describe(got)}.")
    got, wanted = float(got), float(expected)
    if math.isnan(got):
        return Finding("NaN", "The result is NaN (not a number).")
    right = equal_numbers(wanted, got, 0.0 if isinstance(expected, int) else rtol)
    return None if right else Finding("number", "The number is not the right one.")


def _array_difference(expected: np.ndarray, got: object, rtol: float | None) -> Finding | None:
    wanted, came = as_tensors(expected), as_tensors(got)
    if not isinstance(wanted, torch.Tensor):
        raise TypeError(f"expected must hold real numbers, got an array of {expected.dtype}")
    if expected.ndim == 0 and is_number(got):
        return _number_difference(float(expected), got, rtol)
    if isinstance(got, Stranger) and got.type_name == "ndarray":
        return Finding("kind", f"The result must hold {kind(wanted)}; yours holds objects, or far too many numbers.")
    if not isinstance(got, np.ndarray):
        return Finding("not an array", f"Return a NumPy array; you returned {describe(got)}.")
    if not isinstance(came, torch.Tensor):
        return Finding("kind", f"The result must hold {kind(wanted)}; yours holds {got.dtype}.")
    return _tensor_difference(wanted, came, rtol, any_float=True)


def _tensor_difference(expected: torch.Tensor, got: object, rtol: float | None, any_float: bool) -> Finding | None:
    if any_float and expected.dim() == 0 and expected.is_floating_point() and is_number(got):
        got = torch.tensor(float(got), dtype=expected.dtype)  # where no gradient is asked, any number will do
    if not isinstance(got, torch.Tensor):
        why = ", so that gradients can flow" if expected.dim() == 0 and is_number(got) else ""
        return Finding("not a tensor", f"Return a torch.Tensor{why}; you returned {describe(got)}.")
    if kind(got) != kind(expected):
        text = f"The result must hold {kind(expected)}; yours holds {kind(got)} ({_dtype(got)})."
        return Finding("kind", text)
    if got.shape != expected.shape:
        shapes = f"expected shape {list(expected.shape)}, got {list(got.shape)}"
        return Finding("shape", f"The result has the wrong shape: {shapes}.")
    if not close(expected, got, rtol):
        return _value_difference(expected, got)
    if expected.dtype == torch.int8 and got.dtype != torch.int8:  # asked for only where bytes are the point
        size = f"{got.itemsize} bytes" if got.itemsize > 1 else "another kind of byte"
        text = f"Right values, but as {_dtype(got)}, {size} each; asked for is int8: .to(torch.int8)."
        return Finding("dtype", text)
    if expected.is_floating_point() and got.dtype != expected.dtype and not any_float:
        text = (
            f"Right values, but as {_dtype(got)} where the inputs are {_dtype(expected)}: "
            "create new tensors with the dtype of the inputs."
        )
        return Finding("dtype", text)
    return None


def _value_difference(expected: torch.Tensor, got: torch.Tensor) -> Finding:
    if kind(expected) != "floating-point numbers":
        return Finding("entries", f"{int((expected != got).sum())} of {expected.numel()} entries are wrong.")
    if bool(got.isnan().any()) and not bool(expected.isnan().any()):
        count = f"{int(got.isnan().sum())} of {got.numel()} entries"
        return Finding("NaN", f"The result contains NaN (not a number) in {count}.")
    return Finding("values", "The values differ.")


def describe(value: object) -> str:
    """Say what a learner returned, by type, without printing it."""
    if isinstance(value, Stranger):
        return value.described
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)} items"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
