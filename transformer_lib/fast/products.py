"""Products of a few rows with a weight that stays the same, as decoding has them."""

from __future__ import annotations

import platform
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from .._machine import made_by_intel

# oneDNN's order of a weight is made for products of about this many rows; from 1 to 100 rows, no other was quicker.
_ROWS = 8


class Product:
    """x [rows, d_in] -> x Wᵀ + b [rows, d_out], for a weight [d_out, d_in] that does not change meanwhile.

    With few rows, the time goes into reading the weight, so it is kept in the order that `order` names: as it is; by
    columns, as a transposed copy, which is made at the first product of more than one row; or in oneDNN's own.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.order = order(weight)
        self.copy = torch.ops.mkldnn._reorder_linear_weight(self.weight, _ROWS) if self.order == "onednn" else None

    def __call__(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        if self.order == "onednn":
            product: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, self.copy, self.bias, "none", [], "")
            return product
        if self.order == "as it is" or len(x) == 1:
            return F.linear(x, self.weight, self.bias)
        if self.copy is None:
            self.copy = self.weight.t().contiguous()  # [d_in, d_out]
        return x @ self.copy if self.bias is None else torch.addmm(self.bias, x, self.copy)


def order(weight: Tensor) -> Literal["as it is", "columns", "onednn"]:
    """Return the order of a weight that was quickest, with up to 100 rows, on processors such as this one.

    On x86, PyTorch can multiply with MKL or with oneDNN. MKL was quicker, with columns, on a processor of Intel's,
    and oneDNN on one of AMD's. Elsewhere, and in other dtypes, the weight stays as it is.
    """
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return "as it is"
    if torch.backends.mkl.is_available() and made_by_intel():
        return "columns"
    return "onednn" if _ONEDNN and torch.backends.mkldnn.enabled else "as it is"


_ONEDNN = (
    platform.machine() in ("x86_64", "AMD64")
    and torch.backends.mkldnn.is_available()
    and all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
)
