"""The precision in which a run computes: the one asked for, or one that the device has units for."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from .._validate import check_choice

Precision = Literal["float32", "bfloat16", "auto"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
Chosen = Literal["float32", "bfloat16"]
_UNITS = ("amx_bf16", "avx512_bf16", "bf16")  # Intel's tiles, Intel's and AMD's vectors, ARM's


def bfloat16_units(device: torch.device | str = "cpu") -> bool | None:
    """Return whether the device multiplies bfloat16 in hardware; None if it does not say."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    ask = getattr(torch.cpu, "get_capabilities", None) if kind == "cpu" else None  # not in every version of torch
    capabilities = ask() if ask is not None else {}
    known = [bool(capabilities[name]) for name in _UNITS if name in capabilities]
    return any(known) if known else None


def choose_precision(asked: Precision, device: torch.device | str = "cpu") -> Chosen:
    """Return what was asked for; for "auto" bfloat16 where the device is known to have units for it, else float32.

    Raises:
        ValueError: an unknown precision.
    """
    check_choice("precision", asked, PRECISIONS)
    if asked == "auto":
        return "bfloat16" if bfloat16_units(device) else "float32"
    return asked


def computing(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context of a forward pass: PyTorch's autocast for bfloat16, for float32 nothing special."""
    chosen = choose_precision(precision, device)
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=chosen == "bfloat16")
