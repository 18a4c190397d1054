"""A language model that tells stories in the corpus's English, one sentence after another (notebook 14).

It reads the English side of the training pairs as one long text, in which no sentence has to do with the one before.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from ..._files import DATA
from ..._validate import check_int
from ...data.context_generator import lexicon, pronouns
from ...data.corpora import load_corpus
from ...data.tokenizers import WordTokenizer
from ...decoding.sampling import filter_logits
from ...model import modern
from . import stored
from .descending import descend

load_results = stored.loader("storyteller.json")
WEIGHTS = DATA / "storyteller.safetensors"  # of seed 0, after the longer training
SIZES = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128}
WINDOW, BATCH_SIZE, RATE, WARMUP = 128, 8, 6e-3, 50
FULL_STOP, QUESTION = ".", "?"
STARTS, NEW = 10, 100  # texts that are told, and tokens that are written for each
CORPUS = "the corpus"
Choose = Callable[[Tensor], Tensor]
"""Takes the logits of the next tokens [texts, vocab_size], returns the tokens [texts]."""


@functools.lru_cache(maxsize=1)
def words() -> WordTokenizer:
    """Return the tokenizer of the English training sentences."""
    return WordTokenizer.from_texts(pair.src for pair in load_corpus("context")["train"])


@functools.lru_cache(maxsize=2)
def text(split: str) -> Tensor:
    """Return the English sentences of a split of the corpus as one long row of ids."""
    return torch.tensor([i for pair in load_corpus("context")[split] for i in words().encode(pair.src)])


def new_model(seed: int) -> modern.LanguageModel:
    """Return an untrained storyteller."""
    torch.manual_seed(seed)
    return modern.LanguageModel(modern.Config(vocab_size=len(words()), **SIZES))


def train(seed: int, steps: int) -> modern.LanguageModel:
    """Train a storyteller on windows of the text, drawn at random; 100 steps take about five seconds."""
    model, generator, ids = new_model(seed), torch.Generator().manual_seed(seed), text("train")

    def loss_of() -> Tensor:
        first = torch.randint(len(ids) - WINDOW, (BATCH_SIZE, 1), generator=generator)
        batch = ids[first + torch.arange(WINDOW + 1)]
        return F.cross_entropy(model(batch[:, :-1]).mT, batch[:, 1:])

    descend(model, loss_of, steps, RATE, WARMUP)
    return model.eval()


def load(path: Path = WEIGHTS) -> modern.LanguageModel:
    """Return the storyteller that is stored."""
    model = new_model(0)
    weights = load_file(path)
    model.load_state_dict({**weights, "head.weight": weights["embedding.weight"]})
    return model.eval()


def greedy(logits: Tensor) -> Tensor:
    """Return the most probable tokens [texts]."""
    return logits.argmax(dim=-1)


def picker(seed: int, **options: Any) -> Choose:
    """Return a function that draws the tokens; `options` are of `tl.filter_logits`."""
    generator = torch.Generator().manual_seed(seed)

    def choose(logits: Tensor) -> Tensor:
        p = filter_logits(logits, **options).softmax(dim=-1)
        return torch.multinomial(p, 1, generator=generator)[:, 0]

    return choose


@torch.no_grad()
def tell(model: modern.LanguageModel, starts: Tensor, choose: Choose, new: int) -> list[list[int]]:
    """Continue texts, [texts, tokens], by `new` tokens each, chosen from the logits that all before them give."""
    ids = starts
    for _ in range(check_int("new", new)):
        ids = torch.cat([ids, choose(model(ids)[:, -1])[:, None]], dim=1)
    told: list[list[int]] = ids.tolist()
    return told


@torch.no_grad()
def search(model: modern.LanguageModel, start: Sequence[int], beam_size: int, new: int) -> list[int]:
    """Continue a text by the `new` tokens that beam search finds the most probable together."""
    ids, scores = torch.tensor([list(start)]), torch.zeros(1)
    for _ in range(check_int("new", new)):
        totals = scores[:, None] + model(ids)[:, -1].log_softmax(dim=-1)  # [beams, vocab_size]
        scores, flat = totals.flatten().topk(min(beam_size, totals.numel()))
        parents, tokens = flat // totals.shape[1], flat % totals.shape[1]
        ids = torch.cat([ids[parents], tokens[:, None]], dim=1)
    best: list[int] = ids[0].tolist()
    return best


@torch.no_grad()
def log_probabilities(model: modern.LanguageModel, ids: Sequence[int]) -> Tensor:
    """Return the log-probability of every token but the first, given all before it, [len(ids) - 1]."""
    row = torch.tensor(list(ids))
    logs = model(row[None, :-1])[0].log_softmax(dim=-1)
    return logs.gather(1, row[1:, None])[:, 0]


def starts() -> Tensor:
    """Return the first three words of held-out sentences, [STARTS, 3]."""
    pairs = load_corpus("context")["heldout"][:STARTS]
    return torch.tensor([words().encode(pair.src)[:3] for pair in pairs])


def measured(what: str, ways: Sequence[str], steps: int) -> dict[str, list[float]]:
    """Return what the study has counted, for each way of decoding a value for each seed.

    Args:
        what: a field of `Counts`, or "nats", what a token costs the model itself. ways: names of the study, such as
            "greedy", or CORPUS for held-out text. steps: of the training.
    """
    runs = stored.runs_of(load_results(), steps=steps)
    return {way: [(run["corpus"] if way == CORPUS else run["written"][way])[what] for run in runs] for way in ways}


def counted(panels: Mapping[str, str], ways: Sequence[str], steps: int) -> dict[str, dict[str, list[float]]]:
    """Return `measured` for each panel {title: what is counted}, as `tl.plotting.plot_dots` draws it."""
    return {title: measured(what, ways, steps) for title, what in panels.items()}


def again(steps: int) -> dict[str, tuple[range, list[float]]]:
    """Return, for each seed, the times 1, 2, … that its loop's sentence is read in a row, and log10 of its probability.

    Args:
        steps: of the training.
    """
    return {
        f"seed {run['seed']}": (range(1, len(logs) + 1), [log / math.log(10) for log in logs])
        for run in stored.runs_of(load_results(), steps=steps)
        for logs in (run["loop"]["again"],)
    }


def sentences(ids: Sequence[int]) -> list[str]:
    """Return the whole sentences of a text that begins with a whole sentence; a rest without an end is left out."""
    each: list[str] = []
    rest: list[int] = []
    ends = {words().words.index(mark) for mark in (FULL_STOP, QUESTION)}
    for token in ids:
        rest.append(token)
        if token in ends:
            each.append(words().decode(rest))
            rest = []
    return each


@dataclass(frozen=True)
class Counts:
    """What is counted in some texts: shares from 0 to 1."""

    different: float  # sentences, each counted once, of all sentences
    fours: float  # the same of four tokens in a row
    well_formed: float  # sentences in a pattern of the corpus


def counts(texts: Sequence[Sequence[int]]) -> Counts:
    """Count in texts that begin with a whole sentence."""
    said = [sentence for ids in texts for sentence in sentences(ids)]
    if not said:
        raise ValueError("texts must hold at least one whole sentence, got none")
    fours = [tuple(ids[i : i + 4]) for ids in texts for i in range(len(ids) - 3)]
    formed = sum(map(is_well_formed, said)) / len(said)
    return Counts(len(set(said)) / len(said), len(set(fours)) / len(fours), formed)


def is_well_formed(sentence: str) -> bool:
    """Whether its pattern of word classes is one of the training sentences': grammar, and nothing of its sense."""
    return pattern(sentence) in _patterns()


