"""The real tokens of a padded batch as one list, so that what treats each token alone does no work on padding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._validate import check_tensor


class RealTokens:
    """Where the real tokens of a batch stand: [batch, seq_len, width] -> [tokens, width], and back for attention.

    Args:
        real: boolean [batch, seq_len].
    """

    def __init__(self, real: Tensor) -> None:
        self.real = check_tensor("real", real, rank=2)
        self.rows = real.flatten().nonzero()[:, 0]  # [tokens], numbers in the flattened batch
        self.all = len(self.rows) == real.numel()  # no padding, as in batches of one length

    def pick(self, x: Tensor) -> Tensor:
        """Return the real tokens [tokens, width] of x [batch, seq_len, width], one sentence after the other."""
        flat = x.flatten(0, 1)
        return flat if self.all else _Pick.apply(flat, self.rows)

    def pad(self, x: Tensor) -> Tensor:
        """Return x [tokens, width] with zeros for padding, [batch, seq_len, width]."""
        if len(x) != len(self.rows):
            raise ValueError(f"x must have one row for each of the {len(self.rows)} real tokens, got {len(x)}")
        return (x if self.all else _Pad.apply(x, self.rows, self.real.numel())).unflatten(0, self.real.shape)


# Plain indexing would do, but its gradient adds row by row: it cannot know that no row counts twice.
class _Pick(torch.autograd.Function):
    """Rows of x; the gradient puts them back, with zeros between them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.rows, ctx.length = rows, len(x)
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Pad.apply(gradient, ctx.rows, ctx.length), None


class _Pad(torch.autograd.Function):
    """x as the rows `rows` of `length`, with zeros between them; the gradient picks these rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, length: int) -> Tensor:
        ctx.rows = rows
        return x.new_zeros(length, x.shape[1]).index_copy_(0, rows, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Pick.apply(gradient, ctx.rows), None, None
