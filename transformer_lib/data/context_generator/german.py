"""German noun phrases and contractions: articles and adjective endings by gender, case and kind of article."""

from __future__ import annotations

from dataclasses import dataclass

from .lexicon import ADJECTIVES, Noun

NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"

DEFINITE = {
    NOMINATIVE: {"m": "der", "f": "die", "n": "das"},
    ACCUSATIVE: {"m": "den", "f": "die", "n": "das"},
    DATIVE: {"m": "dem", "f": "der", "n": "dem"},
}
INDEFINITE = {
    NOMINATIVE: {"m": "ein", "f": "eine", "n": "ein"},
    ACCUSATIVE: {"m": "einen", "f": "eine", "n": "ein"},
    DATIVE: {"m": "einem", "f": "einer", "n": "einem"},
}
# Endings after a definite article (weak) and after "ein" (mixed), singular.
WEAK = {
    NOMINATIVE: {"m": "e", "f": "e", "n": "e"},
    ACCUSATIVE: {"m": "en", "f": "e", "n": "e"},
    DATIVE: {"m": "en", "f": "en", "n": "en"},
}
MIXED = {
    NOMINATIVE: {"m": "er", "f": "e", "n": "es"},
    ACCUSATIVE: {"m": "en", "f": "e", "n": "es"},
    DATIVE: {"m": "en", "f": "en", "n": "en"},
}
PRONOUN = {"m": "er", "f": "sie", "n": "es"}
CONTRACTIONS = {"bei dem": "beim", "in dem": "im", "in das": "ins"}


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its article ("the" or "a") and perhaps an adjective, in both languages."""

    noun: Noun
    definite: bool = True
    adjective: str = ""

    @property
    def english(self) -> str:
        """The English phrase, for example "an old bank"."""
        words = f"{self.adjective} {self.noun.english}".strip()
        if self.definite:
            return f"the {words}"
        return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"

    def german(self, case: str) -> str:
        """Return the German phrase in this case, for example "ein altes Ufer"."""
        gender = self.noun.gender
        article = (DEFINITE if self.definite else INDEFINITE)[case][gender]
        noun = self.noun.form(case)
        if not self.adjective:
            return f"{article} {noun}"
        ending = (WEAK if self.definite else MIXED)[case][gender]
        return f"{article} {ADJECTIVES[self.adjective]}{ending} {noun}"


def after(preposition: str, phrase: NounPhrase, case: str) -> str:
    """Return preposition and phrase, contracted where German contracts: "beim Fluss", "bei der Brücke"."""
    first, second, *rest = f"{preposition} {phrase.german(case)}".split(" ")
    contracted = CONTRACTIONS.get(f"{first} {second}")
    return " ".join([contracted, *rest] if contracted else [first, second, *rest])