def pattern(sentence: str) -> tuple[str, ...]:
    """Return the classes of its words: "The man saw an old bank." -> ARTICLE PERSON PAST ARTICLE NOUN .

    An adjective before a noun, which any noun may have, is left out; *a* and *an* must fit what follows them.
    """
    tokens, classes = WordTokenizer.tokenize(sentence), _classes()
    found: list[str] = []
    for token, after in zip(tokens, [*tokens[1:], FULL_STOP], strict=True):
        kind = classes.get(token, token)
        if token in ("a", "an"):
            kind = "ARTICLE" if (token == "an") == (after[0] in "aeiou") else "wrong article"
        if kind != "ADJECTIVE" or classes.get(after) != "NOUN":
            found.append(kind)
    return tuple(found)


@functools.lru_cache(maxsize=1)
def _patterns() -> frozenset[tuple[str, ...]]:
    return frozenset(pattern(pair.src) for pair in load_corpus("context")["train"])


@functools.lru_cache(maxsize=1)
def _classes() -> dict[str, str]:
    """Return the class of each word that has one."""
    in_pairs = {noun.english for family in pronouns.FAMILIES for side in family.sides for noun in side}
    nouns = set(lexicon.CUES) | set(lexicon.AMBIGUOUS) | in_pairs
    adjectives = set(lexicon.ADJECTIVES) | set(pronouns.ADJECTIVES)
    found = {word: "NOUN" for word in nouns} | {word: "ADJECTIVE" for word in adjectives}
    for person in lexicon.PEOPLE:
        found[person.english.split()[1]] = "PEOPLE" if person.plural else "PERSON"
    for verb in lexicon.VERBS:
        forms = {verb.past.split()[0]: "PAST", verb.participle.split()[0]: "PARTICIPLE", verb.base.split()[0]: "BASE"}
        if verb.past == verb.participle:
            forms[verb.past.split()[0]] = "PAST or PARTICIPLE"
        found |= forms
    times = {time.split()[-1]: "TIME" for time in lexicon.TIMES}
    return found | dict.fromkeys(lexicon.ADVERBS, "ADVERB") | times | {"the": "ARTICLE"}
