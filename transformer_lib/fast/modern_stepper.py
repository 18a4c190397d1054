"""A language model of `modern` step by step: the numbers of its forward pass with a cache, in fewer operations.

A step has one token per text, and nearly all of its time goes into reading weights, which `ModernWeights` has laid out
for that. Keys and values are written into buffers of full length, where the heads that share them read them without a
copy; rotary factors are computed once; and the logits are those of the last token alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from .._validate import check_ids, check_int
from ..model.cache import check_kept
from ..model.modern import Block, Config, LanguageModel, window_mask
from .modern_weights import LayerWeights, ModernWeights

Turns = tuple[Tensor, Tensor]  # cos and ±sin of each position and feature, [max_len, d_head] each


class ModernStepper:
    """Gives the next token's logits for texts that grow.

    Args:
        model: a `modern.LanguageModel` that `require_fast_today` lets pass, or its `ModernWeights`. From a model, its
            weights are laid out anew: keep `ModernWeights` where several texts follow each other.
        batch: texts, all of one length. max_len: the longest that they will become, in tokens.

    Attributes:
        length: tokens seen so far.

    Raises:
        TypeError, ValueError: something is in the way of the fast path, and what; batch or max_len is no positive int.
    """

    def __init__(self, model: LanguageModel | ModernWeights, batch: int, max_len: int) -> None:
        self.weights = model if isinstance(model, ModernWeights) else ModernWeights(model)
        self.weights.require_current()
        self.batch, self.max_len, self.length = check_int("batch", batch), check_int("max_len", max_len), 0
        self.config, self.table = self.weights.config, self.weights.model.embedding.weight.detach()
        if torch.is_autocast_enabled(self.table.device.type):
            raise ValueError('path="fast" must run without autocast, which would round its residual sums, too')
        shape = (2, batch, self.config.kv_heads, max_len, self.config.head_width)
        self.kept = [self.table.new_empty(shape) for _ in self.weights.layers]  # keys and values of each layer
        self.turns = _turns(self.weights.model, max_len)

    @property
    def bytes(self) -> int:
        """Bytes of the buffers of keys and values."""
        return sum(kept.nbytes for kept in self.kept)

    @torch.inference_mode()  # cheaper still than no_grad: nothing here is ever differentiated
    def next_logits(self, ids: Tensor) -> Tensor:
        """Return [batch, vocab_size] for the token after ids [batch, new], which follow those of the calls before.

        A call with several tokens first looks whether the model is as it was (`ModernWeights.require_current`); one
        with a single token does not, as that would take longer than the layers' own bookkeeping.

        Raises:
            TypeError, ValueError: ids are no ids of the vocabulary, of another batch, or go beyond max_len; the model
                has changed.
        """
        ids = self._checked(ids)
        end = self.length + ids.shape[1]
        x = F.embedding(ids, self.table).flatten(0, 1) * self.config.embedding_scale  # [batch · new, d_model]
        for layer, kept, turns in zip(self.weights.layers, self.kept, self.turns, strict=True):
            x = x + self._attention(layer, layer.attention_norm(x), kept, turns, end)
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
        self.length = end
        last = x.unflatten(0, ids.shape)[:, -1]  # [batch, d_model]
        return self.weights.head(self.weights.norm(last))

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length`, 0 ≤ length ≤ self.length, so that the text can go on otherwise."""
        self.length = check_kept(length, self.length)

    def _checked(self, ids: Tensor) -> Tensor:
        """Return ids, as int64, if they can follow what has been seen."""
        ids = check_ids("ids", ids, self.config.vocab_size)
        if len(ids) != self.batch:
            raise ValueError(f"ids must have the stepper's batch of {self.batch}, got {len(ids)}")
        if self.length + ids.shape[1] > self.max_len:
            raise ValueError(
                f"ids must end within max_len = {self.max_len}, got {ids.shape[1]} after {self.length} tokens"
            )
        if ids.shape[1] > 1:
            self.weights.require_current()
        return ids

    def _attention(self, layer: LayerWeights, x: Tensor, kept: Tensor, turns: Turns, end: int) -> Tensor:
        """Return what attention adds to the newest tokens, normed x [batch · new, d_model]; keep keys and values."""
        n_heads, kv_heads, start = self.config.n_heads, self.config.kv_heads, self.length
        joint = layer.qkv(x).view(self.batch, end - start, -1, self.config.head_width).transpose(1, 2)
        both, values = joint.split((n_heads + kv_heads, kv_heads), dim=1)  # [batch, heads, new, d_head] each
        if layer.gains is not None:
            both = F.rms_norm(both, both.shape[-1:], eps=self.config.eps) * layer.gains
        queries, keys = _turned(both, turns, start, end).split((n_heads, kv_heads), dim=1)
        kept[0, :, :, start:end], kept[1, :, :, start:end] = keys, values
        return layer.output(_attended(queries, kept, start, end, self.config.window))


def _turned(x: Tensor, turns: Turns, start: int, end: int) -> Tensor:
    """Return x [..., new, d_head] with each pair of features, half a head apart, turned by its position."""
    cos, sin = turns
    return torch.addcmul(x * cos[start:end], x.roll(x.shape[-1] // 2, -1), sin[start:end])


def _attended(queries: Tensor, kept: Tensor, start: int, end: int, window: int | None) -> Tensor:
    """Return the heads side by side, [batch · new, n_heads · d_head], for queries [batch, n_heads, new, d_head]."""
    first = 0 if window is None else max(0, start + 1 - window)  # what no query sees any more
    keys, values = kept[:, :, :, first:end]  # [batch, kv_heads, end − first, d_head] each
    if end - start == 1:  # one query sees all that is left; those of the heads that share keys are rows of one product
        rows = queries.reshape(
            len(queries), keys.shape[1], -1, queries.shape[-1]
        )  # [batch, kv_heads, shared by, d_head]
        return F.scaled_dot_product_attention(rows, keys, values).reshape(len(queries), -1)
    mask = window_mask(end - start, end - first, window, device=queries.device)
    heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)
    return heads.transpose(1, 2).reshape(len(queries) * (end - start), -1)


def _turns(model: LanguageModel, max_len: int) -> list[Turns]:
    """Return the rotary factors of each layer, in the model's dtype; layers that are alike share theirs."""
    made: list[Turns] = []
    for layer in cast("Iterable[Block]", model.layers):
        own = _factors(layer, model.config, max_len, model.embedding.weight)
        alike = bool(made) and all(map(torch.equal, own, made[-1]))
        made.append(made[-1] if alike else own)
    return made


def _factors(layer: Block, config: Config, max_len: int, like: Tensor) -> Turns:
    """Return what the layer's own position makes of the pair (1, 0): (cos, sin), for each position and pair."""
    half = config.head_width // 2
    one, none = like.new_ones(max_len, half), like.new_zeros(max_len, half)
    joined = torch.cat((one, none), -1) if config.pairs == "halves" else torch.stack((one, none), -1).flatten(-2)
    with torch.no_grad():
        turned = layer.attention.position.rotate(joined)  # [max_len, d_head]
    cos, sin = turned.chunk(2, -1) if config.pairs == "halves" else (turned[:, 0::2], turned[:, 1::2])
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
