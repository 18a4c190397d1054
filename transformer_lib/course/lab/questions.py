"""Sentences whose context decides, and what a translator decides about them (notebook 15)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from ...data.context_generator.pronouns import FAMILIES
from ...data.corpora import Pair
from ...data.tokenizers import WordTokenizer
from ...decoding.translator import Translator
from ...model.transformer import Transformer

BLANK = "___"


def blanked(pair: Pair) -> tuple[str, ...]:
    """Return the English tokens with a blank for the deciding word."""
    tokens = WordTokenizer.tokenize(pair.src)
    place = tokens.index(pair.word) + pair.gap
    assert tokens[place] == pair.cue, f"{pair.cue} is not at {place}: {pair.src}"
    return (*tokens[:place], BLANK, *tokens[place + 1 :])


class Questions:
    """Sentences whose context decides, each with its right translation and the wrong ones that differ in the sense.

    `src` [n, src_len]; `word`, `cue` [n]: their places in the source. A row of `tgt` [rows, tgt_len] is one of the
    translations of sentence `owner[row]`; `right` [rows] marks the right ones.
    """

    def __init__(self, translator: Translator, pairs: Sequence[Pair]) -> None:
        self.pairs = [pair for pair in pairs if pair.contrast]
        words = [WordTokenizer.tokenize(pair.src) for pair in self.pairs]
        words = [[word if word in translator.src_tokenizer.words else word.lower() for word in row] for row in words]
        self.words = words
        self.src = translator.src_tokenizer.encode_batch([pair.src for pair in self.pairs])
        self.word = torch.tensor([row.index(pair.word) for row, pair in zip(words, self.pairs, strict=True)])
        self.cue = self.word + torch.tensor([pair.gap for pair in self.pairs])
        texts = [(i, text) for i, pair in enumerate(self.pairs) for text in (pair.tgt, *pair.contrast)]
        self.owner = torch.tensor([i for i, _ in texts])
        self.right = torch.tensor([text == self.pairs[i].tgt for i, text in texts])
        self.tgt = translator.tgt_tokenizer.encode_batch([text for _, text in texts], bos=True, eos=True)

    def __len__(self) -> int:
        return len(self.pairs)


@torch.no_grad()
def margins(model: Transformer, asked: Questions, memory: Tensor | None = None) -> Tensor:
    """Return ln P(right translation) − ln P(likeliest wrong one) of each sentence, [n]; above 0 it decides rightly.

    `memory` [n, src_len, d_model] replaces what the encoder makes of the sentences.
    """
    memory = model.encode(asked.src) if memory is None else memory
    log_p = model.decode(asked.tgt[:, :-1], memory[asked.owner], asked.src[asked.owner]).log_softmax(dim=-1)
    labels = asked.tgt[:, 1:]
    log_p = log_p.gather(-1, labels[..., None])[..., 0].masked_fill(labels == model.config.pad_id, 0.0).sum(dim=1)
    wrong = torch.full((len(asked),), -torch.inf)
    wrong = wrong.scatter_reduce(0, asked.owner[~asked.right], log_p[~asked.right], "amax")
    return log_p[asked.right] - wrong


def share(margin: Tensor) -> float:
    """Return the share of margins above 0, to three digits."""
    return round((margin > 0).double().mean().item(), 3)


@cache
def _english() -> dict[str, str]:
    """Return {German lemma: English word} of the nouns that "it" may mean."""
    return {noun.lemma: noun.english for family in FAMILIES for noun in (*family.firsts, *family.seconds)}


def nouns(asked: Questions) -> tuple[Tensor, Tensor]:
    """Return the places [n] of the noun that "it" means, and of the other one; all `asked` are "it" sentences."""
    names, places = set(_english().values()), []
    for row, pair in zip(asked.words, asked.pairs, strict=True):
        mentioned = [j for j, word in enumerate(row) if word in names]
        places.append(sorted(mentioned, key=lambda j, row=row, pair=pair: row[j] != _english()[pair.sense]))
    meant, other = torch.tensor(places).T
    return meant, other


def twins(asked: Questions, pairs: Sequence[Pair]) -> list[Pair]:
    """Return for each sentence asked the first of `pairs` that differs from it in the deciding word and the sense.

    `pairs` are of the same split: there every sentence has a twin for each of its other senses.
    """
    alike: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        alike.setdefault(blanked(pair), []).append(pair)
    return [next(twin for twin in alike[blanked(pair)] if twin.sense != pair.sense) for pair in asked.pairs]


def donors(translator: Translator, asked: Questions, pairs: Sequence[Pair]) -> Tensor:
    """Return the ids [n, src_len] of the same sentences with another deciding word, so that another sense is right."""
    return translator.src_tokenizer.encode_batch([twin.src for twin in twins(asked, pairs)])
