"""Models of one stack of self-attention layers: what its mask lets each word see decides what the model is."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from .._validate import check_ids, check_int, check_mask, check_sequence, check_tensor
from .encoder import Encoder
from .layers import ACTIVATIONS, LayerNorm
from .masks import causal_mask
from .positional import LearnedPosition, make_position, score_position


class LanguageModel(nn.Module):
    """Words and positions, one `Encoder` stack, and a head that shares its table with the words.

    Under a causal mask row t gives the logits of word t + 1: a decoder-only model (Radford et al. 2019). The same
    class under a padding mask guesses hidden words, under a `prefix_mask` it continues a prefix.

    Args:
        vocab_size: rows of the table. n_layers, d_model, n_heads, d_ff, layer_options: as for `Encoder`.
        position: one of POSITIONS. max_len: longest sequence; positions that are added to the words need it.
        scale: what the words are multiplied by before anything is added to them; √d_model by default.
    """

    def __init__(
        self,
        vocab_size: int,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        position: str = "rotary",
        max_len: int = 512,
        scale: float | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(check_int("vocab_size", vocab_size), d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.position = make_position(position, max_len, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, position=score_position(position), **layer_options)
        self.max_len, self.scale = max_len, math.sqrt(d_model) if scale is None else scale

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits [batch, seq_len, vocab_size].

        Args:
            ids: [batch, seq_len]. mask: as for `Encoder`; causal by default.
        """
        ids = check_ids("ids", ids, self.embedding.num_embeddings, max_len=self.max_len)
        mask = causal_mask(ids.shape[1], device=ids.device) if mask is None else mask
        x = self.position(self.embedding(ids) * self.scale)
        return self.stack(x, mask) @ self.embedding.weight.T


class TextEncoder(nn.Module):
    """BERT without its head (Devlin et al. 2019): words, positions and segments, normed, and a post-norm stack.

    Args:
        vocab_size: rows of the table. n_layers, d_model, n_heads, d_ff: as for `Encoder`.
        max_len: longest sequence. n_segments: parts of a text that are distinguished. activation: of
            the layers, a name of ACTIVATIONS. eps: ε of every norm.
    """

    def __init__(
        self,
        vocab_size: int,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        max_len: int = 512,
        n_segments: int = 2,
        activation: str = "gelu",
        eps: float = 1e-12,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(check_int("vocab_size", vocab_size), d_model)
        self.position = LearnedPosition(check_int("max_len", max_len), d_model)
        self.segment = nn.Embedding(check_int("n_segments", n_segments), d_model)
        for table in (self.embedding, self.segment):
            nn.init.normal_(table.weight, std=0.02)  # as the positions are
        self.norm = LayerNorm(d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, attention_bias=True, activation=activation)
        self.max_len, self.activation = max_len, activation
        for module in self.modules():
            if isinstance(module, LayerNorm):
                module.eps = eps

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Return the last hidden states, [batch, seq_len, d_model].

        Args:
            ids: [batch, seq_len]. mask: as for `Encoder`, such as `padding_mask(ids, pad_id)`; none by default.
            segments: the number of the segment of each word, [batch, seq_len]; all 0 by default.
        """
        ids = check_ids("ids", ids, self.embedding.num_embeddings, max_len=self.max_len)
        segments = torch.zeros_like(ids) if segments is None else segments
        segments = check_ids("segments", segments, self.segment.num_embeddings)
        if segments.shape != ids.shape:
            raise ValueError(f"segments must have the shape of ids {tuple(ids.shape)}, got {tuple(segments.shape)}")
        x = self.norm(self.position(self.embedding(ids) + self.segment(segments)))
        return self.stack(x, mask)


class MaskedLanguageModel(TextEncoder):
    """BERT with the head that guesses hidden words (Devlin et al. 2019): a `TextEncoder`, and two steps to the words.

    Args:
        eps: ε of every norm, also of the head's. options: as for `TextEncoder`; the head has its activation, too.
    """

    def __init__(
        self,
        vocab_size: int,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        eps: float = 1e-12,
        **options: Any,
    ) -> None:
        super().__init__(vocab_size, n_layers, d_model, n_heads, d_ff, eps=eps, **options)
        self.transform, self.head_norm = nn.Linear(d_model, d_model), LayerNorm(d_model)
        self.head_norm.eps = eps
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Return logits [batch, seq_len, vocab_size]: row t scores the words for place t itself.

        Args:
            ids, mask, segments: as for `TextEncoder`.
        """
        hidden = super().forward(ids, mask, segments)
        x = ACTIVATIONS[self.activation](self.transform(hidden))
        return self.head_norm(x) @ self.embedding.weight.T + self.bias


def mean_pool(hidden: Tensor, real: Tensor) -> Tensor:
    """Return one vector a text, [batch, d_model]: the mean over its tokens (Reimers and Gurevych 2019).

    Args:
        hidden: what a `TextEncoder` returns, [batch, seq_len, d_model].
        real: [batch, seq_len], True for a token and False for padding, such as `ids != pad_id`. A text without a token
            gets zeros.

    Raises:
        TypeError, ValueError: hidden is no such batch; real is not boolean or has another shape.
    """
    check_sequence("hidden", hidden, check_tensor("hidden", hidden, rank=3).shape[-1])
    if check_mask("real", real).shape != hidden.shape[:2]:
        raise ValueError(f"real must have the shape {tuple(hidden.shape[:2])} of hidden, got {tuple(real.shape)}")
    count = real.sum(dim=1, keepdim=True).clamp(min=1)  # [batch, 1]
    return hidden.masked_fill(~real[..., None], 0).sum(dim=1) / count
