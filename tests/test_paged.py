"""A cache in pages: the same tokens, and memory that is taken and given back."""

from __future__ import annotations

import random

import pytest
import torch

import transformer_lib as tl
from factories import POSITIONS, make_model, sources, targets, with_frequent_eos
from transformer_lib.decoding.paged import OutOfPages, PagedCache, Pages, caching, slots

pytestmark = pytest.mark.fast


def lively(**options) -> tl.Transformer:
    return make_model(2, scale=2.0, norm_first=True, **options)


# Bookkeeping -----------------------------------------------------------------------------------------------


def test_a_page_is_taken_when_the_last_is_full():
    pages = Pages(5, 3)
    first, second = pages.open(), pages.open()
    assert pages.used == 0
    assert [pages.append(first) for _ in range(4)] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert [pages.append(second) for _ in range(2)] == [(2, 0), (2, 1)]
    assert (pages.used, pages.tokens, pages.free) == (3, 6, [4, 3])
    assert pages.tables == {first: [0, 1], second: [2]} and pages.lengths == {first: 4, second: 2}
    assert [pages.slot(first, token) for token in range(4)] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    pages.close(first)
    assert (pages.used, pages.peak, pages.tokens) == (1, 3, 2)
    assert pages.append(second) == (2, 2) and pages.append(second)[0] in (0, 1)


def test_pages_are_shared_until_one_writes():
    pages = Pages(5, 3)
    one = pages.open()
    for _ in range(5):
        pages.append(one)
    two = pages.fork(one)
    assert pages.used == 2 and pages.tables[two] == [0, 1] and pages.lengths[two] == 5
    assert pages.append_moving(two) == (2, 2, 1)  # page 1 must first be copied into page 2
    assert pages.append_moving(one) == (1, 2, None)  # it is alone there now
    assert pages.tables == {one: [0, 1], two: [0, 2]} and pages.used == 3
    pages.close(one)
    assert pages.used == 2 and pages.slot(two, 0) == (0, 0)
    pages.close(two)
    assert pages.used == 0 and sorted(pages.free) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("length", "left"), [(7, 3), (6, 2), (4, 2), (3, 1), (1, 1), (0, 0)])
def test_cropping_frees_what_is_empty(length, left):
    pages = Pages(5, 3)
    one = pages.open()
    for _ in range(7):
        pages.append(one)
    pages.crop(one, length)
    assert (pages.used, pages.lengths[one], len(pages.tables[one])) == (left, length, left)
    assert pages.append(one)[1] == length % 3


