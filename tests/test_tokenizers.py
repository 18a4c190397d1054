from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import transformer_lib as tl
from transformer_lib.data.tokenizers import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID

pytestmark = pytest.mark.fast

TEXTS = ["Show me the money!", "The money is not the life.", "Not on your life, money."]


@pytest.fixture(scope="module")
def words():
    return tl.WordTokenizer.from_texts(TEXTS)


@pytest.fixture(scope="module")
def bpe():
    return tl.BPETokenizer.from_texts(TEXTS * 5, vocab_size=300)


def test_special_tokens_come_first(words):
    assert words.words[:4] == SPECIAL_TOKENS == ("<pad>", "<bos>", "<eos>", "<unk>")
    assert (PAD_ID, BOS_ID, EOS_ID, UNK_ID) == (0, 1, 2, 3)


def test_the_most_frequent_words_come_next(words):
    # Three times "money" and "the", twice ".", "life" and "not", the rest once; ties in alphabetical order.
    assert words.words[4:9] == ("money", "the", ".", "life", "not")
    assert words.words[9:] == ("!", ",", "is", "me", "on", "show", "your")
    assert len(words) == 16


def test_rare_words_can_be_left_out():
    assert tl.WordTokenizer.from_texts(TEXTS, min_count=3).words[4:] == ("money", "the")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Show me!", ["show", "me", "!"]),
        ("  The Bank, am Ufer… ", ["the", "Bank", ",", "am", "Ufer", "…"]),
        ("Über 3 Äpfel?", ["über", "3", "Äpfel", "?"]),
        ("", []),
    ],
)
def test_splitting(text, tokens):
    assert tl.WordTokenizer.tokenize(text) == tokens


def test_encoding(words):
    ids = words.encode("Show the money!")
    assert [words.words[i] for i in ids] == ["show", "the", "money", "!"]
    assert words.encode("Show the money!", bos=True) == [BOS_ID, *ids]
    assert words.encode("Show the money!", bos=True, eos=True) == [BOS_ID, *ids, EOS_ID]


@pytest.mark.parametrize("text", TEXTS)
def test_decoding_gives_the_text_back(words, bpe, text):
    for tokenizer in (words, bpe):
        ids = tokenizer.encode(text, bos=True, eos=True)
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode(torch.tensor([*ids, PAD_ID, PAD_ID])) == text


def test_nothing_after_eos_is_decoded(words, bpe):
    for tokenizer in (words, bpe):
        more = tokenizer.encode("money")
        assert tokenizer.decode([BOS_ID, *more, EOS_ID, *more]) == tokenizer.decode(more)
        assert tokenizer.tokens([BOS_ID, *more, EOS_ID, *more, PAD_ID]) == tokenizer.tokens(more)


def test_batches_are_padded(words):
    batch = words.encode_batch(["Show me!", "money"], bos=True, eos=True)
    assert batch.dtype == torch.long and batch.shape == (2, 5)
    assert batch[0].tolist() == words.encode("Show me!", bos=True, eos=True)
    assert batch[1].tolist() == [*words.encode("money", bos=True, eos=True), PAD_ID, PAD_ID]


def test_padding_by_hand():
    assert tl.pad_batch([[5], [6, 7, 8], []]).tolist() == [[5, 0, 0], [6, 7, 8], [0, 0, 0]]
    assert tl.pad_batch([[5], [6, 7]], pad_id=9).tolist() == [[5, 9], [6, 7]]


def test_an_empty_batch_is_refused(words):
    with pytest.raises(ValueError, match="sequences must not be empty, got an empty batch"):
        tl.pad_batch([])
    with pytest.raises(ValueError, match="sequences must not be empty"):
        words.encode_batch([])


def test_an_unknown_word_is_refused_with_a_hint(words):
    with pytest.raises(ValueError, match="unknown word 'lifes', not among the 12 known ones; close known words: life"):
        words.encode("not your lifes")
    with pytest.raises(ValueError, match="unknown word 'xyzzy', not among the 12 known ones$"):
        words.encode("xyzzy")


def test_a_special_token_cannot_be_written_in_a_text(words):
    with pytest.raises(ValueError, match="unknown word '<'"):
        words.encode("<eos>")


def test_bad_words_and_texts_are_refused(words):
    with pytest.raises(ValueError, match=r"words must be distinct, got repeats: \['a'\]"):
        tl.WordTokenizer(["a", "b", "a"])
    with pytest.raises(ValueError, match="texts must hold at least one word, got none"):
        tl.WordTokenizer.from_texts(["", " "])
    with pytest.raises(TypeError, match="text must be a string, got int"):
        words.encode(7)
    with pytest.raises(ValueError, match=r"words must not hold the special tokens, .* got {'<eos>'}"):
        tl.WordTokenizer(["a", "<eos>"])
    with pytest.raises(TypeError, match="ids must be a list of one sentence's ids, got 7"):
        words.decode(7)


@pytest.mark.parametrize("serialised", ["garbage", "{}", None])
def test_what_is_no_tokenizer_of_subwords_is_refused(serialised):
    with pytest.raises(ValueError, match=f"serialised must be a tokenizer as JSON text, got {serialised!r}: "):
        tl.BPETokenizer(serialised)


def test_a_padding_that_is_no_id_is_refused():
    with pytest.raises(TypeError, match="pad_id must be an int, got 0.5"):
        tl.pad_batch([[5], [6, 7]], 0.5)
    assert tl.pad_batch([[5], [6, 7]], -100).tolist() == [[5, -100], [6, 7]]


