"""A cache of keys and values in pages: memory is taken when tokens come, and given back when a sentence ends.

An ordinary cache reserves one row for each sentence, as long as the longest may become. Here a sentence has a table of
pages, each with room for a few tokens, anywhere in one pool; sentences that begin alike share pages until one of them
writes (Kwon et al. 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._lists import check_items
from .._validate import check_int
from ..model.base import TranslationModel
from ..model.cache import DecoderCache, KeyValueCache, check_kept


class OutOfPages(RuntimeError):
    """A token needs a page, and all are in use."""


class Pages:
    """Which page holds which tokens of which sentence: a table for each sentence, and a list of free pages.

    Args:
        n_pages: pages of the pool. page_size: tokens that fit into one.
    """

    def __init__(self, n_pages: int, page_size: int) -> None:
        self.n_pages, self.page_size = check_int("n_pages", n_pages), check_int("page_size", page_size)
        self.free = list(range(self.n_pages))[::-1]  # taken from the end: page 0 first
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.peak = 0  # most pages that were ever in use
        self._users = [0] * self.n_pages  # tables that a page is in
        self._opened = 0

    @property
    def used(self) -> int:
        """Pages in use."""
        return self.n_pages - len(self.free)

    @property
    def tokens(self) -> int:
        """Tokens of all sentences; one in a shared page counts for each of them."""
        return sum(self.lengths.values())

    def open(self) -> int:
        """Begin an empty sentence, and return its number."""
        self._opened += 1
        self.tables[self._opened], self.lengths[self._opened] = [], 0
        return self._opened

    def append(self, sentence: int) -> tuple[int, int]:
        """Make room for one more token of a sentence: return its page, and where in the page it goes.

        Raises:
            OutOfPages: none is free; the sentence stays as it was. ValueError: there is no such sentence.
        """
        return self.append_moving(sentence)[:2]

    def append_moving(self, sentence: int) -> tuple[int, int, int | None]:
        """As `append`; the third is the page that must first be copied into the new one, if others share it."""
        table, copied = self._table(sentence), None
        place = self.lengths[sentence] % self.page_size
        if place == 0:
            table.append(self._take())
        elif self._users[table[-1]] > 1:
            copied, table[-1] = table[-1], self._take()
            self._users[copied] -= 1
        self.lengths[sentence] += 1
        return table[-1], place, copied

    def slot(self, sentence: int, token: int) -> tuple[int, int]:
        """Return the page of a sentence's token, counted from 0, and where in the page it is.

        Raises:
            ValueError: there is no such sentence or token.
        """
        table = self._table(sentence)
        if check_int("token", token, minimum=0) >= self.lengths[sentence]:
            raise ValueError(f"token must be below the sentence's length {self.lengths[sentence]}, got {token}")
        return table[token // self.page_size], token % self.page_size

    def fork(self, sentence: int) -> int:
        """Begin a sentence with all tokens of another, in the same pages, and return its number."""
        table = self._table(sentence)
        for page in table:
            self._users[page] += 1
        new = self.open()
        self.tables[new], self.lengths[new] = list(table), self.lengths[sentence]
        return new

    def crop(self, sentence: int, length: int) -> None:
        """Forget a sentence's tokens but the first `length`, and free the pages that this empties."""
        table = self._table(sentence)
        self.lengths[sentence] = check_kept(length, self.lengths[sentence])
        while len(table) * self.page_size >= length + self.page_size:
            self._release(table.pop())

    def close(self, sentence: int) -> None:
        """End a sentence; pages that no other shares are free again."""
        self.crop(sentence, 0)
        del self.tables[sentence], self.lengths[sentence]

    def _table(self, sentence: int) -> list[int]:
        if sentence not in self.tables:
            raise ValueError(f"sentence must be one of {sorted(self.tables)}, got {sentence!r}")
        return self.tables[sentence]

    def _take(self) -> int:
        if not self.free:
            raise OutOfPages(
                f"a token needs a page, but all {self.n_pages} pages of {self.page_size} tokens are in use "
                f"by {len(self.tables)} sentences with {self.tokens} tokens"
            )
        page = self.free.pop()
        self._users[page] = 1
        self.peak = max(self.peak, self.used)
        return page

    def _release(self, page: int) -> None:
        self._users[page] -= 1
        if not self._users[page]:
            self.free.append(page)


