"""Text to token ids and back: whole words by our own code, subwords by the `tokenizers` library."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from .._lists import check_items, check_rows, check_texts, iterate_texts
from .._validate import check_int

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)

_TOKEN = re.compile(r"\w+|[^\w\s]")
_SPACE_BEFORE_PUNCTUATION = re.compile(r"\s+([.,!?;:])")


class _BatchEncoder:
    """What both tokenizers share: ids with bos and eos, batches, and their size."""

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Return the ids of `text`, with <bos> and <eos> around them if asked."""
        return [BOS_ID] * bos + self._ids(text) + [EOS_ID] * eos

    def encode_batch(self, texts: Iterable[str], *, bos: bool = False, eos: bool = False) -> Tensor:
        """Return ids [batch, longest], shorter texts filled up with <pad>."""
        return pad_batch([self.encode(text, bos=bos, eos=eos) for text in check_texts("texts", texts)])

    def _ids(self, text: str) -> list[int]:
        raise NotImplementedError


def pad_batch(sequences: Iterable[Iterable[int]], pad_id: int = PAD_ID) -> Tensor:
    """Return integer ids [batch, longest], shorter sequences filled up with `pad_id`."""
    rows = check_rows("sequences", sequences)
    if not rows:
        raise ValueError("sequences must not be empty, got an empty batch")
    return pad_rows(rows, check_int("pad_id", pad_id, minimum=-(2**63)))


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Return what `pad_batch` does of rows that are known to hold ids, and to be some."""
    longest = max(map(len, rows))
    return torch.tensor([[*ids, *[pad_id] * (longest - len(ids))] for ids in rows], dtype=torch.long)


class WordTokenizer(_BatchEncoder):
    """One id per word or punctuation mark, in the order of `words` after the special tokens.

    The sentence's first letter is lower-cased, so "The" and "the" are one word; `decode` restores it.
    """

    def __init__(self, words: Iterable[str]) -> None:
        words = check_texts("words", words)
        if len(set(words)) != len(words):
            repeats = [word for word, count in Counter(words).items() if count > 1]
            raise ValueError(f"words must be distinct, got repeats: {repeats[:5]}")
        if special := set(words) & set(SPECIAL_TOKENS):
            raise ValueError(f"words must not hold the special tokens, which come first by themselves, got {special}")
        self.words = (*SPECIAL_TOKENS, *words)
        self._id_of = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, min_count: int = 1) -> WordTokenizer:
        """Return a tokenizer that knows every word seen at least `min_count` times, the most frequent first."""
        check_int("min_count", min_count, minimum=0)
        each = iterate_texts("texts", texts, ordered=False)
        counts = Counter(token for text in each for token in cls.tokenize(text))
        if not counts:
            raise ValueError("texts must hold at least one word, got none")
        kept = [word for word, count in counts.items() if count >= min_count]
        return cls(sorted(kept, key=lambda word: (-counts[word], word)))

    @staticmethod
    def tokenize(text: str) -> list[str]:
        """Split into words and punctuation marks: "Show me!" -> ["show", "me", "!"]."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        text = text.strip()
        return _TOKEN.findall(text[:1].lower() + text[1:])

    def __len__(self) -> int:
        return len(self.words)

    def _ids(self, text: str) -> list[int]:
        tokens = self.tokenize(text)
        for token in tokens:
            if token not in self._id_of:
                close = difflib.get_close_matches(token, self.words[len(SPECIAL_TOKENS) :], n=3)
                hint = f"; close known words: {', '.join(close)}" if close else ""
                raise ValueError(f"text has the unknown word {token!r}, not among the {len(self) - 4} known ones{hint}")
        return [self._id_of[token] for token in tokens]

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """Return the text of one sentence's ids, without special tokens and up to the first <eos>."""
        tokens = self.tokens(ids)
        text = _SPACE_BEFORE_PUNCTUATION.sub(r"\1", " ".join(tokens))
        return text[:1].upper() + text[1:]

    def tokens(self, ids: Iterable[int] | Tensor) -> list[str]:
        """Return the words of one sentence's ids, without special tokens and up to the first <eos>."""
        return [self.words[i] for i in _until_eos(ids, len(self)) if i >= len(SPECIAL_TOKENS)]


class BPETokenizer(_BatchEncoder):
    """Byte-pair subwords (Sennrich et al. 2016), trained and applied by the `tokenizers` library.

    No text loses anything: `decode(encode(text)) == text`, whatever its spaces, punctuation and alphabet.
    """

    def __init__(self, serialised: str) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_str(serialised)
        except Exception as error:  # of the library, which has no kind of its own
            raise ValueError(f"serialised must be a tokenizer as JSON text, got {serialised!r:.50}: {error}") from error
        self._tokenizer.encode_special_tokens = True  # a literal "<eos>" in a text is plain text

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, vocab_size: int = 8000) -> BPETokenizer:
        """Learn at most `vocab_size` byte-level subwords from `texts`; no text is out of vocabulary afterwards."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        check_int("vocab_size", vocab_size, minimum=len(SPECIAL_TOKENS) + 256)  # every byte is a subword
        tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[UNK_ID]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL_TOKENS),
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train_from_iterator(iterate_texts("texts", texts, ordered=False), trainer)
        return cls(tokenizer.to_str())

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def _ids(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        # A space in front, so that a word is the same subword at the beginning of a text and within it.
        return self._tokenizer.encode(" " + text).ids if text else []

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """Return the text of one sentence's ids, without special tokens and up to the first <eos>."""
        return self._tokenizer.decode(_until_eos(ids, len(self)), skip_special_tokens=True).removeprefix(" ")

    def tokens(self, ids: Iterable[int] | Tensor) -> list[str]:
        """Return the subwords of one sentence's ids, without special tokens and up to the first <eos>."""
        words = [i for i in _until_eos(ids, len(self)) if i >= len(SPECIAL_TOKENS)]
        return [str(self._tokenizer.id_to_token(i)) for i in words]

    def to_string(self) -> str:
        """Return the whole tokenizer as JSON text, which the constructor takes back."""
        return self._tokenizer.to_str()


def _until_eos(ids: Iterable[int] | Tensor, vocab_size: int) -> list[int]:
    listed = check_items("ids", ids.tolist() if hasattr(ids, "tolist") else ids, "one sentence's ids")
    if any(not isinstance(i, int) or not 0 <= i < vocab_size for i in listed):
        raise ValueError(f"ids must be the ids of one sentence, each in [0, {vocab_size}), got {listed}")
    return listed[: listed.index(EOS_ID)] if EOS_ID in listed else listed
