"""Read the sense of a noun off the translator's encoder, at any word and after any layer (notebook 10)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...data.tokenizers import PAD_ID
from ...decoding.translator import Translator
from ...model.encoder import Encoder
from ...model.masks import padding_mask
from .senses import Senses, load_senses

LEVELS = ("on entering", "after layer 1", "after layer 2")


class Sentences:
    """Sentences with an ambiguous noun, and what the translator's encoder makes of them.

    `src` [n, src_len]: ids; `mask` [n, 1, 1, src_len]: True = a real token; `labels` [n]: senses; `candidates`
    [n, n_senses]: True for the senses of the sentence's noun; `word`, `cue` [n]: where the noun and the deciding word
    stand; `places` {name: [n]}: these and others; `levels`: as of `levels(translator, src)`.

    Args:
        translator: whose encoder reads. split: the sentences. every: keep every n-th sentence.
    """

    def __init__(self, translator: Translator, split: Senses, every: int = 1) -> None:
        self.translator = translator
        self.src, self.labels, self.candidates = (x[::every] for x in (split.ids, split.labels, split.candidates))
        self.mask = padding_mask(self.src, PAD_ID)
        self.word = split.places[::every]
        self.cue = self.word + torch.tensor([pair.gap for pair in split.pairs[::every]])
        last = self.mask[:, 0, 0].sum(dim=1) - 1
        self.places = {"noun": self.word, "word before": self.word - 1, "word after": self.word + 1}
        self.places |= {"first token": 0 * self.word, "last token": last, "cue": self.cue}
        self.levels = levels(translator, self.src)

    def __len__(self) -> int:
        return len(self.src)

    def at(self, place: str, level: int) -> Tensor:
        """Return the vectors [n, d_model] at one of the `places`, on entering (level 0) or after a layer (1, 2)."""
        return self.levels[level][torch.arange(len(self)), self.places[place]]

    def noun_under(self, intervention: AbstractContextManager[None]) -> Tensor:
        """Return the nouns' vectors [n, d_model] in the memory that the encoder makes under an intervention."""
        with intervention, torch.no_grad():
            return self.translator.model.encode(self.src)[torch.arange(len(self)), self.word]

    def right(self, scores: Tensor) -> Tensor:
        """Return whether the noun's own sense with the highest score is the right one, [n]; scores [n, n_senses]."""
        return scores.masked_fill(~self.candidates, -math.inf).argmax(dim=1) == self.labels

    def share_right(self, scores: Tensor) -> float:
        """Return the share of sentences in which `right` is True."""
        return self.right(scores).double().mean().item()

    def by_noun(self, right: Tensor) -> dict[str, float]:
        """Return {noun: share of its sentences in which `right` [n] is True}, the lowest first."""
        nouns = [load_senses()[1][label][0] for label in self.labels.tolist()]
        rows = {noun: torch.tensor([each == noun for each in nouns]) for noun in sorted(set(nouns))}
        shares = {noun: right[chosen].double().mean().item() for noun, chosen in rows.items()}
        return dict(sorted(shares.items(), key=lambda item: item[1]))


@torch.no_grad()
def levels(translator: Translator, ids: Tensor) -> list[Tensor]:
    """Return all vectors [n, src_len, d_model] as they enter the encoder, and after each layer."""
    kept: list[Tensor] = []
    layers: list[nn.Module] = list(translator.model.encoder.layers)
    hooks = [layers[0].register_forward_pre_hook(lambda module, given: kept.append(given[0]))]
    hooks += [layer.register_forward_hook(lambda module, given, x: kept.append(x)) for layer in layers]
    try:
        translator.model.encode(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def untrained(translator: Translator, seed: int = 0) -> Translator:
    """Return a copy whose encoder has random weights; all else, the embeddings included, is as trained."""
    other, config = copy.deepcopy(translator), translator.model.config
    torch.manual_seed(seed)
    other.model.encoder = Encoder(config.n_layers, config.d_model, config.n_heads, config.d_ff).eval()
    return other


def linear_reader(known: Tensor, labels: Tensor, asked: Tensor) -> Tensor:
    """Return scores [n, n_senses] of the vectors `asked` [n, d_model], by a linear map fitted to those `known`.

    The map has a bias and is fitted by least squares to one-hot labels. A thousandth is added to the diagonal of the
    normal equations: behind a LayerNorm the columns nearly depend on each other.
    """
    inputs, questions = (torch.cat([x, torch.ones(len(x), 1)], dim=1).double() for x in (known, asked))
    squares = inputs.mT @ inputs + 1e-3 * torch.eye(inputs.shape[1], dtype=torch.float64)
    return questions @ torch.linalg.solve(squares, inputs.mT @ F.one_hot(labels).double())


def planes(known: Sentences, asked: Sentences, word: str) -> tuple[list[Tensor], list[str]]:
    """Return the points [n, 2] of a noun in the sentences `asked` at each level, and the sense of each.

    The two directions are those along which the noun's vectors in the sentences `known` spread most; their signs are
    such that the first sentence lies at the lower left.
    """
    names: Sequence[tuple[str, str]] = load_senses()[1]
    is_word = torch.tensor([name == word for name, _ in names])
    rows, asked_rows = is_word[known.labels], is_word[asked.labels]
    points = []
    for level in range(len(LEVELS)):
        vectors = known.at("noun", level)[rows]
        directions = torch.linalg.svd(vectors - vectors.mean(dim=0), full_matrices=False).Vh[:2]
        projected = (asked.at("noun", level)[asked_rows] - vectors.mean(dim=0)) @ directions.T
        points.append(projected * -projected[0].sign())
    return points, [names[label][1] for label in asked.labels[asked_rows].tolist()]
