"""A small German parser for the context corpus, written from grammar tables and not from the generator's code.

It cuts a sentence into chunks (noun phrases with the cases they may have, finite verbs, …), checks the order of the
chunks against the patterns of German clauses, and then that every clause has the cases its verb wants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# (article, gender) -> the cases it may mark; "p" is the plural.
ARTICLES = {
    ("der", "m"): {"nom"},
    ("den", "m"): {"acc"},
    ("dem", "m"): {"dat"},
    ("die", "f"): {"nom", "acc"},
    ("der", "f"): {"dat"},
    ("das", "n"): {"nom", "acc"},
    ("dem", "n"): {"dat"},
    ("die", "p"): {"nom", "acc"},
    ("den", "p"): {"dat"},
    ("ein", "m"): {"nom"},
    ("einen", "m"): {"acc"},
    ("einem", "m"): {"dat"},
    ("eine", "f"): {"nom", "acc"},
    ("einer", "f"): {"dat"},
    ("ein", "n"): {"nom", "acc"},
    ("einem", "n"): {"dat"},
}
PLURALS = {"Männer": {"nom", "acc"}, "Männern": {"dat"}, "Kinder": {"nom", "acc"}, "Kindern": {"dat"}}
CONTRACTED = {"beim": ("bei", "dem"), "im": ("in", "dem"), "am": ("an", "dem")}
PREPOSITIONS = {"bei": {"dat"}, "über": {"acc"}, "in": {"acc", "dat"}, "an": {"dat"}}
SINGULAR_VERBS = [
    "sah",
    "fand",
    "beschrieb",
    "zeichnete",
    "fotografierte",
    "erwähnte",
    "bemerkte",
    "vergaß",
    "ansah",
    "wollte",
    "musste",
    "konnte",
    "hat",
    "war",
    "wurde",
    "sprach",
    "zeigte",
    "wusste",
    "überquerte",
    "passte",
    "fraß",
]
PLURAL_VERBS = [
    "sahen",
    "fanden",
    "beschrieben",
    "zeichneten",
    "fotografierten",
    "erwähnten",
    "bemerkten",
    "vergaßen",
    "ansahen",
    "wollten",
    "mussten",
    "konnten",
    "haben",
    "sprachen",
    "zeigten",
    "wussten",
]
INFINITIVES = [
    "sehen",
    "finden",
    "beschreiben",
    "zeichnen",
    "fotografieren",
    "erwähnen",
    "bemerken",
    "vergessen",
    "ansehen",
    "ziehen",
]
PARTICIPLES = [
    "gesehen",
    "gefunden",
    "beschrieben",
    "gezeichnet",
    "fotografiert",
    "erwähnt",
    "bemerkt",
    "vergessen",
    "angesehen",
]
INTRANSITIVE = {"war", "wurde", "passte", "sprach", "sprachen", "wusste", "wussten"}
SUBORDINATORS = ["weil", "als", "obwohl", "bevor", "dass"]
ADVERBIALS = ["gestern", "heute", "endlich", "dann", "plötzlich", "nachts", "nicht"]
PRONOUNS = {"er": "m", "sie": "f", "es": "n"}

_CLAUSE = {
    "main": r"(?:NP?|PP?|A|E)V[NPAEDC]*[IT]?X?",
    "inverted": r"V[NPAEDC]*[IT]?X?",
    "sub": r"S[NE][NPAD]*[IT]?V",
    "rel": r"R[NPA]*V",
}
SENTENCES = [
    re.compile(pattern.format(**_CLAUSE) + r"\.$")
    for pattern in (
        r"{main}",
        r"{main},{sub}",
        r"{main},C{main}",
        r"{main}:{main}",
        r"{sub},{inverted}",
        r"N,{rel},{inverted}",
    )
] + [re.compile(_CLAUSE["inverted"] + r"\?$")]


@dataclass
class Chunk:
    """A piece of the sentence: its symbol, the cases or number it allows, and its gender."""

    symbol: str
    text: str
    cases: frozenset[str] = frozenset()
    gender: str = ""
    plural: bool = False


class Grammar:
    """Knows the nouns (form -> gender, cases of that form) and the adjectives' stems."""

    def __init__(self, nouns: dict[str, list[tuple[str, frozenset[str]]]], stems: set[str]) -> None:
        self.nouns, self.stems = nouns, stems

    def check(self, sentence: str) -> None:
        """Raise AssertionError with the reason unless the sentence is grammatical."""
        chunks = self.chunk(sentence)
        symbols = "".join(chunk.symbol for chunk in chunks)
        assert any(pattern.match(symbols) for pattern in SENTENCES), f"no clause pattern fits {symbols}: {sentence}"
        for clause in split_clauses(chunks):
            check_cases(clause, sentence)
            check_prefix(clause, sentence)

    def chunk(self, sentence: str) -> list[Chunk]:
        """Return the chunks of a sentence."""
        tokens = re.findall(r"\w+|[.,?:]", sentence[0].lower() + sentence[1:])
        chunks: list[Chunk] = []
        while tokens:
            chunks.append(self._next(tokens, chunks, sentence))
        return chunks

    def _next(self, tokens: list[str], before: list[Chunk], sentence: str) -> Chunk:
        first = tokens[0]
        if first in CONTRACTED:
            preposition, article = CONTRACTED[first]
            if first == "am":
                tokens.pop(0)
                return Chunk("A", f"am {tokens.pop(0)}")  # am Morgen
            tokens[0] = article
            return self._phrase(tokens, sentence, PREPOSITIONS[preposition])
        if first in PREPOSITIONS and len(tokens) > 1 and tokens[1] not in ".,?:":
            tokens.pop(0)
            joined = {a: c for c, a in CONTRACTED.items() if a == (first, tokens[0])}
            assert not joined or first == "in", f"{first} {tokens[0]} must contract: {sentence}"
            return self._phrase(tokens, sentence, PREPOSITIONS[first])
        if before and before[-1].symbol == "," and first in {"der", "die", "das", "den"} and self._is_relative(tokens):
            return Chunk("R", tokens.pop(0))
        if any((first, gender) in ARTICLES for gender in "mfnp"):
            return self._phrase(tokens, sentence, None)
        return self._word(tokens, sentence)

    def _is_relative(self, tokens: list[str]) -> bool:
        """After a comma, an article is a relative pronoun unless its own noun (perhaps after an adjective) follows."""
        following = [t for t in tokens[1:3] if t not in ".,?:"]
        noun_next = following[0] in self.nouns
        noun_after_adjective = len(following) > 1 and self._stem(following[0]) and following[1] in self.nouns
        return not (noun_next or noun_after_adjective)

    def _stem(self, word: str) -> str | None:
        """Return the ending of an adjective, or None for any other word."""
        endings = {word.removeprefix(stem) for stem in self.stems if word.startswith(stem)}
        return next(iter(endings & {"e", "en", "er", "es"}), None)

    def _phrase(self, tokens: list[str], sentence: str, wanted: set[str] | None) -> Chunk:
        article = tokens.pop(0)
        ending = self._stem(tokens[0]) if tokens[0] not in self.nouns else None
        if ending is not None:
            tokens.pop(0)
        noun = tokens.pop(0)
        assert noun in self.nouns, f"{noun!r} is not a noun I know: {sentence}"
        readings = [(gender, ARTICLES.get((article, gender), set()) & cases) for gender, cases in self.nouns[noun]]
        readings = [(g, {c for c in cases if fits_ending(article, g, c, ending)}) for g, cases in readings]
        readings = [(g, cases & wanted if wanted else cases) for g, cases in readings]
        readings = [(g, cases) for g, cases in readings if cases]
        assert readings, f"{article} [-{ending}] {noun} agrees in no case: {sentence}"
        gender, cases = readings[0]
        return Chunk("P" if wanted else "N", noun, frozenset(cases), gender, gender == "p")

    def _word(self, tokens: list[str], sentence: str) -> Chunk:
        word = tokens.pop(0)
        if word in {".", ",", "?", ":"}:
            return Chunk(word, word)
        if word == "zu" or word in self.stems:
            text = tokens.pop(0) if word == "zu" else word
            assert text in self.stems, f"{text!r} is not an adjective I know: {sentence}"
            return Chunk("D", text)
        if word in PRONOUNS:
            return Chunk("E", word, frozenset({"nom"}), PRONOUNS[word])
        tables = (("S", SUBORDINATORS), ("A", ADVERBIALS), ("C", ("und", "aber")), ("X", ("an",)))
        for symbol, words in tables:
            if word in words:
                return Chunk(symbol, word)
        return self._verb(word, tokens, sentence)

    def _verb(self, word: str, tokens: list[str], sentence: str) -> Chunk:
        clause_ends = tokens[0] in {".", ",", "?", ":"}
        auxiliary_before = re.search(r"\b(hat|haben|wurde)\b", sentence) is not None
        if word in PARTICIPLES and clause_ends and auxiliary_before:
            return Chunk("T", word)
        modal = re.search(r"\b(wollten?|mussten?|konnten?)\b", sentence) is not None
        if word in INFINITIVES and modal:
            return Chunk("I", word)
        assert word in SINGULAR_VERBS or word in PLURAL_VERBS, f"{word!r} is no word I know: {sentence}"
        return Chunk("V", word, plural=word in PLURAL_VERBS)


