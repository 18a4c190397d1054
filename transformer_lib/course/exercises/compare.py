"""Compares a result with the expected one and says, in the learner's terms, how it differs."""

from __future__ import annotations

import math
from typing import SupportsFloat, TypeGuard

import numpy as np
import torch

Number = int | float


def identical(first: object, second: object) -> bool:
    """Return True when nothing changed: same shape, dtype and values, NaN equal to NaN."""
    if isinstance(first, torch.Tensor):
        if not isinstance(second, torch.Tensor) or (first.shape, first.dtype) != (second.shape, second.dtype):
            return False
        return torch.equal(first.detach().nan_to_num(nan=7.25), second.detach().nan_to_num(nan=7.25))
    if isinstance(first, list | tuple):
        if not isinstance(second, list | tuple) or len(first) != len(second):
            return False
        return all(map(identical, first, second))
    return first is second or first == second


def same(first: object, second: object, rtol: float | None = None) -> bool:
    """Return True when two results are alike: same kind, same shape, same values within tolerance."""
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(same(a, b, rtol) for a, b in zip(first, second, strict=True))
    if is_number(first) and is_number(second):
        first, second = torch.as_tensor(float(first)), torch.as_tensor(float(second))
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return first.shape == second.shape and kind(first) == kind(second) and close(first, second, rtol)
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return first is None and second is None


def same_form(expected: object, got: object) -> bool:
    """Return True when a result has the parts and shapes that are expected, whatever its values are."""
    if isinstance(expected, tuple):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            return False
        return all(map(same_form, expected, got))
    if isinstance(expected, torch.Tensor):
        return isinstance(got, torch.Tensor) and got.shape == expected.shape and kind(got) == kind(expected)
    return True


def close(first: torch.Tensor, second: torch.Tensor, rtol: float | None = None) -> bool:
    """Return True when two tensors agree within the tolerance of the less precise one; NaN equals NaN."""
    low = torch.float32 in (first.dtype, second.dtype) or torch.float16 in (first.dtype, second.dtype)
    rtol = rtol or (1e-4 if low else 1e-7)
    return torch.allclose(first.detach().double(), second.detach().double(), rtol=rtol, atol=rtol / 10, equal_nan=True)


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


def difference(expected: object, got: object, names: tuple[str, ...] = (), rtol: float | None = None) -> str | None:
    """Say how `got` differs from `expected`; None when it is right.

    Args:
        expected: a tensor, a number, a string, a list of integers or strings, or a tuple of these.
        got: anything at all.
        names: what the parts of a tuple are called.
        rtol: relative tolerance.

    Raises:
        TypeError: if `expected` is something else.
    """
    if got is None:
        return "Your function returned None: is there a `return` in every branch?"
    if isinstance(expected, tuple):
        return _tuple_difference(expected, got, names, rtol)
    if isinstance(expected, list):
        return _list_difference(expected, got)
    if isinstance(expected, str):
        came = repr(got) if isinstance(got, str) else describe(got)
        return None if got == expected else f"Expected {expected!r}; you returned {came}."
    if is_number(expected) and not isinstance(expected, torch.Tensor):
        return _number_difference(expected, got, rtol)
    if not isinstance(expected, torch.Tensor):
        raise TypeError(f"expected must be a tensor, a number, a string, a list or a tuple, got {describe(expected)}")
    return _tensor_difference(expected, got, rtol)


def _tuple_difference(
    expected: tuple[object, ...], got: object, names: tuple[str, ...], rtol: float | None
) -> str | None:
    wanted = ", ".join(names)
    if not isinstance(got, list | tuple):
        return f"Return {len(expected)} results, ({wanted}); you returned {describe(got)}."
    if len(got) != len(expected):
        return f"Return {len(expected)} results, ({wanted}); you returned {len(got)}."
    for name, one, other in zip(names, expected, got, strict=True):
        problem = difference(one, other, rtol=rtol)
        if problem:
            return f"{name}: {problem}"
    return None


def _list_difference(expected: list[object], got: object) -> str | None:
    kinds, short = _what_is_listed(expected)
    if isinstance(got, torch.Tensor | np.ndarray) and got.ndim == 1:
        got = got.tolist()
    if not isinstance(got, list | tuple):
        return f"Return a list of {kinds}; you returned {describe(got)}."
    got = [item.item() if isinstance(item, torch.Tensor) and item.numel() == 1 else item for item in got]
    if kinds == "pairs":
        got = [tuple(item) if isinstance(item, list) else item for item in got]
    if got == expected:
        return None
    if len(got) != len(expected):
        return f"The list has {len(got)} {short}; expected {len(expected)}."
    first = next(index for index, pair in enumerate(zip(expected, got, strict=True)) if pair[0] != pair[1])
    return f"The {short} differ from place {first} on."


