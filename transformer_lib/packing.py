"""The real tokens of a padded batch as one list, so that what treats each token alone does not work on padding."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._validate import check_tensor


class RealTokens:
    """Where the real tokens of a batch are: [batch, seq_len, …] -> [tokens, …] and back.

    Args:
        real: boolean [batch, seq_len].
    """

    def __init__(self, real: Tensor) -> None:
        check_tensor("real", real, rank=2)
        self.shape = real.shape
        self.rows = real.flatten().nonzero()[:, 0]  # [tokens], numbers in the flattened batch
        self.all = len(self.rows) == real.numel()  # no padding, as in batches of one length: nothing to move

    def pick(self, x: Tensor) -> Tensor:
        """Return the real tokens [tokens, width] of x [batch, seq_len, width], one sentence after the other."""
        return x.flatten(0, 1) if self.all else _Pick.apply(x.flatten(0, 1), self.rows)

    def spread(self, x: Tensor) -> Tensor:
        """Return x [tokens, width] at its places in [batch, seq_len, width], with zeros for padding."""
        padded = x if self.all else _Spread.apply(x, self.rows, self.shape.numel())
        return padded.unflatten(0, self.shape)


# Indexing would do; but its gradient adds, token by token, since it cannot know that no token is picked twice.
class _Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.length = len(x)
        return x.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return _place(gradient, *ctx.saved_tensors, ctx.length), None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, rows: Tensor, length: int) -> Tensor:
        ctx.save_for_backward(rows)
        return _place(x, rows, length)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, *ctx.saved_tensors), None, None


def _place(x: Tensor, rows: Tensor, length: int) -> Tensor:
    return x.new_zeros(length, *x.shape[1:]).index_copy_(0, rows, x)