def fits_ending(article: str, gender: str, case: str, ending: str | None) -> bool:
    """Weak endings after der/die/das, mixed after ein; no adjective always fits."""
    if ending is None:
        return True
    if case == "dat" or gender == "p" or (gender == "m" and case == "acc"):
        return ending == "en"
    if article.startswith("ein") and gender != "f":
        return ending == {"m": "er", "n": "es"}[gender]
    return ending == "e"


def split_clauses(chunks: list[Chunk]) -> list[list[Chunk]]:
    """Cut at punctuation and at conjunctions that join clauses; a relative clause takes its antecedent along."""
    clauses: list[list[Chunk]] = [[]]
    pending: list[Chunk] = []
    for index, chunk in enumerate(chunks):
        if chunk.symbol in {",", ":", ".", "?"}:
            if not any(c.symbol == "V" for c in clauses[-1]) and clauses[-1]:
                pending = clauses.pop()  # a noun phrase whose relative clause comes first
            clauses.append([])
        elif chunk.symbol == "R":
            antecedent = chunks[index - 2]
            check_relative(chunk, antecedent)
            cases = {"der": {"nom"}, "den": {"acc"}}.get(chunk.text, {"nom", "acc"})
            clauses[-1].append(Chunk("N", chunk.text, frozenset(cases), antecedent.gender, antecedent.plural))
        else:
            if pending and chunk.symbol == "V" and not clauses[-1]:
                clauses[-1] = pending
                pending = []
            clauses[-1].append(chunk)
    return [clause for clause in clauses if any(c.symbol == "V" for c in clause)]


