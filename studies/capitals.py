"""What a real model knows of France, and where: which layer and head bring what is asked about (notebook 24).

It needs the model (`make real`), and takes about half an hour of one processor core.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course import real
from transformer_lib.course.lab import capitals as lab
from transformer_lib.course.lab import inside
from transformer_lib.data.byte_level import ByteLevelTokenizer
from transformer_lib.model import circuits, modern
from transformer_lib.model.interventions import cut, patch

from .engine import Step, Steps, Study, rounded

MOST = 14  # pairs of one template
DEPTHS = (0, 4, 8, 12, 16, 20, 21, 22, 23, 24, 26, 28, 30)
SHOWN = (("France", "Germany"), ("Japan", "China"), ("Spain", "Greece"))  # pairs of the panel
LIKELY = 3  # words that it shows
CROSSED = (20, 22, 23, 24)  # layers in front of which a stream is put into another run
PERIODS = (12, 24, 48)  # of random tokens that repeat
SOURCES = (
    "The capital of {} is",
    "The currency of {} is the",
    "The language spoken in {} is",
    "I like {}",
    "Yesterday my friend came back from {}",
    "She has written a long book about {}",
)
ASKING = 3  # of the sources ask something; the others end with the country
TARGETS = {SOURCES[0]: lab.CAPITALS, SOURCES[1]: lab.CURRENCIES, "The official language of {} is": lab.LANGUAGES}
COUNTRIES = list(lab.CAPITALS)[:8] + ["Austria", "England", "Sweden", "Thailand"]
CROSSING = {
    SOURCES[1]: lab.CURRENCIES,
    "When you travel to {} you need the local currency, the": lab.CURRENCIES,
    "The official language of {} is": lab.LANGUAGES,
}
ROADS = (
    ("The capital of {} is the", "The currency of {} is the"),
    ("The capital of {} is called the", "The currency of {} is called the"),
    ("The capital of {} is", "The language of {} is"),
    ("The capital of {} is known as the", "The currency of {} is known as the"),
    ("I know that the capital of {} is the", "I know that the currency of {} is the"),
)


@functools.cache
def loaded() -> tuple[modern.LanguageModel, ByteLevelTokenizer]:
    """Return the model and its tokenizer.

    Raises:
        FileNotFoundError: it has not been fetched.
    """
    if real.folder() is None:
        raise FileNotFoundError(real.WHAT_TO_DO)
    model, words = real.load("24")
    return model, words


@torch.no_grad()
def ask(question: lab.Question) -> dict[str, Any]:
    """Return what moves in layer 23 when this is asked, which heads bring it, and what is right without the first."""
    model, words = loaded()
    known = dict(list(lab.known(model, words, question.template, question.facts).items())[:MOST])
    pairs = lab.pairs(words, question.template, known)
    layer, head = lab.HEAD

    def recovered(measured: Tensor) -> Tensor:
        return pairs.recovered(model, measured)

    places = [pairs.place, pairs.last]
    streams = circuits.patch_streams(
        model, pairs.others, pairs.ids, pairs.difference, layers=[layer, layer + 1], positions=places
    )
    at = recovered(streams)  # [2 layers, 2 positions, pairs]
    heads = circuits.trace(model, pairs.ids, keep="heads").heads
    shares = recovered(circuits.patch_heads(model, pairs.others, heads, pairs.difference, positions=pairs.last))
    best = circuits.ranked(shares.mean(dim=-1))
    rival = next(each for each in best if each != lab.HEAD)
    mean = heads[layer][:, head, -1].mean(dim=0)
    whole = model(pairs.ids)[:, -1].log_softmax(dim=-1)
    with circuits.replace_head(model, layer, head, mean, positions=pairs.last):
        without = model(pairs.ids)[:, -1].log_softmax(dim=-1)
    rows = torch.arange(len(pairs.right))
    result = {
        "kind": question.kind,
        "things": list(pairs.things),
        "at the thing before": at[0, 0],
        "at the last word before": at[0, 1],
        "at the last word behind": at[1, 1],
        "moved": at[1, 1] - at[0, 1],
        "head": shares[layer, head],
        "rank": [circuits.ranked(one).index(lab.HEAD) + 1 for one in shares.movedim(-1, 0)],
        "rival": f"{rival[0]}.{rival[1]}",
        "rival's": shares[rival],
        "right without": (without.argmax(dim=-1) == pairs.right).long(),
        "fall": (whole - without)[rows, pairs.right],
    }
    return {name: rounded(value, 3) if isinstance(value, Tensor) else value for name, value in result.items()}


@dataclass(frozen=True)
class Carried:
    """The head's value taken at the last word of one text, or its output there, and put into another question."""

    source: str
    value: bool  # of the country's own position, where no attention has chosen anything
    target: str


