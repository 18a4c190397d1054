"""What a call really computes, holds and keeps: measured by listening to PyTorch, to be held against `tl.costs`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

Shape = tuple[int, ...]


def multiply_adds(function: Callable[..., Any], *inputs: Any) -> int:
    """Return the multiply-adds of all matrix products in `function(*inputs)`, those inside a fused attention included.

    Products written as `*` and a sum are not seen, nor is the fused encoder layer of `torch.nn` in evaluation.
    """
    with _counter() as counter, torch.no_grad():
        function(*inputs)
    return counter.get_total_flops() // 2  # PyTorch counts a multiplication and an addition as two operations


def backward_multiply_adds(function: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Return the multiply-adds of the backward pass that ends at all `inputs`, by autograd."""
    leaves = _leaves(inputs)
    output = function(*leaves)
    with _counter() as counter:
        torch.autograd.grad(output.sum(), leaves)
    return counter.get_total_flops() // 2


def largest_tensor(function: Callable[..., Any], *inputs: Any) -> int:
    """Return the bytes of the largest tensor that any operation in `function(*inputs)` returns."""
    with _Largest() as measured, torch.no_grad():
        function(*inputs)
    return measured.largest


def most_held(function: Callable[..., Any], *inputs: Any) -> int:
    """Return the most bytes that results of operations in `function(*inputs)` took at one time.

    A storage counts once, whole, as long as a result lives in it; inputs count from the first time that a view of them
    is made.
    """
    with _Held() as measured, torch.no_grad():
        function(*inputs)
    return measured.most


def kept_for_backward(function: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Return the bytes that autograd keeps for the backward pass of `function(*inputs)`, each storage counted once."""
    boxes: weakref.WeakSet[_Kept] = weakref.WeakSet()

    def pack(tensor: Tensor) -> _Kept:
        boxes.add(box := _Kept(tensor.detach()))  # with its graph, the tensor would hold the box that holds it
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        output = function(*_leaves(inputs))
    storages = [box.tensor.untyped_storage() for box in boxes]
    kept = {storage.data_ptr(): storage.nbytes() for storage in storages}
    del output  # until here it held the graph, and the graph its boxes
    return sum(kept.values())


class _Kept:
    """What autograd holds in place of a tensor; it lives as long as the step of the graph that needs it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


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


class _Held(TorchDispatchMode):
    """Inside `with`, PyTorch calls this for every operation, and it adds up what is alive after each."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._alive: dict[int, weakref.ref[Tensor]] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, Tensor):
                self._alive[id(tensor)] = weakref.ref(tensor)
        tensors = {key: tensor for key, alive in self._alive.items() if (tensor := alive()) is not None}
        self._alive = {key: self._alive[key] for key in tensors}
        storages = [tensor.untyped_storage() for tensor in tensors.values()]
        self.most = max(self.most, sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values()))
        return result


def _leaves(inputs: Iterable[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone().requires_grad_() for tensor in inputs]


def _counter() -> FlopCounterMode:
    """Return PyTorch's counter, taught the operations that it leaves out."""
    aten = torch.ops.aten
    more = {
        aten.mv: lambda matrix, vector, **_: 2 * matrix[0] * matrix[1],
        aten.dot: lambda first, second, **_: 2 * first[0],
        aten._scaled_dot_product_flash_attention_for_cpu: _fused,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _fused_backward,
    }
    return FlopCounterMode(display=False, custom_mapping=more)


def _fused(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def _fused_backward(grad_output: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(grad_output, query, key, value))
