"""Does an encoder's vector of "bank" say which bank? Five small encoders name the sense of a word (notebook 10)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch

from ...data.corpora import Pair, load_corpus
from ...data.tokenizers import WordTokenizer
from . import stored

load_results = stored.loader("senses.json")


class Senses:
    """The sentences of one split that have an ambiguous noun: ids, where the noun is, and its sense."""

    def __init__(self, pairs: Sequence[Pair], tokenizer: WordTokenizer, senses: Sequence[tuple[str, str]]) -> None:
        self.pairs = [pair for pair in pairs if pair.word not in ("", "it")]
        self.ids = tokenizer.encode_batch([pair.src for pair in self.pairs])
        words = [WordTokenizer.tokenize(pair.src) for pair in self.pairs]
        self.places = torch.tensor([row.index(pair.word) for row, pair in zip(words, self.pairs, strict=True)])
        self.labels = torch.tensor([senses.index((pair.word, pair.sense)) for pair in self.pairs])
        self.candidates = torch.tensor([[word == pair.word for word, _ in senses] for pair in self.pairs])
        gaps = torch.tensor([pair.gap for pair in self.pairs])
        self.groups = {"cue before": gaps < 0, "cue after": gaps > 0, "cue 7+ away": gaps.abs() >= 7}


@cache
def load_senses() -> tuple[WordTokenizer, tuple[tuple[str, str], ...], dict[str, Senses]]:
    """Return the words, the senses as (word, sense), and {split: Senses} for every split."""
    corpus = load_corpus("context")
    tokenizer = WordTokenizer.from_texts(pair.src for pair in corpus["train"])
    senses = tuple(sorted({(pair.word, pair.sense) for pair in corpus["train"] if pair.word not in ("", "it")}))
    names = ("train", "heldout", "compositional", "hard")
    return tokenizer, senses, {name: Senses(corpus[name], tokenizer, senses) for name in names}
