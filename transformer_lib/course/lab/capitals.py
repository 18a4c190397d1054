"""What a real language model knows of countries, and the way it takes to the last word (notebook 24).

Here are the questions and their facts; `load_results()` has what the study measured with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...data.byte_level import ByteLevelTokenizer
from ...model import circuits, modern
from ...model.interventions import patch
from . import stored

load_results = stored.loader("capitals.json")

HEAD = (23, 4)  # the one that section 3 finds
FEEDER = (16, 0)  # the one of section 5 that looks one back


def _facts(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


CAPITALS = _facts(
    "France:Paris Germany:Berlin Italy:Rome Spain:Madrid Japan:Tokyo China:Beijing Russia:Moscow Greece:Athens "
    "Egypt:Cairo Poland:Warsaw Austria:Vienna Ireland:Dublin England:London Portugal:Lisbon Turkey:Ankara "
    "Canada:Ottawa Sweden:Stockholm Norway:Oslo Cuba:Havana Iran:Tehran Iraq:Baghdad Thailand:Bangkok Kenya:Nairobi "
    "Peru:Lima"
)
COUNTRIES = {capital: country for country, capital in CAPITALS.items()}
CURRENCIES = _facts(
    "Japan:yen China:yuan Russia:ruble India:rupee England:pound Mexico:peso Thailand:baht Germany:euro "
    "Switzerland:franc Israel:shekel Turkey:lira Brazil:real"
)
LANGUAGES = _facts(
    "France:French Germany:German Italy:Italian Spain:Spanish Japan:Japanese China:Chinese Russia:Russian "
    "Greece:Greek Egypt:Arabic Poland:Polish Brazil:Portuguese England:English Sweden:Swedish Iran:Persian "
    "Thailand:Thai Turkey:Turkish"
)
CONTINENTS = _facts(
    "France:Europe Japan:Asia Egypt:Africa Brazil:South China:Asia Germany:Europe Kenya:Africa Canada:North "
    "Peru:South Nigeria:Africa"
)
OPPOSITES = _facts(
    "hot:cold big:small up:down good:bad black:white rich:poor old:young high:low happy:sad strong:weak left:right "
    "dark:light wet:dry open:closed fast:slow love:hate"
)
YOUNG = _facts(
    "dog:puppy cat:kitten cow:calf sheep:lamb bear:cub duck:duck lion:cub goat:kid pig:pig deer:fawn frog:tad"
)
SYMBOLS = _facts(
    "gold:Au silver:Ag iron:Fe oxygen:O carbon:C hydrogen:H sodium:Na lead:Pb copper:Cu helium:He tin:Sn zinc:Zn "
    "nitrogen:N calcium:Ca"
)
PAST = _facts(
    "go:went see:saw eat:ate run:ran take:took give:gave come:came write:wrote know:knew think:thought find:found "
    "buy:bought sing:sang make:made"
)
PLURALS = _facts(
    "mouse:mice child:children man:men foot:feet tooth:teeth woman:women cat:cats book:books dog:dogs house:houses "
    "car:cars box:boxes city:cities baby:babies"
)


@dataclass(frozen=True)
class Question:
    """A text with a gap, and the word that should follow for each thing that fills it."""

    kind: str
    template: str
    facts: Mapping[str, str]


def _chat(question: str, answer: str) -> str:
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    turns = (("system", system), ("user", question))
    return "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in turns) + f"<|im_start|>assistant\n{answer}"


QUESTIONS = (
    Question("capital", "The capital of {} is", CAPITALS),
    Question("capital", "The capital city of {} is called", CAPITALS),
    Question("capital", "In {}, the capital city is called", CAPITALS),
    Question("capital", "I have read that the capital of {} is the city of", CAPITALS),
    Question("capital", "I was born in Norway. The capital of {} is", CAPITALS),
    Question("capital", "Norway: Oslo. Peru: Lima. {}:", CAPITALS),
    Question("capital", "Q: What is the capital of {}?\nA: The answer is", CAPITALS),
    Question("capital", _chat("What is the capital of {}?", "It is"), CAPITALS),
    Question("capital", _chat("What is the capital of {}?", "The capital is"), CAPITALS),
    Question("currency", "The currency of {} is the", CURRENCIES),
    Question("currency", "When you travel to {} you need the local currency, the", CURRENCIES),
    Question("language", "The official language of {} is", LANGUAGES),
    Question("language", "Peru: Spanish. Brazil: Portuguese. {}:", LANGUAGES),
    Question("continent", "The country of {} is on the continent of", CONTINENTS),
    Question("country", "The city of {} is the capital of", COUNTRIES),
    Question("country", "My friend lives in the city of {}, in the country of", COUNTRIES),
    Question("young", "A baby dog is called a puppy. A baby swan is called a cygnet. A baby {} is called a", YOUNG),
    Question("symbol", "The chemical symbol of potassium is K. The chemical symbol of {} is", SYMBOLS),
    Question("plural", "One bird, two birds. One leaf, two leaves. One {}, two", PLURALS),
    Question("past", "Today I speak, yesterday I spoke. Today I {}, yesterday I", PAST),
    Question("opposite", "The opposite of {} is", OPPOSITES),
    Question(
        "opposite", "The opposite of north is south. The opposite of day is night. The opposite of {} is", OPPOSITES
    ),
)
PLACES = ("capital", "currency", "language", "continent", "country")  # kinds that ask about a place


@dataclass(frozen=True)
class Pairs:
    """Prompts of one length that differ in one word, each beside another one.

    Attributes:
        things: what fills the gap of each. ids, others: [pairs, seq_len], the prompts and those beside them.
        right, wrong: [pairs], the first token of the answers to `ids` and to `others`.
        place: the position of the word in which they differ.
    """

    things: tuple[str, ...]
    ids: Tensor
    others: Tensor
    right: Tensor
    wrong: Tensor
    place: int

    @property
    def last(self) -> int:
        """The last position."""
        return self.ids.shape[1] - 1

    def difference(self, logits: Tensor) -> Tensor:
        """Return by how much the answer to `ids` is ahead of that to `others`: [..., pairs, vocab] -> [..., pairs]."""
        return circuits.logit_difference(logits, self.right, self.wrong)

    @torch.no_grad()
    def recovered(self, model: modern.LanguageModel, measured: Tensor) -> Tensor:
        """Return `difference` as shares: 1 where it is that of the runs on `ids`, 0 where it is that on `others`."""
        clean, corrupted = (self.difference(model(each)[:, -1]) for each in (self.ids, self.others))
        return circuits.recovered(measured, clean, corrupted)


def prompts(words: ByteLevelTokenizer, template: str, things: Iterable[str]) -> Tensor:
    """Return the ids of the template with each of the things, [things, seq_len]; they must be equally long."""
    return torch.tensor([words.encode(template.format(thing)) for thing in things])


def answers(words: ByteLevelTokenizer, names: Iterable[str]) -> Tensor:
    """Return the first token of each word, a space in front of it, [words]."""
    return torch.tensor([words.encode(" " + name)[0] for name in names])


@torch.no_grad()
def known(
    model: modern.LanguageModel, words: ByteLevelTokenizer, template: str, facts: Mapping[str, str]
) -> dict[str, str]:
    """Return those of the facts that the model gets right: the likeliest next token is the answer's first.

    Only things of one token count, so that all prompts have the same length.
    """
    lengths = {thing: len(words.encode(template.format(thing))) for thing in facts}
    usual = Counter(lengths.values()).most_common(1)[0][0]
    asked = {t: a for t, a in facts.items() if lengths[t] == usual and len(words.encode(" " + t)) == 1}
    said = model(prompts(words, template, asked))[:, -1].argmax(dim=-1)
    right = said == answers(words, asked.values())
    return {thing: answer for (thing, answer), one in zip(asked.items(), right.tolist(), strict=True) if one}


def pairs(words: ByteLevelTokenizer, template: str, facts: Mapping[str, str]) -> Pairs:
    """Return each prompt beside that of the next thing which has another answer."""
    things = list(facts)
    ids, right = prompts(words, template, things), answers(words, facts.values())
    n = len(things)
    if len(set(right.tolist())) < 2:
        raise ValueError(f"facts must have two answers that begin differently, got {dict(facts)}")
    nexts = [next((j % n for j in range(i + 1, i + n) if right[j % n] != right[i]), i) for i in range(n)]
    kept = torch.tensor([i for i, j in enumerate(nexts) if j != i])
    others = torch.tensor(nexts)[kept]
    differs = (ids[kept] != ids[others]).any(dim=0).nonzero()[:, 0].tolist()
    if len(differs) != 1:
        raise ValueError(f"things must be one token each, in the same place, got differences at {differs}")
    chosen = tuple(things[i] for i in kept.tolist())
    return Pairs(chosen, ids[kept], ids[others], right[kept], right[others], differs[0])


@dataclass(frozen=True)
class Lens:
    """What the final norm and the table of words read in vectors, one for each of some things.

    Attributes:
        model, words: the model and its tokenizer. things: whose vectors are read, in their order.
    """

    model: modern.LanguageModel
    words: ByteLevelTokenizer
    things: list[str]

    @torch.no_grad()
    def own_first(self, vectors: Tensor, facts: Mapping[str, str]) -> tuple[int, int]:
        """Return for how many things their own answer is ahead of all others' answers, and how many things have one.

        Args:
            vectors: [things, d_model]. facts: {thing: answer}; things that it lacks are left out, and so are the
                answers to others.
        """
        rows = [row for row, thing in enumerate(self.things) if thing in facts]
        ids = answers(self.words, [facts[self.things[row]] for row in rows])
        read = self.model.norm(vectors[rows]) @ self.model.head.weight[ids].T
        return int((ids[read.argmax(dim=-1)] == ids).sum()), len(rows)

    @torch.no_grad()
    def own_first_by_head(self, streams: Sequence[Tensor], facts: Mapping[str, str]) -> Tensor:
        """Return `own_first` of what each head writes if it takes it from one position, [n_layers, n_heads].

        Args:
            streams: n_layers + 1 of [things, 1, d_model], as of `trace(…, keep="streams", positions=…)`.
        """
        n_heads = self.model.config.n_heads
        counts = [
            [self.own_first(circuits.head_writes(self.model, n, head, x[:, 0]), facts)[0] for head in range(n_heads)]
            for n, x in enumerate(streams[:-1])
        ]
        return torch.tensor(counts)

    @torch.no_grad()
    def best(self, vectors: Tensor, thing: str, count: int) -> list[str]:
        """Return the likeliest words of one thing's vector, each once, and no parts of letters."""
        ids = self.model.logits(vectors[self.things.index(thing)]).topk(5 * count).indices.tolist()
        found = dict.fromkeys(self.words.decode([word]).strip() for word in ids)
        return [word for word in found if word and "\ufffd" not in word][:count]


