"""Looking into a translator by changing it: heads silenced, entries cut, rows hidden or exchanged (notebook 15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache

import torch
from torch import Tensor

from ..context.pronouns import ADJECTIVES, FAMILIES
from ..corpus import Pair
from ..multihead import MultiHeadAttention
from ..recording import record_attention
from ..tokenizer import WordTokenizer
from ..transformer import Transformer
from ..translator import Translator


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


@contextmanager
def cut(model: Transformer, asked: Questions, rows: Tensor, *columns: Tensor) -> Iterator[None]:
    """Forbid the encoder's row rows[i] to read the places columns[i], in every layer and head, inside the block."""
    may = torch.stack([all_but(asked, rows, places) for places in columns]).all(dim=0)
    with ExitStack() as stack:
        for layer in model.encoder.layers:
            stack.enter_context(masked(layer.self_attention, may))
        yield


@contextmanager
def hidden(model: Transformer, asked: Questions, *places: Tensor) -> Iterator[None]:
    """Forbid the decoder to read the memory rows at these places, in every layer and head, inside the block."""
    may = torch.ones(len(asked), 1, 1, asked.src.shape[1], dtype=torch.bool)
    for place in places:
        may[torch.arange(len(asked)), 0, 0, place] = False
    with ExitStack() as stack:
        for layer in model.decoder.layers:
            stack.enter_context(masked(layer.cross_attention, may[asked.owner]))
        yield


def other_cue(pair: Pair, known: dict[tuple[str, str], list[str]], words: Sequence[str]) -> str:
    """Return a word that would decide for another sense: of the same noun in training, or of the other noun."""
    if pair.word != "it":
        return next(cues[0] for (word, sense), cues in known.items() if word == pair.word and sense != pair.sense)
    sides = next(sides for verb, sides in ADJECTIVES.items() if verb in words)
    return next(adjective for side in sides if pair.cue not in side for adjective in side)


def donors(translator: Translator, asked: Questions, train: Sequence[Pair]) -> Tensor:
    """Return the ids [n, src_len] of the same sentences with another deciding word, so that another sense is right."""
    known: dict[tuple[str, str], list[str]] = {}
    for pair in train:
        known.setdefault((pair.word, pair.sense), []).append(pair.cue)
    ids = asked.src.clone()
    for i, pair in enumerate(asked.pairs):
        ids[i, asked.cue[i]] = translator.src_tokenizer.words.index(other_cue(pair, known, asked.words[i]))
    return ids


@torch.no_grad()
def flipped(model: Transformer, asked: Questions, donor: Tensor, *places: Tensor) -> float:
    """Return the share of decisions that are wrong once these memory rows come from `donor`; with none, all rows do."""
    memory, other = model.encode(asked.src), model.encode(donor)
    for place in places:
        memory[torch.arange(len(asked)), place] = other[torch.arange(len(asked)), place]
    return round(1 - share(margins(model, asked, memory if places else other)), 3)


@torch.no_grad()
def pronoun_rows(translator: Translator, asked: Questions) -> dict[str, Tensor]:
    """Return {cross-attention: weights [n, n_heads, src_len]} of the row that writes er, sie or es."""
    tgt, words = asked.tgt[asked.right], translator.tgt_tokenizer.words
    rows = []
    for ids, pair in zip(tgt.tolist(), asked.pairs, strict=True):
        rows.append([words[i].lower() for i in ids].index(pair.expected.lower()) - 1)
    with record_attention(translator.model) as record:
        translator.model(asked.src, tgt[:, :-1])
    return {name: grid[torch.arange(len(asked)), :, rows] for name, grid in record.items() if "cross" in name}
