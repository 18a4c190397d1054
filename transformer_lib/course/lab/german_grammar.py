"""A small German parser for the context corpus, written from grammar tables and not from the generator's code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .german_nouns import NOUNS, PLACES, PLURALS

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
ARTICLE_WORDS = {article for article, _ in ARTICLES}
CONTRACTED = {"beim": ("bei", "dem"), "im": ("in", "dem"), "ins": ("in", "das")}
PREPOSITIONS = {"bei": {"dat"}, "neben": {"dat"}, "über": {"acc"}, "in": {"dat"}}

# form -> gender and the cases it may have
READINGS = {form: (noun.gender, cases) for noun in NOUNS.values() for form, cases in noun.cases.items()}


READINGS |= {plural: ("p", {"nom", "acc"}) for plural in PLURALS}


READINGS |= {dative: ("p", {"dat"}) for dative in PLURALS.values()}


def _words(text: str) -> set[str]:
    return set(text.split())


# Adjectives before a noun take these endings without another change ("hoch" and "sauer" would not).
ATTRIBUTES = _words("alt groß klein schön wunderbar hässlich seltsam ungewöhnlich gewöhnlich interessant")
ENDING_OF = {stem + ending: ending for stem in ATTRIBUTES for ending in ("e", "en", "er", "es")}
PREDICATES = ATTRIBUTES | _words(
    """
    müde krank schwach faul ängstlich jung hungrig satt breit schmal tief steil uneben lang kurz hoch niedrig dick
    hart schimmelig salzig scharf bitter sauer schwer rostig
    """
)
SINGULAR = _words(
    """
    sah fand beschrieb zeichnete fotografierte erwähnte bemerkte erkannte wollte musste konnte hat war wurde
    sprach zeigte wusste überquerte passte fraß
    """
)
PLURAL = _words(
    """
    sahen fanden beschrieben zeichneten fotografierten erwähnten bemerkten erkannten wollten mussten konnten haben
    sprachen zeigten wussten
    """
)
JOINED = {"ansah": False, "ansahen": True}  # at the end of a clause only; whether it is a plural
INFINITIVES = _words("sehen finden beschreiben zeichnen fotografieren erwähnen ansehen ziehen")
PARTICIPLES = _words("gesehen gefunden beschrieben gezeichnet fotografiert erwähnt bemerkt erkannt angesehen")
INTRANSITIVE = {"war", "wurde", "passte", "sprach", "sprachen", "wusste", "wussten"}
PRONOUNS = {"er": "m", "sie": "f", "es": "n"}
TIMES = {"Morgen", "Abend", "Montag"}  # "am Morgen"
SYMBOLS = {
    **dict.fromkeys(("weil", "als", "obwohl", "bevor", "dass"), "S"),
    **dict.fromkeys(("gestern", "heute", "endlich", "dann", "plötzlich", "nachts", "nicht"), "A"),
    **dict.fromkeys(("und", "aber"), "C"),
    **{mark: mark for mark in ".,?:"},
    "an": "X",
}

_CLAUSE = {
    "main": r"(?:NP?|PP?|A|E)V[NPAEDC]*[IT]?X?",
    "inverted": r"V[NPAEDC]*[IT]?X?",
    "sub": r"S[NE][NPAD]*[IT]?[VW]",
    "rel": r"R[NPA]*[VW]",
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


@dataclass(frozen=True)
class Chunk:
    """A piece of the sentence: its symbol, the cases or number it allows, and its gender."""

    symbol: str
    text: str
    cases: frozenset[str] = frozenset()
    gender: str = ""
    plural: bool = False

    @property
    def finite(self) -> bool:
        """Whether it is a finite verb."""
        return self.symbol in {"V", "W"}


def check_german(sentence: str) -> None:
    """Raise AssertionError with the reason unless the sentence is grammatical."""
    chunks = cut(sentence)
    symbols = "".join(chunk.symbol for chunk in chunks)
    assert any(pattern.match(symbols) for pattern in SENTENCES), f"no clause pattern fits {symbols}: {sentence}"
    for clause in split_clauses(chunks):
        check_cases(clause, sentence)
        check_prefix(clause, sentence)


def cut(sentence: str) -> list[Chunk]:
    """Return the chunks of a sentence."""
    tokens = re.findall(r"\w+|[.,?:]", lower_case_starts(sentence))
    chunks: list[Chunk] = []
    while tokens:
        chunks.append(next_chunk(tokens, chunks, sentence))
    return chunks


def lower_case_starts(sentence: str) -> str:
    """Return the sentence without its capitals at the start and after a colon, both of which it must have."""
    starts = [sentence[0], *re.findall(r": (.)", sentence)]
    assert all(letter.isupper() for letter in starts), f"a sentence begins with a capital: {sentence}"
    return re.sub(r"(^|: )(.)", lambda match: match[1] + match[2].lower(), sentence)


def next_chunk(tokens: list[str], before: list[Chunk], sentence: str) -> Chunk:
    """Take the next chunk off the tokens."""
    first = tokens[0]
    if first == "am":
        assert tokens[1] in TIMES, f"{tokens[1]!r} is no time I know: {sentence}"
        return Chunk("A", f"{tokens.pop(0)} {tokens.pop(0)}")
    if first in CONTRACTED or first in PREPOSITIONS:
        return read_prepositional(tokens, sentence)
    if before and before[-1].symbol == "," and first in {"der", "die", "das", "den"} and is_relative(tokens):
        return Chunk("R", tokens.pop(0))
    if first in ARTICLE_WORDS:
        return read_phrase(tokens, sentence)
    return read_word(tokens, sentence)


def is_relative(tokens: list[str]) -> bool:
    """After a comma, an article is a relative pronoun unless its own noun (perhaps after an adjective) follows."""
    noun = tokens[2] if tokens[1] in ENDING_OF else tokens[1]
    return noun not in READINGS


def read_prepositional(tokens: list[str], sentence: str) -> Chunk:
    """Take a preposition and its noun phrase; "in" wants the accusative where something is to get into it."""
    preposition = tokens.pop(0)
    if preposition in CONTRACTED:
        preposition, article = CONTRACTED[preposition]
        tokens.insert(0, article)
    else:
        joined = (preposition, tokens[0])
        assert joined not in CONTRACTED.values(), f"{' '.join(joined)} must contract: {sentence}"
    into = preposition == "in" and "passte" in sentence
    phrase = read_phrase(tokens, sentence, {"acc"} if into else PREPOSITIONS[preposition])
    place = phrase.text in PLACES
    assert not place or preposition != "neben", f"{phrase.text} is a place, one is bei it: {sentence}"
    assert place or preposition != "bei", f"{phrase.text} is no place, one is neben it: {sentence}"
    return phrase


def read_phrase(tokens: list[str], sentence: str, wanted: set[str] | None = None) -> Chunk:
    """Take article, adjective and noun; `wanted` are the cases that a preposition before them allows."""
    article = tokens.pop(0)
    ending = ENDING_OF[tokens.pop(0)] if tokens[0] in ENDING_OF else None
    noun = tokens.pop(0)
    assert noun in READINGS, f"{noun!r} is not a noun I know: {sentence}"
    gender, possible = READINGS[noun]
    marked = ARTICLES.get((article, gender), set()) & possible & (wanted or possible)
    cases = frozenset(case for case in marked if fits_ending(article, gender, case, ending))
    assert cases, f"{article} [-{ending}] {noun} agrees in no case: {sentence}"
    return Chunk("P" if wanted else "N", noun, cases, gender, gender == "p")


def fits_ending(article: str, gender: str, case: str, ending: str | None) -> bool:
    """Weak endings after der/die/das, mixed after ein; no adjective always fits."""
    if ending is None:
        return True
    if case == "dat" or gender == "p" or (gender == "m" and case == "acc"):
        return ending == "en"
    if article.startswith("ein") and gender != "f":
        return ending == {"m": "er", "n": "es"}[gender]
    return ending == "e"


def read_word(tokens: list[str], sentence: str) -> Chunk:
    """Take a predicate ("zu müde" is one), a pronoun, a small word or a verb."""
    word = tokens.pop(0)
    if word == "zu" or word in PREDICATES:
        text = tokens.pop(0) if word == "zu" else word
        assert text in PREDICATES, f"{text!r} is not an adjective I know: {sentence}"
        return Chunk("D", text)
    if word in PRONOUNS:
        return Chunk("E", word, frozenset({"nom"}), PRONOUNS[word])
    if word in SYMBOLS:
        return Chunk(SYMBOLS[word], word)
    return read_verb(word, tokens, sentence)


def read_verb(word: str, tokens: list[str], sentence: str) -> Chunk:
    """Return the chunk of a verb's form; some forms, such as "beschrieben", are finite or not."""
    at_end = tokens[0] in {".", ",", "?", ":"}
    if word in PARTICIPLES and at_end and re.search(r"\b(hat|haben|wurde)\b", sentence):
        return Chunk("T", word)
    if word in INFINITIVES and re.search(r"\b(wollten?|mussten?|konnten?)\b", sentence):
        return Chunk("I", word)
    if word in JOINED:
        return Chunk("W", word, plural=JOINED[word])
    assert word in SINGULAR or word in PLURAL, f"{word!r} is no word I know: {sentence}"
    return Chunk("V", word, plural=word in PLURAL)


