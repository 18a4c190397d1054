"""Translation without an encoder: source and target are one sequence, read by one stack under one mask."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .._validate import check_choice, check_id_batch, check_ids, check_sequence
from .base import TranslationModel, initialise
from .cache import DecoderCache, check_depth
from .config import TransformerConfig
from .encoder import Encoder
from .masks import causal_mask, padding_mask, prefix_mask
from .positional import AT_SCORES

MASKS = ("prefix", "causal")


class DecoderOnlyTranslator(TranslationModel):
    """One stack of self-attention layers that reads `source <bos> target` and says the target's next word.

    There is no encoder and no cross-attention: `encode` only looks the source's words up. All training and decoding of
    this library takes it as it takes a `Transformer`, on path="readable".

    Args:
        config: sizes and choices; n_layers are those of the one stack. The position is "rotary", "relative" or "none":
            the padding of a shorter source comes before it, so only offsets within a row mean anything.
        mask: with "causal" each token sees itself and what comes before it, in the source too (as in Liu et al.
            2018); with "prefix" every token sees the whole source besides (Raffel et al. 2020, §3.2.1).
    """

    def __init__(self, config: TransformerConfig, *, mask: str = "prefix") -> None:
        super().__init__()
        if not isinstance(config, TransformerConfig):
            raise TypeError(f"config must be a TransformerConfig, got {type(config).__name__}")
        check_choice("config.position", config.position, AT_SCORES)
        self.config, self.mask = config, check_choice("mask", mask, MASKS)
        self.src_embedding = nn.Embedding(config.src_vocab_size, config.d_model)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = Encoder(
            config.n_layers,
            config.d_model,
            config.n_heads,
            config.d_ff,
            dropout=config.dropout,
            norm_first=config.norm_first,
            position=config.position,
        )
        self.output_head = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
        initialise(self, (self.src_embedding, self.tgt_embedding))
        if config.tie_embeddings:
            self.tgt_embedding.weight = self.output_head.weight = self.src_embedding.weight

    def encode(self, src: Tensor) -> Tensor:
        """Return the source's embedded words [batch, src_len, d_model], in the order of `padding_first`.

        Args:
            src: source ids [batch, src_len].
        """
        src = check_ids("src", src, self.config.src_vocab_size, max_len=self.config.max_len)
        return self._embed(self.src_embedding, padding_first(src, self.config.pad_id))

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size].

        Args:
            tgt_in: target ids [batch, tgt_len]; with a cache, only those after the ones it holds.
            memory: `encode(src)`. src: the source ids, to know which rows are padding.
            cache: grows by tgt_in; the first call puts the source into it, too.
        """
        states = self.states(tgt_in, memory, src, cache=cache)
        return self.output_head(states[:, -tgt_in.shape[1] :])

    def states(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return the stack's output [batch, src_len + tgt_len, d_model]; with a filled cache the new tokens' alone."""
        start = 0 if cache is None else cache.length
        tgt_in = check_ids("tgt_in", tgt_in, self.config.tgt_vocab_size, max_len=self.config.max_len, start=start)
        src = check_id_batch("src", src)
        check_sequence("memory", memory, self.config.d_model)
        if memory.shape[:2] != src.shape or len(tgt_in) != len(src):
            raise ValueError(
                f"memory and tgt_in must be of src {tuple(src.shape)}, "
                f"got shapes {tuple(memory.shape)} and {tuple(tgt_in.shape)}"
            )
        if cache is not None:
            check_depth(cache.layers, self.stack.layers)
        tgt_so_far = tgt_in if cache is None else cache.append_ids(tgt_in)
        x = self._embed(self.tgt_embedding, tgt_in)
        if start == 0:
            x = torch.cat((memory, x), dim=1)
        mask = self.attention_mask(src, tgt_so_far)[..., -x.shape[1] :, :]
        return self._through_stack(x, mask, cache)

    def attention_mask(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return what each token of `source <bos> target` may see, [batch, 1, n, n] with n = src_len + tgt_len."""
        ids = torch.cat((padding_first(src, self.config.pad_id), tgt_in), dim=1)
        n = ids.shape[1]
        if self.mask == "prefix":
            order = prefix_mask(torch.full((len(src),), src.shape[1], device=src.device), n)
        else:
            order = causal_mask(n, device=src.device)
        return order & padding_mask(ids, self.config.pad_id)

    def _through_stack(self, x: Tensor, mask: Tensor, cache: DecoderCache | None) -> Tensor:
        """Return `self.stack(x, mask)`; with a cache, whose keys and values come before those of x."""
        if cache is None:
            return self.stack(x, mask)
        for layer, kept in zip(self.stack.layers, cache.layers, strict=True):
            x = layer(x, mask, cache=kept.self_attention)
        return self.stack.norm(x)

    def new_cache(self) -> DecoderCache:
        """Return an empty cache for `decode`."""
        return DecoderCache(len(self.stack.layers))

    def _embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        """[batch, seq_len] ids -> [batch, seq_len, d_model], × √d_model."""
        return self.dropout(embedding(ids) * math.sqrt(self.config.d_model))


def padding_first(ids: Tensor, pad_id: int) -> Tensor:
    """Return ids [batch, seq_len] with each row's padding moved to its front, the words' order kept.

    So a source ends where the target begins, and its offsets to it do not depend on how long the others are.
    """
    order = (ids != pad_id).long().argsort(dim=1, stable=True)
    return ids.gather(1, order)
