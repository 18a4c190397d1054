"""A language model with the block of today, computed with what the learner wrote in notebook 20."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._validate import check_ids
from ...fast.eligibility import unlike
from ...model import modern
from ...model.positional import RotaryPosition
from .library import Function, whose
from .parts import PARTS, TODAY

NAMES = tuple(part.name for part in PARTS if part.notebook == TODAY)


# What the parts compute whatever its value, or what only a mixture of experts has; any other field must be its default.
_ANY = frozenset(
    {
        *("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "n_kv_heads", "d_head", "eps", "rope_base"),
        *("rotary_layers", "qkv_bias"),
        *("qk_norm", "window", "tied", "embedding_scale", "n_experts", "experts_per_token"),
    }
)
_FIXED = {field.name: field.default for field in fields(modern.Config) if field.name not in _ANY}


class TodayParts:
    """The library's way to do each part of today's block; a learner's function takes the place of its method."""

    def __init__(self, theirs: Mapping[str, Function]) -> None:
        self.theirs = theirs
        for name, function in theirs.items():
            setattr(self, name, function)

    def rms_norm(self, x: Tensor, gain: Tensor, eps: float) -> Tensor:
        """Return x [..., d] divided by its root mean square, times the gain."""
        return F.rms_norm(x, gain.shape, gain, eps)

    def swiglu(self, x: Tensor, W_gate: Tensor, W_up: Tensor, W_down: Tensor) -> Tensor:
        """Return the gated feed-forward of x [..., d_model]."""
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down

    def grouped_attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs [batch, n_heads, q_len, d]; heads of queries share those of keys and values."""
        shared_by = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(shared_by, dim=1), value.repeat_interleave(shared_by, dim=1)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    def window_mask(self, q_len: int, k_len: int, window: int) -> Tensor:
        """Return [q_len, k_len], True = may attend."""
        return modern.window_mask(q_len, k_len, window)[0, 0]

    def rotate_halves(self, x: Tensor, positions: Tensor, base: float) -> Tensor:
        """Return x [..., seq_len, d] with features j and j + d/2 turned by the angles of their position."""
        half = x.shape[-1] // 2
        omega = base ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
        angle = positions[:, None] * omega
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class AssembledToday(nn.Module):
    """Computes with `TodayParts` what a `transformer_lib.modern.LanguageModel` computes, with its weights.

    Args:
        model: whose weights are used, and trained, as they are. parts: the functions.

    Raises:
        ValueError: the model has another norm, feed-forward network or pairing than the parts, or scaled rotary
            positions, or was changed since its config built it.
    """

    def __init__(self, model: modern.LanguageModel, parts: TodayParts) -> None:
        super().__init__()
        found = {name: getattr(model.config, name) for name in _FIXED}
        if found != _FIXED:
            raise ValueError(f"model must have {_fields(_FIXED)}, got {_fields(found)}")
        with torch.device("meta"):
            built = modern.LanguageModel(model.config)
        reason = unlike(model, built, but={"eps"})
        if reason is not None:
            raise ValueError(f"model must be as its config builds it, but {reason}")
        self.model, self.parts = model, parts

    @property
    def whose(self) -> str:
        """Which of the functions are the learner's."""
        return whose(self.parts.theirs, len(NAMES))

    def new_cache(self) -> modern.Cache:
        """Return an empty cache for `forward`."""
        return self.model.new_cache()

    def forward(self, ids: Tensor, cache: modern.Cache | None = None) -> Tensor:
        """Return logits [batch, seq_len, vocab_size] of ids [batch, seq_len]; with a cache, those after its tokens."""
        model = self.model
        ids = check_ids("ids", ids, model.config.vocab_size)
        x = model.embedding(ids) * model.config.embedding_scale
        kept = [None] * model.config.n_layers if cache is None else cache.layers
        for layer, own in zip(cast("list[modern.Block]", model.layers), kept, strict=True):
            x = x + self._attend(layer.attention, self._norm(layer.attention_norm, x), own)
            x = x + self._feed_forward(cast(modern.SwiGLU, layer.feed_forward), self._norm(layer.feed_forward_norm, x))
        return model.head(self._norm(model.norm, x))

    def _norm(self, norm: nn.Module, x: Tensor) -> Tensor:
        return self.parts.rms_norm(x, norm.weight, norm.eps) if isinstance(norm, modern.RMSNorm) else x

    def _feed_forward(self, layer: modern.SwiGLU, x: Tensor) -> Tensor:
        return self.parts.swiglu(x, layer.gate.weight.T, layer.up.weight.T, layer.down.weight.T)

    def _attend(
        self, attention: modern.GroupedQueryAttention, x: Tensor, cache: modern.LayerCache | None = None
    ) -> Tensor:
        """Return [batch, seq_len, d_model]: heads made, normed where the model norms them, turned, and attended."""
        config, n, start = self.model.config, x.shape[1], 0 if cache is None else cache.length
        positions = torch.arange(start, start + n, device=x.device)
        q, k, v = (
            linear(x).unflatten(-1, (heads, -1)).transpose(1, 2)  # [batch, heads, seq_len, d_head]
            for linear, heads in (
                (attention.w_q, config.n_heads),
                (attention.w_k, config.kv_heads),
                (attention.w_v, config.kv_heads),
            )
        )
        q, k = self._norm(attention.q_norm, q), self._norm(attention.k_norm, k)
        if isinstance(attention.position, RotaryPosition):
            q, k = (self.parts.rotate_halves(heads, positions, config.rope_base) for heads in (q, k))
        if cache is not None:
            k, v = cache.append(k, v)
        k_len = k.shape[2]
        mask = self.parts.window_mask(n, k_len, config.window or k_len).to(x.device)  # a window of all keys is none
        return attention.w_o(self.parts.grouped_attention(q, k, v, mask).transpose(1, 2).flatten(2))


def _fields(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
