"""Boolean attention masks: True = may attend, mask[..., i, j] = query i may see key j. Combine them with `&`."""

from __future__ import annotations

import torch
from torch import Tensor

from .._validate import check_int, check_tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return which keys are real tokens, as [batch, 1, 1, k_len] so that it broadcasts over heads and queries.

    Args:
        ids: token ids [batch, k_len].
        pad_id: the id that pads short sequences.

    Raises:
        TypeError, ValueError: `ids` is not a tensor of two axes.
    """
    check_tensor("ids", ids, rank=2)
    return (ids != pad_id)[:, None, None, :]  # [batch, k_len] -> [batch, 1, 1, k_len]


def causal_mask(q_len: int, k_len: int | None = None, *, device: torch.device | None = None) -> Tensor:
    """Return the look-ahead mask [1, 1, q_len, k_len]: query i may see keys 0 … i + (k_len − q_len).

    With k_len > q_len the queries are taken as the *last* q_len positions, as in cached decoding.

    Raises:
        TypeError, ValueError: a length is not a positive int, or q_len > k_len.
    """
    check_int("q_len", q_len)
    k_len = q_len if k_len is None else check_int("k_len", k_len)
    if q_len > k_len:
        raise ValueError(f"q_len must not exceed k_len, got q_len={q_len}, k_len={k_len}")
    visible = torch.ones(q_len, k_len, dtype=torch.bool, device=device).tril(k_len - q_len)
    return visible[None, None]  # [q_len, k_len] -> [1, 1, q_len, k_len]


def prefix_mask(lengths: Tensor, seq_len: int) -> Tensor:
    """Return the prefix mask [batch, 1, seq_len, seq_len]: every query may see the prefix, and keys up to itself.

    Within the prefix this is a full mask, after it a causal one. With lengths 0 it is `causal_mask(seq_len)`.

    Args:
        lengths: how many tokens of each sequence are its prefix, whole numbers from 0 to seq_len, [batch].

    Raises:
        TypeError, ValueError: lengths is not a tensor of one axis, is not of whole numbers, or one is out of range.
    """
    check_int("seq_len", seq_len)
    check_tensor("lengths", lengths, rank=1)
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"lengths must be whole numbers, got {lengths.dtype}")
    lengths = lengths.long()
    if bool(((lengths < 0) | (lengths > seq_len)).any()):
        raise ValueError(f"lengths must be from 0 to seq_len = {seq_len}, got {lengths.tolist()}")
    in_prefix = torch.arange(seq_len, device=lengths.device) < lengths[:, None]  # [batch, k_len]
    return in_prefix[:, None, None, :] | causal_mask(seq_len, device=lengths.device)
