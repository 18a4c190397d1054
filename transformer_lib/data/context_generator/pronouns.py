"""Sentences in which "it" becomes er, sie or es, depending on which of two nouns is meant.

"the dog did not cross the street because it was too tired / wide": the adjective says which. An adjective is said of
the first noun or of the second as the verb wants ("big" of a ball that does not fit, of a cart that cannot be pulled),
only of nouns that can be so, and never where it might be meant of the other one, or of the weather.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .german import ACCUSATIVE, NOMINATIVE, PRONOUN, NounPhrase, after
from .lexicon import Noun, read_noun

ADJECTIVES = {
    "tired": "müde",
    "sick": "krank",
    "weak": "schwach",
    "lazy": "faul",
    "scared": "ängstlich",
    "young": "jung",
    "wide": "breit",
    "narrow": "schmal",
    "deep": "tief",
    "slippery": "rutschig",
    "uneven": "uneben",
    "crowded": "überfüllt",
    "big": "groß",
    "small": "klein",
    "long": "lang",
    "short": "kurz",
    "tall": "hoch",
    "low": "niedrig",
    "thick": "dick",
    "hard": "hart",
    "dry": "trocken",
    "salty": "salzig",
    "bitter": "bitter",
    "sour": "sauer",
    "heavy": "schwer",
    "full": "voll",
}

# english: gender German = what it can be "too" of. A line that begins with "=" says it of all nouns below it.
_CROSSING = """
= tired sick weak lazy scared
dog: m Hund; donkey: m Esel; fox: m Fuchs; wolf: m Wolf; cat: f Katze; cow: f Kuh; goat: f Ziege; mouse: f Maus
horse: n Pferd; camel: n Kamel; sheep: n Schaf; pig: n Schwein
"""
_CROSSED = """
river: m Fluss = wide deep; stream: m Bach = wide deep; ditch: m Graben = wide deep
square: m Platz = wide crowded slippery uneven; street: f Straße = wide crowded slippery uneven
bridge: f Brücke = narrow long crowded slippery; highway: f Autobahn = wide crowded slippery
meadow: f Wiese = wide slippery uneven; field: n Feld = wide slippery uneven; ice: n Eis = slippery uneven
moor: n Moor = wide deep uneven; terrain: n Gelände = wide slippery uneven; sea: n Meer = wide deep
"""
_FITTING = """
ball: m Ball = big thick; carpet: m Teppich = big long wide thick; cake: m Kuchen = big wide tall
chair: m Stuhl = big wide tall; guitar: f Gitarre = big long wide thick; lamp: f Lampe = big long tall
ladder: f Leiter = big long wide; vase: f Vase = big wide tall thick; book: n Buch = big wide thick
picture: n Bild = big long wide; sword: n Schwert = big long wide; pillow: n Kissen = big long wide thick
mirror: m Spiegel = big long wide tall; umbrella: m Schirm = big long wide; flag: f Fahne = big long wide
sofa: n Sofa = big long wide tall
"""
_FITTED = """
suitcase: m Koffer = small short narrow; basket: m Korb = small low narrow; oven: m Ofen = small low narrow
wardrobe: m Schrank = small low narrow; box: f Kiste = small short low narrow; bag: f Tasche = small short narrow
drawer: f Schublade = small short low narrow; car: n Auto = small short low narrow
room: n Zimmer = small short low narrow; locker: n Schließfach = small short low narrow
shelf: n Regal = small short low narrow; cabin: f Kabine = small short low narrow
niche: f Nische = small short low narrow
"""
_EATING = """
= tired sick lazy scared young
dog: m Hund; donkey: m Esel; fox: m Fuchs; wolf: m Wolf; cat: f Katze; cow: f Kuh; goat: f Ziege; duck: f Ente
horse: n Pferd; camel: n Kamel; sheep: n Schaf; pig: n Schwein
"""
_EATEN = """
apple: m Apfel = hard sour bitter; cheese: m Käse = hard dry salty bitter; cake: m Kuchen = hard dry
cabbage: m Kohl = hard sour bitter salty; carrot: f Karotte = hard dry bitter; soup: f Suppe = salty sour bitter
sausage: f Wurst = hard dry salty; pear: f Birne = hard sour bitter; bread: n Brot = hard dry salty
meat: n Fleisch = hard dry salty; leaf: n Blatt = hard dry bitter; vegetable: n Gemüse = hard salty bitter
"""
_PULLING = """
= tired sick weak lazy young small
dog: m Hund; donkey: m Esel; bull: m Stier; ox: m Ochse; cow: f Kuh; goat: f Ziege; mare: f Stute; horse: n Pferd
camel: n Kamel; pony: n Pony; sheep: n Schaf
"""
_PULLED = """
cart: m Karren = heavy big full long; sled: m Schlitten = heavy big full long; trailer: m Anhänger = heavy big full long
plow: m Pflug = heavy big; wagon: m Wagen = heavy big full long; box: f Kiste = heavy big full; carriage: f Kutsche = heavy big full long
machine: f Maschine = heavy big; bell: f Glocke = heavy big; boat: n Boot = heavy big full long
car: n Auto = heavy big full; barrel: n Fass = heavy big full; wheel: n Rad = heavy big
cannon: f Kanone = heavy big long; statue: f Statue = heavy big; raft: n Floß = heavy big long full
"""

ORDERS = ("last", "first", "colon")
Nouns = Mapping[Noun, tuple[str, ...]]  # with the adjectives each can have


def _read_nouns(text: str) -> dict[Noun, tuple[str, ...]]:
    nouns, common = {}, ""
    for line in text.strip().splitlines():
        if line.startswith("= "):
            common = line
            continue
        for entry in line.split("; "):
            english, rest = entry.split(": ")
            german, _, adjectives = (rest + (" " + common if common else "")).partition(" = ")
            nouns[read_noun(english, german)] = tuple(adjectives.split())
    return nouns


@dataclass(frozen=True)
class Family:
    """A verb with its two slots: "the {first} did not cross the {second}"."""

    name: str
    english: str  # the predicate, with {} for the second noun phrase
    german: tuple[str, str]  # finite verb, and what follows the subject, with {}
    firsts: Nouns
    seconds: Nouns
    preposition: str = ""  # before the second noun, in German

    @property
    def sides(self) -> tuple[Nouns, Nouns]:
        """The nouns of both slots."""
        return self.firsts, self.seconds


def _family(
    name: str, english: str, german: tuple[str, str], firsts: str, seconds: str, *, preposition: str = ""
) -> Family:
    return Family(name, english, german, _read_nouns(firsts), _read_nouns(seconds), preposition)


FAMILIES = (
    _family("cross", "did not cross {}", ("überquerte", "{} nicht"), _CROSSING, _CROSSED),
    _family("fit", "did not fit into {}", ("passte", "nicht {}"), _FITTING, _FITTED, preposition="in"),
    _family("eat", "did not eat {}", ("fraß", "{} nicht"), _EATING, _EATEN),
    _family("pull", "could not pull {}", ("konnte", "{} nicht ziehen"), _PULLING, _PULLED),
)


@dataclass(frozen=True)
class Pronominal:
    """One "it" sentence: two nouns of different gender, who is meant (0 or 1), and the adjective that says so."""

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

    def sentences(self, meant: int) -> tuple[str, str]:
        """Return the English sentence, and the German one with the pronoun for noun `meant`."""
        first, second = NounPhrase(self.first), NounPhrase(self.second)
        verb, rest = self.family.german
        subject, rest = first.german(NOMINATIVE), rest.format(self._object(second))
        pronoun, quality = PRONOUN[self.nouns[meant].gender], ADJECTIVES[self.adjective]
        english = f"{first.english} {self.family.english.format(second.english)}"
        reason = f"it was too {self.adjective}"
        if self.order == "last":
            return f"{english} because {reason} .", f"{subject} {verb} {rest} , weil {pronoun} zu {quality} war ."
        if self.order == "first":
            german = f"weil {pronoun} zu {quality} war , {verb} {subject} {rest} ."
            return f"because {reason} , {english} .", german
        german = f"{subject} {verb} {rest} : {pronoun.capitalize()} war zu {quality} ."  # a sentence of its own
        return f"{english} : {reason} .", german

    def _object(self, second: NounPhrase) -> str:
        if self.family.preposition:
            return after(self.family.preposition, second, ACCUSATIVE)
        return second.german(ACCUSATIVE)
