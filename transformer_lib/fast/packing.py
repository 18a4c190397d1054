"""The real tokens of a padded batch as one list, so that what treats each token alone does no work on padding."""

from __future__ import annotations

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
        return flat if self.all else flat.index_select(0, self.rows)

    def pad(self, x: Tensor) -> Tensor:
        """Return x [tokens, width] with zeros for padding, [batch, seq_len, width]."""
        if len(x) != len(self.rows):
            raise ValueError(f"x must have one row for each of the {len(self.rows)} real tokens, got {len(x)}")
        if not self.all:
            x = x.new_zeros(self.real.numel(), x.shape[1]).index_copy(0, self.rows, x)
        return x.unflatten(0, self.real.shape)
