"""Output head and cross-entropy in one: the gradient is formed where the logits lie, a few rows at a time."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._validate import check_fraction, check_tensor

# Logits held at a time: 4 MiB in float32, which a processor's cache can hold; on a GPU half a GiB, as launching many
# small products would cost more.
CHUNK_ENTRIES, GPU_ENTRIES = 2**20, 2**27


def head_loss(states: Tensor, weight: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of `states @ weight.T` against `labels`, summed over the tokens, in nats.

    The same as `F.cross_entropy(states @ weight.T, labels, label_smoothing=…, reduction="sum")`, and the same
    gradients. With z the logits of a token, p their softmax, V the vocabulary's size and ε the smoothing:
    loss = −(1 − ε) log p_label − ε Σ log p / V, and ∂loss/∂z = p − (1 − ε) onehot(label) − ε / V. Logits and
    gradients exist for some rows at a time, and are gone before the backward pass begins. It can be taken once, and
    has no second derivative.

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
    def forward(ctx, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float, wanted: bool) -> Tensor:
        ctx.dtypes = states.dtype, weight.dtype
        states, weight = (x.to(_product_dtype(x)) for x in (states, weight))
        total = states.new_zeros((), dtype=torch.promote_types(states.dtype, torch.float32))
        d_states = torch.empty_like(states) if wanted else None
        d_weight = torch.zeros_like(weight, dtype=total.dtype) if wanted else None
        rows = max(1, (CHUNK_ENTRIES if states.device.type == "cpu" else GPU_ENTRIES) // len(weight))
        with torch.autocast(states.device.type, enabled=False):
            for start in range(0, len(states), rows):
                part = slice(start, start + rows)
                logits = (states[part] @ weight.T).to(total.dtype)  # [rows, vocab_size]
                loss, gradient = _loss_and_gradient(logits, labels[part, None], smoothing, wanted)
                total += loss
                if wanted:
                    gradient = gradient.to(states.dtype)
                    torch.mm(gradient, weight, out=d_states[part])
                    if d_weight.dtype == states.dtype:
                        torch.addmm(d_weight, gradient.T, states[part], out=d_weight)
                    else:
                        d_weight += gradient.T @ states[part]  # a sum in 16 bits would lose its small terms
        if wanted:
            ctx.save_for_backward(d_states, d_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx, scale: Tensor) -> tuple[Tensor | None, ...]:
        # In place, for speed; a second backward pass finds them changed, and autograd says so.
        scaled = (x.mul_(scale).to(dtype) for x, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True))
        return *scaled, None, None, None


def _product_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype in which products are taken: bfloat16 where autocast says so.

    Float16 would lose small gradients, which are formed here before anybody scales the loss.
    """
    device = x.device.type
    low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    return low if low == torch.bfloat16 else x.dtype


def _loss_and_gradient(z: Tensor, labels: Tensor, smoothing: float, wanted: bool) -> tuple[Tensor, Tensor]:
    """Return the loss of logits z [rows, vocab_size] and labels [rows, 1], and ∂loss/∂z [rows, vocab_size]."""
    log_p = z.log_softmax(dim=1)
    loss = -(1 - smoothing) * log_p.gather(1, labels).sum()
    if smoothing:
        loss -= smoothing / z.shape[1] * log_p.sum()
    if wanted:
        log_p.exp_().scatter_add_(1, labels, log_p.new_full(labels.shape, smoothing - 1))
        if smoothing:
            log_p.sub_(smoothing / z.shape[1])
    return loss, log_p
