from __future__ import annotations

import random

import pytest
import torch

import transformer_lib as tl

pytestmark = pytest.mark.fast

COUNT, BATCH_SIZE = 211, 7


def draw(seed=0):
    rng = random.Random(seed)
    src = [[10 + i] * rng.randint(1, 13) for i in range(COUNT)]  # a sentence's words tell which one it is
    tgt = [[1, *[10 + i] * rng.randint(1, 13), 2] for i in range(COUNT)]
    return src, tgt


def make(**options):
    return tl.Batches(*draw(), BATCH_SIZE, **options)


def first_words(batches):
    return [src[:, 0].tolist() for src, _ in batches]


def test_an_epoch_holds_every_pair_once():
    src, tgt = draw()
    seen = []
    for src_ids, tgt_ids in make().epoch(3):
        for src_row, tgt_row in zip(src_ids.tolist(), tgt_ids.tolist(), strict=True):
            i = src_row[0] - 10
            assert src_row == src[i] + [0] * (len(src_row) - len(src[i]))
            assert tgt_row == tgt[i] + [0] * (len(tgt_row) - len(tgt[i]))
            seen.append(i)
    assert sorted(seen) == list(range(COUNT))


def test_batches_have_the_asked_size_but_the_odd_one_out():
    sizes = sorted(len(src) for src, _ in make().epoch(0))
    assert sizes == [1] + [7] * 30
    assert len(make()) == len(sizes) == 31
    assert len(tl.Batches([[3]] * 14, [[1, 2]] * 14, 7)) == 2


def test_iterating_gives_the_first_epoch():
    assert first_words(make()) == first_words(make().epoch(0))


def test_an_epoch_can_be_repeated_and_epochs_differ():
    assert first_words(make(seed=5).epoch(2)) == first_words(make(seed=5).epoch(2))
    orders = {str(first_words(make(seed=seed).epoch(number))) for seed in (0, 5) for number in range(3)}
    assert len(orders) == 6


def test_batches_themselves_change_between_epochs():
    batches = [{frozenset(words) for words in first_words(make().epoch(number))} for number in range(2)]
    assert len(batches[0] & batches[1]) < 5


def test_similar_lengths_come_together():
    def padding(batches):
        return sum(int((ids == 0).sum()) for pair in batches for ids in pair)

    src, tgt = draw()
    unsorted = [
        (tl.pad_batch(src[i : i + BATCH_SIZE]), tl.pad_batch(tgt[i : i + BATCH_SIZE]))
        for i in range(0, COUNT, BATCH_SIZE)
    ]
    assert padding(make()) < 0.6 * padding(unsorted)


def test_short_batches_do_not_come_first():
    lengths = [src.shape[1] for src, _ in make().epoch(0)]
    assert lengths != sorted(lengths)


def test_another_pad_id():
    rows = [row for src, _ in tl.Batches([[3], [4, 5, 6]], [[1, 2], [1, 2]], 2, pad_id=9) for row in src.tolist()]
    assert sorted(rows) == [[3, 9, 9], [4, 5, 6]]


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        (([[3]], [[1, 2]] * 2, 3), {}, ValueError, "src and tgt must have equally many sentences, got 1 and 2"),
        (([], [], 3), {}, ValueError, "src and tgt must not be empty, got no sentence"),
        (
            ([[4], []], [[1, 2]] * 2, 3),
            {},
            ValueError,
            r"src must have an id in every sentence, got \[\] in sentence 1",
        ),
        (
            ([[4]] * 3, [[1, 2], [1, 5, 2], [1]], 3),
            {},
            ValueError,
            r"tgt .* at least 2 ids .*, got \[1\] in sentence 2",
        ),
        (([[4]], [[]], 3), {}, ValueError, r"tgt must have at least 2 ids in every sentence, got \[\] in sentence 0"),
        (([[4], [3, -1]], [[1, 2]] * 2, 3), {}, ValueError, "src must hold ids of at least 0, got -1 in sentence 1"),
        (([[4], [3.5]], [[1, 2]] * 2, 3), {}, TypeError, r"src\[1\] must hold integer ids, got \[3.5\]"),
        (([4, 3], [[1, 2]] * 2, 3), {}, TypeError, r"src\[0\] must be a list of ids, got 4"),
        (("ab", [[1, 2]] * 2, 3), {}, TypeError, "src must be a list of lists of ids, got 'ab'"),
        (({3: [4]}, [[1, 2]], 3), {}, TypeError, r"src must be a list of lists of ids, got {3: \[4\]}"),
        (([[3]], [[1, 2]], 3), {"pad_id": 0.0}, TypeError, "pad_id must be an int, got 0.0"),
        (([[3]], [[1, 2]], 0), {}, ValueError, "batch_size must be at least 1, got 0"),
        (([[3]], [[1, 2]], 3), {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        (([[3]], [[1, 2]], 3), {"seed": "a"}, TypeError, "seed must be an int, got 'a'"),
    ],
)
def test_bad_arguments_are_refused(args, options, error, message):
    with pytest.raises(error, match=message):
        tl.Batches(*args, **options)


