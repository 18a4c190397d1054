"""Does the word that is read most translate the word that is written? Links known from the grammar (notebook 11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data.context_generator.lexicon import CUES, VERBS
from ...data.corpora import Pair, load_corpus
from ...data.tokenizers import PAD_ID
from ...decoding.translator import Translator, load_trained
from ...model.evaluating import evaluating
from ...model.recording import record_attention
from ...model.transformer import Transformer
from . import cuts
from .questions import Questions, donors, margins, nouns

KINDS = ("noun", "ambiguous", "verb", "verb with it")
WITH_IT = {"cross": {"überquerte"}, "eat": {"fraß"}, "fit": {"passte"}, "pull": {"ziehen"}}  # before "it"
Forms = dict[str, set[str]]  # an English word and the German forms that translate it


@cache
def _forms() -> dict[str, Forms]:
    """Return {kind: forms} of the nouns that decide a sense and of the verbs, as the corpus's grammar has them."""
    verbs: Forms = {}
    for verb in VERBS:
        if not verb.prefix:  # "look at" has its verb in two pieces
            german = {verb.infinitive, verb.singular, verb.plural, verb.german_participle}
            for english in (verb.base, verb.past, verb.participle):
                verbs.setdefault(english, set()).update(german)
    nouns_ = {english: set(noun.forms) for english, noun in CUES.items()}
    return {"noun": nouns_, "verb": verbs, "verb with it": WITH_IT}


def links(pair: Pair, source: Sequence[str], target: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, position in `target`, position in `source`) where the grammar says that one translates the other.

    source, target: the tokens of both sentences. Words that occur twice are left out, and so is "it".
    """
    ambiguous: Forms = {pair.word: {pair.expected}} if pair.word != "it" else {}
    for kind, forms in {"ambiguous": ambiguous, **_forms()}.items():
        for j, english in enumerate(source):
            written = [i for i, german in enumerate(target) if german in forms.get(english, ())]
            if len(written) == source.count(english) == 1:
                yield kind, written[0], j


def _encoded(translator: Translator, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, list[tuple[int, str, int, int]]]:
    """Return source ids, target ids, and the links of all pairs, each with the number of its pair in front."""
    src = translator.src_tokenizer.encode_batch([pair.src for pair in pairs])
    tgt = translator.tgt_tokenizer.encode_batch([pair.tgt for pair in pairs], bos=True, eos=True)
    linked = []
    for n, pair in enumerate(pairs):
        source, target = translator.src_tokenizer.tokens(src[n]), translator.tgt_tokenizer.tokens(tgt[n])
        written = target[1:] if target[0] == "<bos>" else target
        linked += [(n, *link) for link in links(pair, source, written)]
    return src, tgt, linked


@dataclass(frozen=True)
class Grid:
    """A held-out sentence with its translation, as tokens, and the cross-attention weights that the translator has.

    weights: [n_layers, n_heads, tgt_len, src_len]; links: (kind, position in target[1:], position in source).
    """

    text: str
    weights: Tensor
    source: list[str]
    target: list[str]
    links: list[tuple[str, int, int]]


@cache
def clear_grids(count: int = 120) -> list[Grid]:
    """Return those of the first held-out sentences whose links several ways of joining the heads agree about.

    A link is one of a noun or a verb that the grammar knows; each sentence has at least three of them.
    """
    translator, pairs = load_trained("context"), load_corpus("context")["heldout"][:count]
    src, tgt, linked = _encoded(translator, pairs)
    found = []
    with torch.no_grad(), record_attention(translator.model) as record:
        translator.model(src, tgt[:, :-1])
    weights = torch.stack([grid for name, grid in record.items() if "cross" in name], dim=1)
    for n, pair in enumerate(pairs):
        links = [(kind, i, j) for at, kind, i, j in linked if at == n and kind != "verb with it"]
        source = translator.src_tokenizer.tokens(src[n])
        target = ["<bos>", *translator.tgt_tokenizer.tokens(tgt[n]), "<eos>"]
        grid = weights[n, :, :, : len(target) - 1, : len(source)]
        if len(links) > 2 and all(_all_read(shares, links) for shares in _joined(grid)):
            found.append(Grid(pair.src, grid, source, target, links))
    return found


def _joined(grid: Tensor) -> list[Tensor]:
    """Return the means over all heads and over layer 2's, with weights and with their logarithms, and a vote there."""
    logs, votes = (grid + 1e-9).log(), F.one_hot(grid[1].argmax(dim=-1), grid.shape[-1]).double()
    return [grid.mean(dim=(0, 1)), grid[1].mean(dim=0), logs.mean(dim=(0, 1)), logs[1].mean(dim=0), votes.mean(dim=0)]


