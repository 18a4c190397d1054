"""Step-by-step decoding arranged for speed: the numbers of `Transformer.decode` with its cache, in fewer operations.

A step has one query per sentence: its time goes into starting operations and reading weights, hardly into arithmetic.
Hence projections are joined once, keys and values are written into buffers of full length, 1/√d_k is multiplied into
weights and stored keys beforehand, masks and residual sums are added by products, and larger matrices are cut into
shares for the threads, as tensor parallelism cuts them for devices (Shoeybi et al. 2019, §3).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model.decoder import DecoderLayer
from ..model.layers import ACTIVATIONS, FeedForward, Residual
from ..model.transformer import Transformer
from . import forward as fast
from .packing import RealTokens

Map = Callable[[Tensor], Tensor]
FEW_ROWS = 128  # up to about so many, shares are faster than one product, and the head is from the left (two threads)
SHARES_PER_THREAD = 2  # a thread that is late does one, the other three
MOST_SHARES = 8  # more would be slim, and their parts many to add


class FastStepper:
    """Gives the next token's logits for a growing target.

    Args:
        model: one that `fast.applies_to`, in evaluation mode. src: source ids [batch, src_len], no row only padding.
        max_len: the longest target that will be asked for, in tokens.
    """

    def __init__(self, model: Transformer, src: Tensor, max_len: int) -> None:
        self.model, self.src, self.max_len, self.length = model, src, max_len, 0
        source = RealTokens(src != model.config.pad_id)
        memory = fast.memory_keys_values(model, fast.encode(model, src, source), source)
        self.layers = [
            _LayerState(layer, keys, values, max_len)
            for layer, (keys, values) in zip(model.decoder.layers, memory, strict=True)
        ]
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
        return (self.head @ states.T).T if len(states) <= FEW_ROWS else states @ self.head.T

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` (repeats allowed), in that order."""
        sentence = self.sentence[rows]
        same_sources = torch.equal(sentence, self.sentence)  # beams of one sentence share its memory
        if same_sources and torch.equal(rows, torch.arange(len(rows), device=rows.device)):
            return
        for layer in self.layers:
            layer.select_own(rows, self.length)
            if not same_sources:
                layer.select_memory(rows)
        if not same_sources:
            self.sentence, self.src = sentence, self.src[rows]
            self.src_bias = self._bias(self.src)

    def _step(self, tgt: Tensor) -> Tensor:
        """Return the decoder's output [batch, d_model] for the last token of tgt, and keep its keys and values."""
        model, position = self.model, self.length
        bias = self._bias(tgt)
        x = model.tgt_embedding(tgt[:, position:]) * math.sqrt(model.config.d_model)
        x = model.position(x, position)[:, 0]  # [batch, 1, d_model] -> [batch, d_model]
        for layer in self.layers:
            x = layer.attend_own(x, position, bias)
            x = layer.attend_memory(x, self.src_bias)
            x = layer.feed_forward(x)
        self.length += 1
        return model.decoder.norm(x)

    def _bias(self, ids: Tensor) -> Tensor | None:
        """Return 0 for tokens and −∞ for padding, [batch · n_heads, 1, len], or None without padding."""
        padding = ids == self.model.config.pad_id
        if not padding.any():
            return None
        numbers = torch.zeros(ids.shape, dtype=self.head.dtype, device=ids.device)
        bias = numbers.masked_fill_(padding, -math.inf)[:, None]  # [batch, 1, len]
        return bias.repeat_interleave(self.model.config.n_heads, dim=0)


