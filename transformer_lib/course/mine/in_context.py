"""Two attention layers whose every function can be the learner's: they learn to copy, and are taken apart again."""

from __future__ import annotations

import string
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from ..._validate import check_ids, check_int
from ...model import circuits
from ...model.multihead import MultiHeadAttention
from .library import Parts, whose

USED = (
    *("softmax", "similarity", "project", "masked_attention", "causal_mask", "split_heads", "merge_heads"),
    *("induction_score", "ablate_head"),
)
LETTERS = string.ascii_lowercase


class CopierParts(Parts):
    """The parts of `Parts` that attention needs, and those of notebook 21."""

    def induction_score(self, weights: Tensor, period: int) -> Tensor:
        """Return each head's score, [n_heads], for weights [batch, n_heads, seq_len, seq_len]."""
        return circuits.induction_score(weights, period)

    def ablate_head(self, heads: Tensor, head: int) -> Tensor:
        """Return heads [batch, n_heads, seq_len, d_v] with one of them replaced by its mean."""
        chosen = torch.arange(heads.shape[1], device=heads.device)[:, None, None] == head
        return torch.where(chosen, heads.mean(dim=(0, 2), keepdim=True), heads)


class MyCopier(nn.Module):
    """Computes with `CopierParts` what an `AttentionOnly` model of 26 letters computes with the library's code.

    Args:
        weights: the model whose parameters are used, and trained; without norms, with learned positions.
        parts: the functions.

    Raises:
        ValueError: a model of another form.
    """

    def __init__(self, weights: circuits.AttentionOnly, parts: CopierParts) -> None:
        super().__init__()
        norms = (*weights.norms, weights.norm)
        if not all(isinstance(norm, nn.Identity) for norm in norms) or not all(map(_plain, self._of(weights))):
            raise ValueError(
                "model must have no norms, and positions that are added to the letters, and neither biases nor dropout "
                "in its attention, got another"
            )
        self.weights, self.parts = weights, parts
        self._gone: tuple[int, int] | None = None

    @property
    def whose(self) -> str:
        """Which of its functions are the learner's, in a sentence."""
        return whose(self.parts.theirs, len(USED))

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, seq_len, vocab_size] of ids [batch, seq_len]."""
        return self._run(ids)[0]

    @contextmanager
    def without(self, layer: int, head: int) -> Iterator[None]:
        """Replace the output of one head, counted from 0, by its mean inside the `with` block.

        Raises:
            ValueError: there is no such layer or head.
        """
        layers = self._of(self.weights)
        for name, index, count in (("layer", layer, len(layers)), ("head", head, layers[0].n_heads)):
            if check_int(name, index, minimum=0) >= count:
                raise ValueError(f"{name} must be less than {count}, got {index}")
        before, self._gone = self._gone, (layer, head)
        try:
            yield
        finally:
            self._gone = before

    @torch.no_grad()
    def scores(self, ids: Tensor, period: int) -> list[list[float]]:
        """Return the induction score of every head of every layer, for ids that repeat themselves with this period."""
        return [self.parts.induction_score(weights, period).tolist() for weights in self._run(ids)[1]]

    @torch.no_grad()
    def write(self, text: str, count: int) -> str:
        """Return the letters, a to z, that follow a text: the likeliest one each time.

        Raises:
            ValueError: a character is no letter from a to z, or the text becomes too long.
        """
        if not text or not set(text) <= set(LETTERS):
            raise ValueError(f"text must have letters from a to z alone, got {text!r}")
        if len(text) + check_int("count", count) > self.weights.max_len:
            raise ValueError(f"text and count must be at most {self.weights.max_len} together, got {len(text) + count}")
        ids = torch.tensor([[LETTERS.index(letter) for letter in text]])
        for _ in range(count):
            ids = torch.cat([ids, self(ids)[:, -1:].argmax(dim=-1)], dim=1)
        return "".join(LETTERS[i] for i in ids[0, len(text) :].tolist())

    def _run(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        ids = check_ids("ids", ids, self.weights.embedding.num_embeddings, max_len=self.weights.max_len)
        x, seen = self.weights.position(self.weights.embedding(ids)), []
        mask = self.parts.causal_mask(ids.shape[1]).to(ids.device)
        for number, layer in enumerate(self._of(self.weights)):
            added, weights = self._attend(layer, x, mask, number)
            x = x + added
            seen.append(weights)
        return cast(Tensor, self.weights.unembedding(x)), seen

    def _attend(self, layer: MultiHeadAttention, x: Tensor, mask: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Return what one layer adds, [batch, seq_len, d_model], and its weights [batch, n_heads, seq_len, seq_len]."""
        projected = self.parts.project(x, layer.w_q.weight.T, layer.w_k.weight.T, layer.w_v.weight.T)
        query, key, value = (self.parts.split_heads(part, layer.n_heads) for part in projected)
        heads, weights = self.parts.masked_attention(query, key, value, mask)
        if self._gone is not None and self._gone[0] == number:
            heads = self.parts.ablate_head(heads, self._gone[1])
        return self.parts.merge_heads(heads) @ layer.w_o.weight.T, weights

    @staticmethod
    def _of(weights: circuits.AttentionOnly) -> list[MultiHeadAttention]:
        return cast("list[MultiHeadAttention]", list(weights.layers))


def _plain(layer: MultiHeadAttention) -> bool:
    """Return whether a layer does what the parts compute: no positions inside, no biases, no dropout of weights."""
    biases = [linear.bias for linear in (layer.w_q, layer.w_k, layer.w_v, layer.w_o)]
    return layer.position is None and not layer.dropout and all(bias is None for bias in biases)
