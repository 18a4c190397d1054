"""Attention in blocks, forward and backward, without the grid (Milakov and Gimelshein 2018; Dao et al. 2022).

The forward pass keeps one number per query besides its output, λ_i = ln Σ_j e^{s_ij}. From it the backward pass
computes each block's weights again, a_ij = e^{s_ij − λ_i}, so that neither pass ever holds more scores than those of
one block.

>>> query, key, value = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0))
>>> output, log_totals = forward(query, key, value, block=2)
>>> torch.allclose(log_totals, (query @ key.T / 7**0.5).logsumexp(dim=-1), atol=1e-6)
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .._validate import check_flag, check_int, check_mask, check_tensor, check_width
from .attention import check_attention_inputs, scaled_scores
from .multihead import MultiHeadAttention

Gradients = tuple[Tensor, Tensor, Tensor]


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool = False, block: int = 128
) -> Tensor:
    """Return the output of `scaled_dot_product_attention`; its gradients come block by block, too.

    Autograd keeps the inputs, the output and one number per query: arguments and errors as for `forward`.
    """
    _check(query, key, value, mask, causal, block)
    output: Tensor = _Blockwise.apply(query, key, value, mask, causal, block)
    return output


def forward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool = False, block: int = 128
) -> tuple[Tensor, Tensor]:
    """Return softmax(query keyᵀ / √d_k) value and the logarithm of each softmax's sum, from one block at a time.

    Args:
        query: [..., q_len, d_k]. key: [..., k_len, d_k]. value: [..., k_len, d_v]. All have the same leading axes.
        mask: boolean, broadcastable to [..., q_len, k_len]; True = may attend. It is cut into blocks as it is, so a
            mask of padding, [batch, 1, 1, k_len], stays that small.
        causal: the queries are the last q_len positions, and each sees the keys up to its own. Blocks that lie in the
            future are left out.
        block: the most queries, and the most keys, whose scores exist at the same time.

    Returns:
        output [..., q_len, d_v] and log_totals [..., q_len]. A query that may attend to nothing has the output 0 and
        the log-total −∞. From inputs in 16 bits, all sums are computed in 32, and log_totals stay so.

    Raises:
        TypeError, ValueError: shapes do not fit, the mask is not boolean, or block is not a positive int.
    """
    _check(query, key, value, mask, causal, block)
    kind = query.dtype
    query, key, value = _exact(query, key, value)
    output = query.new_empty(*query.shape[:-1], value.shape[-1])
    log_totals = query.new_empty(query.shape[:-1])
    for rows in _blocks(query.shape[-2], block):
        q = query[..., rows, :]
        largest = torch.full_like(q[..., :1], -math.inf)  # [..., rows, 1], as are the totals
        total, blend = torch.zeros_like(largest), torch.zeros_like(output[..., rows, :])
        for columns, part in _seen(rows, query, key, mask, causal, block):
            scores = _scores(q, key[..., columns, :], part)
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            finite = new.masked_fill(new == -math.inf, 0.0)  # −∞ − −∞ would be NaN
            shrink, grown = (largest - finite).exp(), (scores - finite).exp()
            total, blend = (
                total * shrink + grown.sum(dim=-1, keepdim=True),
                blend * shrink + grown @ value[..., columns, :],
            )
            largest = new
        output[..., rows, :] = blend / total.masked_fill(total == 0, 1.0)
        log_totals[..., rows] = (largest + total.log())[..., 0]  # −∞ + ln 0 for a query without keys
    return output.to(kind), log_totals


def backward(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    log_totals: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    block: int = 128,
) -> Gradients:
    """Return the gradients with respect to query, key and value, from one block at a time.

    Args:
        g: the gradient with respect to the output, [..., q_len, d_v].
        output, log_totals: what `forward` returned for the other arguments, which are as there.

    Raises:
        TypeError, ValueError: as for `forward`, and for a g, output or log_totals of another shape.
    """
    _check(query, key, value, mask, causal, block)
    _check_results(g, query, value, output, log_totals)
    kinds = (query.dtype, key.dtype, value.dtype)
    g, query, key, value, output, log_totals = _exact(g, query, key, value, output, log_totals)
    g_query, g_key, g_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    shared = (g * output).sum(dim=-1)  # Σ_k a_ik g_i·v_k = g_i·z_i, so that no block needs the others
    for rows in _blocks(query.shape[-2], block):
        for columns, part in _seen(rows, query, key, mask, causal, block):
            gradients = backward_block(
                g[..., rows, :],
                query[..., rows, :],
                key[..., columns, :],
                value[..., columns, :],
                log_totals[..., rows],
                shared[..., rows],
                part,
            )
            g_query[..., rows, :] += gradients[0]
            g_key[..., columns, :] += gradients[1]
            g_value[..., columns, :] += gradients[2]
    return g_query.to(kinds[0]), g_key.to(kinds[1]), g_value.to(kinds[2])


def backward_block(
    g: Tensor, query: Tensor, key: Tensor, value: Tensor, log_totals: Tensor, shared: Tensor, mask: Tensor | None = None
) -> Gradients:
    """Return what one block of queries and keys adds to the gradients with respect to query, key and value.

    Args:
        g: [..., rows, d_v]. query: [..., rows, d_k]. key: [..., columns, d_k]. value: [..., columns, d_v].
        log_totals: λ of these queries over *all* keys, [..., rows]. shared: g·output of these queries, [..., rows].
        mask: boolean, broadcastable to [..., rows, columns]; True = may attend.

    Inputs in 16 bits have gradients in 32, which are to be added up.
    """
    g, query, key, value, log_totals, shared = _exact(g, query, key, value, log_totals, shared)
    finite = log_totals.masked_fill(log_totals == -math.inf, 0.0)[..., None]  # a query without keys: e^{−∞ − 0} = 0
    weights = (_scores(query, key, mask) - finite).exp()  # [..., rows, columns]
    g_scores = weights * (g @ value.mT - shared[..., None]) / math.sqrt(query.shape[-1])
    return g_scores @ key, g_scores.mT @ query, weights.mT @ g


@contextmanager
def blockwise_in(model: nn.Module, *, block: int = 128) -> Iterator[None]:
    """Let every `MultiHeadAttention` inside `model` compute in blocks within the `with` block, also when it trains.

    Raises:
        TypeError, ValueError: `model` is no module or has no attention, block is not a positive int; an attention has
            a relative bias, drops weights in training, or was replaced before.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    check_int("block", block)
    layers = {name: part for name, part in model.named_modules() if isinstance(part, MultiHeadAttention)}
    if not layers:
        raise ValueError(f"model must contain a MultiHeadAttention, and {type(model).__name__} has none")
    for name, layer in layers.items():
        _check_plain(name, layer)
    own = dict.fromkeys(layers.values(), lambda q, k, v, mask: attention(q, k, v, mask, block=block))
    try:
        for layer, attend in own.items():
            layer.attend = attend  # type: ignore[method-assign]
        yield
    finally:
        for layer in own:
            layer.__dict__.pop("attend", None)


