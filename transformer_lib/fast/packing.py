"""The real tokens of a padded batch as one list, so that what treats each token alone does no work on padding."""

from __future__ import annotations

import torch
from torch import Tensor

from .._validate import check_tensor

# In bfloat16 on a CPU, oneDNN writes and keeps a program for each new shape of a product, which takes longer than the
# product itself. Nearly every batch has a different number of real tokens; rounded up to this multiple, few differ.
ROWS = 32


def row_multiple(device: torch.device) -> int:
    """Return the number of which the rows of products should be a multiple.

    It is `ROWS` where autocast computes in bfloat16 on a CPU, else 1.
    """
    autocast = device.type == "cpu" and torch.is_autocast_enabled("cpu")
    return ROWS if autocast and torch.get_autocast_dtype("cpu") == torch.bfloat16 else 1


class RealTokens:
    """Where the real tokens of a batch are: [batch, seq_len, width] -> [tokens, width], and back for attention.

    Args:
        real: boolean [batch, seq_len].
        multiple: padding tokens follow the real ones until the number of tokens is a multiple of this, or there is no
            more padding. Masks must hide them from the real ones.
    """

    def __init__(self, real: Tensor, *, multiple: int = 1) -> None:
        self.real = check_tensor("real", real, rank=2)
        self.rows = real.flatten().nonzero()[:, 0]  # [tokens], numbers in the flattened batch
        self.count = len(self.rows)  # real tokens
        self.all = self.count == real.numel()  # no padding, as in batches of one length
        if missing := -self.count % multiple:
            self.rows = torch.cat((self.rows, (~real).flatten().nonzero()[:missing, 0]))

    def pick(self, x: Tensor) -> Tensor:
        """Return the tokens [tokens, width] of x [batch, seq_len, width], one sentence after the other."""
        flat = x.flatten(0, 1)
        return flat if self.all else flat.index_select(0, self.rows)

    def pad(self, x: Tensor) -> Tensor:
        """Return x [tokens, width] with zeros elsewhere, [batch, seq_len, width]."""
        if len(x) != len(self.rows):
            raise ValueError(f"x must have one row for each of the {len(self.rows)} tokens, got {len(x)}")
        if not self.all:
            x = x.new_zeros(self.real.numel(), x.shape[1]).index_copy_(0, self.rows, x)
        return x.unflatten(0, self.real.shape)