def carries() -> list[Carried]:
    """Return every text from which the head's output is taken, with each question into which it is put."""
    return [Carried(source, number >= ASKING, target) for number, source in enumerate(SOURCES) for target in TARGETS]


@torch.no_grad()
def carry(setup: Carried) -> dict[str, Any]:
    """Return how much of the other country's answer comes with the head, and how often it is said."""
    model, words = loaded()
    facts = TARGETS[setup.target]
    asked = {country: facts[country] for country in COUNTRIES if country in facts}
    known = lab.known(model, words, setup.target, asked)
    pairs = lab.pairs(words, setup.target, known)
    layer, head = lab.HEAD
    run = circuits.trace(model, lab.prompts(words, setup.source, pairs.things), keep=("streams", "heads"))
    own = circuits.head_value(model, layer, head, run.streams[layer][:, -1])
    new = own if setup.value else run.heads[layer][:, head, -1]
    with circuits.replace_head(model, layer, head, new[:, None], positions=pairs.last):
        logits = model(pairs.others)[:, -1]
    shares = pairs.recovered(model, pairs.difference(logits))
    said = (logits.argmax(dim=-1) == pairs.right).tolist()
    return {"things": list(pairs.things), "recovered": rounded(shares, 3), "said": [int(one) for one in said]}


@torch.no_grad()
def road(templates: tuple[str, str]) -> dict[str, Any]:
    """Return how much of the question is at the last word in front of each of DEPTHS, for each country.

    The country is the same in both prompts, and what is asked differs; the two answers are compared.
    """
    model, words = loaded()
    first, second = templates
    other = lab.CURRENCIES if "currency" in second else lab.LANGUAGES
    things = [c for c in lab.CAPITALS if c in other and len(words.encode(" " + c)) == 1][:8]
    ids, others = (lab.prompts(words, template, things) for template in templates)
    right, wrong = lab.answers(words, map(lab.CAPITALS.get, things)), lab.answers(words, map(other.get, things))
    last, asked = ids.shape[1] - 1, int((ids != others).any(dim=0).nonzero()[0])

    def difference(logits: Tensor) -> Tensor:
        return circuits.logit_difference(logits, right, wrong)

    places = [asked, last]
    found = circuits.patch_streams(model, others, ids, difference, layers=list(DEPTHS), positions=places)
    clean, corrupted = (difference(model(each)[:, -1]) for each in (ids, others))
    shares = circuits.recovered(found, clean, corrupted)
    return {"things": things, "at the question": rounded(shares[:, 0], 3), "at the last word": rounded(shares[:, 1], 3)}


@dataclass(frozen=True)
class Crossed:
    """The last word's stream of one question about one country, put into another question about another country."""

    source: str
    target: str


def crossings() -> list[Crossed]:
    """Return three texts that do not ask for a capital, each with five that do."""
    asked = [question.template for question in lab.QUESTIONS if question.kind == "capital"][:4]
    targets = (ROADS[0][0], *asked)
    return [Crossed(source, target) for source in CROSSING for target in targets]