class Writer:
    """Numbers written through `Pages` into a memory, beside plain lists of what each sentence should hold."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.memory, self.texts, self.count = pages, {}, {}, 0

    def grow(self, sentence):
        try:
            page, place, copied = self.pages.append_moving(sentence)
        except OutOfPages:
            assert self.pages.used == self.pages.n_pages
            self.end(sentence)
            return
        for at in range(0 if copied is None else place):
            self.memory[page, at] = self.memory[copied, at]
        self.count += 1
        self.memory[page, place] = self.count
        self.texts[sentence].append(self.count)

    def fork(self, sentence):
        self.texts[self.pages.fork(sentence)] = list(self.texts[sentence])

    def crop(self, sentence, length=2):
        del self.texts[sentence][length:]
        self.pages.crop(sentence, min(length, self.pages.lengths[sentence]))

    def end(self, sentence):
        self.pages.close(sentence)
        del self.texts[sentence]

    def check(self):
        for sentence, text in self.texts.items():
            assert [self.memory[self.pages.slot(sentence, at)] for at in range(len(text))] == text
        assert self.pages.used == len({page for table in self.pages.tables.values() for page in table})


def test_what_is_written_is_found_again_whatever_happens():
    rng, pages = random.Random(0), Pages(29, 3)
    writer = Writer(pages)
    for _ in range(2000):
        if len(writer.texts) < 3:
            writer.texts[pages.open()] = []
        what = rng.choice([*[writer.grow] * 40, writer.fork, writer.fork, writer.crop, writer.end])
        what(rng.choice(list(writer.texts)))
        writer.check()
    assert pages.peak == 29 and writer.count > 1000
    for sentence in list(writer.texts):
        writer.end(sentence)
    assert pages.used == 0 and sorted(pages.free) == list(range(29))


def test_without_a_free_page_the_error_says_so_and_nothing_changes():
    pages = Pages(2, 3)
    one, two = pages.open(), pages.open()
    for sentence in (one, one, two):
        pages.append(sentence)
    pages.append(one)
    with pytest.raises(OutOfPages, match="all 2 pages of 3 tokens are in use by 2 sentences with 4 tokens"):
        pages.append(one)
    assert pages.lengths == {one: 3, two: 1} and pages.append(two) == (1, 1)


@pytest.mark.parametrize(
    ("lengths", "page_size", "wanted"),
    [
        ([5, 17, 3], 4, (25, 32, 69)),
        ([5, 17, 3], 1, (25, 25, 69)),
        ([4, 8], 4, (12, 12, 46)),
        ([0, 1], 23, (1, 23, 46)),
    ],
)
def test_room_is_counted(lengths, page_size, wanted):
    found = slots(lengths, page_size=page_size, reserve=23)
    assert (found.used, found.paged, found.reserved) == wanted
    pages = Pages(100, page_size)
    for length in lengths:
        sentence = pages.open()
        for _ in range(length):
            pages.append(sentence)
    assert (pages.tokens, pages.used * page_size) == wanted[:2]


# Decoding --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("page_size", [1, 3, 40])
def test_logits_are_those_of_an_ordinary_cache(position, page_size):
    model, pages = make_model(position=position, dtype=torch.float64), Pages(61, page_size)
    src, tgt = sources(), targets(padded=True)
    memory, plain, paged = model.encode(src), model.new_cache(), PagedCache(2, pages)
    for piece in tgt.split([2, 1, 5, 3], dim=1):
        wanted = model.decode(piece, memory, src, cache=plain)
        torch.testing.assert_close(model.decode(piece, memory, src, cache=paged), wanted, rtol=0, atol=1e-10)
    for one, other in zip(plain.layers, paged.layers, strict=True):
        for kept, wanted in zip(other.self_attention.read(), one.self_attention.read(), strict=True):
            torch.testing.assert_close(kept, wanted, rtol=0, atol=1e-10)
    assert paged.length == 11 and pages.used == 5 * -(-11 // page_size)


@pytest.mark.parametrize("page_size", [1, 4, 7])
def test_sentences_are_decoded_token_for_token_and_leave(page_size):
    src = sources()
    model, pages = with_frequent_eos(lively(), src, 19), Pages(5 * 19, page_size)
    wanted = tl.greedy_decode(model, src, max_new_tokens=19)
    with caching(model, pages) as same:
        assert torch.equal(tl.greedy_decode(model, src, max_new_tokens=19), wanted) and same is pages
    assert pages.used == 0 and pages.tables == {}
    lengths = [row.index(model.config.eos_id, 1) for row in wanted.tolist()]  # tokens that were read
    together = [sum(-(-min(length, step) // page_size) for length in lengths if length >= step) for step in range(20)]
    assert pages.peak == max(together)
    assert type(model.new_cache()) is not PagedCache


@pytest.mark.parametrize("beam_size", [2, 5])
def test_beams_share_their_beginnings(beam_size):
    model, src, pages = lively(), sources(), Pages(5 * 5 * 13, 2)
    wanted = tl.beam_search(model, src, beam_size=beam_size, max_new_tokens=13)
    with caching(model, pages):
        assert torch.equal(tl.beam_search(model, src, beam_size=beam_size, max_new_tokens=13), wanted)
    assert 0 < pages.peak < 5 * beam_size * 7 and pages.used == 0  # fewer than a full row for each beam


def test_speculation_cuts_pages_back():
    model, draft, src, pages = lively(), make_model(2, scale=1.8, norm_first=True), sources(), Pages(97, 3)
    wanted = tl.speculative_decode(model, draft, src, max_new_tokens=13, gamma=3)
    with caching(model, pages):
        found = tl.speculative_decode(model, draft, src, max_new_tokens=13, gamma=3)
    assert torch.equal(found.ids, wanted.ids) and found.rounds == wanted.rounds and pages.used == 0


def test_too_few_pages_stop_decoding_and_are_given_back():
    model, pages = lively(), Pages(7, 3)
    with pytest.raises(OutOfPages, match="all 7 pages of 3 tokens are in use by 5 sentences"), caching(model, pages):
        tl.greedy_decode(model, sources(), max_new_tokens=13, stop_at_eos=False)
    assert pages.used == 0
    with caching(model, pages):
        tl.greedy_decode(model, sources(), max_new_tokens=3)


def test_an_own_new_cache_is_put_back():
    model = lively()
    model.new_cache = own = lambda: None
    with caching(model, Pages(50, 3)):
        assert isinstance(model.new_cache(), PagedCache)
    assert model.new_cache is own


# What is refused -------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused():
    pages = Pages(5, 3)
    one = pages.open()
    pages.append(one)
    with pytest.raises(ValueError, match=r"sentence must be one of \[1\], got 7"):
        pages.append(7)
    with pytest.raises(ValueError, match="token must be below the sentence's length 1, got 1"):
        pages.slot(one, 1)
    with pytest.raises(ValueError, match="length must be at most the 1 tokens of the cache, got 2"):
        pages.crop(one, 2)
    with pytest.raises(ValueError, match="page_size must be at least 1, got 0"):
        Pages(5, 0)
    with pytest.raises(TypeError, match="pages must be tl.paged.Pages, got int"):
        PagedCache(2, 5)
    with pytest.raises(ValueError, match="each of lengths must be at most reserve = 5, got 7"):
        slots([3, 7], page_size=2, reserve=5)
    cache = PagedCache(1, pages)
    with pytest.raises(ValueError, match="the cache must hold something before it is read"):
        cache.layers[0].self_attention.read()
    cache.append_ids(torch.tensor([[1, 4]]))
    keys = torch.zeros(1, 2, 3, 5)
    with pytest.raises(
        ValueError, match=r"keys must be \[1, n_heads, 2, d_k\], as the ids were, got shape \(1, 2, 3, 5\)"
    ):
        cache.layers[0].self_attention.append(keys, keys)


def test_lengths_may_come_from_what_can_be_read_once():
    found = slots(iter([3, 7, 5]), page_size=2, reserve=11)
    assert found == slots([3, 7, 5], page_size=2, reserve=11) and found.used == 15
