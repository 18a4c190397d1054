"""Attention over short sequences: a few batched products, and their gradients by hand. `fast` takes it on a CPU.

While a head's weights [q_len, k_len] take no more memory than its queries, keys, values and output, keeping them costs
little, and these products are quicker than the fused kernel, which is made for long sequences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def short_attention(bias: Tensor, *parts: Tensor) -> Tensor:
    """Return softmax(q kᵀ / √d_k + bias) v for all rows, one for each head of each sentence, [rows, q_len, d_k].

    It has no second derivative.

    Args:
        bias: [rows, q_len, k_len]: −∞ where a query may not attend, but not for a whole query.
        parts: q, k and v [rows, len, d_k] in this order, stacked as they come: one tensor [3, rows, len, d_k], or
            [1, rows, q_len, d_k] and [2, rows, k_len, d_k]. Each gets its gradient whole, without a copy.
    """
    return _ShortAttention.apply(bias, *parts)


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bias: Tensor, *parts: Tensor) -> Tensor:
        q, k, v = _unstacked(parts)
        scores = torch.baddbmm(bias, q, k.mT, alpha=1 / math.sqrt(q.shape[-1]))  # [rows, q_len, k_len]
        weights = torch.softmax(scores, dim=-1, out=scores)
        heads = torch.bmm(weights, v)
        ctx.save_for_backward(weights, heads, *parts)
        return heads

    @staticmethod
    @once_differentiable
    def backward(ctx, d_heads: Tensor) -> tuple[Tensor | None, ...]:
        weights, heads, *parts = ctx.saved_tensors
        gradients = [torch.empty_like(part) for part in parts]
        (q, k, v), (d_q, d_k, d_v) = _unstacked(parts), _unstacked(gradients)
        torch.bmm(weights.mT, d_heads, out=d_v)
        # ∂weights, then the softmax's: ∂scores = weights ⊙ (∂weights − Σ_k weights ⊙ ∂weights), and that sum over the
        # keys is Σ_d heads ⊙ ∂heads.
        d_scores = torch.bmm(d_heads, v.mT).sub_((heads * d_heads).sum(dim=-1, keepdim=True)).mul_(weights)
        scale = 1 / math.sqrt(q.shape[-1])
        torch.baddbmm(d_q, d_scores, k, beta=0, alpha=scale, out=d_q)
        torch.baddbmm(d_k, d_scores.mT, q, beta=0, alpha=scale, out=d_k)
        return d_scores if ctx.needs_input_grad[0] else None, *gradients


def _unstacked(parts: Sequence[Tensor]) -> list[Tensor]:
    return [x for part in parts for x in part.unbind()]