@torch.no_grad()
def cross(setup: Crossed) -> dict[str, Any]:
    """Return how often the answer that was not asked for is said after the patch, in front of each of CROSSED layers.

    That of the country that the run is about, or that of the other one, whose stream it got.
    """
    model, words = loaded()
    facts = CROSSING[setup.source]
    things = list(lab.known(model, words, setup.source, facts))[:MOST]
    ids = lab.prompts(words, setup.source, things)
    others = lab.prompts(words, setup.target, things).roll(-1, dims=0)
    answer = lab.answers(words, map(facts.get, things))
    of_both = answer != answer.roll(-1)
    streams, last = circuits.trace(model, ids, keep="streams", positions=ids.shape[1] - 1).streams, others.shape[1] - 1
    found: dict[str, Any] = {"things": [thing for thing, one in zip(things, of_both.tolist(), strict=True) if one]}
    for layer in CROSSED:
        new = streams[layer].expand(-1, last + 1, -1)
        with patch(model, f"layers.{layer - 1}", new, positions=last):
            said = model(others)[:, -1].argmax(dim=-1)[of_both]
        counts = {"this country's": answer.roll(-1)[of_both], "the other's": answer[of_both]}
        found[str(layer)] = {name: int((said == one).sum()) for name, one in counts.items()}
    return found


@dataclass(frozen=True)
class Repeats:
    """Four texts of random tokens that repeat after a period."""

    period: int
    seed: int


@torch.no_grad()
def repeat(setup: Repeats) -> dict[str, Any]:
    """Return which heads copy, and the loss on the repeat with heads, or one path between them, taken out."""
    model, period = loaded()[0], setup.period
    ids = inside.repeats(period, setup.seed)
    run = circuits.trace(model, ids, keep=("weights", "streams"))
    scores = torch.stack([circuits.induction_score(weights[..., 1:, 1:], period) for weights in run.weights])
    before = torch.stack([circuits.previous_token_score(weights[..., 1:, 1:]) for weights in run.weights])
    order, back = circuits.ranked(scores), circuits.ranked(before)
    eight, feeder = order[:8], lab.FEEDER
    fed = [each for each in eight if each[0] > feeder[0]]
    others = [(layer, head) for layer in range(17, 30) for head in range(9) if (layer, head) not in order[:24]]
    same = inside.like(eight, order[:24], 9, setup.seed)
    piece = circuits.pieces(model, ids, names=["16.0"])["16.0"]
    own = piece - piece.mean(dim=(0, 1))

    def loss(context: Any = None) -> float:
        return inside.repeat_loss(model, ids, period, context)

    def without(heads: Any, into: str) -> Any:
        return circuits.replace_input(model, heads, into, lambda stream: stream - own)

    mean = functools.partial(circuits.ablate_heads, model, how="mean")
    second = next(each for each in back if each != feeder)
    losses = {
        "first time": inside.first_loss(model, ids, period),
        "whole": loss(),
        "without the eight": loss(mean(eight)),
        "without the eight, zero": loss(circuits.ablate_heads(model, eight, "zero")),
        "without eight of the same layers": loss(mean(same)),
        "without 16.0": loss(mean([feeder])),
        "without the next one that looks one back": loss(mean([second])),
        "out of the keys of the eight": loss(without(fed, "keys")),
        "out of their queries": loss(without(fed, "queries")),
        "out of their values": loss(without(fed, "values")),
        "out of the keys of all others": loss(without(others, "keys")),
    }
    named = [f"{layer}.{head}" for layer, head in eight]
    return {"eight": named, "one back": f"{back[0][0]}.{back[0][1]}", "losses": rounded(losses, 3)}