def check_relative(pronoun: Chunk, antecedent: Chunk) -> None:
    """The relative pronoun has its antecedent's gender and number."""
    fitting = {"m": {"der", "den"}, "f": {"die"}, "n": {"das"}, "p": {"die"}}[antecedent.gender]
    assert pronoun.text in fitting, f"{pronoun.text} after {antecedent.text} ({antecedent.gender})"


def check_cases(clause: list[Chunk], sentence: str) -> None:
    """One subject that agrees with the finite verb, and the objects the verb wants, in the order of our frames."""
    verb = next(c for c in clause if c.symbol == "V")
    phrases = [c for c in clause if c.symbol in "NE"]
    joined = any(c.symbol == "C" and c.text == "und" for c in clause[1:])
    wanted = ["nom"]
    if verb.text not in INTRANSITIVE:
        wanted += ["dat"] * verb.text.startswith("zeigte") + ["acc"] + ["acc"] * joined
    assert len(phrases) == len(wanted), f"{verb.text} wants {wanted}, got {[p.text for p in phrases]}: {sentence}"
    orders = [wanted]
    if wanted == ["nom", "acc"] and phrases[0].text in {"den", "die", "das"}:
        orders.append(["acc", "nom"])  # a relative pronoun comes first whatever its case
    agreeing = [
        order
        for order in orders
        if all(case in phrase.cases for case, phrase in zip(order, phrases, strict=True))
        and phrases[order.index("nom")].plural == verb.plural
    ]
    assert agreeing, f"{[(p.text, sorted(p.cases)) for p in phrases]} do not fit {verb.text}: {sentence}"


def check_prefix(clause: list[Chunk], sentence: str) -> None:
    """A lone "an" belongs to sah or sahen, as the last word."""
    if any(c.symbol == "X" for c in clause):
        verb = next(c for c in clause if c.symbol == "V")
        assert verb.text in {"sah", "sahen"} and clause[-1].symbol == "X", f"stray prefix: {sentence}"
