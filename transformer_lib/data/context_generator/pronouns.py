"""Sentences in which "it" becomes er, sie or es, depending on which of two nouns is meant.

"the dog did not cross the street because it was too tired / wide": the adjective says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .german import ACCUSATIVE, PRONOUN, NounPhrase
from .lexicon import Noun

_ANIMALS = """
dog: m Hund; cat: f Katze; horse: n Pferd; cow: f Kuh; camel: n Kamel; donkey: m Esel; goat: f Ziege; sheep: n Schaf
fox: m Fuchs; duck: f Ente; pig: n Schwein; wolf: m Wolf
"""
_PLACES = """
street: f Straße; river: m Fluss; bridge: f Brücke; field: n Feld; square: m Platz; meadow: f Wiese; ice: n Eis
forest: m Wald; valley: n Tal
"""
_THINGS = """
ball: m Ball; book: n Buch; guitar: f Gitarre; lamp: f Lampe; carpet: m Teppich; picture: n Bild; ladder: f Leiter
sword: n Schwert; cake: m Kuchen; pillow: n Kissen; vase: f Vase; chair: m Stuhl
"""
_CONTAINERS = """
suitcase: m Koffer; box: f Kiste; drawer: f Schublade; car: n Auto; oven: m Ofen; room: n Zimmer; bag: f Tasche
basket: m Korb; house: n Haus
"""
_FOODS = """
bread: n Brot; apple: m Apfel; carrot: f Karotte; cheese: m Käse; soup: f Suppe; meat: n Fleisch; fish: m Fisch
leaf: n Blatt
"""
_LOADS = """
cart: m Karren; machine: f Maschine; boat: n Boot; box: f Kiste; sled: m Schlitten; car: n Auto
trailer: m Anhänger; plow: m Pflug; carriage: f Kutsche; bell: f Glocke; barrel: n Fass; wheel: n Rad
"""

# What the adjective says of the first noun, and of the second.
_TIRED = {"tired": "müde", "sick": "krank", "weak": "schwach", "lazy": "faul"}
ADJECTIVES = {
    "cross": (
        {**_TIRED, "slow": "langsam"},
        {"wide": "breit", "dangerous": "gefährlich", "narrow": "schmal", "steep": "steil"},
    ),
    "fit": (
        {"big": "groß", "long": "lang", "wide": "breit", "thick": "dick"},
        {"small": "klein", "short": "kurz", "tight": "eng", "low": "niedrig"},
    ),
    "eat": (
        {**_TIRED, "young": "jung"},
        {"hot": "heiß", "hard": "hart", "salty": "salzig", "bitter": "bitter", "sour": "sauer"},
    ),
    "pull": (
        {**_TIRED, "young": "jung"},
        {"heavy": "schwer", "big": "groß", "full": "voll"},
    ),
}
ORDERS = ("last", "first", "colon")


def _nouns(text: str) -> tuple[Noun, ...]:
    entries = [entry.split(": ") for line in text.strip().splitlines() for entry in line.split("; ")]
    return tuple(Noun(english, german.split()[1], german.split()[0], german.split()[1]) for english, german in entries)


@dataclass(frozen=True)
class Family:
    """A verb with its two slots: "the {first} did not cross the {second}"."""

    name: str
    english: str  # the predicate, with {} for the second noun phrase
    german: tuple[str, str]  # finite verb, and what follows the subject, with {}
    firsts: tuple[Noun, ...]
    seconds: tuple[Noun, ...]


FAMILIES = (
    Family("cross", "did not cross {}", ("überquerte", "{} nicht"), _nouns(_ANIMALS), _nouns(_PLACES)),
    Family("fit", "did not fit into {}", ("passte", "nicht in {}"), _nouns(_THINGS), _nouns(_CONTAINERS)),
    Family("eat", "did not eat {}", ("fraß", "{} nicht"), _nouns(_ANIMALS), _nouns(_FOODS)),
    Family("pull", "could not pull {}", ("konnte", "{} nicht ziehen"), _nouns(_ANIMALS), _nouns(_LOADS)),
)


@dataclass(frozen=True)
class Pronominal:
    """One "it" sentence: who is meant (0 or 1), and the adjective that says so."""

    family: Family
    first: Noun
    second: Noun
    adjective: str
    meant: int
    order: str

    @property
    def nouns(self) -> tuple[Noun, Noun]:
        """The two candidates."""
        return self.first, self.second

    @property
    def german_adjective(self) -> str:
        """The predicate adjective, which takes no ending."""
        return ADJECTIVES[self.family.name][self.meant][self.adjective]

    def sentences(self, meant: int) -> tuple[str, str]:
        """Return the English sentence, and the German one with the pronoun for noun `meant`."""
        first, second = NounPhrase(self.first), NounPhrase(self.second)
        verb, rest = self.family.german
        subject, rest = first.german("nominative"), rest.format(second.german(ACCUSATIVE))
        pronoun = PRONOUN[self.nouns[meant].gender]
        english = f"{first.english} {self.family.english.format(second.english)}"
        reason = f"it was too {self.adjective}"
        if self.order == "last":
            german = f"{subject} {verb} {rest} , weil {pronoun} zu {self.german_adjective} war"
            return f"{english} because {reason} .", f"{german} ."
        if self.order == "first":
            german = f"weil {pronoun} zu {self.german_adjective} war , {verb} {subject} {rest}"
            return f"because {reason} , {english} .", f"{german} ."
        german = f"{subject} {verb} {rest} : {pronoun} war zu {self.german_adjective}"
        return f"{english} : {reason} .", f"{german} ."


def all_pronominals() -> Iterator[Pronominal]:
    """Yield every "it" sentence whose two nouns differ, and differ in gender, so that the pronoun tells them apart."""
    for family in FAMILIES:
        for first in family.firsts:
            for second in family.seconds:
                if first.gender == second.gender:
                    continue
                for meant, adjectives in enumerate(ADJECTIVES[family.name]):
                    for adjective in adjectives:
                        for order in ORDERS:
                            yield Pronominal(family, first, second, adjective, meant, order)