def _what_is_listed(expected: list[object]) -> tuple[str, str]:
    """Say what a list holds, in words that fit after "a list of" and after a number."""
    named: dict[type[object], str] = {tuple: "pairs", str: "tokens", list: "lists"}
    kinds = {named.get(type(item), "integers") for item in expected}
    word = kinds.pop() if len(kinds) == 1 else "integers"
    return word, "entries" if word == "integers" else word


def _number_difference(expected: SupportsFloat, got: object, rtol: float | None) -> str | None:
    if not is_number(got):
        return f"Return a single number; you returned {describe(got)}."
    got, wanted = float(got), float(expected)
    if math.isnan(got):
        return "The result is NaN (not a number)."
    rtol = 0.0 if isinstance(expected, int) else rtol or 1e-4
    if math.isclose(got, wanted, rel_tol=rtol, abs_tol=rtol * 1e-6):
        return None
    if wanted and got:
        return f"The result is {factor_words(got / wanted)}."
    return "The number is not the right one."


def _tensor_difference(expected: torch.Tensor, got: object, rtol: float | None) -> str | None:
    if not isinstance(got, torch.Tensor):
        if expected.dim() == 0 and is_number(got):
            return f"Return a torch.Tensor, so that gradients can flow; you returned {describe(got)}."
        return f"Return a torch.Tensor; you returned {describe(got)}."
    if kind(got) != kind(expected):
        return f"The result must hold {kind(expected)}; yours holds {kind(got)} ({_dtype(got)})."
    if got.shape != expected.shape:
        return _shape_difference(expected, got, rtol)
    if not close(expected, got, rtol):
        return _value_difference(expected, got, rtol)
    if expected.is_floating_point() and got.dtype != expected.dtype:
        return (
            f"Right values, but as {_dtype(got)} where the inputs are {_dtype(expected)}: "
            "create new tensors with the dtype of the inputs."
        )
    return None


def _shape_difference(expected: torch.Tensor, got: torch.Tensor, rtol: float | None) -> str:
    shapes = f"expected shape {list(expected.shape)}, got {list(got.shape)}"
    if _transposed(expected, got, rtol):
        return f"The result has the right values transposed: {shapes}."
    if got.numel() == expected.numel() and close(expected.reshape(-1), got.reshape(-1), rtol):
        return f"The values are right but arranged along other axes: {shapes}."
    return f"The result has the wrong shape: {shapes}."


def _value_difference(expected: torch.Tensor, got: torch.Tensor, rtol: float | None) -> str:
    if kind(expected) != "floating-point numbers":
        wrong = int((expected != got).sum())
        return f"{wrong} of {expected.numel()} entries are wrong."
    if bool(got.isnan().any()) and not bool(expected.isnan().any()):
        return f"The result contains NaN (not a number) in {int(got.isnan().sum())} of {got.numel()} entries."
    if _transposed(expected, got, rtol):
        return "The result has the right values transposed."
    related = _related(expected.detach().double(), got.detach().double())
    return related or "The values differ."


def _transposed(expected: torch.Tensor, got: torch.Tensor, rtol: float | None) -> bool:
    flipped = got.transpose(-2, -1) if got.dim() >= 2 else got
    return got.dim() >= 2 and flipped.shape == expected.shape and close(expected, flipped, rtol)


def _related(expected: torch.Tensor, got: torch.Tensor) -> str | None:
    """Say so when the values are right up to a factor, an offset or their order."""
    expected, got = expected.reshape(-1), got.reshape(-1)
    if len(expected) < 2 or not bool(got.isfinite().all() and expected.isfinite().all()):
        return None
    clear = expected.abs() > 1e-3
    ratios = got[clear] / expected[clear]
    scaled = len(ratios) > 1 and bool(torch.allclose(ratios, ratios[0].expand_as(ratios), rtol=1e-3))
    if scaled and bool((got[~clear].abs() <= 2e-3 * max(1.0, abs(float(ratios[0])))).all()):
        if abs(float(ratios[0])) < 1e-6:
            return "The result is all zeros."
        if math.isclose(float(ratios[0]), 1.0, rel_tol=2e-3):
            most = float((got - expected).abs().max())
            return f"Nearly right: off by {most:.0e} at most. Was a number rounded, or a repetition stopped too early?"
        return f"Every value is {factor_words(float(ratios[0]))}."
    shift = got - expected
    if bool(torch.allclose(shift, shift[0].expand_as(shift), rtol=1e-3, atol=1e-5)):
        return f"Every value is off by the same amount, {float(shift[0]):+.3g}."
    if bool(torch.allclose(expected.sort().values, got.sort().values, rtol=1e-4, atol=1e-5)):
        return "The values are right but in another order."
    return None


def factor_words(ratio: float) -> str:
    """Say in words what a ratio means: the right result with its sign flipped, or so many times the right one."""
    if math.isclose(ratio, -1.0, rel_tol=1e-3):
        return "the right one with its sign flipped"
    return f"{ratio:.4g} times the right one"


def describe(value: object) -> str:
    """Say what a learner returned, by type, without printing it."""
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
