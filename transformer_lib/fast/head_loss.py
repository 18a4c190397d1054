"""Output head and cross-entropy in one: the gradient is formed where the logits lie, a few rows at a time."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .._validate import check_fraction, check_tensor
from .packing import row_multiple

# Logits held at a time: 28 MiB in float32, so that products are large enough to be fast; on a GPU half a GiB, as
# launching many small ones would cost more.
CHUNK_ENTRIES, GPU_ENTRIES = 7 * 2**20, 2**27


def head_loss(states: Tensor, weight: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of `states @ weight.T` against `labels`, summed over the tokens, in nats.

    The same as `F.cross_entropy(states @ weight.T, labels, label_smoothing=…, reduction="sum")`, and the same
    gradients. With z the logits of a token, p their softmax, V the vocabulary's size and ε the smoothing:
    loss = −(1 − ε) log p_label − ε Σ log p / V, and ∂loss/∂z = p − (1 − ε) onehot(label) − ε / V. Logits and
    gradients exist for some rows at a time, and are gone before the backward pass begins. The backward pass can be
    taken once, and has no second derivative.

    Args:
        states: [tokens, d_model]. weight: the head's, [vocab_size, d_model]. labels: ids [tokens], no padding.
        label_smoothing: ε of Vaswani et al. §5.4.
    """
    check_tensor("states", states, rank=2)
    check_tensor("labels", labels, rank=1)
    if labels.shape[0] != states.shape[0]:
        raise ValueError(f"labels must have one id per row of states {tuple(states.shape)}, got {tuple(labels.shape)}")
    wanted = torch.is_grad_enabled() and (states.requires_grad or weight.requires_grad)
    return _HeadLoss.apply(states, weight, labels, check_fraction("label_smoothing", label_smoothing), wanted)


class _HeadLoss(torch.autograd.Function):
    """Computes both gradients on the way forward; the backward pass only scales them."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float, wanted: bool) -> Tensor:
        ctx.dtypes, ctx.taken = (states.dtype, weight.dtype), False
        states, weight = (x.to(_product_dtype(x)) for x in (states, weight))
        multiple = row_multiple(states.device)
        if missing := -len(states) % multiple:
            states = F.pad(states, (0, 0, 0, missing))  # with rows of zeros, whose logits are 0
        exact = torch.promote_types(states.dtype, torch.float32)  # sums in 16 bits would lose their small terms
        total, d_states = states.new_zeros((), dtype=exact), torch.empty_like(states)
        d_weight = torch.zeros_like(weight, dtype=exact)
        at_once = CHUNK_ENTRIES if states.device.type == "cpu" else GPU_ENTRIES
        rows = max(1, at_once // len(weight) // multiple) * multiple
        parts = zip(*(x.split(rows) for x in (states, labels[:, None], d_states)), strict=True)
        with torch.autocast(states.device.type, enabled=False):
            for x, label, d_x in parts:  # [rows, d_model], [rows, 1], [rows, d_model]
                logits = (x @ weight.T).to(exact)  # [rows, vocab_size]
                total += _loss_and_gradient(logits[: len(label)], label, smoothing)  # below, 0 is left as gradient
                if not wanted:
                    continue
                gradient = logits.to(states.dtype)
                torch.mm(gradient, weight, out=d_x)
                if exact == states.dtype:
                    torch.addmm(d_weight, gradient.T, x, out=d_weight)
                else:
                    d_weight += gradient.T @ x
        ctx.save_for_backward(d_states[: len(labels)], d_weight)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # so it is here with create_graph=True
            raise RuntimeError('path="fast" has no second derivative: take path="readable"')
        if ctx.taken:
            raise RuntimeError('path="fast" has one backward pass for each loss: take path="readable" for more')
        ctx.taken = True  # the gradients are scaled in place, for speed
        scaled = (x.mul_(scale).to(dtype) for x, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True))
        return *scaled, None, None, None


def _product_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype in which products are taken: bfloat16 where autocast says so.

    Float16 would lose small gradients, which are formed here before anybody scales the loss.
    """
    device = x.device.type
    low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    return low if low == torch.bfloat16 else x.dtype


def _loss_and_gradient(z: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the summed loss of logits z [rows, vocab_size] and labels [rows, 1]; ∂loss/∂z takes the place of z."""
    largest, label_z, mean = z.amax(dim=1, keepdim=True), z.gather(1, labels), z.mean(dim=1, keepdim=True)  # [rows, 1]
    p = torch.softmax(z, dim=1, out=z)
    # −log p_v = (largest logit − z_v) − log(largest p): one exponential per logit, and no logarithm of a vanishing p.
    log_largest = p.amax(dim=1, keepdim=True).log()
    loss = (largest - (1 - smoothing) * label_z - smoothing * mean - log_largest).sum()
    p.scatter_add_(1, labels, p.new_full(labels.shape, smoothing - 1))
    if smoothing:
        p.sub_(smoothing / z.shape[1])
    return loss
