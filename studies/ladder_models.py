"""Translators that grow by one part at a time, in the order of the notebooks: the models of the study `ladder`."""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor, nn

from transformer_lib._validate import check_ids
from transformer_lib.course.lab.ladder_models import PARTS, OneHead
from transformer_lib.model.base import TranslationModel, initialise
from transformer_lib.model.cache import DecoderCache
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.encoder import Encoder
from transformer_lib.model.layers import FeedForward, Residual
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.multihead import MultiHeadAttention
from transformer_lib.model.positional import make_position


class Reader(TranslationModel):
    """For each target position, one attention reads the source words; the query comes from the token before.

    The next word is told from that token's vector and from what was read, side by side in a vector of 2 · d_model;
    with residual connections, from the sum of both. The source is a row of embeddings unless there is an encoder.

    Args:
        config: sizes and vocabularies; n_layers is that of the encoder. The fields in `UNUSED` make no difference.
        parts: which of PARTS there are.

    Raises:
        ValueError: a part is unknown.
    """

    UNUSED = frozenset({"dropout", "norm_first", "position", "tie_embeddings"})

    def __init__(self, config: TransformerConfig, parts: Collection[str] = ()) -> None:
        super().__init__()
        if unknown := sorted(set(parts) - set(PARTS)):
            raise ValueError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)}")
        self.config, self.parts = config, frozenset(parts)
        d_model = config.d_model
        self.src_embedding = nn.Embedding(config.src_vocab_size, d_model)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, d_model)
        self.position = make_position("sinusoidal" if "positions" in parts else "none", config.max_len, d_model)
        self.encoder = Encoder(config.n_layers, d_model, config.n_heads, config.d_ff) if "encoder" in parts else None
        self.attention = self._make_attention()
        if "block" in parts:
            self.feed_forward = FeedForward(d_model, config.d_ff)
            self.attention_residual, self.feed_forward_residual = Residual(d_model), Residual(d_model)
        width = d_model if "block" in parts else 2 * d_model
        self.output_head = nn.Linear(width, config.tgt_vocab_size, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        """Draw the weights as a `Transformer` does; tables that are not learned stay as they are."""
        tables = self.src_embedding, self.tgt_embedding
        initialise(self, tables)
        for table in tables:
            table.weight.requires_grad_("learned vectors" in self.parts)

    def _make_attention(self) -> OneHead | MultiHeadAttention:
        if "heads" in self.parts:
            return MultiHeadAttention(self.config.d_model, self.config.n_heads)
        return OneHead(self.config.d_model, projections="projections" in self.parts, scaled="scaling" in self.parts)

    def encode(self, src: Tensor) -> Tensor:
        """Return a vector for each source word, [batch, src_len, d_model]; an encoder lets them read each other."""
        src = check_ids("src", src, self.config.src_vocab_size, max_len=self.config.max_len)
        x = self._embed(self.src_embedding, src)
        return x if self.encoder is None else self.encoder(x, padding_mask(src, self.config.pad_id))

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size] for all of tgt_in."""
        tgt_in = check_ids("tgt_in", tgt_in, self.config.tgt_vocab_size, max_len=self.config.max_len)
        x = self._embed(self.tgt_embedding, tgt_in)
        readable, mask = self._readable(x, memory, tgt_in, src)
        if "block" not in self.parts:
            return self.output_head(torch.cat((x, self.attention(x, readable, readable, mask)), dim=-1))
        x = self.attention_residual(x, lambda y: self.attention(y, readable, readable, mask))
        return self.output_head(self.feed_forward_residual(x, self.feed_forward))

    def _readable(self, x: Tensor, memory: Tensor, tgt_in: Tensor, src: Tensor) -> tuple[Tensor, Tensor]:
        """Return the vectors that may be read, and the mask [batch, 1, tgt_len, their number]."""
        tgt_len, pad_id = tgt_in.shape[1], self.config.pad_id
        real = padding_mask(src, pad_id).expand(-1, -1, tgt_len, -1)
        if "mask" not in self.parts:
            return memory, real
        earlier = causal_mask(tgt_len, device=tgt_in.device) & padding_mask(tgt_in, pad_id)
        return torch.cat((memory, x), dim=1), torch.cat((real, earlier), dim=-1)

    def _embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """[batch, seq_len] ids -> [batch, seq_len, d_model] vectors of unit-sized entries, with positions."""
        return self.position(table(ids) * math.sqrt(self.config.d_model))
