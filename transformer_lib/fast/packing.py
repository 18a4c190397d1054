"""The real tokens of a padded batch as one list, so that what treats each token alone does not work on padding."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._validate import check_tensor


class RealTokens:
    """Where the real tokens of a batch are: [tokens, …] -> [batch, …] for attention, each head apart, and back.

    Args:
        real: boolean [batch, seq_len].
    """

    def __init__(self, real: Tensor) -> None:
        check_tensor("real", real, rank=2)
        self.real = real
        flat = real.flatten()
        self.rows = flat.nonzero()[:, 0]  # [tokens], numbers in the flattened batch
        self.tokens = (flat.cumsum(0) - 1).clamp(min=0)  # [batch · seq_len], which token a position reads
        self.all = len(self.rows) == real.numel()  # no padding, as in batches of one length
        self._ways: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self._factors: dict[torch.dtype, Tensor] = {}

    def pick(self, x: Tensor) -> Tensor:
        """Return the real tokens [tokens, width] of x [batch, seq_len, width], one sentence after the other."""
        return x.flatten(0, 1) if self.all else self.join_heads(x[:, None])

    def split_heads(self, x: Tensor, parts: int, n_heads: int) -> Tensor:
        """Return x [tokens, parts · n_heads · d] at its places, [parts, batch, n_heads, seq_len, d].

        Padding reads some real token, too: finite numbers, for a mask to hide.
        """
        if len(x) != len(self.rows):
            raise ValueError(f"x must have one row for each of the {len(self.rows)} real tokens, got {len(x)}")
        batch, seq_len = self.real.shape
        heads = x.unflatten(1, (parts * n_heads, -1)).flatten(0, 1)  # [tokens · parts · n_heads, d]
        there, back = self._way(parts, n_heads)
        return _Move.apply(heads, there, back, None).view(parts, batch, n_heads, seq_len, heads.shape[1])

    def join_heads(self, heads: Tensor) -> Tensor:
        """Return the real tokens [tokens, n_heads · d] of heads [batch, n_heads, seq_len, d]."""
        n_heads = heads.shape[1]
        there, back = self._way(1, n_heads)
        rows = _Move.apply(heads.flatten(0, 2), back, there, None if self.all else self._real_as(heads.dtype))
        return rows.unflatten(0, (-1, n_heads)).flatten(1)

    def _real_as(self, dtype: torch.dtype) -> Tensor:
        """Return 1 for tokens and 0 for padding, [batch, 1, seq_len, 1]."""
        if dtype not in self._factors:
            self._factors[dtype] = self.real.to(dtype)[:, None, :, None]
        return self._factors[dtype]

    def _way(self, parts: int, n_heads: int) -> tuple[Tensor, Tensor]:
        """Return what stands where, for rows [tokens · parts · n_heads] at places [parts · batch · n_heads · seq_len].

        That is, the row at each place, and the place of each row.
        """
        if (parts, n_heads) not in self._ways:
            batch, seq_len = self.real.shape
            piece = torch.arange(parts * n_heads, device=self.rows.device)  # one head of one part
            row = self.tokens.view(batch, 1, seq_len) * len(piece) + piece.view(parts, 1, n_heads, 1)
            sentence, position = self.rows[:, None] // seq_len, self.rows[:, None] % seq_len  # [tokens, 1]
            place = ((piece // n_heads * batch + sentence) * n_heads + piece % n_heads) * seq_len + position
            self._ways[parts, n_heads] = row.flatten(), place.flatten()
        return self._ways[parts, n_heads]


# Indexing would do; but its gradient adds, row by row, since it cannot know that no row counts twice.
class _Move(torch.autograd.Function):
    """The rows `there` of x; backwards the rows `back` of the gradient, times `factor` [batch, 1, seq_len, 1].

    Without any row to take, zeros: still with a gradient, as a group of processes waits for everybody's.
    """

    @staticmethod
    def forward(ctx, x: Tensor, there: Tensor, back: Tensor, factor: Tensor | None) -> Tensor:
        ctx.back, ctx.factor = back, factor
        return x.index_select(0, there) if len(x) else x.new_zeros(len(there), x.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if not len(gradient):
            return gradient.new_zeros(len(ctx.back), gradient.shape[1]), None, None, None
        moved, factor = gradient.index_select(0, ctx.back), ctx.factor
        if factor is not None:
            moved.view(len(factor), -1, factor.shape[2], moved.shape[1]).mul_(factor)
        return moved, None, None, None