class _LayerState:
    """A decoder layer with its weights as a step needs them, and the keys and values so far.

    Batch and heads are one axis, "rows"; in `own`, a position's key and value lie side by side. Weights are looked up
    here, once, as looking into modules takes about as long as a small product.
    """

    def __init__(self, layer: DecoderLayer, memory_keys: Tensor, memory_values: Tensor, max_len: int) -> None:
        attention, cross = layer.self_attention, layer.cross_attention
        self.attention, self.n_heads, self.d_k = attention, attention.n_heads, attention.d_k
        scale = 1 / math.sqrt(self.d_k)
        maps = (attention.w_q.weight * scale, attention.w_k.weight, attention.w_v.weight)
        by_head = [weight.unflatten(0, (self.n_heads, 1, self.d_k)) for weight in maps]  # [n_heads, 1, d_k, d_model]
        self.own_maps = _SideBySide(torch.cat(by_head, dim=1).flatten(0, 2))  # [n_heads · 3 · d_k, d_model]
        self.own_output, self.cross_output = attention.w_o.weight.T, cross.w_o.weight.T
        self.cross_query = _SideBySide(cross.w_q.weight)
        self.inner = _FeedForward(layer.feed_forward)
        self.before_own, self.after_own = _norms(layer.self_attention_residual)
        self.before_cross, self.after_cross = _norms(layer.cross_attention_residual)
        self.before_inner, self.after_inner = _norms(layer.feed_forward_residual)
        self.memory_keys = (memory_keys * scale).flatten(0, 1)  # [rows, src_len, d_k]
        self.memory_values = memory_values.flatten(0, 1)
        self.own = memory_keys.new_empty(len(self.memory_keys), max_len, 2, self.d_k)

    def attend_own(self, x: Tensor, position: int, bias: Tensor | None) -> Tensor:
        """Return x [batch, d_model], the token at `position`, after the self-attention and its residual connection."""
        joint = self.own_maps(self.before_own(x)).view(-1, 3, self.d_k)  # [rows, 3, d_k]
        if self.attention.position is not None:
            joint, bias = self._with_offsets(joint, position, bias)
        self.own[:, position] = joint[:, 1:]
        keys, values = self.own[:, : position + 1].unbind(2)
        heads = _attend(joint[:, :1], keys, values, bias)
        return self.after_own(torch.addmm(x, heads.view(x.shape), self.own_output))

    def attend_memory(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return x [batch, d_model] after the cross-attention and its residual connection."""
        q = self.cross_query(self.before_cross(x)).view(-1, 1, self.d_k)
        heads = _attend(q, self.memory_keys, self.memory_values, bias)
        return self.after_cross(torch.addmm(x, heads.view(x.shape), self.cross_output))

    def feed_forward(self, x: Tensor) -> Tensor:
        """Return x [batch, d_model] after the feed-forward network and its residual connection."""
        return self.after_inner(x + self.inner(self.before_inner(x)))

    def select_own(self, rows: Tensor, length: int) -> None:
        """Keep the sentences' own keys and values, of which `length` places are filled."""
        before = self.own.unflatten(0, (-1, self.n_heads))
        self.own = self.own.new_empty(len(rows) * self.n_heads, *self.own.shape[1:])
        self.own[:, :length] = before[rows, :, :length].flatten(0, 1)

    def select_memory(self, rows: Tensor) -> None:
        """Keep the sentences' memory."""
        self.memory_keys, self.memory_values = (
            x.unflatten(0, (-1, self.n_heads))[rows].flatten(0, 1) for x in (self.memory_keys, self.memory_values)
        )

    def _with_offsets(self, joint: Tensor, position: int, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return queries, keys and values [rows, 3, d_k] with rotary positions, or the bias with relative ones."""
        turned = self.attention.rotate(joint[:, :2, None], position)[:, :, 0]  # the rotation wants an axis of positions
        relative = self.attention.score_bias(1, position + 1)  # [n_heads, 1, position + 1]
        if relative is not None:
            relative = relative.repeat(len(joint) // self.n_heads, 1, 1)
            bias = relative if bias is None else bias + relative
        return torch.cat((turned, joint[:, 2:]), dim=1), bias


class _SideBySide:
    """A linear map in shares: each gives some of the outputs."""

    def __init__(self, weight: Tensor) -> None:
        self.weight, self.shares = weight, _cut(weight, 0).mT  # [shares, d_model, width / shares]

    def __call__(self, x: Tensor) -> Tensor:
        """Return x [batch, d_model] · weightᵀ, [batch, width]."""
        if len(self.shares) == 1 or len(x) > FEW_ROWS:
            return F.linear(x, self.weight)
        parts = torch.bmm(x.expand(len(self.shares), -1, -1), self.shares)  # [shares, batch, width / shares]
        return parts.transpose(0, 1).flatten(1)


class _FeedForward:
    """A feed-forward network in shares: each has some of the hidden units, and adds its part to the output."""

    def __init__(self, module: FeedForward) -> None:
        self.module, self.activation = module, ACTIVATIONS[module.activation]
        self.expand = _cut(module.expand.weight, 0).mT  # [shares, d_model, d_ff / shares]
        self.expand_bias = _cut(module.expand.bias, 0)[:, None]  # [shares, 1, d_ff / shares]
        self.contract = _cut(module.contract.weight, 1).mT  # [shares, d_ff / shares, d_model]

    def __call__(self, x: Tensor) -> Tensor:
        """Return FFN(x), [batch, d_model]."""
        if len(self.expand) == 1 or len(x) > FEW_ROWS:
            return self.module(x)
        hidden = torch.baddbmm(self.expand_bias, x.expand(len(self.expand), -1, -1), self.expand)
        parts = torch.bmm(self.activation(hidden), self.contract)  # [shares, batch, d_model]
        return parts.sum(0).add_(self.module.contract.bias)


def _cut(weight: Tensor, axis: int) -> Tensor:
    """Return `weight` with the axis cut into equal shares, shares first; on a GPU into one."""
    most = min(SHARES_PER_THREAD * torch.get_num_threads(), MOST_SHARES) if weight.device.type == "cpu" else 1
    shares = max(count for count in range(1, most + 1) if weight.shape[axis] % count == 0)
    return weight.unflatten(axis, (shares, -1)).movedim(axis, 0)


def _norms(residual: Residual) -> tuple[Map, Map]:
    """Return what happens to x before the sub-layer, and what after the residual sum."""
    norm = residual.norm
    shape, weight, bias, eps = norm.weight.shape, norm.weight, norm.bias, norm.eps

    def normalise(x: Tensor) -> Tensor:
        return F.layer_norm(x, shape, weight, bias, eps)  # without a module's checks

    return (normalise, _unchanged) if residual.norm_first else (_unchanged, normalise)


def _unchanged(x: Tensor) -> Tensor:
    return x


def _attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return [rows, 1, d_v] for one scaled query each, q [rows, 1, d_k], over k and v [rows, len, d]."""
    scores = torch.bmm(q, k.mT) if bias is None else torch.baddbmm(bias, q, k.mT)  # [rows, 1, len]
    return torch.bmm(scores.softmax(dim=-1), v)
