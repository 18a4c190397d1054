"""A Transformer whose every part can be the learner's: the library's weights, their functions."""

from __future__ import annotations

from dataclasses import fields
from typing import cast

from torch import Tensor, nn

from ..._validate import check_ids
from ...fast.eligibility import unlike_config
from ...model.base import TranslationModel
from ...model.cache import DecoderCache
from ...model.config import TransformerConfig
from ...model.decoder import DecoderLayer
from ...model.transformer import Transformer
from ...training.loss import shift_right
from .layers import Layers
from .library import Parts

# What the parts compute whatever its value; any other field must be what the paper has, its default.
_ANY = frozenset(
    {
        *("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "dropout"),
        *("tie_embeddings", "pad_id", "bos_id", "eos_id"),
    }
)
_FIXED = {field.name: field.default for field in fields(TransformerConfig) if field.name not in _ANY}


def _beyond(weights: nn.Module) -> str | None:
    """Return what of a model the parts do not compute, or None."""
    if type(weights) is not Transformer:
        return f"a {type(weights).__name__}"
    for name, value in _FIXED.items():
        if getattr(weights.config, name) != value:
            return f"{name}={getattr(weights.config, name)!r}"
    unlike = unlike_config(weights, but={"eps", "p", "inplace", "ties"})
    return unlike and f"one in which {unlike}"


class AssembledTransformer(Layers, TranslationModel):
    """A Transformer that computes with `Parts` what a library's `Transformer` computes with its own code.

    Args:
        weights: the library's model, whose parameters it uses and trains; post-norm, with sinusoidal positions.
        parts: the functions.

    Raises:
        ValueError: a model of another kind, or one that was changed since its config built it.
    """

    def __init__(self, weights: TranslationModel, parts: Parts) -> None:
        super().__init__()
        reason = _beyond(weights)
        if reason is not None or not isinstance(weights, Transformer):
            wanted = " and ".join(f"{name}={value!r}" for name, value in _FIXED.items())
            raise ValueError(f"translator must have a Transformer with {wanted}, got {reason}")
        self.weights, self.parts, self.config = weights, parts, weights.config

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size]; arguments and errors as for `Transformer`."""
        config, embed, w = self.config, self._embed, self.weights
        src = check_ids("src", src, config.src_vocab_size, max_len=config.max_len)
        tgt_in = check_ids("tgt_in", tgt_in, config.tgt_vocab_size, max_len=config.max_len)
        return self.parts.ids_to_logits(
            src,
            tgt_in,
            lambda ids: embed(w.src_embedding, ids),
            lambda ids: embed(w.tgt_embedding, ids),
            self._encoder,
            self._decoder,
            self._head,
            self.parts.padding_mask,
            self._causal,
            config.pad_id,
        )

    def encode(self, src: Tensor) -> Tensor:
        """Return the memory [batch, src_len, d_model] of source ids [batch, src_len]."""
        src = check_ids("src", src, self.config.src_vocab_size, max_len=self.config.max_len)
        return self._encoder(self._embed(self.weights.src_embedding, src), self._visible(src))

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits for tgt_in, which is read from its beginning each time: there is no cache."""
        tgt_in = check_ids("tgt_in", tgt_in, self.config.tgt_vocab_size, max_len=self.config.max_len)
        tgt_mask = self._visible(tgt_in) & self._causal(tgt_in.shape[1])
        x = self._embed(self.weights.tgt_embedding, tgt_in)
        return self._head(self._decoder(x, memory, tgt_mask, self._visible(src)))

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the mean cross-entropy of the real target tokens of src [batch, src_len], tgt [batch, tgt_len]."""
        tgt_in, tgt_out = shift_right(tgt)
        return self.parts.masked_cross_entropy(self(src, tgt_in), tgt_out, self.config.pad_id)

    def _causal(self, seq_len: int) -> Tensor:
        return self.parts.causal_mask(seq_len).to(self.weights.output_head.weight.device)

    def _visible(self, ids: Tensor) -> Tensor:
        return self.parts.padding_mask(ids, self.config.pad_id)

    def _embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        x = self.parts.embed(ids, embedding.weight)
        table = self.parts.sinusoidal_table(ids.shape[1], self.config.d_model)
        return cast(Tensor, self.weights.dropout(x + table.to(x)))

    def _head(self, hidden: Tensor) -> Tensor:
        """Return the logits: how similar each hidden vector is to each word's row of the output head."""
        return self.parts.similarity(hidden, self.weights.output_head.weight)

    def _encoder(self, x: Tensor, mask: Tensor) -> Tensor:
        return self._layers(self.weights.encoder, x, mask)

    def _decoder(self, x: Tensor, memory: Tensor, tgt_mask: Tensor, memory_mask: Tensor) -> Tensor:
        for layer in cast("list[DecoderLayer]", self.weights.decoder.layers):
            x = self._decoder_layer(layer, x, memory, tgt_mask, memory_mask)
        return x

    def _decoder_layer(
        self, layer: DecoderLayer, x: Tensor, memory: Tensor, tgt_mask: Tensor, memory_mask: Tensor
    ) -> Tensor:
        own, cross = layer.self_attention_residual, layer.cross_attention_residual
        last = layer.feed_forward_residual
        return self.parts.decoder_layer(
            x,
            memory,
            lambda y: own.dropout(self._attend(layer.self_attention, y, y, y, tgt_mask)),
            lambda q, k, v: cross.dropout(self._attend(layer.cross_attention, q, k, v, memory_mask)),
            lambda y: last.dropout(self._feed_forward(layer.feed_forward, y)),
            *map(self._norm, (own.norm, cross.norm, last.norm)),
        )