def split_clauses(chunks: list[Chunk]) -> list[list[Chunk]]:
    """Cut at punctuation and at conjunctions that join clauses; a relative clause takes its antecedent along."""
    clauses: list[list[Chunk]] = [[]]
    pending: list[Chunk] = []
    for index, chunk in enumerate(chunks):
        if chunk.symbol in {",", ":", ".", "?"}:
            if clauses[-1] and not has_verb(clauses[-1]):
                pending = clauses.pop()  # a noun phrase whose relative clause comes first
            clauses.append([])
        elif chunk.symbol == "R":
            clauses[-1].append(stand_in(chunk, chunks[index - 2]))
        else:
            if pending and chunk.finite and not clauses[-1]:
                clauses[-1] = pending
                pending = []
            clauses[-1].append(chunk)
    return [clause for clause in clauses if has_verb(clause)]


def has_verb(clause: list[Chunk]) -> bool:
    """Say whether there is a finite verb."""
    return any(chunk.finite for chunk in clause)


def stand_in(pronoun: Chunk, antecedent: Chunk) -> Chunk:
    """Return the noun phrase that a relative pronoun is; it has its antecedent's gender and number."""
    fitting = {"m": {"der", "den"}, "f": {"die"}, "n": {"das"}, "p": {"die"}}[antecedent.gender]
    assert pronoun.text in fitting, f"{pronoun.text} after {antecedent.text} ({antecedent.gender})"
    cases = {"der": {"nom"}, "den": {"acc"}}.get(pronoun.text, {"nom", "acc"})
    return Chunk("N", pronoun.text, frozenset(cases), antecedent.gender, antecedent.plural)


def check_cases(clause: list[Chunk], sentence: str) -> None:
    """One subject that agrees with the finite verb, and the objects the verb wants, in the order of our frames."""
    verb = next(chunk for chunk in clause if chunk.finite)
    phrases = [chunk for chunk in clause if chunk.symbol in "NE"]
    wanted = wanted_cases(clause, verb)
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


def wanted_cases(clause: list[Chunk], verb: Chunk) -> list[str]:
    """Return the cases that the noun phrases of a clause have, in order."""
    if verb.text in INTRANSITIVE:
        return ["nom"]
    joined = any(chunk.text == "und" for chunk in clause[1:])
    return ["nom"] + ["dat"] * verb.text.startswith("zeigte") + ["acc"] + ["acc"] * joined


def check_prefix(clause: list[Chunk], sentence: str) -> None:
    """A lone "an" belongs to sah or sahen, as the last word."""
    if any(chunk.symbol == "X" for chunk in clause):
        verb = next(chunk for chunk in clause if chunk.finite)
        assert verb.text in {"sah", "sahen"} and clause[-1].symbol == "X", f"stray prefix: {sentence}"
