"""Step-by-step decoding arranged for speed: the numbers of `Transformer.decode` with its cache, in fewer operations.

A step has one query per sentence: its time goes into starting operations and reading weights, hardly into arithmetic.
So queries, keys and values come from one product, keys and values are written into buffers of full length, batch and
heads are one axis, and the checks of modules are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model.decoder import DecoderLayer
from ..model.layers import ACTIVATIONS, Residual
from ..model.transformer import Transformer


class FastStepper:
    """Gives the next token's logits for a growing target.

    Args:
        model: one that `require_fast` lets pass, in evaluation mode. src: source ids [batch, src_len], no row of only
            padding.
        max_len: the longest target that will be asked for, in tokens.
    """

    def __init__(self, model: Transformer, src: Tensor, max_len: int) -> None:
        self.model, self.src, self.max_len, self.length = model, src, max_len, 0
        memory = model.encode(src)
        self.layers = [_LayerState(cast(DecoderLayer, layer), memory, max_len) for layer in model.decoder.layers]
        self.head = model.output_head.weight  # [tgt_vocab_size, d_model]
        self.sentence = torch.arange(len(src), device=src.device)  # which source each row translates
        self.src_bias = self._bias(src)

    @torch.inference_mode()  # cheaper still than no_grad: nothing here is ever differentiated
    def next_logits(self, tgt: Tensor) -> Tensor:
        """Return [batch, tgt_vocab_size] for the token after tgt [batch, tgt_len], which continues the last call's."""
        if tgt.shape[1] <= self.length:
            raise ValueError(f"tgt must be longer than the {self.length} tokens seen so far, got {tgt.shape[1]}")
        if tgt.shape[1] > self.max_len:
            raise ValueError(f"tgt must have at most max_len = {self.max_len} tokens, got {tgt.shape[1]}")
        while self.length < tgt.shape[1]:
            states = self._step(tgt[:, : self.length + 1])
        return self._logits(states)

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` (repeats allowed), in that order."""
        sentence = self.sentence[rows]
        same_sources = torch.equal(sentence, self.sentence)  # beams of one sentence share its memory
        for layer in self.layers:
            layer.select(rows, self.length, memory=not same_sources)
        if not same_sources:
            self.sentence, self.src = sentence, self.src[rows]
            self.src_bias = self._bias(self.src)

    def _step(self, tgt: Tensor) -> Tensor:
        """Return the decoder's output [batch, d_model] for the last token of tgt, and keep its keys and values."""
        model, position = self.model, self.length
        x = model.tgt_embedding(tgt[:, position:]) * math.sqrt(model.config.d_model)
        x = model.position(x, position)[:, 0]  # [batch, 1, d_model] -> [batch, d_model]
        bias = self._bias(tgt)
        for layer in self.layers:
            x = layer.step(x, position, bias, self.src_bias)
        self.length += 1
        return model.decoder.norm(x)

    def _logits(self, states: Tensor) -> Tensor:
        """Return [batch, tgt_vocab_size]; with few rows, head @ statesᵀ is quicker than states @ headᵀ."""
        return (self.head @ states.T).T

    def _bias(self, ids: Tensor) -> Tensor:
        """Return what to add to the scores: 0 for tokens, −∞ for padding, [batch · n_heads, 1, len]."""
        numbers = self.head.new_zeros(ids.shape).masked_fill_(ids == self.model.config.pad_id, -math.inf)
        return numbers[:, None].repeat_interleave(self.model.config.n_heads, dim=0)


class _LayerState:
    """A decoder layer with its weights as a step needs them, and the keys and values so far.

    Batch and heads are one axis, "rows". Weights are looked up here, once, as looking into modules takes about as long
    as a small product.
    """

    def __init__(self, layer: DecoderLayer, memory: Tensor, max_len: int) -> None:
        own, cross = layer.self_attention, layer.cross_attention
        self.attention, self.n_heads, self.d_k = own, own.n_heads, own.d_k
        by_head = [w.weight.unflatten(0, (self.n_heads, 1, self.d_k)) for w in (own.w_q, own.w_k, own.w_v)]
        self.own_maps = torch.cat(by_head, dim=1).flatten(0, 2)  # [n_heads · 3 · d_k, d_model]
        self.own_output, self.cross_query, self.cross_output = own.w_o.weight, cross.w_q.weight, cross.w_o.weight
        expand, contract = layer.feed_forward.expand, layer.feed_forward.contract
        self.feed_forward = (expand.weight, expand.bias, contract.weight, contract.bias)
        self.activation = ACTIVATIONS[layer.feed_forward.activation]
        self.around_own = _residual(layer.self_attention_residual)
        self.around_cross = _residual(layer.cross_attention_residual)
        self.around_feed_forward = _residual(layer.feed_forward_residual)
        keys, values = (cross.split_heads(w(memory)).flatten(0, 1) for w in (cross.w_k, cross.w_v))
        self.memory_keys, self.memory_values = keys, values  # [rows, src_len, d_k]
        self.own_keys, self.own_values = (keys.new_empty(len(keys), max_len, self.d_k) for _ in range(2))

    def step(self, x: Tensor, position: int, bias: Tensor, memory_bias: Tensor) -> Tensor:
        """Return x [batch, d_model], the token at `position`, after the layer."""
        x = self.around_own(x, lambda y: self._attend_own(y, position, bias))
        x = self.around_cross(x, lambda y: self._attend_memory(y, memory_bias))
        return self.around_feed_forward(x, self._expand_and_contract)

    def _attend_own(self, x: Tensor, position: int, bias: Tensor) -> Tensor:
        q, k, v = F.linear(x, self.own_maps).view(-1, 3, self.d_k).split(1, dim=1)  # [rows, 1, d_k]
        q, k = self.attention.rotate(q, position), self.attention.rotate(k, position)
        end = position + 1
        self.own_keys[:, position:end], self.own_values[:, position:end] = k, v
        relative = self.attention.score_bias(1, end)  # [n_heads, 1, end] or None
        if relative is not None:
            bias = bias + relative.repeat(len(q) // self.n_heads, 1, 1)
        heads = _attend(q, self.own_keys[:, :end], self.own_values[:, :end], bias)
        return F.linear(heads.view(x.shape), self.own_output)

    def _attend_memory(self, x: Tensor, bias: Tensor) -> Tensor:
        q = F.linear(x, self.cross_query).view(-1, 1, self.d_k)
        return F.linear(_attend(q, self.memory_keys, self.memory_values, bias).view(x.shape), self.cross_output)

    def _expand_and_contract(self, x: Tensor) -> Tensor:
        expand, expand_bias, contract, contract_bias = self.feed_forward
        return F.linear(self.activation(F.linear(x, expand, expand_bias)), contract, contract_bias)

    def select(self, rows: Tensor, length: int, *, memory: bool) -> None:
        """Keep the rows of these sentences, of `length` tokens so far, and of the memory if it is other sentences'."""
        pieces = (rows[:, None] * self.n_heads + torch.arange(self.n_heads, device=rows.device)).flatten()
        for name in ("own_keys", "own_values"):
            before = getattr(self, name)
            after = before.new_empty(len(pieces), *before.shape[1:])
            after[:, :length] = before[pieces, :length]
            setattr(self, name, after)
        if memory:
            self.memory_keys, self.memory_values = self.memory_keys[pieces], self.memory_values[pieces]


def _residual(residual: Residual) -> Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]:
    """Return `Residual.forward` in evaluation mode, without a module's checks."""
    norm = residual.norm
    shape, weight, bias, eps = norm.weight.shape, norm.weight, norm.bias, norm.eps
    if residual.norm_first:
        return lambda x, sublayer: x + sublayer(F.layer_norm(x, shape, weight, bias, eps))
    return lambda x, sublayer: F.layer_norm(x + sublayer(x), shape, weight, bias, eps)


def _attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Return [rows, 1, d_k] for one query each, q [rows, 1, d_k], over k and v [rows, len, d_k]."""
    scores = torch.baddbmm(bias, q, k.mT, alpha=1 / math.sqrt(q.shape[-1]))  # [rows, 1, len]
    return torch.bmm(scores.softmax(dim=-1), v)
