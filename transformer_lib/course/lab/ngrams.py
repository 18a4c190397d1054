"""Counting as well as one can: n-grams smoothed as Kneser and Ney did, and sentences drawn from them (notebook 19).

Interpolated, with three discounts a length, as Chen and Goodman (1999) found best.
"""

from __future__ import annotations

import functools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence

from ...data.tokenizers import BOS_ID, EOS_ID
from . import masks

Words = tuple[int, ...]
Table = dict[Words, Counter[int]]  # context -> how often each word followed it


class KneserNey:
    """P(w | c): what is left of w's count after c when it has been discounted, and the rest from a shorter context.

    A shorter context does not count how often a word followed it, but after how many different longer ones: a word that
    is frequent, but only ever after one other word, is unlikely anywhere else. (A context from the beginning of a
    sentence has no longer one, and is counted as it is.)

    Args:
        order: words that count, the predicted one included. sentences: ids, from bos on. vocab_size: of the uniform
            distribution that the shortest context falls back on.
    """

    def __init__(self, order: int, sentences: Sequence[Sequence[int]], vocab_size: int) -> None:
        if order < 1 or vocab_size < 1:
            raise ValueError(f"order and vocab_size must be at least 1, got {order} and {vocab_size}")
        self.order, self.vocab_size = order, vocab_size
        counted = [_followers(sentences, length) for length in range(order)]
        self.tables = [_kinds(*pair) for pair in zip(counted[:-1], counted[1:], strict=True)] + counted[-1:]
        self.discounts = [_discounts(table) for table in self.tables]
        self.shares = [{context: self._kept(length, c) for context, c in t.items()} for length, t in self._lengths()]

    def _lengths(self) -> list[tuple[int, Table]]:
        return list(enumerate(self.tables))

    def _kept(self, length: int, followers: Counter[int]) -> tuple[dict[int, float], float]:
        """Return the share that each word keeps, and what is left for shorter contexts."""
        total, discounts = sum(followers.values()), self.discounts[length]
        kept = {word: (times - discounts[min(times, 3) - 1]) / total for word, times in followers.items()}
        return kept, 1 - sum(kept.values())

    def probability(self, ids: Sequence[int], at: int) -> float:
        """Return P(ids[at] | the words before it)."""
        probability = 1 / self.vocab_size
        for length in range(min(self.order, at + 1)):
            found = self.shares[length].get(tuple(ids[at - length : at]))
            if found is None:
                break  # longer ones have not been seen, either
            probability = found[0].get(ids[at], 0.0) + found[1] * probability
        return probability

    def perplexity(self, sentences: Sequence[Sequence[int]]) -> float:
        """Return the perplexity of sentences, bos given."""
        logs = [math.log(self.probability(ids, at)) for ids in sentences for at in range(1, len(ids))]
        return math.exp(-sum(logs) / len(logs))

    def draw(self, rng: random.Random, longest: int = masks.LONGEST) -> list[int]:
        """Return a sentence drawn word by word, from bos to eos, or cut off."""
        said = [BOS_ID]
        while said[-1] != EOS_ID and len(said) < longest:
            said.append(self._draw_next(said, rng))
        return said

    def _draw_next(self, said: Sequence[int], rng: random.Random) -> int:
        """Draw as the mixture is defined: a word that a context keeps, or else ask the next shorter one."""
        for length in range(min(self.order, len(said) + 1) - 1, -1, -1):
            kept, rest = self.shares[length].get(tuple(said[len(said) - length :]), ({}, 1.0))
            if rng.random() >= rest:
                return rng.choices(list(kept), list(kept.values()))[0]
        return rng.randrange(self.vocab_size)


def _followers(sentences: Sequence[Sequence[int]], length: int) -> Table:
    """Return how often each word followed each context of this length."""
    table: defaultdict[Words, Counter[int]] = defaultdict(Counter)
    for ids in sentences:
        for at in range(max(1, length), len(ids)):
            table[tuple(ids[at - length : at])][ids[at]] += 1
    return dict(table)


def _kinds(counted: Table, longer: Table) -> Table:
    """Return after how many different words before it each context was followed by each word."""
    table: defaultdict[Words, Counter[int]] = defaultdict(Counter)
    for context, followers in longer.items():
        table[context[1:]].update(dict.fromkeys(followers, 1))
    for context, followers in counted.items():
        if context[:1] == (BOS_ID,):
            table[context] = followers
    return dict(table)


def _discounts(table: Table) -> tuple[float, float, float]:
    """Return what is taken off counts of one, two, and three or more: from how many counts are one to four."""
    of = Counter(times for followers in table.values() for times in followers.values())
    if not all(of[times] for times in (1, 2, 3)):
        return (0.5, 0.5, 0.5)  # too few to estimate anything from
    base = of[1] / (of[1] + 2 * of[2])
    one, two, three = (times - (times + 1) * base * of[times + 1] / of[times] for times in (1, 2, 3))
    return (min(1.0, max(0.0, one)), min(2.0, max(0.0, two)), min(3.0, max(0.0, three)))


@functools.lru_cache(maxsize=8)
def counted(order: int) -> KneserNey:
    """Return the n-grams of this order, counted in the German training sentences."""
    words, ids = masks.german()
    return KneserNey(order, ids["train"], len(words))


def perplexity(order: int) -> float:
    """Return their perplexity on the held-out sentences."""
    return counted(order).perplexity(masks.german()[1]["heldout"])


def sentences(order: int, number: int, seed: int = 0) -> list[str]:
    """Return sentences drawn from them."""
    model, words, rng = counted(order), masks.german()[0], random.Random(seed)
    return [words.decode(model.draw(rng)[1:]) for _ in range(number)]


def new_triples(texts: Sequence[str]) -> float:
    """Return which share of three tokens in a row, bos and eos included, no training sentence has."""
    words, ids = masks.german()
    known = {tuple(one[at : at + 3]) for one in ids["train"] for at in range(len(one) - 2)}
    coded = [words.encode(text, bos=True, eos=True) for text in texts]
    triples = [tuple(one[at : at + 3]) for one in coded for at in range(len(one) - 2)]
    return sum(triple not in known for triple in triples) / len(triples)