# By tokens.

MAX_TOKENS = 101


def make_by_tokens(**options):
    return tl.Batches(*draw(), max_tokens=MAX_TOKENS, **options)


def test_batches_by_tokens_hold_every_pair_once_in_every_epoch():
    for number in range(3):
        seen = [src[i, 0].item() - 10 for src, _ in make_by_tokens().epoch(number) for i in range(len(src))]
        assert sorted(seen) == list(range(COUNT))


def test_no_batch_has_more_tokens_than_asked_and_most_have_nearly_as_many():
    sizes = [src.numel() + tgt.numel() for number in range(3) for src, tgt in make_by_tokens().epoch(number)]
    assert max(sizes) <= MAX_TOKENS
    assert sum(sizes) / len(sizes) > 0.6 * MAX_TOKENS
    rows = [len(src) for src, _ in make_by_tokens().epoch(0)]
    assert max(rows) > 3 * min(rows)  # many short sentences, few long ones


def test_every_epoch_by_tokens_has_as_many_batches_but_others():
    batches = make_by_tokens(seed=5)
    assert {len(list(batches.epoch(number))) for number in range(5)} == {len(batches)}
    assert first_words(batches.epoch(2)) == first_words(make_by_tokens(seed=5).epoch(2))
    sets = [{frozenset(words) for words in first_words(batches.epoch(number))} for number in range(2)]
    assert len(sets[0] & sets[1]) < len(batches) / 4


def test_a_pair_that_alone_is_too_long_is_refused():
    assert len(tl.Batches([[3] * 4, [3]], [[1, 2]] * 2, max_tokens=8)) == 2
    with pytest.raises(ValueError, match="max_tokens must hold the longest pair, 2 · 4 tokens, got 7"):
        tl.Batches([[3] * 4, [3]], [[1, 2]] * 2, max_tokens=7)


@pytest.mark.parametrize("sizes", [{}, {"batch_size": 3, "max_tokens": 9}])
def test_one_of_two_ways_to_measure_a_batch_is_needed(sizes):
    with pytest.raises(
        ValueError, match="exactly one of batch_size and max_tokens must be given, got (None|3) and (None|9)"
    ):
        tl.Batches([[3]], [[1, 2]], **sizes)


def test_sentences_may_come_from_what_can_be_read_once():
    src, tgt = draw()
    given = (iter(rows) for rows in ([torch.tensor(ids) for ids in src], [(i for i in ids) for ids in tgt]))
    for size in ({"batch_size": BATCH_SIZE}, {"max_tokens": MAX_TOKENS}):
        one = tl.Batches(*(given if "batch_size" in size else map(iter, (src, tgt))), **size)
        other = tl.Batches(src, tgt, **size)
        for ours, theirs in zip(one.epoch(1), other.epoch(1), strict=True):
            assert all(map(torch.equal, ours, theirs))
