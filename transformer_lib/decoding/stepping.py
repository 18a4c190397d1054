"""What every way of decoding needs: the next token's logits for a target that grows."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .._paths import PATHS, PathName
from .._validate import check_choice, check_id_batch, check_id_range, check_int, first_not_finite
from ..fast.eligibility import require_fast
from ..fast.stepper import FastStepper
from ..model.base import TranslationModel, check_has_config
from ..model.evaluating import parts_of

_FLOATS = frozenset((torch.float32, torch.float64, torch.bfloat16, torch.float16))
_PLAIN = frozenset((Tensor, nn.Parameter))


def check_request(model: TranslationModel, src: Tensor, max_new_tokens: int) -> Tensor:
    """Return src, as int64, if it holds ids of the model's vocabulary and max_new_tokens fits its max_len."""
    check_int("max_new_tokens", max_new_tokens)
    if max_new_tokens > model.config.max_len:
        raise ValueError(
            f"max_new_tokens must not exceed the model's max_len = {model.config.max_len}, got {max_new_tokens}"
        )
    src = check_id_batch("src", src, max_len=model.config.max_len)
    return check_id_range("src", src, model.config.src_vocab_size)


def check_model(name: str, model: nn.Module) -> None:
    """Raise unless `model` describes itself as a `TranslationModel` does, and its weights are finite."""
    check_has_config(name, model)
    check_weights(name, model)


@torch.no_grad()
def check_weights(name: str, model: nn.Module) -> None:
    """Raise unless every weight of the model is finite, also one that these sentences might never need.

    A logit that is NaN counts as the largest one, so that NaN would be decoded as if it were text. Every call looks
    once, at the sum of each tensor, and at single numbers only if a sum is not finite. In a buffer −∞ is allowed, as
    masks have it.

    Raises:
        ValueError: the message names the first tensor with NaN or ∞.
    """
    sums: dict[torch.device, list[Tensor]] = {}
    for part in parts_of(model):
        for tensor in (*part._parameters.values(), *part._buffers.values()):
            if tensor is not None and _has_numbers(tensor):
                sums.setdefault(tensor.device, []).append(tensor.sum())
    if all(math.isfinite(torch.stack(of_device).sum()) for of_device in sums.values()):
        return
    weights = {path: weight for path, weight in model.named_parameters() if _has_numbers(weight)}
    buffers = {path: buffer for path, buffer in model.named_buffers() if _has_numbers(buffer)}
    masked = {path: buffer.masked_fill(buffer.isneginf(), 0.0) for path, buffer in buffers.items()}
    wrong = first_not_finite(weights | masked)
    if wrong is not None:
        raise ValueError(f"{name} must have finite weights, got {wrong[1]} in {wrong[0]}")


def _has_numbers(tensor: Tensor) -> bool:
    """Return whether a tensor holds floats that can be added up; one of a subclass may know no sums."""
    return tensor.dtype in _FLOATS and type(tensor) in _PLAIN and not tensor.is_meta


def make_stepper(
    model: TranslationModel, src: Tensor, max_new_tokens: int, *, use_cache: bool, path: PathName
) -> Stepper | FastStepper:
    """Return what gives the next token's logits, by the path asked for.

    Raises:
        ValueError: the path is unknown, or "fast" and something is in its way.
    """
    if check_choice("path", path, PATHS) == "readable":
        return Stepper(model, src, use_cache)
    plain = require_fast(model)
    reason = None
    if not use_cache:
        reason = "use_cache=False asks for recomputation"
    elif torch.is_autocast_enabled(src.device.type):
        reason = "autocast would round its residual sums, too"
    elif not (src != model.config.pad_id).any(dim=1).all():
        reason = "a row of src is only padding"
    if reason is not None:
        raise ValueError(f'path="fast" decodes with a cache and without autocast, but {reason}: take path="readable"')
    return FastStepper(plain, src, max_new_tokens)


class Stepper:
    """Gives the next token's logits for a growing target, re-reading all of it or through a cache."""

    def __init__(self, model: TranslationModel, src: Tensor, use_cache: bool) -> None:
        self.model, self.src = model, src
        self.memory = model.encode(src)
        self.cache = model.new_cache() if use_cache else None

    def next_logits(self, tgt: Tensor) -> Tensor:
        """Return [batch, tgt_vocab_size] for the token after tgt [batch, tgt_len]."""
        if self.cache is None:
            return self.model.decode(tgt, self.memory, self.src)[:, -1]
        new = tgt[:, self.cache.length :]
        return self.model.decode(new, self.memory, self.src, cache=self.cache)[:, -1]

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows`, in that order."""
        self.src, self.memory = self.src[rows], self.memory[rows]
        if self.cache is not None:
            self.cache.select(rows)