@pytest.mark.parametrize("text", [7, None, b"money", ["money"]])
def test_a_text_that_is_no_string_is_refused(words, bpe, text):
    for tokenizer in (words, bpe):
        with pytest.raises(TypeError, match=f"text must be a string, got {type(text).__name__}"):
            tokenizer.encode(text)


@pytest.mark.parametrize("texts", ["money", b"money", {"money": 7}, 7, ["money", 7], [b"money"]])
def test_what_is_no_list_of_texts_is_refused(words, bpe, texts):
    takers = [words.encode_batch, bpe.encode_batch, tl.WordTokenizer, tl.WordTokenizer.from_texts]
    for take in (*takers, tl.BPETokenizer.from_texts):
        with pytest.raises(TypeError, match="^(texts|words) must be a list of strings, got "):
            take(texts)


def test_only_vocabularies_can_be_made_of_a_set(words):
    """Its order is another in each run of Python; a vocabulary's own order is by frequency and alphabet."""
    for take in (words.encode_batch, tl.WordTokenizer):
        with pytest.raises(TypeError, match="must be a list of strings, got {'money'}"):
            take({"money"})
    assert tl.WordTokenizer.from_texts(set(TEXTS)).words == words.words
    assert len(tl.BPETokenizer.from_texts(set(TEXTS), vocab_size=300)) <= 300


def test_texts_and_ids_may_come_from_what_can_be_read_once(words, bpe):
    assert tl.WordTokenizer.from_texts(text for text in TEXTS).words == words.words
    assert tl.WordTokenizer(word for word in words.words[4:]).words == words.words
    again = tl.BPETokenizer.from_texts((text for text in TEXTS * 5), vocab_size=300)
    assert again.to_string() == bpe.to_string()
    for tokenizer in (words, bpe):
        assert torch.equal(tokenizer.encode_batch(text for text in TEXTS), tokenizer.encode_batch(TEXTS))
        ids = tokenizer.encode(TEXTS[0])
        for same in (iter(ids), np.array(ids), torch.tensor(ids)):
            assert tokenizer.decode(same) == TEXTS[0]
    assert tl.pad_batch(iter(row) for row in ([5], [6, 7])).tolist() == [[5, 0], [6, 7]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.5]], r"sequences\[0\] must hold integer ids, got \[1.5\]"),
        ([[3], "ab"], r"sequences\[1\] must be a list of ids, got 'ab'"),
        ([3, 4], r"sequences\[0\] must be a list of ids, got 3"),
    ],
)
def test_rows_that_hold_no_ids_are_not_padded(rows, message):
    with pytest.raises(TypeError, match=message):
        tl.pad_batch(rows)


@pytest.mark.parametrize("ids", [[4, 16], [-1], [1.5], torch.tensor([[4, 5]])])
def test_bad_ids_are_refused(words, ids):
    with pytest.raises(ValueError, match=r"ids must be the ids of one sentence, each in \[0, 16\), got "):
        words.decode(ids)


HARD_TEXTS = [
    "",
    " ",
    "   ",
    " leading",
    "trailing ",
    "  two  inside  ",
    "tab\tand\nline\r\n",
    "a\u00a0b\u2009c\u3000d",
    "don't",
    "Mann-Frau",
    "«Ja», sagt er … „nein“!",
    "3,50 € (ca. 4 $)",
    "U.S.A.",
    "a ,b ; c",
    "Ünï\u0308cödé",
    "漢字カナ",
    "👩‍👧 🚲",
    "<eos> and <pad>",
    "<unk>",
    "Ġthe",
    "\x00\x7f",
    "word" * 99,
]


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_subwords_lose_nothing_of_a_text(bpe, text):
    ids = bpe.encode(text, bos=True, eos=True)
    assert bpe.decode(ids) == text and bpe.decode(bpe.encode(text)) == text
    assert not set(ids[1:-1]) & {PAD_ID, BOS_ID, EOS_ID, UNK_ID}  # special tokens are ours to set


@given(text=st.text())
def test_subwords_lose_nothing_of_any_text(bpe, text):
    assert bpe.decode(bpe.encode(text)) == text


def test_frequent_words_become_one_subword(bpe):
    assert len(bpe.encode("the money")) == 2 < len(bpe.encode("xq jvzk"))
    assert bpe.tokens(bpe.encode("the money", bos=True, eos=True)) == ["Ġthe", "Ġmoney"]
    assert len(bpe) <= 300


def test_subwords_have_the_same_special_ids(bpe):
    assert bpe.encode("the", bos=True, eos=True)[0] == BOS_ID and bpe.encode("the", bos=True, eos=True)[-1] == EOS_ID
    assert bpe.decode([BOS_ID, EOS_ID]) == "" and bpe.tokens([PAD_ID, UNK_ID]) == []
    assert bpe.encode_batch(["the", "the money"]).shape == (2, 2)


def test_a_subword_tokenizer_can_be_stored_as_text(bpe):
    again = tl.BPETokenizer(bpe.to_string())
    assert again.encode("show me the money") == bpe.encode("show me the money") and len(again) == len(bpe)


def test_bad_subword_ids_are_refused(bpe):
    with pytest.raises(ValueError, match="ids must be the ids of one sentence"):
        bpe.decode([len(bpe)])


def test_every_byte_needs_a_subword():
    with pytest.raises(ValueError, match="vocab_size must be at least 260, got 259"):
        tl.BPETokenizer.from_texts(["a"], vocab_size=259)