@torch.no_grad()
def push(model: modern.LanguageModel, pairs: Pairs) -> Tensor:
    """Return what exchanging HEAD's output adds to the last word's stream of the runs on `others`, [pairs, d_model]."""
    layer, head = HEAD
    outputs = [circuits.trace(model, ids, keep="heads").heads[layer][:, head, -1] for ids in (pairs.ids, pairs.others)]
    attention = model.layers[layer].attention
    return (outputs[0] - outputs[1]) @ attention.w_o.weight.unflatten(1, (attention.n_heads, -1))[:, head].T


@torch.no_grad()
def pushed(model: modern.LanguageModel, pairs: Pairs, added: Tensor) -> list[float]:
    """Return the share that each pair recovers if these vectors [pairs, d_model] are added where HEAD writes."""
    where = f"layers.{HEAD[0]}.attention.w_o"
    with patch(model, where, lambda written: written + added[:, None], positions=pairs.last):
        measured = pairs.difference(model(pairs.others)[:, -1])
    shares: list[float] = pairs.recovered(model, measured).tolist()
    return shares


def direct(model: modern.LanguageModel, pairs: Pairs) -> dict[str, float]:
    """Return what each piece of the last word's stream adds to `difference` directly, {name: the mean over pairs}."""
    right, wrong = (
        circuits.contributions(model, pairs.ids, answer[:, None], positions=pairs.last)
        for answer in (pairs.right, pairs.wrong)
    )
    return {name: (value - wrong[name]).mean().item() for name, value in right.items()}


