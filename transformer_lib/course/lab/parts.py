"""Take parts out of a Transformer from outside, in place, for the ablations of notebook 13."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from ...model.layers import Residual
from ...model.transformer import Transformer


class NoSum(nn.Module):
    """A `Residual` without its sum: LN(dropout(f(x))), the sub-layer's output alone."""

    def __init__(self, residual: Residual) -> None:
        super().__init__()
        self.norm, self.dropout = residual.norm, residual.dropout

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the normed output of the sub-layer; x [batch, seq_len, d_model] does not pass it by."""
        return self.norm(self.dropout(sublayer(x)))


def without_residual(model: Transformer) -> None:
    """Replace every residual connection by its sub-layer alone."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, Residual):
                setattr(parent, name, NoSum(child))
