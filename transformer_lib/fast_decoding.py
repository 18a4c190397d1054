"""Step-by-step decoding arranged for speed: the numbers of `Transformer.decode` with its cache, in fewer operations.

A step has one query per sentence, so its time goes into starting operations and reading weights. Hence projections are
joined once, keys and values are written into buffers of full length, and a mask is added by the product of q and k.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from . import fast
from .decoder import DecoderLayer
from .packing import RealTokens
from .transformer import Transformer


class FastStepper:
    """Gives the next token's logits for a growing target.

    Args:
        model: one that `fast.applies_to`, in evaluation mode. src: source ids [batch, src_len], no row only padding.
        max_len: the longest target that will be asked for, in tokens.
    """

    def __init__(self, model: Transformer, src: Tensor, max_len: int) -> None:
        self.model, self.src, self.length = model, src, 0
        source = RealTokens(src != model.config.pad_id)
        memory = fast.memory_keys_values(model, fast.encode(model, src, source), source)
        self.layers = [
            _LayerState(layer, key, value, max_len)
            for layer, (key, value) in zip(model.decoder.layers, memory, strict=True)
        ]
        self.sentence = torch.arange(len(src), device=src.device)  # which source each row translates
        self.src_bias = self._bias(src)
        self.tgt_bias: Tensor | None = None  # as long as the target has no padding

    def next_logits(self, tgt: Tensor) -> Tensor:
        """Return [batch, tgt_vocab_size] for the token after tgt [batch, tgt_len], which continues the last call's."""
        if tgt.shape[1] <= self.length:
            raise ValueError(f"tgt must be longer than the {self.length} tokens seen so far, got {tgt.shape[1]}")
        while self.length < tgt.shape[1]:
            states = self._step(tgt[:, : self.length + 1])
        return self.model.output_head(states)

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows` (repeats allowed), in that order."""
        sentence = self.sentence[rows]
        same_sources = torch.equal(sentence, self.sentence)  # beams of one sentence share its memory
        if same_sources and torch.equal(rows, torch.arange(len(self.sentence), device=rows.device)):
            return
        self.sentence, self.src = sentence, self.src[rows]
        for layer in self.layers:
            layer.select_own(rows, self.length)
            if not same_sources:
                layer.select_memory(rows)
        if not same_sources:
            self.src_bias = self._bias(self.src)

    def _step(self, tgt: Tensor) -> Tensor:
        """Return the decoder's output [batch, d_model] for the last token of tgt, and keep its keys and values."""
        model, position = self.model, self.length
        self.tgt_bias = self._bias(tgt)
        x = model.tgt_embedding(tgt[:, position : position + 1]) * math.sqrt(model.config.d_model)
        x = model.position(x, position)[:, 0]  # [batch, 1, d_model] -> [batch, d_model]
        for state in self.layers:
            x = state.layer.self_attention_residual(x, lambda y, s=state: s.attend_own(y, position, self.tgt_bias))
            x = state.layer.cross_attention_residual(x, lambda y, s=state: s.attend_memory(y, self.src_bias))
            x = state.layer.feed_forward_residual(x, state.layer.feed_forward)
        self.length += 1
        return model.decoder.norm(x)

    def _bias(self, ids: Tensor) -> Tensor | None:
        """Return 0 for tokens and −∞ for padding, [batch · n_heads, 1, len], or None without padding."""
        padding = ids == self.model.config.pad_id
        if not padding.any():
            return None
        numbers = torch.zeros(ids.shape, dtype=self.model.output_head.weight.dtype, device=ids.device)
        bias = numbers.masked_fill_(padding, -math.inf)[:, None]  # [batch, 1, len]
        return bias.repeat_interleave(self.model.config.n_heads, dim=0)


class _LayerState:
    """A decoder layer's keys and values, [batch · n_heads, len, d_k]: its own, and the memory's."""

    def __init__(self, layer: DecoderLayer, memory_keys: Tensor, memory_values: Tensor, max_len: int) -> None:
        self.layer, self.n_heads = layer, layer.self_attention.n_heads
        own = layer.self_attention
        linears = [own.w_q, own.w_k, own.w_v]
        self.weight = torch.cat([linear.weight for linear in linears])
        self.bias = None if own.w_q.bias is None else torch.cat([linear.bias for linear in linears])
        self.memory_keys, self.memory_values = memory_keys.flatten(0, 1), memory_values.flatten(0, 1)
        self.keys, self.values = (
            x.new_empty(len(x), max_len, x.shape[2]) for x in (self.memory_keys, self.memory_values)
        )

    def attend_own(self, y: Tensor, position: int, bias: Tensor | None) -> Tensor:
        """Return the self-attention's output for y, the token at `position`; both [batch, d_model]."""
        own = self.layer.self_attention
        q, k, v = (self._heads(part) for part in F.linear(y, self.weight, self.bias).chunk(3, dim=-1))
        q, k = own.rotate(q, position), own.rotate(k, position)
        self.keys[:, position], self.values[:, position] = k[:, 0], v[:, 0]
        relative = own.score_bias(1, position + 1)  # [n_heads, 1, position + 1]
        if relative is not None:
            relative = relative.repeat(len(y), 1, 1)
            bias = relative if bias is None else bias + relative
        return own.w_o(_attend(q, self.keys[:, : position + 1], self.values[:, : position + 1], bias).view(len(y), -1))

    def attend_memory(self, y: Tensor, bias: Tensor | None) -> Tensor:
        """Return the cross-attention's output for y; both [batch, d_model]."""
        cross = self.layer.cross_attention
        heads = _attend(self._heads(cross.w_q(y)), self.memory_keys, self.memory_values, bias)
        return cross.w_o(heads.view(len(y), -1))

    def select_own(self, rows: Tensor, length: int) -> None:
        """Keep the rows' own keys and values, of which `length` places are filled."""
        self.keys, self.values = (self._rows(x, rows, length) for x in (self.keys, self.values))

    def select_memory(self, rows: Tensor) -> None:
        """Keep the rows' memory."""
        self.memory_keys, self.memory_values = (
            self._rows(x, rows, x.shape[1]) for x in (self.memory_keys, self.memory_values)
        )

    def _heads(self, x: Tensor) -> Tensor:
        """[batch, n_heads · d] -> [batch · n_heads, 1, d]."""
        return x.reshape(-1, 1, x.shape[1] // self.n_heads)

    def _rows(self, x: Tensor, rows: Tensor, length: int) -> Tensor:
        """Return x [batch · n_heads, len, d] with the batch rows `rows`; only `length` places are copied."""
        kept = x.unflatten(0, (-1, self.n_heads))[rows, :, :length].flatten(0, 1)
        if length == x.shape[1]:
            return kept
        result = x.new_empty(len(kept), *x.shape[1:])
        result[:, :length] = kept
        return result


def _attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return the output [n, 1, d_v] of one query each, q [n, 1, d_k], over k [n, len, d_k] and v [n, len, d_v]."""
    q = q / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(1, 2) if bias is None else torch.baddbmm(bias, q, k.transpose(1, 2))  # [n, 1, len]
    return scores.softmax(dim=-1) @ v