def answered(results: Mapping[str, Any], template: str, most: int | None = None) -> dict[str, str]:
    """Return those facts of a stored question which the model got right in the study, {thing: answer}, at most `most`.

    Raises:
        ValueError: there is no such question.
    """
    asked = {question.template: question.facts for question in QUESTIONS}
    if template not in asked:
        raise ValueError(f"template must be one of QUESTIONS, such as {QUESTIONS[0].template!r}, got {template!r}")
    return {thing: asked[template][thing] for thing in results["questions"][template]["things"][:most]}


# What is stored, as it is drawn ---------------------------------------------------------------------------------------


def by_kind(results: Mapping[str, Any], name: str) -> dict[str, list[Any]]:
    """Return one entry of the stored questions, {kind: one value for each pair}."""
    found: dict[str, list[Any]] = {}
    for record in results["questions"].values():
        found.setdefault(record["kind"], []).extend(record[name])
    return found


def by_template(results: Mapping[str, Any], name: str, kind: str) -> dict[str, list[Any]]:
    """Return one entry of the stored questions of a kind, {template: one value for each pair}."""
    records = results["questions"].items()
    return {_short(template): record[name] for template, record in records if record["kind"] == kind}


def _short(template: str) -> str:
    """Return a template as a label: X for the gap, of a chat the beginning of the answer."""
    if "<|im_start|>" in template:
        return f"(chat) {template.splitlines()[-1]}"
    return template.replace("{}", "X").replace("\n", " ").replace("I have read that the", "… the")


def carried(results: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return what comes with the head, {question: {source: a share for each country}}."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in results["carries"]:
        asks = next(kind for kind in ("capital", "currency", "language") if kind in record["target"])
        found.setdefault(f"into: {asks}", {})[_short(record["source"])] = record["recovered"]
    return found


def crossed(results: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return whose answer is said after a patch of the last word, {whose: {where: a share for each pair of texts}}."""
    names = {"this country's": "answer for the run's own country", "the other's": "for the country it came from"}
    found: dict[str, dict[str, list[float]]] = {title: {} for title in names.values()}
    for record in results["crossed"]:
        for layer in (key for key in record if key.isdigit()):
            for name, title in names.items():
                share = record[layer][name] / len(record["things"])
                found[title].setdefault(f"before layer {layer}", []).append(share)
    return found


def roads(results: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return how much of the question is at the last word, {pair of questions: [depths]}, the mean over countries."""
    return {
        _short(name.partition(" / ")[0]).replace(
            "capital", "capital/" + ("language" if "lang" in name else "currency")
        ): torch.tensor(record["at the last word"]).mean(dim=1)
        for name, record in results["roads"].items()
    }
