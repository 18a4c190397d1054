"""Turns whatever a learner's function did into plain data, which is safe to compare, to show and to send.

What an exercise may ask for (tensors, arrays, numbers, strings, lists) stays as it is; a large tensor keeps only its
shape, and any other object becomes a `Stranger` that knows what to call it.
"""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .compare import Stranger
from .sandbox import Outcome

MOST_ENTRIES = 5_000_000  # of a tensor or an array whose values are kept; no exercise has a thousandth of it
MOST_ITEMS = 1_000_000  # of a list or a string
DEEPEST = 20  # lists within lists
MOST_PRINTED = 2_000  # characters
_PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (torch, np))  # no learner wrote their lines


class Printed(StringIO):
    """Keeps the beginning of what is printed, and counts the rest."""

    left_out = 0

    def write(self, text: str) -> int:
        """Keep as much of the text as there is room for."""
        room = max(0, MOST_PRINTED - self.tell())
        self.left_out += len(text) - len(text[:room])
        super().write(text[:room])
        return len(text)

    @property
    def text(self) -> str:
        """What was printed, cut."""
        more = f"\n… and {self.left_out:,} characters more\n" if self.left_out else ""
        return self.getvalue() + more


class Remembered(Exception):
    """An error of a learner's function of which only the type's name and the message are left."""


def plain(value: object, depth: int = 0) -> object:
    """Return a value as plain data. Never raises: what fails to be looked into is a stranger."""
    try:
        return _plain(value, depth)
    except Exception:  # a learner may return an object whose every method fails
        return stranger(value)


def _plain(value: Any, depth: int) -> object:
    kind = type(value)  # what an object says of itself, as `isinstance` asks, need not be true
    if issubclass(kind, torch.Tensor):
        return _plain_tensor(value)
    if issubclass(kind, np.ndarray):
        return value if value.size <= MOST_ENTRIES and value.dtype != object else stranger(value, _shaped(value))
    if issubclass(kind, list | tuple):
        if len(value) > MOST_ITEMS or depth > DEEPEST:
            return stranger(value, f"a {kind.__name__} of {len(value)} items")
        return (list if issubclass(kind, list) else tuple)(plain(item, depth + 1) for item in value)
    if issubclass(kind, str):
        return str(value) if len(value) <= MOST_ITEMS else stranger(value, f"a str of {len(value)} characters")
    kept = kind in (bool, int, float, complex) or value is None or value is ... or issubclass(kind, np.generic)
    return value if kept else stranger(value)


def _plain_tensor(value: torch.Tensor) -> torch.Tensor | Stranger:
    with torch._C.DisableTorchFunctionSubclass():
        if value.layout != torch.strided:
            return stranger(value, "a sparse tensor")
        tensor = value.detach().as_subclass(torch.Tensor)
        return (
            tensor if tensor.numel() <= MOST_ENTRIES else torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
        )


def _shaped(array: np.ndarray) -> str:
    return f"a NumPy array of shape {list(array.shape)}"


def stranger(value: object, described: str = "") -> Stranger:
    """Return what stands for this object."""
    name = type(value).__name__
    return Stranger(name, described or f"{'an' if name[:1] in 'aeiou' else 'a'} {name}")


def plain_outcome(outcome: Outcome, function: Callable[..., object]) -> Outcome:
    """Return the outcome with plain data; an error keeps its type's name, its message and the learner's line."""
    error = outcome.error
    if error is None:
        return replace(outcome, value=plain(outcome.value))
    base = NotImplementedError if isinstance(error, NotImplementedError) else Remembered
    return replace(outcome, error=remembered(type(error).__name__, _message(error), base), line=_line(error, function))


def remembered(name: str, message: str, base: type[Exception] = Remembered) -> Exception:
    """Return an error with this name and message."""
    return type(name, (base,), {})(message)


def _message(error: BaseException) -> str:
    try:
        return str(error)[:1000]
    except Exception:  # a learner's own exception may fail to say what it is
        return ""


def _line(error: BaseException, function: Callable[..., object]) -> str:
    try:
        return learner_line(error, function) or ""
    except Exception:  # the source may be gone, or be no source
        return ""


def learner_line(error: BaseException, function: Callable[..., object]) -> str | None:
    """Return the last line of the learner's own code that the exception passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    home = getattr(inspect.unwrap(function), "__code__", None)
    library = str(Path(__file__).parent)
    own = [frame for frame in frames if home and frame.filename == home.co_filename]
    own = own or [frame for frame in frames if not frame.filename.startswith((library, *_PACKAGES))][:1]
    if not own:
        return None
    return linecache.getline(own[-1].filename, own[-1].lineno or 0).strip() or None
