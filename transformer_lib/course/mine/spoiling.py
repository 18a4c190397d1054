"""One telling way to spoil each part of the model. Shapes stay as they are, so that nothing warns of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from .library import Function
from .wrapping import Wrap


@dataclass(frozen=True)
class Spoiling:
    """What a part does once it is spoilt, how that is done, and why a translation may not notice."""

    now: str
    wrap: Wrap
    unnoticed: str = (
        "The scores of the words moved, but you see it only where another word overtook the likeliest one. Try "
        "sentences of your own: they are the next arguments."
    )


def _wrong_axis(softmax: Function) -> Function:
    return lambda scores: softmax(scores.transpose(-2, -1)).transpose(-2, -1)


def _backwards(similarity: Function) -> Function:
    return lambda query, key: -similarity(query, key)


def _swapped(project: Function) -> Function:
    return lambda X, W_Q, W_K, W_V: project(X, W_K, W_Q, W_V)


def _unscaled(masked_attention: Function) -> Function:
    return lambda query, key, value, mask: masked_attention(query * math.sqrt(query.shape[-1]), key, value, mask)


def _small(embed: Function) -> Function:
    return lambda ids, table: embed(ids, table) / math.sqrt(table.shape[1])


def _nowhere(sinusoidal_table: Function) -> Function:
    return lambda seq_len, d_model: torch.zeros_like(sinusoidal_table(seq_len, d_model))


def _open(mask: Function) -> Function:
    return lambda *args: torch.ones_like(mask(*args))


def _one_head(split_heads: Function) -> Function:
    return lambda x, n_heads: split_heads(x, 1)


def _reversed(merge_heads: Function) -> Function:
    return lambda x: merge_heads(x.flip(1))


def _no_norm(layer_norm: Function) -> Function:
    return lambda x, gain, bias, eps: x


def _no_bend(feed_forward: Function) -> Function:
    return lambda x, W_1, b_1, W_2, b_2: (x @ W_1 + b_1) @ W_2 + b_2


def _no_residuals(encoder_layer: Function) -> Function:
    return lambda x, attention, feed_forward, norm_1, norm_2: norm_2(feed_forward(norm_1(attention(x))))


def _blind(decoder_layer: Function) -> Function:
    def spoilt(x: Tensor, memory: Tensor, own: Function, cross: Function, *others: Function) -> Tensor:
        return decoder_layer(x, memory, own, lambda q, k, v: torch.zeros_like(q), *others)

    return spoilt


def _no_encoder(ids_to_logits: Function) -> Function:
    def spoilt(
        src: Tensor, tgt_in: Tensor, embed_src: Function, embed_tgt: Function, encoder: Function, *others: object
    ) -> Tensor:
        return cast(Tensor, ids_to_logits(src, tgt_in, embed_src, embed_tgt, lambda x, mask: x, *others))

    return spoilt


def _with_padding(masked_cross_entropy: Function) -> Function:
    return lambda logits, tgt_out, pad_id: masked_cross_entropy(logits, tgt_out, -1)


def _second_best(greedy_loop: Function) -> Function:
    def second(logits: Tensor) -> Tensor:
        return logits.index_fill(-1, logits.argmax(-1), -math.inf)

    def spoilt(next_logits: Function, bos_id: int, eos_id: int, max_new_tokens: int) -> list[int]:
        return greedy_loop(lambda ids: second(next_logits(ids)), bos_id, eos_id, max_new_tokens)

    return spoilt


def _forgetful(beam_step: Function) -> Function:
    def spoilt(scores: Tensor, next_log_probs: Tensor, beam_size: int) -> tuple[Tensor, Tensor, Tensor]:
        return beam_step(torch.where(scores.isfinite(), 0.0, scores), next_log_probs, beam_size)

    return spoilt


def _whole_text(stack_logits: Function) -> Function:
    def spoilt(ids: Tensor, prefix_lengths: Tensor, *others: object) -> Tensor:
        return cast(Tensor, stack_logits(ids, torch.full_like(prefix_lengths, ids.shape[1]), *others))

    return spoilt


SPOILINGS = {
    "softmax": Spoiling("lets the weights add up to 1 over the queries, not over the keys", _wrong_axis),
    "similarity": Spoiling("has a minus in front, so the least similar one wins", _backwards),
    "project": Spoiling("takes W_K for the queries and W_Q for the keys", _swapped),
    "masked_attention": Spoiling("no longer divides its scores by √d_k", _unscaled),
    "embed": Spoiling("forgets to multiply by √d_model", _small),
    "sinusoidal_table": Spoiling("gives every position the same vector, all zeros", _nowhere),
    "causal_mask": Spoiling(
        "hides nothing, so every word may read the words after it",
        _open,
        "While it writes, nothing follows its last word, so only the words before that one can look ahead. In training "
        "it would be a disaster, since there the word to predict is the next one in line.",
    ),
    "padding_mask": Spoiling(
        "hides nothing, so padding is read as if it were words",
        _open,
        "Each sentence is translated alone here, so there is no padding that anyone could read. In a batch of "
        "sentences of different lengths there is.",
    ),
    "split_heads": Spoiling("splits nothing, so one wide head does the work of all", _one_head),
    "merge_heads": Spoiling("puts the heads together in reverse order", _reversed),
    "layer_norm": Spoiling("does nothing, so nobody keeps the numbers in bounds", _no_norm),
    "feed_forward": Spoiling("has lost its ReLU", _no_bend),
    "encoder_layer": Spoiling("has lost its residuals, so each sub-layer replaces what came in", _no_residuals),
    "decoder_layer": Spoiling("gets nothing from cross-attention, so it writes without seeing the English", _blind),
    "ids_to_logits": Spoiling("skips the encoder, so the decoder reads words that have not met", _no_encoder),
    "masked_cross_entropy": Spoiling(
        "counts the padding, too",
        _with_padding,
        "Translating asks for no loss. It is the training that would aim at the wrong thing.",
    ),
    "greedy_loop": Spoiling("takes the second likeliest word every time", _second_best),
    "beam_step": Spoiling("forgets how likely each beam was so far", _forgetful),
    "stack_logits": Spoiling(
        "lets every token read the whole text",
        _whole_text,
        "A translator has two stacks, and does not use this part. It belongs to the single stack of notebook 19.",
    ),
}
