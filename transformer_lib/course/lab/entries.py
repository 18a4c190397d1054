"""Every entry of the encoder's attention, cut alone: its weight, what it carries, what the cut does (notebook 15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...data.corpora import Pair
from ...decoding.translator import Translator
from ...model.evaluating import evaluating
from ...model.multihead import MultiHeadAttention
from ...model.recording import record_attention
from .cuts import cut_rows
from .questions import Questions, margins

LARGE, IDLE = 0.5, 0.1  # a large weight, and a change of the margin that counts as none


@dataclass(frozen=True)
class Entries:
    """One number per entry (query and key) of all sentences: weight, length and effect, and which entries these are."""

    weight: np.ndarray  # the largest in any layer and head
    length: np.ndarray  # the largest of the vectors that a head carries from key to query, a_ij ‖v_j W_O‖
    effect: np.ndarray  # by how much the margin changes when the entry is cut in every layer and head
    of_noun: np.ndarray  # whether the query is the ambiguous noun
    is_cue: np.ndarray  # whether the key is its cue besides
    sentence: np.ndarray  # the number of the sentence, from 0

    def summary(self, rows: np.ndarray) -> dict[str, float]:
        """Return how weight and length go with the effect (rank correlation) in the entries `rows`, and how many of
        them, besides the cue's, have a large weight, with the share of these whose cut does nothing (idle)."""
        large = (self.weight > LARGE) & rows & ~self.is_cue
        return {
            "entries": int(rows.sum()),
            "large": int(large.sum()),
            "idle": round(float(np.mean(self.effect[large] < IDLE)), 2),
            "weight": round(rank_correlation(self.weight[rows], self.effect[rows]), 2),
            "length": round(rank_correlation(self.length[rows], self.effect[rows]), 2),
        }

    def points(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weight and effect of the entries `rows`."""
        return self.weight[rows], self.effect[rows]

    def named(self, measure: np.ndarray) -> int:
        """Return in how many sentences the largest `measure` in the noun's row is that of the largest effect there."""
        rows = [self.of_noun & (self.sentence == number) for number in np.unique(self.sentence)]
        return sum(int(measure[row].argmax() == self.effect[row].argmax()) for row in rows)


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's rank correlation: the correlation of the ranks, where equal values share their mean rank."""
    ranks = []
    for values in (x, y):
        _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((counts.cumsum() - (counts - 1) / 2)[group])
    return float(np.corrcoef(*ranks)[0, 1])


def carried_lengths(attention: MultiHeadAttention, source: Tensor, weights: Tensor) -> Tensor:
    """Return a_ij ‖v_j W_O‖ of each head, [batch, n_heads, q_len, k_len].

    source: [batch, k_len, d_model], what the keys are made of. weights: a_ij, [batch, n_heads, q_len, k_len].
    """
    value = attention.w_v(source).unflatten(-1, (attention.n_heads, -1)).transpose(1, 2)
    W_O = attention.w_o.weight.T.unflatten(0, (attention.n_heads, -1))  # [n_heads, d_v, d_model]
    return weights * (value @ W_O).norm(dim=-1)[:, :, None, :]


def short_sentences(pairs: Sequence[Pair]) -> list[Pair]:
    """Return every second sentence of at most eight words with an ambiguous noun."""
    return [pair for pair in pairs if pair.word not in ("", "it") and len(pair.src.split()) <= 8][::2]


@torch.no_grad()
def of_sentence(translator: Translator, pair: Pair) -> tuple[np.ndarray, ...]:
    """Return weight, length, effect, of_noun and is_cue of the n² entries of one sentence, row by row."""
    with evaluating(translator.model):
        return _of_sentence(translator, pair)


def _of_sentence(translator: Translator, pair: Pair) -> tuple[np.ndarray, ...]:
    model, one = translator.model, Questions(translator, [pair])
    n, x, layers = one.src.shape[1], model._embed(model.src_embedding, one.src), []
    for layer in model.encoder.layers:
        with record_attention(layer) as record:
            after = layer(x)
        weights = record["self_attention"]  # [1, n_heads, n, n]
        layers.append((weights, carried_lengths(layer.self_attention, x, weights)))
        x = after
    weight, length = (torch.cat(kind).amax(dim=(0, 1)).flatten() for kind in zip(*layers, strict=True))
    many, entry = Questions(translator, [pair] * n * n), torch.arange(n * n)
    whole = margins(model, one)
    with cut_rows(model, many, entry // n, entry % n):
        effect = (margins(model, many) - whole).abs()
    of_noun = entry // n == one.word
    return tuple(kind.numpy() for kind in (weight, length, effect, of_noun, of_noun & (entry % n == one.cue)))


def of_sentences(translator: Translator, pairs: Sequence[Pair]) -> Entries:
    """Measure every entry of every sentence."""
    parts = [of_sentence(translator, pair) for pair in pairs]
    sentence = np.concatenate([np.full(len(rows[0]), number) for number, rows in enumerate(parts)])
    return Entries(*map(np.concatenate, zip(*parts, strict=True)), sentence=sentence)
