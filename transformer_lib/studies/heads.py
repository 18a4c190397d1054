"""Which heads, entries and memory rows decide a translation? Three translators, the same interventions (notebook 15).

`python -m transformer_lib.studies.heads` trains a translator for each seed with one pass over the corpus, measures
it and the one that comes with the course, and writes data/heads.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor

from ..context.pronouns import FAMILIES
from ..corpus import DATA, Pair
from ..multihead import MultiHeadAttention
from ..recording import record_attention
from ..tokenizer import WordTokenizer
from ..transformer import Transformer
from ..translator import Translator

RESULTS = DATA / "heads.json"
EPOCHS = 1
EVERY = 4  # every fourth held-out sentence with an ambiguous noun; the "it" sentences are all used


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


@contextmanager
def silenced(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Multiply the output of one head (from 0) by zero inside the `with` block."""
    kept = torch.ones(attention.n_heads * attention.d_v)
    kept[head * attention.d_v : (head + 1) * attention.d_v] = 0.0
    hook = attention.w_o.register_forward_pre_hook(lambda module, args: (args[0] * kept,))
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def masked(attention: MultiHeadAttention, may: Tensor) -> Iterator[None]:
    """Forbid entries where `may` is False, besides what is forbidden already; broadcast to [batch, n_heads, q, k]."""
    hook = attention.register_forward_pre_hook(lambda module, args: (*args[:3], args[3] & may))
    try:
        yield
    finally:
        hook.remove()


def all_but(asked: Questions, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the mask [n, 1, src_len, src_len] that forbids row rows[i] to read columns[i] in sentence i."""
    n, length = asked.src.shape
    may = torch.ones(n, 1, length, length, dtype=torch.bool)
    may[torch.arange(n), 0, rows, columns] = False
    return may


@cache
def _english() -> dict[str, str]:
    """German lemma -> English word, of the nouns that "it" may mean."""
    return {noun.lemma: noun.english for family in FAMILIES for noun in (*family.firsts, *family.seconds)}


def nouns(asked: Questions) -> tuple[Tensor, Tensor]:
    """Return the places [n] of the noun that "it" means, and of the other one; all `asked` are "it" sentences."""
    names, places = set(_english().values()), []
    for row, pair in zip(asked.words, asked.pairs, strict=True):
        found = [j for j, word in enumerate(row) if word in names]
        places.append(sorted(found, key=lambda j, row=row, pair=pair: row[j] != _english()[pair.sense]))
    meant, other = torch.tensor(places).T
    return meant, other


def attention_layers(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return {name: layer} of every attention in the model."""
    return {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}


def head_effects(model: Transformer, asked: Questions) -> dict[str, list[float]]:
    """Return {layer: share of right decisions with each of its heads silenced in turn}."""
    return {
        name: [_share_silenced(model, asked, layer, head) for head in range(layer.n_heads)]
        for name, layer in attention_layers(model).items()
    }


def _share_silenced(model: Transformer, asked: Questions, layer: MultiHeadAttention, head: int) -> float:
    with silenced(layer, head):
        return share(margins(model, asked))


def share(margin: Tensor) -> float:
    """Return the share of margins above 0, to three digits."""
    return round((margin > 0).double().mean().item(), 3)


@torch.no_grad()
def weights_between(model: Transformer, asked: Questions, rows: Tensor, columns: Tensor) -> dict[str, Tensor]:
    """Return {encoder layer: weights [n, n_heads] that row rows[i] gives to columns[i] in sentence i}."""
    with record_attention(model) as record:
        model.encode(asked.src)
    here = torch.arange(len(asked))
    return {name: weights[here, :, rows, columns] for name, weights in record.items() if name.startswith("encoder")}