class _Blockwise(torch.autograd.Function):
    """`forward` and `backward` as one operation for autograd."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, block: int
    ) -> Tensor:
        output, log_totals = forward(query, key, value, mask, causal=causal, block=block)
        ctx.save_for_backward(query, key, value, output, log_totals, mask)
        ctx.causal, ctx.block = causal, block
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, output, log_totals, mask = ctx.saved_tensors
        gradients = backward(g, query, key, value, output, log_totals, mask, causal=ctx.causal, block=ctx.block)
        return (*gradients, None, None, None)


def _blocks(length: int, block: int) -> list[slice]:
    return [slice(start, min(start + block, length)) for start in range(0, length, block)]


def _seen(
    rows: slice, query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, block: int
) -> Iterator[tuple[slice, Tensor | None]]:
    """Yield each block of keys that the queries `rows` may see, with its part of the mask."""
    k_len = key.shape[-2]
    before = k_len - query.shape[-2]  # keys in front of the first query's own
    for columns in _blocks(k_len, block):
        if causal and columns.start > before + rows.stop - 1:
            return
        part = None if mask is None else _part(mask, rows, columns)
        if causal and columns.stop - 1 > before + rows.start:  # it holds some of the future
            positions = torch.arange(before + rows.start, before + rows.stop, device=key.device)
            past = torch.arange(columns.start, columns.stop, device=key.device) <= positions[:, None]
            part = past if part is None else part & past
        yield columns, part


def _part(mask: Tensor, rows: slice, columns: slice) -> Tensor:
    """Return the block of a mask whose last two axes are as long as the scores' or one."""
    mask = torch.atleast_2d(mask)
    rows = rows if mask.shape[-2] > 1 else slice(None)
    return mask[..., rows, columns if mask.shape[-1] > 1 else slice(None)]


def _scores(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Return the scaled scores [..., rows, columns] of one block, −∞ where the mask forbids."""
    scores = scaled_scores(query, key)
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _exact(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors in float32 at least: sums in 16 bits would lose small terms, and overflow in float16."""
    return tuple(x.to(torch.promote_types(x.dtype, torch.float32)) for x in tensors)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, block: int) -> None:
    check_attention_inputs(query, key, value)
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        raise ValueError(f"query, key and value must have the same leading axes, got shapes {shapes}")
    if mask is not None:
        check_mask("mask", mask, (*query.shape[:-1], key.shape[-2]))
    check_flag("causal", causal)
    check_int("block", block)


def _check_results(g: Tensor, query: Tensor, value: Tensor, output: Tensor, log_totals: Tensor) -> None:
    wanted = (*query.shape[:-1], value.shape[-1])
    for name, tensor in (("g", g), ("output", output)):
        check_width(name, check_tensor(name, tensor, rank=len(wanted)), wanted[-1], "value's d_v")
        if tensor.shape != wanted:
            raise ValueError(f"{name} must have the output's shape {wanted}, got {tuple(tensor.shape)}")
    if check_tensor("log_totals", log_totals).shape != wanted[:-1]:
        raise ValueError(f"log_totals must have a number per query, {wanted[:-1]}, got shape {tuple(log_totals.shape)}")


def _check_plain(name: str, layer: MultiHeadAttention) -> None:
    name = name or "it"
    if layer.score_bias(1, 1) is not None:
        raise ValueError(f"model must add nothing to its scores, but {name} has a {type(layer.position).__name__}")
    if layer.dropout:
        raise ValueError(f"model must keep all attention weights, but {name} drops {layer.dropout} of them")
    if "attend" in vars(layer):
        raise ValueError(f"model must attend with its own method, but that of {name} was replaced before")
