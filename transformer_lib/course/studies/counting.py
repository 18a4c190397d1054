"""What a call really computes, holds and keeps: measured by listening to PyTorch, to be held against `tl.costs`.

>>> import torch
>>> multiply_adds(torch.matmul, torch.zeros(2, 3), torch.zeros(3, 5))
30
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ...model.recording import record_attention


def multiply_adds(function: Callable[..., Any], *inputs: Any) -> int:
    """Return the multiply-adds of all matrix products in `function(*inputs)`.

    A module that contains attention takes its readable path, product by product: inside a fused attention PyTorch
    counts nothing on a CPU.
    """
    with FlopCounterMode(display=False) as counter, _readable(function), torch.no_grad():
        function(*inputs)
    return counter.get_total_flops() // 2  # PyTorch counts a multiplication and an addition as two operations


def backward_multiply_adds(function: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Return the multiply-adds of the backward pass that ends at all `inputs`, by autograd."""
    leaves = _leaves(inputs)
    with _readable(function):
        output = function(*leaves)
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(output.sum(), leaves)
    return counter.get_total_flops() // 2


def largest_tensor(function: Callable[..., Any], *inputs: Any) -> int:
    """Return the bytes of the largest tensor that any operation in `function(*inputs)` returns."""
    with _Largest() as measured, torch.no_grad():
        function(*inputs)
    return measured.largest


def kept_for_backward(function: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Return the bytes that autograd keeps for the backward pass of `function(*inputs)`, each storage counted once."""
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = function(*_leaves(inputs))
    assert output.requires_grad  # while it lives nothing of what it keeps is freed, so no address comes twice
    return sum(kept.values())


class _Largest(TorchDispatchMode):
    """Inside `with`, PyTorch calls this for every operation, and it remembers the largest result."""

    largest = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            self.largest = max(self.largest, getattr(tensor, "nbytes", 0))
        return result


def _leaves(inputs: Iterable[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone().requires_grad_() for tensor in inputs]


def _readable(function: Callable[..., Any]) -> AbstractContextManager[Any]:
    return record_attention(function) if isinstance(function, nn.Module) else nullcontext()
