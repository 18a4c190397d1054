"""The work that is timed: sizes, token ids with padding, and where and how it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

import transformer_lib as tl

PAD, BOS, EOS = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Work:
    """Sizes of the models and of their batches, and how often each is measured."""

    vocabulary: int = 8_000
    d_model: int = 256
    n_heads: int = 8
    n_layers: int = 3  # in the encoder, and again in the decoder
    d_ff: int = 1_024
    dropout: float = 0.1
    batch: int = 32
    length: int = 32  # tokens of a sentence, padding included
    decode_batch: int = 8
    new_tokens: int = 64
    beam_size: int = 4
    rounds: int = 21
    steps: int = 2  # timed in each round, after one that is not
    memory_lengths: tuple[int, ...] = (512, 1_024, 2_048, 4_096, 8_192)
    threads: int = 2
    device: str = "cpu"
    bfloat16: bool = False  # mixed precision for all candidates
    compiled: bool = False  # torch.compile for all candidates

    @property
    def max_len(self) -> int:
        """Return the longest sentence a model must be able to read."""
        return max(self.length, self.new_tokens + 1)

    def config(self) -> tl.TransformerConfig:
        """Return the description of our model."""
        return tl.TransformerConfig(
            src_vocab_size=self.vocabulary,
            tgt_vocab_size=self.vocabulary,
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            d_ff=self.d_ff,
            dropout=self.dropout,
            max_len=self.max_len,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
        )

    def pair(self) -> tuple[Tensor, Tensor]:
        """Return src [batch, length] and tgt [batch, length + 1]; tgt begins with bos."""
        src, tgt = (self._padded(self.batch, self.length, seed) for seed in (0, 1))
        return src, torch.cat((tgt.new_full((self.batch, 1), BOS), tgt), dim=1)

    def other_pair(self, number: int) -> tuple[Tensor, Tensor]:
        """Return a pair of the same size with other tokens, and padding of at least one token in each sentence."""
        generator = torch.Generator().manual_seed(number)
        most = int(torch.randint(1, self.length // 2, (), generator=generator))  # of padding
        pair = []
        for length in (self.length, self.length + 1):
            ids = torch.randint(EOS + 1, self.vocabulary, (self.batch, length), generator=generator)
            padding = torch.randint(1, most + 1, (self.batch, 1), generator=generator)
            pair.append(ids.masked_fill_(torch.arange(length) >= length - padding, PAD).to(self.device))
        src, tgt = pair
        tgt[:, 0] = BOS
        return src, tgt

    def source(self) -> Tensor:
        """Return what is translated: ids [decode_batch, length]."""
        return self._padded(self.decode_batch, self.length, 2)

    def _padded(self, batch: int, length: int, seed: int) -> Tensor:
        """Random ids; the first sentence is full, the last almost half padding, a quarter of all tokens is."""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(EOS + 1, self.vocabulary, (batch, length), generator=generator)
        for row in range(batch):
            ids[row, length - row * length // (2 * batch) :] = PAD
        return ids.to(self.device)

    def flops(self) -> int:
        """Operations of a training step's products, a multiply-add being two: once forward, twice backward."""
        return 3 * 2 * self.batch * tl.costs.transformer_cost(self.config(), self.length, self.length).total


class Given:
    """One batch after the other, as given: as much of `tl.Batches` as `tl.train` needs."""

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield (src, tgt)."""
        yield from self.pairs


FULL = Work()
QUICK = Work(
    vocabulary=97,
    d_model=16,
    n_heads=2,
    n_layers=1,
    d_ff=32,
    batch=4,
    length=8,
    decode_batch=2,
    new_tokens=5,
    beam_size=2,
    rounds=2,
    threads=1,
    memory_lengths=(128, 256),
)
