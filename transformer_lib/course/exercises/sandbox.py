"""Runs a function so that nothing it does can hurt the notebook.

Every call gets fresh copies of its inputs and reports what happened as an `Outcome`. Where no process can be copied
(`worker` says where), a learner's function runs in a thread of its own, which is abandoned after a time limit.
"""

from __future__ import annotations

import copy
import ctypes
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .compare import identical
from .model import Endless


@dataclass(frozen=True)
class Outcome:
    """What one call did: "returned" a value, "raised" an error, or was "endless"."""

    kind: str
    value: object = None
    error: BaseException | None = None
    changed: tuple[str, ...] = ()
    line: str = ""  # the learner's own line that an error passed through
    printed: str = ""


def copy_of(value: object) -> object:
    """Return a copy that shares no memory with `value`; functions and numbers are returned as they are."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list | tuple):
        return type(value)(copy_of(item) for item in value)
    if type(value) is dict:
        return {key: copy_of(item) for key, item in value.items()}
    if getattr(value, "given_to_be_trained", False):  # other models may belong to a function that comes beside them
        return copy.deepcopy(value)
    return value


def run_directly(function: Callable[..., object], args: tuple[Any, ...], names: tuple[str, ...]) -> Outcome:
    """Call `function` on copies of `args`, here and now. For code that we wrote ourselves."""
    given = [copy_of(arg) for arg in args]
    try:
        torch.default_generator.manual_seed(0)  # torch.manual_seed would also reach for every GPU
        value = function(*given)
    except Endless:
        return Outcome("endless")
    except BaseException as error:  # whatever a learner's code throws, SystemExit too, is a result here
        return Outcome("raised", error=error)
    changed = [name for name, old, new in zip(names, args, given, strict=False) if not identical(old, new)]
    return Outcome("returned", value=value, changed=tuple(changed))


def run_guarded(
    function: Callable[..., object], args: tuple[Any, ...], names: tuple[str, ...], time_limit: float
) -> Outcome:
    """Call `function` in its own thread, and abandon it after `time_limit` seconds."""
    box: list[Outcome] = []
    started = threading.Event()

    def work() -> None:
        # A tracer (a debugger, or a coverage tool) that is stopped midway would keep its locks for ever.
        sys.settrace(None)
        started.set()
        # Gradient mode belongs to a thread: a check inside `torch.no_grad()` works like any other.
        torch.set_grad_enabled(True)
        box.append(run_directly(function, args, names))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    started.wait()
    thread.join(time_limit)
    if thread.is_alive():
        _stop(thread)
        return Outcome("endless")
    return box[0] if box else Outcome("endless")


def _stop(thread: threading.Thread) -> None:
    """End a Python loop; a call that is stuck outside Python is left alone and dies with the kernel.

    A thread ends on SystemExit without a word wherever it is met, but not on an exception derived from it.
    """
    ident = ctypes.c_ulong(thread.ident or 0)  # a thread that was started has one
    for _ in range(3):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))
        thread.join(0.2)
        if not thread.is_alive():
            return


@contextmanager
def preserved_state(default_dtype: torch.dtype | None = torch.float32) -> Iterator[None]:
    """Leave random numbers, default dtype and gradient mode as they were before.

    Args:
        default_dtype: the default dtype meanwhile; None keeps the caller's.
    """
    torch_state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()
    dtype = torch.get_default_dtype()
    try:
        torch.set_default_dtype(default_dtype or dtype)
        np.random.seed(0)
        random.seed(0)
        with torch.enable_grad():
            yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        torch.set_default_dtype(dtype)


def with_gradients(function: Callable[..., object], position: list[int]) -> Callable[..., list[torch.Tensor | None]]:
    """Return a function that returns the gradients of `function` at the arguments in these positions.

    The results are multiplied by fixed numbers and summed, so that one backward pass sees every entry. An
    argument that no result depends on has the gradient None.
    """

    def gradients(*args: Any) -> list[torch.Tensor | None]:
        leaves = [_leaves(args[index]) for index in position]
        value = function(*args)
        results = value if isinstance(value, list | tuple) else [value]
        loss = sum(_contract(result) for result in results if isinstance(result, torch.Tensor))
        if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
            return [None for _ in position]
        found = iter(torch.autograd.grad(loss, [leaf for some in leaves for leaf in some], allow_unused=True))
        return [_joined(some, [next(found) for _ in some]) for some in leaves]

    return gradients


def _leaves(arg: torch.Tensor | list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.requires_grad_() for tensor in (arg if isinstance(arg, list) else [arg])]


def _joined(leaves: list[torch.Tensor], gradients: list[torch.Tensor | None]) -> torch.Tensor | None:
    """Return the gradient of an argument: for a list of tensors one row of all its entries, 0 where none arrives."""
    if len(leaves) == 1 or all(gradient is None for gradient in gradients):
        return gradients[0]
    pairs = zip(leaves, gradients, strict=True)
    return torch.cat([(torch.zeros_like(leaf) if one is None else one).flatten() for leaf, one in pairs])


def _contract(result: torch.Tensor) -> torch.Tensor | float:
    """Sum the entries, each multiplied by a different fixed number."""
    if not result.is_floating_point():
        return 0.0
    factors = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).cos()
    return (result.reshape(-1) * factors).sum()
