"""Step-by-step decoding arranged for speed: the numbers of `Transformer.decode` with its cache, in fewer operations.

A step has one query per sentence: its time goes into starting operations and reading weights, hardly into arithmetic.
So weights are laid out for quick reading, queries, keys and values come from one product, keys and values are written
into buffers of full length, and the checks of modules are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model.decoder import DecoderLayer
from ..model.layers import ACTIVATIONS, FeedForward, Residual
from ..model.transformer import Transformer
from .forward import encode, project
from .packing import RealTokens
from .products import Product


class FastStepper:
    """Gives the next token's logits for a growing target.

    Args:
        model: one that `require_fast` lets pass, in evaluation mode. src: source ids [batch, src_len], no row of only
            padding.
        max_len: the longest target that will be asked for, in tokens.
    """

    def __init__(self, model: Transformer, src: Tensor, max_len: int) -> None:
        self.model, self.src, self.max_len, self.length = model, src, max_len, 0
        source = RealTokens(src != model.config.pad_id)
        memory = encode(model, src, source)
        layers = cast("Iterable[DecoderLayer]", model.decoder.layers)
        self.layers = [_LayerState(layer, memory, source, max_len) for layer in layers]
        self.head = Product(model.output_head.weight)
        self.sentence = torch.arange(len(src), device=src.device)  # which source each row translates
        self.memory_bias = self._bias(src)
        self.padded = False  # whether some token of the target is padding

    @torch.inference_mode()  # cheaper still than no_grad: nothing here is ever differentiated
    def next_logits(self, tgt: Tensor) -> Tensor:
        """Return [batch, tgt_vocab_size] for the token after tgt [batch, tgt_len], which continues the last call's."""
        if tgt.shape[1] <= self.length:
            raise ValueError(f"tgt must be longer than the {self.length} tokens seen so far, got {tgt.shape[1]}")
        if tgt.shape[1] > self.max_len:
            raise ValueError(f"tgt must have at most max_len = {self.max_len} tokens, got {tgt.shape[1]}")
        while self.length < tgt.shape[1]:
            states = self._step(tgt[:, : self.length + 1])
        return self.head(states)  # [batch, d_model] -> [batch, tgt_vocab_size]

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` (repeats allowed), in that order."""
        sentence = self.sentence[rows]
        same_sources = torch.equal(sentence, self.sentence)  # beams of one sentence share its memory
        first = torch.arange(self.length, device=rows.device) * len(self.sentence)  # of each position's tokens
        places = (first[:, None] + rows).flatten()  # [length · rows]
        for layer in self.layers:
            layer.select(rows, places, memory=not same_sources)
        if not same_sources:
            self.sentence, self.src = sentence, self.src[rows]
            self.memory_bias = self._bias(self.src)

    def _step(self, tgt: Tensor) -> Tensor:
        """Return the decoder's output [batch, d_model] for the last token of tgt, and keep its keys and values."""
        model, position = self.model, self.length
        ids = tgt[:, position]
        x = F.embedding(ids, model.tgt_embedding.weight)  # [batch, d_model]
        x = model.position(x[:, None] * math.sqrt(model.config.d_model), position)[:, 0]
        self.padded = self.padded or model.config.pad_id in ids.tolist()
        bias = self._bias(tgt) if self.padded else None
        for layer in self.layers:
            x = layer.step(x, position, bias, self.memory_bias)
        self.length += 1
        return model.decoder.norm(x)

    def _bias(self, ids: Tensor) -> Tensor:
        """Return what to add to the scores: 0 for tokens, −∞ for padding, [batch, 1, 1, len]."""
        numbers = self.model.output_head.weight.new_zeros(ids.shape)
        return numbers.masked_fill_(ids == self.model.config.pad_id, -math.inf)[:, None, None]


class _LayerState:
    """A decoder layer with its weights as a step needs them, and the keys and values so far.

    Weights are looked up here, once, as looking into modules takes about as long as a small product. Positions are the
    first axis of the buffer of keys and values, so that those so far lie together, and one operation selects rows.
    """

    def __init__(self, layer: DecoderLayer, memory: Tensor, source: RealTokens, max_len: int) -> None:
        own, cross = layer.self_attention, layer.cross_attention
        self.attention, self.n_heads, self.d_k = own, own.n_heads, own.d_k
        by_head = [w.weight.unflatten(0, (self.n_heads, 1, self.d_k)) for w in (own.w_q, own.w_k, own.w_v)]
        self.own_maps = Product(torch.cat(by_head, dim=1).flatten(0, 2))  # [n_heads · 3 · d_k, d_model]
        self.own_output, self.cross_query, self.cross_output = (
            Product(linear.weight) for linear in (own.w_o, cross.w_q, cross.w_o)
        )
        self.feed_forward = _feed_forward(layer.feed_forward)
        self.around_own = _residual(layer.self_attention_residual)
        self.around_cross = _residual(layer.cross_attention_residual)
        self.around_feed_forward = _residual(layer.feed_forward_residual)
        keys, values = (x.contiguous() for x in project(cross, memory, source, cross.w_k, cross.w_v))
        self.memory_keys, self.memory_values = keys, values  # [batch, n_heads, src_len, d_k]
        self.cached = keys.new_empty(max_len, len(keys), self.n_heads, 2, self.d_k)  # the layer's own keys and values
        self.spare = self.cached.new_empty(0)  # where `select` writes, in turn with `cached`

    def step(self, x: Tensor, position: int, bias: Tensor | None, memory_bias: Tensor | None) -> Tensor:
        """Return x [batch, d_model], the token at `position`, after the layer."""
        x = self.around_own(x, lambda y: self._attend_own(y, position, bias))
        x = self.around_cross(x, lambda y: self._attend_memory(y, memory_bias))
        return self.around_feed_forward(x, self.feed_forward)

    def _attend_own(self, x: Tensor, position: int, bias: Tensor | None) -> Tensor:
        joint = self.own_maps(x).view(len(x), self.n_heads, 3, self.d_k)
        q = self.attention.rotate(joint[:, :, :1], position)  # [batch, n_heads, 1, d_k]
        if self.attention.position is None:
            self.cached[position] = joint[:, :, 1:]
        else:
            self.cached[position, :, :, 0] = self.attention.rotate(joint[:, :, 1:2], position)[:, :, 0]
            self.cached[position, :, :, 1] = joint[:, :, 2]
        end = position + 1
        keys, values = self.cached[:end].permute(1, 2, 3, 0, 4).unbind(2)  # [batch, n_heads, end, d_k] each
        relative = self.attention.score_bias(1, end)  # [n_heads, 1, end] or None
        if relative is not None:
            bias = relative[None] if bias is None else bias + relative
        heads = F.scaled_dot_product_attention(q, keys, values, attn_mask=bias)  # [batch, n_heads, 1, d_k]
        return self.own_output(heads.view(x.shape))

    def _attend_memory(self, x: Tensor, bias: Tensor | None) -> Tensor:
        q = self.cross_query(x).view(len(x), self.n_heads, 1, self.d_k)
        heads = F.scaled_dot_product_attention(q, self.memory_keys, self.memory_values, attn_mask=bias)
        return self.cross_output(heads.view(x.shape))

    def select(self, rows: Tensor, places: Tensor, *, memory: bool) -> None:
        """Keep these rows, whose tokens so far are `places` in position · batch, and the memory's if it changes."""
        shape = (len(self.cached), len(rows), *self.cached.shape[2:])
        selected = self.spare if self.spare.shape == shape else self.cached.new_empty(shape)
        # Along one axis, as several threads then share the copying.
        torch.index_select(self.cached.flatten(0, 1), 0, places, out=selected.flatten(0, 1)[: len(places)])
        self.cached, self.spare = selected, self.cached
        if memory:
            self.memory_keys, self.memory_values = self.memory_keys[rows], self.memory_values[rows]


def _residual(residual: Residual) -> Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]:
    """Return `Residual.forward` in evaluation mode, without a module's checks."""
    norm = residual.norm
    shape, weight, bias, eps = norm.weight.shape, norm.weight, norm.bias, norm.eps
    if residual.norm_first:
        return lambda x, sublayer: x + sublayer(F.layer_norm(x, shape, weight, bias, eps))
    return lambda x, sublayer: F.layer_norm(x + sublayer(x), shape, weight, bias, eps)


def _feed_forward(module: FeedForward) -> Callable[[Tensor], Tensor]:
    """Return x -> FFN(x)."""
    expand, contract = (Product(linear.weight, linear.bias) for linear in (module.expand, module.contract))
    activation = ACTIVATIONS[module.activation]
    return lambda x: contract(activation(expand(x)))
