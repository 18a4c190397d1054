"""Where does the translator keep the sense of "mole": in its row, in its vector, or elsewhere? (notebook 05)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor, nn

from ...data.corpora import Pair, load_corpus
from ...data.tokenizers import WordTokenizer
from ...decoding.sampling import greedy_decode
from ...decoding.translator import Translator
from .sense_readers import levels

NOUN, CUE = 4, 7  # places of the two words in the sentence, and of all others
OTHERS = (0, 1, 2, 3, 5, 6, 8)
SENTENCE = "The woman found the {} near the {}."


@cache
def lexicon() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return {ambiguous noun: {sense: the words that decide for it}}, as training has them, in alphabetical order."""
    cues_of: dict[str, dict[str, set[str]]] = {}
    for pair in _nouns():
        cues_of.setdefault(pair.word, {}).setdefault(pair.sense, set()).add(pair.cue)
    return {
        word: {sense: tuple(sorted(cues_of[word][sense])) for sense in sorted(cues_of[word])}
        for word in sorted(cues_of)
    }


def _nouns() -> Iterator[Pair]:
    return (pair for pair in load_corpus("context")["train"] if pair.word not in ("", "it"))


@cache
def _forms() -> dict[tuple[str, str], set[str]]:
    """Return {(noun, sense): the German words that translate it}."""
    forms: dict[tuple[str, str], set[str]] = {}
    for pair in _nouns():
        forms.setdefault((pair.word, pair.sense), set()).add(pair.expected)
    return forms


def sentences(word: str) -> dict[str, list[str]]:
    """Return {sense: sentences, one for each word that decides for it}; they differ in that word alone.

    Raises:
        ValueError: the corpus has no such ambiguous noun.
    """
    if word not in lexicon():
        raise ValueError(f"word must be one of {', '.join(lexicon())}, got {word!r}")
    return {sense: [SENTENCE.format(word, cue) for cue in cues] for sense, cues in lexicon()[word].items()}


def in_training(translator: Translator, word: str) -> tuple[Tensor, list[str]]:
    """Return a noun's vectors [n, d_model] after the encoder in all training sentences, and the German noun of each.

    Raises:
        ValueError: the corpus has no such ambiguous noun.
    """
    if word not in lexicon():
        raise ValueError(f"word must be one of {', '.join(lexicon())}, got {word!r}")
    pairs = [pair for pair in _nouns() if pair.word == word and pair.cue]
    ids = translator.src_tokenizer.encode_batch([pair.src for pair in pairs])
    encoded = levels(translator, ids)[-1]  # [n, src_len, d_model]
    (noun,) = translator.src_tokenizer.encode_batch([word])[0]
    return encoded[ids == noun], [pair.sense.split()[-1] for pair in pairs]


def layer_outputs(translator: Translator, texts: Sequence[str]) -> list[Tensor]:
    """Return the nouns' vectors [n, d_model] of n sentences: as they enter the encoder, and after each layer."""
    return [x[:, NOUN] for x in levels(translator, translator.src_tokenizer.encode_batch(texts))]


def cosines(vectors: Tensor, senses: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return the cosines of all pairs of vectors [n, d_model]: of those with the same sense, and of the others."""
    unit = nn.functional.normalize(vectors, dim=1)
    same = torch.tensor([[one == other for other in senses] for one in senses])
    pairs = torch.ones_like(same).triu(1)
    return (unit @ unit.T)[same & pairs], (unit @ unit.T)[~same & pairs]


def by_layer(translator: Translator, word: str) -> list[tuple[Tensor, Tensor]]:
    """Return `cosines` of the sentences of a noun as they enter the encoder, and after each of its layers."""
    texts_of = sentences(word)
    texts = [text for group in texts_of.values() for text in group]
    senses = [sense for sense, group in texts_of.items() for _ in group]
    return [cosines(vectors, senses) for vectors in layer_outputs(translator, texts)]


@contextmanager
def lent(model: nn.Module, lender: Tensor, *places: int) -> Iterator[None]:
    """Take what the encoder returns at these places from other sentences, lender [n, src_len] in ids."""
    encode = model.encode

    def replaced(src: Tensor) -> Tensor:
        memory, other = encode(src).clone(), encode(lender)
        memory[:, list(places)] = other[:, list(places)]
        return memory

    model.encode = replaced
    try:
        yield
    finally:
        del model.encode


def translated(translator: Translator, lender: Tensor | None = None, *places: int) -> list[str]:
    """Return the translations of all sentences of all nouns, with vectors of the lender's sentences at these places."""
    src = translator.src_tokenizer.encode_batch([text for _, _, text in asked()])
    with lent(translator.model, src if lender is None else lender, *places):
        ids = greedy_decode(translator.model, src, max_new_tokens=20)
    return [translator.tgt_tokenizer.decode(row) for row in ids]


@cache
def asked() -> tuple[tuple[str, str, str], ...]:
    """Return (noun, sense, sentence) of all sentences."""
    groups = ((word, sense, texts) for word in lexicon() for sense, texts in sentences(word).items())
    return tuple((word, sense, text) for word, sense, texts in groups for text in texts)


def share_right(translator: Translator) -> float:
    """Return the share of all sentences whose translation has the sense of the noun."""
    said = zip(translated(translator), asked(), strict=True)
    return sum(says(german, word, sense) for german, (word, sense, _) in said) / len(asked())


def followed(translator: Translator, *places: int, same_sense: bool = False) -> dict[str, float]:
    """Return {noun: share of its translations that go with lent vectors}.

    In each sentence, the encoder's vectors at these places are replaced with those of a sentence with the next sense of
    the noun, or with the same sense and another deciding word; all other vectors stay.
    """
    lenders = [_lender(word, sense, text, same_sense) for word, sense, text in asked()]
    lender = translator.src_tokenizer.encode_batch([text for _, text in lenders])
    said: dict[str, list[bool]] = {word: [] for word in lexicon()}
    answered = zip(translated(translator, lender, *places), asked(), lenders, strict=True)
    for german, (word, _, _), (other, _) in answered:
        said[word].append(says(german, word, other))
    return {word: sum(goes) / len(goes) for word, goes in said.items()}


def _lender(word: str, sense: str, text: str, same_sense: bool) -> tuple[str, str]:
    """Return the sense and the sentence that lends its vectors to this one."""
    texts_of = sentences(word)
    senses = list(texts_of)
    other = sense if same_sense else senses[(senses.index(sense) + 1) % len(senses)]
    return other, texts_of[other][(texts_of[sense].index(text) + 1) % len(texts_of[other])]


def says(text: str, word: str, sense: str) -> bool:
    """Return whether a German text has an ambiguous noun in this sense."""
    return not _forms()[word, sense].isdisjoint(WordTokenizer.tokenize(text))
