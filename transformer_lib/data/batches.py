"""Batches of sentence pairs of similar length, shuffled differently, and repeatably, in every epoch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from torch import Tensor

from .._lists import check_rows
from .._validate import check_int
from .tokenizers import PAD_ID, pad_rows

# Sorting within pools of this many batches leaves little padding, yet batches still differ between epochs.
_POOL = 20


class Batches:
    """Yields (src [batch, src_len], tgt [batch, tgt_len]) id batches; tgt has bos in front and eos behind.

    Args:
        src, tgt: one list of ids per sentence, equally many; a source has at least one, a target at least bos and eos.
        batch_size: sentences per batch (the last of an epoch may be smaller).
        max_tokens: instead of batch_size: a limit on the tokens of source and target, padding included, so that short
            sentences fill a batch as well as long ones.
        seed: of the order; epoch e is shuffled by (seed, e), so that a resumed run sees what an uninterrupted one
            would have seen.
        pad_id: fills up shorter sentences.

    Raises:
        TypeError, ValueError: a sentence has too few ids, or some that are none; one of the others is out of range.
    """

    def __init__(
        self,
        src: Iterable[Iterable[int]],
        tgt: Iterable[Iterable[int]],
        batch_size: int | None = None,
        *,
        max_tokens: int | None = None,
        seed: int = 0,
        pad_id: int = PAD_ID,
    ) -> None:
        self.src, self.tgt = _checked("src", src, 1), _checked("tgt", tgt, 2)
        if len(self.src) != len(self.tgt):
            raise ValueError(f"src and tgt must have equally many sentences, got {len(self.src)} and {len(self.tgt)}")
        if not self.src:
            raise ValueError("src and tgt must not be empty, got no sentence")
        if (batch_size is None) == (max_tokens is None):
            given = f"{batch_size} and {max_tokens}"
            raise ValueError(f"exactly one of batch_size and max_tokens must be given, got {given}")
        self.batch_size, self.max_tokens = batch_size, max_tokens
        if batch_size is not None:
            check_int("batch_size", batch_size)
        else:
            self._ends = self._cut(check_int("max_tokens", max_tokens))
        self.seed = check_int("seed", seed, minimum=0)
        self.pad_id = check_int("pad_id", pad_id, minimum=0)

    def __len__(self) -> int:
        """Return the number of batches in an epoch; it is the same in every one."""
        return len(self._ends) if self.batch_size is None else -(-len(self.src) // self.batch_size)  # rounded up

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.epoch(0)

    def epoch(self, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of epoch `number` (0, 1, …)."""
        for indices in self._order(number):
            yield (
                pad_rows([self.src[i] for i in indices], self.pad_id),
                pad_rows([self.tgt[i] for i in indices], self.pad_id),
            )

    def _order(self, number: int) -> list[list[int]]:
        rng = random.Random(f"{self.seed}/{number}")
        order = list(range(len(self.src)))
        rng.shuffle(order)
        batches = self._by_tokens(order) if self.batch_size is None else self._by_sentences(order, self.batch_size)
        rng.shuffle(batches)
        return batches

    def _by_sentences(self, order: list[int], batch_size: int) -> list[list[int]]:
        pool = _POOL * batch_size
        batches = []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=lambda i: (len(self.src[i]), len(self.tgt[i])))
            batches += [near[i : i + batch_size] for i in range(0, len(near), batch_size)]
        return batches

    def _longer(self, i: int) -> int:
        """Return the length of a pair's longer side."""
        return max(len(self.src[i]), len(self.tgt[i]))

    def _by_tokens(self, order: list[int]) -> list[list[int]]:
        """Cut the pairs, sorted by their longer side: pairs of one length change places, the cuts stay."""
        by_length = sorted(order, key=self._longer)
        return [by_length[start:end] for start, end in zip([0, *self._ends], self._ends, strict=False)]

    def _cut(self, max_tokens: int) -> list[int]:
        """Return where the batches end among the pairs sorted by their longer side.

        Counting both sides of a batch as wide as its longest sentence, the cuts depend on the lengths alone: every
        epoch has as many batches, and the limit holds in each.
        """
        lengths = sorted(map(self._longer, range(len(self.src))))
        if 2 * lengths[-1] > max_tokens:
            raise ValueError(f"max_tokens must hold the longest pair, 2 · {lengths[-1]} tokens, got {max_tokens}")
        ends, start = [], 0
        for i, length in enumerate(lengths):
            if (i + 1 - start) * 2 * length > max_tokens:
                ends.append(i)
                start = i
        return [*ends, len(lengths)]


def _checked(name: str, sentences: Iterable[Iterable[int]], fewest: int) -> list[list[int]]:
    """Return the ids of the sentences, of which each has at least `fewest`."""
    rows = check_rows(name, sentences, fewest=fewest)
    for i, ids in enumerate(rows):
        if min(ids) < 0:
            raise ValueError(f"{name} must hold ids of at least 0, got {min(ids)} in sentence {i}")
    return rows
