"""Where does the translator keep the sense of "mole": in its row, in its vector, or elsewhere? (notebook 05)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor, nn

from ...data.corpora import Pair, load_corpus
from ...data.tokenizers import WordTokenizer
from ...decoding.translator import Translator

NOUN, CUE = 4, 7  # places of the two words in the sentence
SENTENCE = "The woman found the {} near the {}."


@cache
def lexicon() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return {ambiguous noun: {sense: the words that decide for it}}, as training has them, in alphabetical order."""
    found: dict[str, dict[str, set[str]]] = {}
    for pair in _nouns():
        found.setdefault(pair.word, {}).setdefault(pair.sense, set()).add(pair.cue)
    return {word: {sense: tuple(sorted(found[word][sense])) for sense in sorted(found[word])} for word in sorted(found)}


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


def layer_outputs(translator: Translator, texts: Sequence[str], place: int = NOUN) -> list[Tensor]:
    """Return the vectors [n, d_model] at one place of n sentences: as they enter the encoder, and after each layer."""
    kept: list[Tensor] = []
    layers: list[nn.Module] = list(translator.model.encoder.layers)
    hooks = [layers[0].register_forward_pre_hook(lambda module, given: kept.append(given[0][:, place]))]
    hooks += [layer.register_forward_hook(lambda module, given, x: kept.append(x[:, place])) for layer in layers]
    try:
        with torch.no_grad():
            translator.model.encode(translator.src_tokenizer.encode_batch(texts))
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def cosines(vectors: Tensor, senses: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return the cosines of all pairs of vectors [n, d_model]: of those with the same sense, and of the others."""
    unit = nn.functional.normalize(vectors, dim=1)
    same = torch.tensor([[one == other for other in senses] for one in senses])
    pairs = torch.ones_like(same).triu(1)
    return (unit @ unit.T)[same & pairs], (unit @ unit.T)[~same & pairs]


def by_layer(translator: Translator, word: str) -> list[tuple[Tensor, Tensor]]:
    """Return `cosines` of the sentences of a noun as they enter the encoder, and after each of its layers."""
    found = sentences(word)
    texts = [text for group in found.values() for text in group]
    senses = [sense for sense, group in found.items() for _ in group]
    return [cosines(vectors, senses) for vectors in layer_outputs(translator, texts)]


def share_right(translator: Translator) -> float:
    """Return the share of all nouns' sentences whose translation has the noun's sense."""
    asked = [(word, sense, text) for word in lexicon() for sense, group in sentences(word).items() for text in group]
    said = translator.translate([text for _, _, text in asked])
    right = [_says(german, word, sense) for german, (word, sense, _) in zip(said, asked, strict=True)]
    return sum(right) / len(right)


@contextmanager
def lent(model: nn.Module, place: int, vectors: Tensor) -> Iterator[None]:
    """Put vectors [n, d_model] at one place of what the encoder returns for n sentences."""
    encode = model.encode

    def replaced(src: Tensor) -> Tensor:
        memory = encode(src).clone()
        memory[:, place] = vectors
        return memory

    model.encode = replaced
    try:
        yield
    finally:
        del model.encode


def followed(translator: Translator, word: str, *, place: int = NOUN, same_sense: bool = False) -> float:
    """Return the share of translations that go with a lent vector.

    In each sentence of the noun, the encoder's vector at `place` is replaced with that of a sentence with the next
    sense of the noun, or with the same sense and another deciding word; all other vectors stay.
    """
    found, said = sentences(word), []
    senses = list(found)
    for sense, other in zip(senses, senses if same_sense else senses[1:] + senses[:1], strict=True):
        texts, lenders = found[sense], found[other]
        lenders = [lenders[(i + 1) % len(lenders)] for i in range(len(texts))]
        with lent(translator.model, place, layer_outputs(translator, lenders, place)[-1]):
            said += [_says(text, word, other) for text in translator.translate(texts)]
    return sum(said) / len(said)


def _says(text: str, word: str, sense: str) -> bool:
    return not _forms()[word, sense].isdisjoint(WordTokenizer.tokenize(text))
