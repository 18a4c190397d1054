"""Products of a few rows with a weight that stays the same, as decoding has them."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Collection
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from .._machine import made_by_intel
from ..model.int8 import quantize

# oneDNN's order of a weight is made for products of about this many rows; from 1 to 100 rows, no other was quicker.
_ROWS = 8


class Product:
    """x [rows, d_in] -> x Wᵀ + b [rows, d_out], for a weight [d_out, d_in] that does not change meanwhile.

    With few rows, the time goes into reading the weight, so it is kept in the order that `order` names: as it is; by
    columns, as a transposed copy, which is made at the first product of more than one row; or in oneDNN's own.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.bias, self.order = None if bias is None else bias.detach(), order(weight)
        self.weight: Tensor | None = weight.detach()
        self.copy: Tensor | None = None
        if self.order == "onednn":
            self.copy, self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, _ROWS), None  # no longer read
        self.copied = weight.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        if self.weight is None:
            product: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, self.copy, self.bias, "none", [], "")
            return product
        if self.order == "as it is" or len(x) == 1:
            return F.linear(x, self.weight, self.bias)
        if self.copy is None:
            self.copy = self.weight.t().contiguous()  # [d_in, d_out]
        return x @ self.copy if self.bias is None else torch.addmm(self.bias, x, self.copy)

    def bytes_beside(self, owned: Collection[int]) -> int:
        """Return the bytes of what is kept here, without a weight that lies at one of the addresses `owned`."""
        is_new = self.weight is not None and self.weight.data_ptr() not in owned
        return self.copied * (is_new + (self.copy is not None))


class Int8Product:
    """x [rows, d_in] -> x Wᵀ + b [rows, d_out], with W and x in eight bits and the sums in 32.

    Each row of W has its scale, as in `tl.int8`, and each row of x its own: an x_j is off by at most half a step of
    max |x| / 127.5. One scale for all of x would not do, as one token may have values hundreds of times those of others
    (Dettmers et al. 2022, who also multiply the columns of such values in 16 bits; here they are in eight).

    The kernel is that of PyTorch's dynamic quantization, whose removal PyTorch has announced. Of its other products in
    eight bits, none was faster than bfloat16 both with one row and with many. So this is refused where the kernel is
    missing, or the processor cannot add up such products without overflow.

    Raises:
        ValueError: there are no such products here; see `has_int8`.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        if weight.device.type != "cpu" or not has_int8():
            raise ValueError(f"weights must be 'own' here, as there are no products in eight bits on {weight.device}")
        self.rows, self.copied = len(weight), weight.numel()
        self.bias = None if bias is None else bias.detach()
        scales = quantize(weight.float())[1]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.quantize_per_tensor", category=UserWarning)
            zeros = torch.zeros(self.rows, dtype=torch.int64)
            stored = torch.quantize_per_channel(weight.detach().float(), scales.double(), zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(stored, None)

    def __call__(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b in the dtype of x."""
        largest = x.abs().amax(dim=1, keepdim=True).float()  # [rows, 1]
        largest = largest.where(largest != 0, 1)  # NaN stays NaN
        # The kernel has one scale for all of x; with rows that all reach to 1 it is each row's own.
        product = torch.ops.quantized.linear_dynamic(x / largest, self.packed) * largest
        return (product if self.bias is None else product + self.bias).to(x.dtype)

    def bytes_beside(self, owned: Collection[int]) -> int:
        """Return the bytes of what is kept here: one for each weight, four for each row's scale."""
        return self.copied + 4 * self.rows


def has_int8() -> bool:
    """Return whether PyTorch multiplies eight bits with eight bits here, and this processor adds up in 32 (VNNI)."""
    return hasattr(torch.ops.quantized, "linear_dynamic") and _VNNI and torch.backends.quantized.engine in _ENGINES


def order(weight: Tensor) -> Literal["as it is", "columns", "onednn"]:
    """Return the order of a weight that was quickest, with up to 100 rows, on processors such as this one.

    On x86, PyTorch can multiply with MKL or with oneDNN. In float32 MKL was quicker, with columns, on a processor of
    Intel's, and oneDNN on one of AMD's. In bfloat16, where a processor has units for it, it is oneDNN that multiplies.
    Elsewhere, and in other dtypes, the weight stays as it is.
    """
    if weight.device.type != "cpu" or weight.dtype not in (torch.float32, torch.bfloat16):
        return "as it is"
    onednn = _ONEDNN and torch.backends.mkldnn.enabled
    if weight.dtype == torch.bfloat16:
        return "onednn" if onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported() else "as it is"
    if torch.backends.mkl.is_available() and made_by_intel():
        return "columns"
    return "onednn" if onednn else "as it is"


_ONEDNN = (
    platform.machine() in ("x86_64", "AMD64")
    and torch.backends.mkldnn.is_available()
    and all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
)
_ENGINES = ("x86", "fbgemm", "onednn")
_VNNI = getattr(torch.cpu, "_is_vnni_supported", lambda: False)()
