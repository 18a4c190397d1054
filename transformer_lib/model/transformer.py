"""The encoder-decoder Transformer of Vaswani et al. (2017), from token ids to logits."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from .._validate import check_ids, check_sequence, check_tensor
from .base import TranslationModel, initialise
from .cache import DecoderCache, check_depth
from .config import TransformerConfig
from .decoder import Decoder
from .encoder import Encoder
from .masks import causal_mask, padding_mask
from .positional import make_position, score_position


class Transformer(TranslationModel):
    """Embeddings × √d_model plus positions, `Encoder`, `Decoder`, and a linear output head without bias.

    Args:
        config: sizes and choices; see `TransformerConfig`.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if not isinstance(config, TransformerConfig):
            raise TypeError(f"config must be a TransformerConfig, got {type(config).__name__}")
        self.config = config
        options: dict[str, Any] = {
            "dropout": config.dropout,
            "norm_first": config.norm_first,
            "position": score_position(config.position),
        }
        sizes = (config.n_layers, config.d_model, config.n_heads, config.d_ff)
        self.src_embedding = nn.Embedding(config.src_vocab_size, config.d_model)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, config.d_model)
        self.position = make_position(config.position, config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(*sizes, **options)
        self.decoder = Decoder(*sizes, **options)
        self.output_head = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        """Draw the weights as `initialise` does, and tie the tables last."""
        initialise(self, (self.src_embedding, self.tgt_embedding))
        if self.config.tie_embeddings:
            self.tgt_embedding.weight = self.output_head.weight = self.src_embedding.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size]; row t scores the token after tgt_in[:, t].

        Args:
            src: source ids [batch, src_len]. tgt_in: target ids shifted right, beginning with bos [batch, tgt_len].

        Raises:
            TypeError, ValueError: wrong rank or dtype, ids out of range, an empty batch, more than max_len tokens.
        """
        return self.decode(tgt_in, self.encode(src), src)

    def encode(self, src: Tensor) -> Tensor:
        """Return the memory [batch, src_len, d_model] of source ids [batch, src_len]."""
        config = self.config
        src = check_ids("src", src, config.src_vocab_size, max_len=config.max_len)
        return self.encoder(self._embed(self.src_embedding, src), self.src_mask(src))

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size].

        Args:
            tgt_in: target ids [batch, tgt_len]; with a cache, only those after the ones it holds.
            memory: `encode(src)`. src: the source ids, to know which memory rows are padding.
            cache: a `DecoderCache` for step-by-step decoding; it grows by tgt_in.
        """
        config = self.config
        start = cache.length if cache is not None else 0
        tgt_in = check_ids("tgt_in", tgt_in, config.tgt_vocab_size, max_len=config.max_len, start=start)
        check_tensor("src", src, rank=2)
        check_sequence("memory", memory, config.d_model)
        if tgt_in.shape[0] != memory.shape[0]:  # before the cache is touched
            raise ValueError(f"memory must have tgt_in's batch size {tgt_in.shape[0]}, got {memory.shape[0]}")
        if memory.shape[:2] != src.shape:
            raise ValueError(f"memory must be the encoding of src {tuple(src.shape)}, got shape {tuple(memory.shape)}")
        if cache is not None:
            check_depth(cache.layers, self.decoder.layers)
        tgt_so_far = tgt_in if cache is None else cache.append_ids(tgt_in)
        tgt_len = tgt_in.shape[1]
        x = self._embed(self.tgt_embedding, tgt_in, start)
        tgt_mask, memory_mask = self.tgt_mask(tgt_so_far, tgt_len), self.memory_mask(src, tgt_so_far, tgt_len)
        x = self.decoder(x, memory, tgt_mask, memory_mask, cache=cache)
        return self.output_head(x)  # [batch, tgt_len, d_model] -> [batch, tgt_len, tgt_vocab_size]

    def src_mask(self, src: Tensor) -> Tensor:
        """Return which source tokens the encoder may see: the real ones, [batch, 1, 1, src_len]."""
        return padding_mask(src, self.config.pad_id)

    def tgt_mask(self, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Return what the last q_len target tokens may see: real ones up to themselves, [batch, 1, q_len, so far]."""
        causal = causal_mask(q_len, tgt_so_far.shape[1], device=tgt_so_far.device)
        return causal & padding_mask(tgt_so_far, self.config.pad_id)

    def memory_mask(self, src: Tensor, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Return which memory rows the last q_len target tokens may see: those of real source tokens, for all alike.

        (A subclass may look at the target, too: see `transformer_lib.baselines`.)
        """
        return padding_mask(src, self.config.pad_id)

    def new_cache(self) -> DecoderCache:
        """Return an empty cache for `decode`."""
        return DecoderCache(len(self.decoder.layers))

    def _embed(self, embedding: nn.Embedding, ids: Tensor, start: int = 0) -> Tensor:
        """[batch, seq_len] ids -> [batch, seq_len, d_model] vectors with positions."""
        x = embedding(ids) * math.sqrt(self.config.d_model)
        return self.dropout(self.position(x, start))
