"""Checks shared by the whole library: every message names the argument, what was expected and what was given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

_transforms = torch._C._functorch


def check_int(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` if it is an integer ≥ `minimum` (a bool is not an integer here)."""
    if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):  # symbolic while a graph is captured
        raise TypeError(f"{name} must be an int, got {value!r} of type {type(value).__name__}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return cast(int, value)


def check_fraction(name: str, value: float, *, below_one: bool = True) -> float:
    """Return `value` if 0 ≤ value < 1 (or ≤ 1 when `below_one` is False)."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    if not 0 <= value <= 1 or (below_one and value == 1):
        raise ValueError(f"{name} must lie in [0, 1{')' if below_one else ']'}, got {value}")
    return float(value)


def check_positive(name: str, value: float) -> float:
    """Return `value` if it is a number above 0 (a bool is no number here, and neither is NaN)."""
    return _check_number(name, value, "positive", lambda number: number > 0)


def check_not_negative(name: str, value: float) -> float:
    """Return `value` if it is a number of at least 0."""
    return _check_number(name, value, "at least 0", lambda number: number >= 0)


def _check_number(name: str, value: float, expected: str, holds: Callable[[float], bool]) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    if not holds(value):
        raise ValueError(f"{name} must be {expected}, got {value}")
    return value


def check_flag(name: str, value: bool) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_tensor(name: str, value: object, *, rank: int | None = None, min_rank: int | None = None) -> Tensor:
    """Return `value` if it is a tensor with `rank` axes (or at least `min_rank`)."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if rank is not None and value.dim() != rank:
        raise ValueError(f"{name} must have {rank} axes, got {value.dim()}: shape {tuple(value.shape)}")
    if min_rank is not None and value.dim() < min_rank:
        raise ValueError(f"{name} must have at least {min_rank} axes, got {value.dim()}: shape {tuple(value.shape)}")
    return value


def check_width(name: str, value: Tensor, width: int, meaning: str) -> Tensor:
    """Return `value` if its last axis has `width` entries; `meaning` says what that width is."""
    if value.shape[-1] != width:
        raise ValueError(
            f"{name} must end in {meaning} = {width} features, got {value.shape[-1]}: shape {tuple(value.shape)}"
        )
    return value


def check_sequence(name: str, value: object, d_model: int) -> Tensor:
    """Return `value` if it is a non-empty float batch [batch, seq_len, d_model]."""
    value = check_tensor(name, value, rank=3)
    if not value.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got dtype {value.dtype}")
    check_width(name, value, d_model, "d_model")
    if 0 in value.shape[:2]:
        raise ValueError(f"{name} must not be empty, got shape {tuple(value.shape)} [batch, seq_len, d_model]")
    return value


def check_ids(name: str, ids: object, vocab_size: int, *, max_len: int | None = None, start: int = 0) -> Tensor:
    """Return `ids`, as int64, if it is a non-empty integer batch [batch, seq_len] with entries in [0, vocab_size).

    `start` tokens of the sequence were given before, to a cache; together they may be `max_len`. The entries themselves
    are looked at on a CPU only: a GPU would have to be waited for, and while `torch.compile` or `torch.export` captures
    a graph there are none. Whatever feeds a model from outside calls `check_id_range`, wherever the ids are.
    """
    ids = check_id_batch(name, ids, max_len=max_len, start=start)
    if ids.device.type == "cpu" and not torch.compiler.is_compiling():
        check_id_range(name, ids, vocab_size)
    return ids


def check_id_batch(name: str, ids: object, *, max_len: int | None = None, start: int = 0) -> Tensor:
    """Return `ids` if it is a non-empty integer batch [batch, seq_len] of at most `max_len` tokens after `start`.

    Integers of any type become int64, with which torch can look up, compare and join ids.
    """
    ids = check_tensor(name, ids, rank=2)
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise TypeError(f"{name} must hold integer token ids, got dtype {ids.dtype}")
    if ids.numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(ids.shape)} [batch, seq_len]")
    if max_len is not None and start + ids.shape[1] > max_len:
        before = f" after {start} in the cache" if start else ""
        raise ValueError(f"{name} has {ids.shape[1]} tokens{before}, more than max_len = {max_len}")
    return ids if ids.dtype == torch.int64 else ids.long()


def check_id_range(name: str, ids: Tensor, vocab_size: int) -> Tensor:
    """Return `ids` if all are in [0, vocab_size); on a GPU this waits for the result.

    Under `torch.func.vmap` over sentences nothing can be looked at.
    """
    if under_vmap(ids):
        return ids
    low, high = (bound.item() for bound in ids.aminmax())
    if low < 0 or high >= vocab_size:
        raise ValueError(f"{name} must hold ids in [0, {vocab_size}), got values from {low} to {high}")
    return ids


def first_not_finite(tensors: Mapping[str, Tensor]) -> tuple[str, float] | None:
    """Return the name of the first tensor that holds NaN or ∞, and this number, or None."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not (finite := tensor.isfinite()).all():
            return name, tensor[~finite][0].item()
    return None


def under_vmap(x: Tensor) -> bool:
    """Return whether x stands for a batch that `torch.func.vmap` hides, so that its numbers cannot be read."""
    while _transforms.is_functorch_wrapped_tensor(x):
        if _transforms.is_batchedtensor(x):
            return True
        x = _transforms.get_unwrapped(x)  # of `grad` or `jvp`, which hide nothing
    return False


def check_mask(name: str, mask: object, scores_shape: tuple[int, ...] | None = None) -> Tensor:
    """Return `mask` if it is boolean (True = may attend) and broadcasts to `scores_shape`."""
    mask = check_tensor(name, mask)
    if mask.dtype != torch.bool:
        raise TypeError(f"{name} must be boolean, True = may attend, got dtype {mask.dtype}")
    if scores_shape is not None and not broadcasts(mask.shape, scores_shape):
        raise ValueError(f"{name} must broadcast to the scores' shape {tuple(scores_shape)}, got {tuple(mask.shape)}")
    return mask


def broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether `shape` broadcasts to `target`: axis by axis from the last, equal or one, and no axis more."""
    axes = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(own in (1, wanted) for own, wanted in axes)
