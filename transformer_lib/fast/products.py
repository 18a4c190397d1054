"""Products of a few rows with a weight that stays the same, as decoding has them."""

from __future__ import annotations

import platform

import torch
import torch.nn.functional as F
from torch import Tensor

# oneDNN's order of a weight is made for products of about so many rows; from 1 to 100 rows, no other was quicker.
_ROWS = 8


class Product:
    """x [rows, d_in] -> x Wᵀ + b [rows, d_out], for a weight [d_out, d_in] that does not change meanwhile.

    With few rows, the time goes into reading the weight. On an x86 processor and in float32, oneDNN gets a copy of it
    in an order that is read without jumps.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, _ROWS) if packs(weight) else None

    def __call__(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        if self.packed is None:
            return F.linear(x, self.weight, self.bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, self.packed, self.bias, "none", [], "")
        return product


def packs(weight: Tensor) -> bool:
    """Return whether oneDNN can take a weight in an order of its own, and that was seen to be quicker."""
    ready = _ONEDNN and bool(torch.backends.mkldnn.enabled)
    return ready and weight.device.type == "cpu" and weight.dtype == torch.float32


_ONEDNN = (
    platform.machine() in ("x86_64", "AMD64")
    and torch.backends.mkldnn.is_available()
    and all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
)