@torch.no_grad()
def sink(name: str) -> dict[str, Any]:
    """Return the loss of a text with the first token forbidden, out of sight or silenced, and who is a sink."""
    model, words = loaded()
    ids = inside.text(words, name)
    n = ids.shape[1]
    whole = circuits.trace(model, ids, keep=("streams", "weights"))

    def seen(run: circuits.Trace, token: int) -> dict[str, float]:
        return {"share": rounded(inside.share(run.weights, token), 3), "norm": inside.norm_at(run.streams, token)}

    def loss(context: Any = None) -> float:
        return inside.text_loss(model, ids, context)

    forbidden, alone = (
        cut(model, query=list(range(1, n)), key=0),
        cut(model, query=20, key=list(range(20)), layer=range(12)),
    )
    losses = {"whole": loss(), "token 0 forbidden": loss(forbidden)}
    for window in inside.WINDOWS:
        for kept in inside.KEPT:
            losses[f"window {window}, kept {kept}"] = loss(cut(model, mask=inside.window(n, window, kept)))
    losses["feature 507 of token 0"] = loss(inside.silenced(model, 13, [0], [inside.FEATURE]))
    losses["feature 507 of all others"] = loss(inside.silenced(model, 13, list(range(1, n)), [inside.FEATURE]))
    losses["200 other features of token 0"] = loss(inside.silenced(model, 13, [0], inside.others()))
    with cut(model, query=list(range(1, n)), key=0):
        without = circuits.trace(model, ids, keep=("streams", "weights"))
    with alone:
        made = circuits.trace(model, ids, keep=("streams", "weights"))
    runs = {"token 0": (whole, 0), "token 1, token 0 forbidden": (without, 1), "token 20": (whole, 20)}
    runs["token 20, alone in layers 0 to 11"] = (made, 20)
    return {"losses": rounded(losses, 3), "sinks": {key: seen(*one) for key, one in runs.items()}}


@torch.no_grad()
def sense(word: str) -> dict[str, Any]:
    """Return a cue's effect on what follows a word of two senses, and the share that passes through each place."""
    model, words = loaded()
    return {name: inside.cue_effects(model, words, word, noun) for name, noun in inside.nouns(word).items()}


@torch.no_grad()
def shown(pair: tuple[str, str]) -> dict[str, Any]:
    """Return the likeliest words after each patch of a stream of one prompt into the run on another one."""
    model, words = loaded()
    ids = lab.prompts(words, SOURCES[0], pair)
    place, last = ids.shape[1] - 2, ids.shape[1] - 1
    likely: list[Any] = []

    def measure(logits: Tensor) -> Tensor:
        likely.extend(_likeliest(words, row) for row in logits[:, 0])
        return logits[..., 0]

    circuits.patch_streams(model, ids[1:], ids[:1], measure, positions=[place, last])
    own = [_likeliest(words, row) for row in model(ids)[:, -1]]
    tokens = [words.decode([token]) for token in ids[0].tolist()]
    return {"tokens": tokens, "own": own, "country": likely[::2], "last": likely[1::2]}


def _likeliest(words: ByteLevelTokenizer, logits: Tensor) -> list[Any]:
    found, ids = logits.softmax(dim=-1).topk(LIKELY)
    return [[words.decode([token]), round(p, 3)] for p, token in zip(found.tolist(), ids.tolist(), strict=True)]


def _all(seeds: Sequence[int]) -> list[tuple[tuple[Any, ...], Callable[..., Any], Any]]:
    """Return where each result is, what measures it, and of what."""
    texts = [Repeats(period, seed) for period in PERIODS for seed in seeds]
    return [
        *((("questions", question.template), ask, question) for question in lab.QUESTIONS),
        *((("carries", setup), carry, setup) for setup in carries()),
        *((("crossed", setup), cross, setup) for setup in crossings()),
        *((("roads", " / ".join(templates)), road, templates) for templates in ROADS),
        *((("shown", "/".join(pair)), shown, pair) for pair in SHOWN),
        *((("repeats", repeated), repeat, repeated) for repeated in texts),
        *((("sinks", name), sink, name) for name in inside.TEXTS),
        *((("senses", word), sense, word) for word in inside.SENSES),
    ]


def steps(seeds: Sequence[int]) -> Steps:
    """Ask every question, put every output and stream elsewhere, and look at repeats, first tokens and senses."""
    for where, measure, given in _all(seeds):
        yield Step(where, measure, given)


CONSTANTS = {"depths": list(DEPTHS)}
STUDY = Study("capitals", __doc__, steps, seeds=(0, 1), constants=CONSTANTS)


if __name__ == "__main__":
    STUDY.command()