class PagedCache(DecoderCache):
    """A `DecoderCache` whose keys and values of the target lie in pages; a sentence has one table for all layers.

    (Those of the memory are as long as the source from the start, and stay as they are.)

    Args:
        n_layers: of the decoder. pages: where the sentences of this cache are opened; several caches may share it.
    """

    def __init__(self, n_layers: int, pages: Pages) -> None:
        super().__init__(n_layers)
        if not isinstance(pages, Pages):
            raise TypeError(f"pages must be tl.paged.Pages, got {type(pages).__name__}")
        self.pages = pages
        self.sentences: list[int] = []  # one a row
        self.written: list[tuple[int, int, int, int]] = []  # row, token, page, place: what the layers are to write
        self.copied: list[tuple[int, int]] = []  # from page, to page: before they write
        for layer in self.layers:
            layer.self_attention = PagedKeyValueCache(self)

    def append_ids(self, ids: Tensor) -> Tensor:
        """Add ids [batch, new], with room for their keys and values, and return all [batch, length].

        Raises:
            ValueError: another batch size than before. OutOfPages: there is no room for all of them; those that had
                room keep it until `close`.
        """
        all_ids = super().append_ids(ids)
        if not self.sentences:
            self.sentences = [self.pages.open() for _ in range(len(ids))]
        self.written, self.copied = [], []
        for token in range(ids.shape[1]):
            for row, sentence in enumerate(self.sentences):
                page, place, source = self.pages.append_moving(sentence)
                self.written.append((row, token, page, place))
                if source is not None:
                    self.copied.append((source, page))
        return all_ids

    def crop(self, length: int) -> None:
        """Forget all target tokens but the first `length`, and free the pages that this empties."""
        super().crop(length)
        for sentence in self.sentences:
            self.pages.crop(sentence, length)

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows `rows`: a row that is repeated shares its pages, those of a row that leaves are freed."""
        super().select(rows)
        kept = [self.pages.fork(self.sentences[row]) for row in rows.tolist()] if self.sentences else []
        self.close()
        self.sentences = kept

    def close(self) -> None:
        """Give all pages back."""
        for sentence in self.sentences:
            self.pages.close(sentence)
        self.sentences = []


class PagedKeyValueCache(KeyValueCache):
    """One layer's keys and values [n_pages, page_size, n_heads, width], found by the tables of its `PagedCache`."""

    def __init__(self, owner: PagedCache) -> None:
        super().__init__()
        self.owner = owner

    def read(self) -> tuple[Tensor, Tensor]:
        """Return the keys [batch, n_heads, length, d_k] and values [batch, n_heads, length, d_v], gathered."""
        if self._keys is None or self._values is None:
            raise ValueError("the cache must hold something before it is read, got an empty one")
        tables = [self.owner.pages.tables[sentence] for sentence in self.owner.sentences]
        table = torch.tensor(tables, device=self._keys.device)  # [batch, pages of a sentence]
        keys, values = (pool[table].flatten(1, 2)[:, : self.length] for pool in (self._keys, self._values))
        return keys.transpose(1, 2), values.transpose(1, 2)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys [batch, n_heads, new, d_k] and values where `PagedCache.append_ids` made room for them.

        Raises:
            ValueError: they are not of as many sentences and tokens.
        """
        row, token, page, place = torch.tensor(self.owner.written, device=keys.device).T
        if (len(keys), keys.shape[2]) != (len(self.owner.sentences), len(row) // len(self.owner.sentences)):
            wanted = f"[{len(self.owner.sentences)}, n_heads, {len(row) // len(self.owner.sentences)}, d_k]"
            raise ValueError(f"keys must be {wanted}, as the ids were, got shape {tuple(keys.shape)}")
        self._keys, self._values = self._pool(self._keys, keys), self._pool(self._values, values)
        for pool, new in ((self._keys, keys), (self._values, values)):
            for source, target in self.owner.copied:
                pool[target] = pool[source]
            pool[page, place] = new[row, :, token]  # [batch · new, n_heads, width]
        self.length += keys.shape[2]
        return self.read()

    def select(self, rows: Tensor) -> None:
        """Nothing moves: the tables of the rows change."""

    def _pool(self, pool: Tensor | None, new: Tensor) -> Tensor:
        if pool is not None:
            return pool
        pages = self.owner.pages
        return new.new_zeros(pages.n_pages, pages.page_size, new.shape[1], new.shape[3])


@contextmanager
def caching(model: TranslationModel, pages: Pages) -> Iterator[Pages]:
    """Let `model` decode with pages, by `greedy_decode`, `beam_search` and the like, all with path="readable".

    A new cache gives the pages of the one before back, and so does the end.
    """
    last: list[PagedCache] = []

    def close() -> None:
        while last:
            last.pop().close()

    def new_cache() -> PagedCache:
        close()
        last.append(PagedCache(model.config.n_layers, pages))
        return last[-1]

    attributes: dict[str, Any] = vars(model)
    before = {name: attributes[name] for name in ("new_cache",) if name in attributes}
    attributes["new_cache"] = new_cache
    try:
        yield pages
    finally:
        del attributes["new_cache"]
        attributes.update(before)
        close()


@dataclass(frozen=True)
class Slots:
    """Room for tokens: what is `used`, what pages hold (`paged`), and what full rows would hold (`reserved`)."""

    used: int
    paged: int
    reserved: int


def slots(lengths: Iterable[int], *, page_size: int, reserve: int) -> Slots:
    """Return how many tokens there is room for, with sentences of these lengths.

    Args:
        lengths: of the sentences, each at most reserve. page_size: tokens of a page; a sentence's last one may have
            room left. reserve: tokens of the row that each sentence has in an ordinary cache.
    """
    check_int("page_size", page_size)
    check_int("reserve", reserve)
    counts = [check_int("each of lengths", n, minimum=0) for n in check_items("lengths", lengths, "ints")]
    for length in counts:
        if length > reserve:
            raise ValueError(f"each of lengths must be at most reserve = {reserve}, got {length}")
    pages = sum(-(-length // page_size) for length in counts)
    return Slots(used=sum(counts), paged=pages * page_size, reserved=len(counts) * reserve)
