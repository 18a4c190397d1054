"""Counted n-grams: probabilities that sum to one, the definition worked out by loops, and what is drawn."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest

from transformer_lib.course.lab import masks, ngrams

pytestmark = pytest.mark.fast
VOCAB = 13


def corpus(seed, number=23):
    """Sentences from bos (1) to eos (2) of few words, so that contexts come again."""
    rng = random.Random(seed)
    return [[1, *(min(12, 4 + int(rng.expovariate(0.6))) for _ in range(rng.randrange(7))), 2] for _ in range(number)]


def by_definition(sentences, discounts, context, word):
    """P(word | context) by recursion: each count is made anew, over all windows of the sentences."""

    def windows(size):
        return [tuple(s[i : i + size]) for s in sentences for i in range(len(s) - size + 1) if i + size > 1]

    def count(gram, longest):
        if longest or gram[0] == 1:
            return sum(window == gram for window in windows(len(gram)))
        return len({window[0] for window in windows(len(gram) + 1) if window[1:] == gram})

    def share(context, longest):
        lower = share(context[1:], False) if context else dict.fromkeys(range(VOCAB), Fraction(1, VOCAB))
        counts = {w: count((*context, w), longest) for w in range(VOCAB)}
        total = sum(counts.values())
        if not total:
            return lower
        of_length = discounts[len(context)]
        off = {w: Fraction(of_length[min(n, 3) - 1]) if n else Fraction(0) for w, n in counts.items()}
        rest = sum(off.values()) / total
        return {w: (counts[w] - off[w]) / total + rest * lower[w] for w in range(VOCAB)}

    return float(share(tuple(context), True)[word])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_probabilities_are_those_of_the_definition(order, seed):
    sentences = corpus(seed)
    model = ngrams.KneserNey(order, sentences, VOCAB)
    for ids in corpus(seed + 100, 3):
        for at in range(1, len(ids)):
            context = ids[at - min(order - 1, at) : at]
            assert model.probability(ids, at) == pytest.approx(
                by_definition(sentences, model.discounts, context, ids[at])
            )


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one(order):
    model = ngrams.KneserNey(order, corpus(2), VOCAB)
    for before in ([1], [1, 4], [1, 4, 4, 5], [1, 12, 12, 12], [1, 5, 4, 6, 4]):
        total = sum(model.probability([*before, word], len(before)) for word in range(VOCAB))
        assert total == pytest.approx(1)
        assert all(model.probability([*before, word], len(before)) > 0 for word in range(VOCAB))


def test_a_word_that_follows_one_word_alone_is_unlikely_elsewhere():
    """The point of it: *San Francisco*. Words 5 and 6 are equally frequent, and 5 comes after 4 alone."""
    sentences = [[1, 4, 5, 2]] * 6 + [[1, word, 6, 2] for word in (7, 8, 9, 10, 11, 12)]
    model = ngrams.KneserNey(2, sentences, VOCAB)
    unseen = [1, 3]  # a context that says nothing
    assert model.probability([*unseen, 6], 2) > 3 * model.probability([*unseen, 5], 2)
    assert model.probability([1, 4, 5], 2) > 0.5


def test_drawn_words_come_as_often_as_they_are_likely():
    model, rng = ngrams.KneserNey(3, corpus(3), VOCAB), random.Random(0)
    drawn = Counter(model._draw_next([1, 4], rng) for _ in range(20_000))
    for word in range(VOCAB):
        assert drawn[word] / 20_000 == pytest.approx(model.probability([1, 4, word], 2), abs=0.015)
    assert model.draw(random.Random(1), longest=9)[0] == 1


@pytest.mark.parametrize(("order", "vocab_size"), [(0, 5), (2, 0)])
def test_sizes_that_do_not_fit(order, vocab_size):
    with pytest.raises(ValueError, match="order and vocab_size must be at least 1, got"):
        ngrams.KneserNey(order, corpus(0), vocab_size)


def test_it_predicts_german_better_than_the_simpler_mixture():
    words, ids = masks.german()
    some, held = ids["train"][::7], ids["heldout"][::7]
    assert ngrams.KneserNey(4, some, len(words)).perplexity(held) < masks.NGram(4, some, len(words)).perplexity(held)


def test_new_triples_are_counted():
    words, ids = masks.german()
    known = words.decode(ids["train"][0])
    assert ngrams.new_triples([known]) == 0
    assert ngrams.new_triples(["das das das das"]) == 1
    assert 0 < ngrams.new_triples([known, "das das das das"]) < 1