def _all_read(shares: Tensor, links: Sequence[tuple[str, int, int]]) -> bool:
    return all(int(shares[i].argmax()) == j for _, i, j in links)


@torch.no_grad()
def shares(
    translator: Translator, pairs: Sequence[Pair], *, model: Transformer | None = None, shift: int = 0
) -> dict[str, Tensor]:
    """Return for each kind of word how often the largest weight of the row lies on the word that is translated.

    Args:
        model: in place of the translator's. shift: 0 for the row that writes the word, 1 for the row that reads it.

    Returns:
        {kind: [n_layers, n_heads + 1]}, the last column for the mean over the heads.
    """
    model = translator.model if model is None else model
    src, tgt, linked = _encoded(translator, pairs)
    with evaluating(model), record_attention(model) as record:
        model(src, tgt[:, :-1])
    grids = torch.stack([grid for name, grid in record.items() if "cross" in name], dim=1)
    best = torch.cat([grids, grids.mean(dim=2, keepdim=True)], dim=2).argmax(dim=-1)  # [n, layers, heads + 1, tgt_len]
    hits: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}
    for n, kind, i, j in linked:
        hits[kind].append(best[n, :, :, i + shift] == j)
    return {kind: torch.stack(some).double().mean(dim=0) for kind, some in hits.items() if some}


def by_proportion(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return how often a guess by the place alone is right: as far into the source as the word is into the target."""
    src, tgt, linked = _encoded(translator, pairs)
    # the last token of each; the target has <bos> and <eos> besides
    last_read, last_written = ((ids != PAD_ID).sum(dim=1) - lost for ids, lost in ((src, 1), (tgt, 3)))
    hits: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for n, kind, i, j in linked:
        hits[kind].append(round(i * int(last_read[n]) / int(last_written[n])) == j)
    return {kind: sum(some) / len(some) for kind, some in hits.items() if some}


@torch.no_grad()
def pronoun_counts(translator: Translator, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[int | None, ...]]]:
    """Return for four rows of the memory what they do for the pronoun, {row: {"first" or "second": (read, …)}}.

    "first" and "second" take the sentences of `pairs` with "it" apart by which of the two nouns is meant. The three
    numbers of sentences are those in which the row has the largest weight while the pronoun is written (last layer,
    mean over the heads); in which the pronoun flips, so that the translation with the other one becomes the likelier,
    when no decoder row may read it; and in which it flips when the row comes from the sentence's twin, with the
    adjective that means the other noun. Only a sentence that is right untouched can flip. A fifth entry, "all but
    adjective", has only the last of the three, and "nothing", as the third, the sentences that are wrong untouched; the
    others are None.
    """
    model = translator.model
    it = Questions(translator, [pair for pair in pairs if pair.word == "it"])
    twin, (meant, other) = donors(translator, it, pairs), nouns(it)
    with evaluating(model):
        grids = list(cuts.pronoun_rows(translator, it).values())
        most_read = grids[-1].mean(dim=1).argmax(dim=-1)
        right = margins(model, it) > 0
        counts: dict[str, dict[str, tuple[int | None, ...]]] = {}
        for name, row in {"it": it.word, "noun meant": meant, "other noun": other, "adjective": it.cue}.items():
            with cuts.hidden(model, it, row):
                hidden = right & (margins(model, it) <= 0)
            replaced = right & (cuts.lent(model, it, twin, cuts.rows_at(it, row)) <= 0)
            counts[name] = _by_side(meant < other, most_read == row, hidden, replaced)
        replaced = right & (cuts.lent(model, it, twin, ~cuts.rows_at(it, it.cue)) <= 0)
        counts["all but adjective"] = _by_side(meant < other, None, None, replaced)
        counts["nothing"] = _by_side(meant < other, None, None, ~right)
    return counts


def _by_side(first: Tensor, *found: Tensor | None) -> dict[str, tuple[int | None, ...]]:
    """Return {"first": how often each of `found` [n] is True where `first` [n] is, "second": where it is not}."""
    sides = {"first": first, "second": ~first}
    return {
        side: tuple(None if one is None else int(one[those].sum()) for one in found) for side, those in sides.items()
    }
