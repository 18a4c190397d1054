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
    "timid": "ängstlich",
    "young": "jung",
    "hungry": "hungrig",
    "full": "satt",
    "wide": "breit",
    "narrow": "schmal",
    "deep": "tief",
    "steep": "steil",
    "uneven": "uneben",
    "big": "groß",
    "small": "klein",
    "long": "lang",
    "short": "kurz",
    "tall": "hoch",
    "low": "niedrig",
    "thick": "dick",
    "hard": "hart",
    "moldy": "schimmelig",
    "salty": "salzig",
    "spicy": "scharf",
    "bitter": "bitter",
    "sour": "sauer",
    "heavy": "schwer",
    "rusty": "rostig",
}

# english: gender German = what it can be "too" of. A line that begins with "=" says it of all nouns below it.
_CROSSING = """
= tired sick weak lazy timid
dog: m Hund; donkey: m Esel; fox: m Fuchs; wolf: m Wolf; bear: m Bär/Bären; cat: f Katze; cow: f Kuh; goat: f Ziege
mouse: f Maus; rat: f Ratte; horse: n Pferd; camel: n Kamel; sheep: n Schaf; pig: n Schwein; rabbit: n Kaninchen
"""
_CROSSED = """
river: m Fluss = wide deep; stream: m Bach = wide deep; ditch: m Graben = wide deep; square: m Platz = big uneven
glacier: m Gletscher = big steep uneven; street: f Straße = wide uneven; bridge: f Brücke = narrow long
highway: f Autobahn = wide; meadow: f Wiese = big uneven; canyon: f Schlucht = wide deep steep; dune: f Düne = big steep
field: n Feld = big uneven; bog: n Moor = big deep uneven; terrain: n Gelände = steep uneven; sea: n Meer = big deep
riverbed: n Flussbett = wide deep uneven; valley: n Tal = wide deep steep; hill: m Hügel = big steep
"""
_FITTING = """
ball: m Ball = big; desk: m Schreibtisch = big long wide tall; cake: m Kuchen = big wide tall
chair: m Stuhl = big wide tall; mirror: m Spiegel = big long wide tall; umbrella: m Schirm = big long wide
guitar: f Gitarre = big long wide; lamp: f Lampe = big long tall; ladder: f Leiter = big long wide
vase: f Vase = big wide tall; flag: f Fahne = big long wide; book: n Buch = big wide thick
picture: n Bild = big long wide; sword: n Schwert = big long wide; pillow: n Kissen = big long wide thick
sofa: n Sofa = big long wide tall; drum: f Trommel = big wide
"""
_FITTED = """
suitcase: m Koffer = small short narrow; basket: m Korb = small narrow; oven: m Ofen = small narrow
wardrobe: m Schrank = small low narrow; box: f Kiste = small short narrow; bag: f Tasche = small short narrow
drawer: f Schublade = small short narrow; cabin: f Kabine = small low narrow; niche: f Nische = small low narrow
car: n Auto = small short low; room: n Zimmer = small low narrow; locker: n Schließfach = small low narrow
compartment: n Fach = small low narrow; sack: m Sack = small short narrow; bucket: m Eimer = small narrow
"""
_EATING = """
= tired sick lazy timid full
dog: m Hund; donkey: m Esel; fox: m Fuchs; wolf: m Wolf; bear: m Bär/Bären; cat: f Katze; cow: f Kuh; goat: f Ziege
duck: f Ente; rat: f Ratte; horse: n Pferd; camel: n Kamel; sheep: n Schaf; pig: n Schwein; rabbit: n Kaninchen
"""
_EATEN = """
apple: m Apfel = hard sour moldy; cheese: m Käse = hard salty moldy spicy; cake: m Kuchen = hard moldy
cabbage: m Kohl = sour bitter moldy; carrot: f Karotte = hard bitter moldy; soup: f Suppe = salty sour spicy bitter
sausage: f Wurst = hard salty spicy moldy; pear: f Birne = hard sour moldy; bread: n Brot = hard salty moldy
meat: n Fleisch = salty spicy moldy; leaf: n Blatt = hard bitter moldy; omelet: n Omelett = salty spicy moldy
"""
_PULLING = """
= tired sick weak lazy young hungry
dog: m Hund; donkey: m Esel; bull: m Stier; ox: m Ochse/Ochsen; bear: m Bär/Bären; cow: f Kuh; goat: f Ziege
cat: f Katze; llama: n Lama; horse: n Pferd; camel: n Kamel; pony: n Pony; sheep: n Schaf
"""
_PULLED = """
cart: m Karren = heavy big long; sled: m Schlitten = heavy big long; plow: m Pflug = heavy big rusty
trailer: m Anhänger = heavy big long rusty; wagon: m Wagen = heavy big long rusty; box: f Kiste = heavy big
carriage: f Kutsche = heavy big long; machine: f Maschine = heavy big rusty; bell: f Glocke = heavy big rusty
cannon: f Kanone = heavy big long rusty; statue: f Statue = heavy big; boat: n Boot = heavy big long
car: n Auto = heavy big rusty; barrel: n Fass = heavy big; wheel: n Rad = heavy big rusty
raft: n Floß = heavy big long; tractor: m Traktor = heavy big rusty
locomotive: f Lokomotive = heavy big long rusty
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
