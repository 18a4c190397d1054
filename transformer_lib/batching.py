"""Batches of sentence pairs of similar length, shuffled anew and repeatably in every epoch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from torch import Tensor

from ._validate import check_int
from .tokenizer import PAD_ID, pad_batch

# Sorting within pools of this many batches leaves little padding, and batches that still differ between epochs.
_POOL = 20


class Batches:
    """Yields (src [batch, src_len], tgt [batch, tgt_len]) id batches; tgt has bos in front and eos behind.

    Args:
        src, tgt: one list of ids per sentence, equally many.
        batch_size: sentences per batch (the last of an epoch may be smaller).
        seed: of the order; epoch e is shuffled by (seed, e), so that a resumed run sees what it would have seen.
        pad_id: fills shorter sentences up.
    """

    def __init__(
        self, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]], batch_size: int, *, seed: int = 0,
        pad_id: int = PAD_ID,
    ) -> None:
        if len(src) != len(tgt):
            raise ValueError(f"src and tgt must have equally many sentences, got {len(src)} and {len(tgt)}")
        if not src:
            raise ValueError("src and tgt must not be empty, got no sentence")
        self.src, self.tgt = src, tgt
        self.batch_size = check_int("batch_size", batch_size)
        self.seed = check_int("seed", seed, minimum=0)
        self.pad_id = pad_id

    def __len__(self) -> int:
        return -(-len(self.src) // self.batch_size)  # rounded up

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.epoch(0)

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of epoch `number` (0, 1, …)."""
        for indices in self._order(number):
            yield (
                pad_batch([self.src[i] for i in indices], self.pad_id),
                pad_batch([self.tgt[i] for i in indices], self.pad_id),
            )

    def _order(self, number: int) -> list[list[int]]:
        rng = random.Random(f"{self.seed}/{number}")
        order = list(range(len(self.src)))
        rng.shuffle(order)
        pool = _POOL * self.batch_size
        batches = []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=lambda i: (len(self.src[i]), len(self.tgt[i])))
            batches += [near[i : i + self.batch_size] for i in range(0, len(near), self.batch_size)]
        rng.shuffle(batches)
        return batches
