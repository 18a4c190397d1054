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
        flat = real.flatten()
        self.rows = flat.nonzero()[:, 0]  # [tokens], numbers in the flattened batch
        self.padding = (flat == 0).nonzero()[:, 0]
        self.tokens = (flat.cumsum(0) - 1).clamp(min=0)  # [batch · seq_len], which token a position reads
        self.all = len(self.rows) == real.numel()  # no padding, as in batches of one length: nothing to move

    def pick(self, x: Tensor) -> Tensor:
        """Return the real tokens [tokens, width] of x [batch, seq_len, width], one sentence after the other."""
        return x.flatten(0, 1) if self.all else _Pick.apply(x.flatten(0, 1), self)

    def spread(self, x: Tensor) -> Tensor:
        """Return x [tokens, width] at its places in [batch, seq_len, width], with zeros for padding."""
        if len(x) != len(self.rows):
            raise ValueError(f"x must have one row for each of the {len(self.rows)} real tokens, got {len(x)}")
        padded = x if self.all else _Spread.apply(x, self)
        return padded.unflatten(0, self.shape)


# Indexing would do; but its gradient adds, token by token, since it cannot know that no token is picked twice.
class _Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, where: RealTokens) -> Tensor:
        ctx.where = where
        return x.index_select(0, where.rows)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return _spread(gradient, ctx.where), None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, where: RealTokens) -> Tensor:
        ctx.where = where
        return _spread(x, where)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.where.rows), None


def _spread(x: Tensor, where: RealTokens) -> Tensor:
    """Return x [tokens, width] at its places among zeros, [batch · seq_len, width].

    Reading a token for each position, and zeros over the padding, is quicker than writing tokens into zeros.
    """
    if len(x) == 0:
        return x.new_zeros(len(where.tokens), *x.shape[1:])
    return x.index_select(0, where.tokens).index_fill_(0, where.padding, 0)
