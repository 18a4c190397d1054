"""Which words ask for which in a trained translator, and what the answer carries? Five translators (notebook 03).

`load_results()["models"]["course"]["weights"]["noun → cue"]` has a number for each head of the encoder's first layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from ...data.tokenizers import WordTokenizer
from ...decoding.translator import Translator
from ...model.interventions import patch
from . import stored
from .sense_vectors import lexicon, says

load_results = stored.loader("asking.json")
PROJECTIONS = {"query": "w_q", "key": "w_k", "value": "w_v"}
"""The roles, and what the encoder's attention calls their projections."""


class Frame(NamedTuple):
    """A sentence with room for an ambiguous noun and for its cue; the positions of these and of "man", from 0."""

    text: str
    subject: int
    noun: int
    cue: int


FRAMES = (
    Frame("The man saw the {noun} near the {cue}.", subject=1, noun=4, cue=7),
    Frame("Near the {cue}, the man saw the {noun}.", subject=5, noun=8, cue=2),
)


class Twins(NamedTuple):
    """Sentences that differ in the cue alone, with the sense of each.

    other, same: [n], for each the number of a sentence whose cue says another sense, and of one that says the same.
    """

    texts: list[str]
    senses: list[str]
    other: Tensor
    same: Tensor


def twins(word: str, frame: Frame = FRAMES[0]) -> Twins:
    """Return a sentence for each cue of an ambiguous noun, in the order of its senses.

    Raises:
        ValueError: the corpus has no such ambiguous noun.
    """
    if word not in lexicon():
        raise ValueError(f"word must be one of {', '.join(lexicon())}, got {word!r}")
    groups = lexicon()[word]
    rows = [(sense, number) for sense, cues in groups.items() for number in range(len(cues))]
    senses = list(groups)

    def row(sense: str, number: int) -> int:
        return rows.index((sense, number % len(groups[sense])))

    def following(sense: str) -> str:
        return senses[(senses.index(sense) + 1) % len(senses)]

    return Twins(
        [frame.text.format(noun=word, cue=groups[sense][number]) for sense, number in rows],
        [sense for sense, _ in rows],
        torch.tensor([row(following(sense), number) for sense, number in rows]),
        torch.tensor([row(sense, number + 1) for sense, number in rows]),
    )


@torch.no_grad()
def word_vectors(translator: Translator, words: Sequence[str]) -> Tensor:
    """Return what the encoder takes a word for, wherever it stands: its embedding times √d_model, [n, d_model].

    Raises:
        ValueError: the translator knows no such word.
    """
    known = translator.src_tokenizer.words
    for word in words:
        if word not in known:
            raise ValueError(f"words must be known to the translator, got {word!r}")
    ids = torch.tensor([known.index(word) for word in words])
    model = translator.model
    return model.src_embedding(ids) * math.sqrt(model.config.d_model)


@torch.no_grad()
def word_scores(translator: Translator, words: Sequence[str]) -> Tensor:
    """Return the scores of words with words in the encoder's first layer, positions left out, [n_heads, n, n].

    Raises:
        ValueError: the translator knows no such word.
    """
    x, attention = word_vectors(translator, words), translator.model.encoder.layers[0].self_attention
    query, key = (
        projection(x).unflatten(-1, (attention.n_heads, attention.d_k)).movedim(1, 0)
        for projection in (attention.w_q, attention.w_k)
    )
    return query @ key.mT / math.sqrt(attention.d_k)


def mean_weights(translator: Translator) -> dict[str, list[float]]:
    """Return the weights that words alone, without positions, give each other in layer 1: a number for each head.

    They are means over all ambiguous nouns with each of their cues, in the first of the FRAMES, with nine tokens.
    """
    frame = FRAMES[0]
    texts = [text for word in lexicon() for text in twins(word).texts]
    scores = [word_scores(translator, WordTokenizer.tokenize(text)) for text in texts]
    mean = torch.stack(scores).softmax(dim=-1).mean(dim=0)  # [n_heads, 9, 9]
    entries = {
        "noun → cue": (frame.noun, frame.cue),
        "cue → noun": (frame.cue, frame.noun),
        "man → cue": (frame.subject, frame.cue),
        "the → noun": (frame.noun - 1, frame.noun),
    }
    return {name: mean[:, query, key].tolist() for name, (query, key) in entries.items()}


def weights_of_others() -> dict[str, dict[str, list[float]]]:
    """Return the `mean_weights` of the stored models but the course's own, by their seeds."""
    models = load_results()["models"]
    return {name: model["weights"] for name, model in models.items() if name != "course"}


def vocabulary(translator: Translator) -> list[str]:
    """Return the English words that the translator knows, without marks such as the padding."""
    return [word for word in translator.src_tokenizer.words if word[0].isalpha()]


@contextmanager
def exchanged(
    translator: Translator, roles: Sequence[str], change: Callable[[Tensor], Tensor], position: int
) -> Iterator[None]:
    """Let a position have other queries, keys or values in all heads of the encoder, inside the `with` block.

    Args:
        roles: some of "query", "key" and "value". position: from 0.
        change: takes the queries, keys or values of a batch, [batch, src_len, d_model], and returns others.

    Raises:
        ValueError: a role is none of these.
    """
    for role in roles:
        if role not in PROJECTIONS:
            raise ValueError(f"roles must be some of {', '.join(PROJECTIONS)}, got {role!r}")
    with ExitStack() as stack:
        for layer in range(len(translator.model.encoder.layers)):
            for role in roles:
                name = f"encoder.layers.{layer}.self_attention.{PROJECTIONS[role]}"
                stack.enter_context(patch(translator.model, name, change, positions=position))
        yield


def right_and_turned(translator: Translator, word: str, group: Twins) -> tuple[int, int]:
    """Return how many translations have the sense of their cue, and how many that of their twin's."""
    german = translator.translate(group.texts, max_new_tokens=12)
    wanted = [group.senses[number] for number in group.other.tolist()]
    return tuple(
        sum(says(text, word, sense) for text, sense in zip(german, senses, strict=True))
        for senses in (group.senses, wanted)
    )


def kept(nouns: Sequence[str] = ()) -> dict[str, list[float]]:
    """Return {what is changed: for each stored model the share of senses kept}, of these ambiguous nouns or of all.

    Raises:
        ValueError: one of the nouns was not measured.
    """
    models = load_results()["models"].values()
    shares: dict[str, list[float]] = {}
    for changed in (model["changed"] for model in models):
        for change, counts in changed.items():
            if unknown := set(nouns) - counts.keys():
                raise ValueError(f"nouns must be some of {', '.join(counts)}, got {', '.join(sorted(unknown))}")
            right, _, total = zip(*(counts[noun] for noun in nouns or counts), strict=True)
            shares.setdefault(change, []).append(sum(right) / sum(total))
    return shares
