"""What a frame builds its sentence from, and German's clause orders: verb second, and verb last."""

from __future__ import annotations

from dataclasses import dataclass

from .german import DATIVE, NounPhrase, after
from .lexicon import Person, Verb


@dataclass(frozen=True)
class Scene:
    """Everything a frame may use."""

    word: NounPhrase
    cue: NounPhrase
    someone: Person
    other: Person
    verb: Verb
    cue_verb: Verb
    modal: str
    adverb: str
    time: str
    predicate: str  # an adjective

    @property
    def near_english(self) -> str:
        """ "near the river" """
        return f"near {self.cue.english}"

    @property
    def near_german(self) -> str:
        """ "beim Fluss", "neben dem Arzt" """
        return after(self.cue.noun.near, self.cue, DATIVE)


def past(verb: Verb, subject: Person) -> str:
    """Return the finite verb, without its separable prefix."""
    return verb.plural if subject.plural else verb.singular


def main_clause(subject: Person, verb: Verb, rest: str, *, front: str = "") -> str:
    """Return a German main clause, verb second; a separable prefix goes to the end."""
    finite = past(verb, subject)
    head = f"{front} {finite} {subject.nominative}" if front else f"{subject.nominative} {finite}"
    return f"{head} {rest} {verb.prefix}".rstrip()


def subordinate_clause(subject: Person, verb: Verb, rest: str) -> str:
    """Return a German subordinate clause without its conjunction, verb last."""
    return f"{subject.nominative} {rest} {verb.prefix}{past(verb, subject)}"


def finite_last(verb: Verb, subject: Person) -> str:
    """Return the finite verb as it stands at a clause's end, prefix attached."""
    return verb.prefix + past(verb, subject)
