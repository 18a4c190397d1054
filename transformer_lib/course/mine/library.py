"""The library's way to do each part of the model, which a learner's function replaces."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from ...model.masks import causal_mask, padding_mask
from ...model.positional import sinusoidal_encoding
from ...training.loss import translation_loss

Function = Callable[..., Any]


def whose(theirs: Collection[str], total: int) -> str:
    """Say in a sentence which of `total` functions are the learner's, by the names of their parts."""
    if not theirs:
        return f"All {total} functions are the library's; each of yours takes its place once it is accepted."
    return f"{len(theirs)} of {total} functions {'is' if len(theirs) == 1 else 'are'} yours: {', '.join(theirs)}."


def _given_masks(function: Function) -> Function:
    """Return `ids_to_logits` for ten arguments, also an older one of eight, which makes its two masks itself."""
    if len(inspect.signature(function).parameters) != 8:
        return function

    @functools.wraps(function)
    def without_masks(*args: Any) -> Any:
        return function(*args[:7], args[-1])

    return without_masks


class Parts:
    """The library's way to do each part; a learner's function takes the place of the method with its name.

    Methods that use other parts use the learner's where there are some.
    """

    def __init__(self, theirs: Mapping[str, Function]) -> None:
        self.theirs = theirs
        for name, function in theirs.items():
            setattr(self, name, _given_masks(function) if name == "ids_to_logits" else function)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return weights over the last axis."""
        return scores.softmax(dim=-1)

    def similarity(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the dot product of each query [..., q_len, d] with each key [..., k_len, d]."""
        return query @ key.transpose(-2, -1)

    def project(self, X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of X [..., seq_len, d_model]."""
        return X @ W_Q, X @ W_K, X @ W_V

    def masked_attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return output and weights of scaled dot-product attention; a query that sees nothing gets zeros."""
        scores = self.similarity(query, key) / math.sqrt(query.shape[-1])
        empty = ~mask.any(dim=-1, keepdim=True)
        weights = self.softmax(scores.masked_fill(~(mask | empty), -math.inf)).masked_fill(empty, 0.0)
        return weights @ value, weights

    def embed(self, ids: Tensor, table: Tensor) -> Tensor:
        """Return each id's row of the table, times √d_model."""
        return F.embedding(ids, table) * math.sqrt(table.shape[1])

    def sinusoidal_table(self, seq_len: int, d_model: int) -> Tensor:
        """Return one row per position."""
        return sinusoidal_encoding(seq_len, d_model)

    def causal_mask(self, seq_len: int) -> Tensor:
        """Return [seq_len, seq_len], True = may attend."""
        return causal_mask(seq_len)[0, 0]

    def padding_mask(self, ids: Tensor, pad_id: int) -> Tensor:
        """Return [batch, 1, 1, k_len], True = a real token."""
        return padding_mask(ids, pad_id)

    def split_heads(self, x: Tensor, n_heads: int) -> Tensor:
        """Return [batch, n_heads, seq_len, d] for x [batch, seq_len, n_heads · d]."""
        return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Return [batch, seq_len, n_heads · d] for x [batch, n_heads, seq_len, d]."""
        return x.transpose(1, 2).flatten(2)

    def layer_norm(self, x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
        """Return x normalised token by token."""
        return F.layer_norm(x, gain.shape, gain, bias, eps)

    def feed_forward(self, x: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
        """Return max(0, x W_1 + b_1) W_2 + b_2."""
        return F.linear(F.linear(x, W_1.T, b_1).relu(), W_2.T, b_2)

    def encoder_layer(
        self, x: Tensor, attention: Function, feed_forward: Function, norm_1: Function, norm_2: Function
    ) -> Tensor:
        """Return x after both sub-layers, each with its residual and its norm."""
        x = norm_1(x + attention(x))
        return cast(Tensor, norm_2(x + feed_forward(x)))

    def decoder_layer(
        self,
        x: Tensor,
        memory: Tensor,
        self_attention: Function,
        cross_attention: Function,
        feed_forward: Function,
        norm_1: Function,
        norm_2: Function,
        norm_3: Function,
    ) -> Tensor:
        """Return x after the three sub-layers, each with its residual and its norm."""
        x = norm_1(x + self_attention(x))
        x = norm_2(x + cross_attention(x, memory, memory))
        return cast(Tensor, norm_3(x + feed_forward(x)))

    def ids_to_logits(
        self,
        src: Tensor,
        tgt_in: Tensor,
        embed_src: Function,
        embed_tgt: Function,
        encoder: Function,
        decoder: Function,
        head: Function,
        padding_mask: Function,
        causal_mask: Function,
        pad_id: int,
    ) -> Tensor:
        """Return the logits at every target position."""
        src_mask = padding_mask(src, pad_id)
        tgt_mask = padding_mask(tgt_in, pad_id) & causal_mask(tgt_in.shape[1])
        memory = encoder(embed_src(src), src_mask)
        return cast(Tensor, head(decoder(embed_tgt(tgt_in), memory, tgt_mask, src_mask)))

    def masked_cross_entropy(self, logits: Tensor, tgt_out: Tensor, pad_id: int) -> Tensor:
        """Return the mean loss of the real labels."""
        return translation_loss(logits, tgt_out, pad_id=pad_id)

    def greedy_loop(self, next_logits: Function, bos_id: int, eos_id: int, max_new_tokens: int) -> list[int]:
        """Return the ids of a sentence, from bos, each the likeliest after those before it."""
        ids = [bos_id]
        while len(ids) <= max_new_tokens and (len(ids) == 1 or ids[-1] != eos_id):
            ids.append(int(next_logits(ids).argmax()))
        return ids

    def beam_step(self, scores: Tensor, next_log_probs: Tensor, beam_size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores, parents and tokens of the best continuations."""
        best, flat = (scores[:, None] + next_log_probs).flatten().topk(beam_size)
        return best, flat // next_log_probs.shape[1], flat % next_log_probs.shape[1]

    def stack_logits(
        self, ids: Tensor, prefix_lengths: Tensor, embed: Function, stack: Function, head: Function, pad_id: int
    ) -> Tensor:
        """Return the logits at every position, where each row's first tokens, its prefix, may all see each other."""
        seq_len = ids.shape[1]
        in_prefix = torch.arange(seq_len, device=ids.device) < prefix_lengths[:, None, None, None]
        visible = (self.causal_mask(seq_len).to(ids.device) | in_prefix) & self.padding_mask(ids, pad_id)
        return cast(Tensor, head(stack(embed(ids), visible)))
