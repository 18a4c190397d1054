"""Scaled dot-product attention (Vaswani et al. 2017, eq. 1): the explicit formula, and a fused kernel for it."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .._validate import broadcasts, check_mask, check_tensor, check_width, under_vmap


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return softmax(query keyᵀ / √d_k) value, and the weights.

    From numbers in 16 bits, scores and softmax are computed in 32, as by the fused kernel: q·k could be too large for
    float16 before it is divided.

    Args:
        query: [..., q_len, d_k]. key: [..., k_len, d_k]. value: [..., k_len, d_v]. Leading axes broadcast.
        mask: boolean, broadcastable to [..., q_len, k_len]; True = may attend. Applied after scaling, as −∞.
            A masked key's value gets the weight 0, so it has to be finite: 0 · ∞ and 0 · NaN are NaN.
        bias: numbers added to the scaled scores, broadcastable in the same way (relative positions use it).

    Returns:
        output [..., q_len, d_v] and weights [..., q_len, k_len]. Each row of weights sums to one, or is all
        zeros where a query may attend to nothing.

    Raises:
        TypeError, ValueError: shapes do not fit, or the mask is not boolean.
    """
    check_attention_inputs(query, key, value)
    scores = scaled_scores(query, key)  # [..., q_len, k_len]
    if bias is not None:
        scores = scores + check_score_bias(bias, scores.shape)
    weights = masked_softmax(scores, mask)
    if not _autocasts(query.device):  # which chooses for itself
        weights = weights.to(query.dtype)
    return weights @ value, weights


def scaled_scores(query: Tensor, key: Tensor) -> Tensor:
    """Return query keyᵀ / √d_k [..., q_len, k_len], in float32 at least, also where autocast would take 16 bits."""
    if _autocasts(query.device):
        with torch.autocast(query.device.type, enabled=False):
            return scaled_scores(query, key)
    exact = torch.promote_types(query.dtype, torch.float32)
    return query.to(exact) @ key.to(exact).transpose(-2, -1) / math.sqrt(query.shape[-1])


def _autocasts(device: torch.device) -> bool:
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax over the last axis of `scores` with disallowed entries at −∞; a fully masked row gives zeros.

    A row of only −∞ would be 0/0 in the softmax and poison the gradient with NaN, so such a row keeps its
    finite scores, and its weights are set to zero afterwards.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask("mask", mask, scores.shape)
    sees_nothing = ~mask.any(dim=-1, keepdim=True)  # [..., q_len, 1]
    weights = scores.masked_fill(~(mask | sees_nothing), -math.inf).softmax(dim=-1)
    return weights.masked_fill(sees_nothing, 0.0)


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return the output of `scaled_dot_product_attention` from torch's fused kernel, which stores no weights.

    Arguments and errors as there; `dropout` is the probability of dropping an attention weight.
    """
    check_attention_inputs(query, key, value)
    if mask is not None:
        leading, other = query.shape[:-2], key.shape[:-2]
        leading = leading if leading == other else torch.broadcast_shapes(leading, other)
        check_mask("mask", mask, (*leading, query.shape[-2], key.shape[-2]))
        mask = torch.atleast_2d(mask)  # the kernel does not add the query axis itself
    if bias is not None:
        check_score_bias(bias, (*query.shape[:-1], key.shape[-2]))
    if not torch.compiler.is_compiling() and (under_vmap(query) or under_vmap(key) or under_vmap(value)):
        return _without_kernel(query, key, value, mask, bias, dropout)
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)  # the kernel takes one of the two
    if query.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return _without_autocast(query, key, value, mask, dropout)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def _without_kernel(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> Tensor:
    """Return the kernel's output from the explicit formula: under vmap, the kernel would take one element at a time."""
    output, weights = scaled_dot_product_attention(query, key, value, mask, bias=bias)
    return F.dropout(weights, dropout) @ value if dropout else output


def _without_autocast(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Return the kernel's output in float32 at least: its backward pass is several times as slow in bfloat16."""
    exact = torch.promote_types(query.dtype, torch.float32)
    query, key, value = (x.to(exact) for x in (query, key, value))
    if mask is not None and mask.is_floating_point():
        mask = mask.to(exact)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def check_score_bias(bias: Tensor, scores_shape: tuple[int, ...]) -> Tensor:
    """Return `bias` if it can be added to scores of this shape without changing it."""
    check_tensor("bias", bias)
    if not broadcasts(bias.shape, scores_shape):
        raise ValueError(f"bias must broadcast to the scores' shape {tuple(scores_shape)}, got {tuple(bias.shape)}")
    return bias


def check_attention_inputs(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise unless query, key and value fit each other: one d_k, one k_len, broadcastable leading axes."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, tensor, min_rank=2)
        if 0 in tensor.shape:
            raise ValueError(f"{name} must not be empty, got shape {tuple(tensor.shape)}")
    if not query.is_floating_point():
        raise TypeError(f"query must hold floating-point numbers, got dtype {query.dtype}")
    if not query.dtype == key.dtype == value.dtype and not _autocasts(query.device):
        raise TypeError(f"query, key and value must have one dtype, got {query.dtype}, {key.dtype} and {value.dtype}")
    check_width("key", key, query.shape[-1], "query's d_k")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key and value must have the same k_len, got {key.shape[-2]} and {value.shape[-2]}: "
            f"shapes {tuple(key.shape)} and {tuple(value.shape)}"
        )
    if query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return  # as nearly always; torch takes its time to broadcast shapes
    try:
        torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError:
        raise ValueError(
            "the leading axes of query, key and value must broadcast, got shapes "
            f"{tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
        ) from None
