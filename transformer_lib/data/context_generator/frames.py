"""The sentence frames: each builds an English sentence and its one German translation from the same scene.

The ambiguous noun phrase is `word`, the deciding one `cue`; subjects, verbs and everything else say nothing about
its sense. Tokens are separated by blanks, and the sentence begins in lower case.
"""

from __future__ import annotations

from collections.abc import Callable

from .german import ACCUSATIVE, NOMINATIVE, after
from .lexicon import ADJECTIVES, ADVERBS, MODALS, TIMES
from .scene import Scene, finite_last, main_clause, past, subordinate_clause


def simple(s: Scene) -> tuple[str, str]:
    """the man saw the bank near the river ."""
    return (
        f"{s.someone.english} {s.verb.past} {s.word.english} {s.near_english} .",
        f"{main_clause(s.someone, s.verb, f'{s.word.german(ACCUSATIVE)} {s.near_german}')} .",
    )


def fronted_place(s: Scene) -> tuple[str, str]:
    """near the river , the man saw the bank ."""
    return (
        f"{s.near_english} , {s.someone.english} {s.verb.past} {s.word.english} .",
        f"{main_clause(s.someone, s.verb, s.word.german(ACCUSATIVE), front=s.near_german)} .",
    )


def fronted_adverb(s: Scene) -> tuple[str, str]:
    """yesterday the man saw the bank near the river ."""
    rest = f"{s.word.german(ACCUSATIVE)} {s.near_german}"
    return (
        f"{s.adverb} {s.someone.english} {s.verb.past} {s.word.english} {s.near_english} .",
        f"{main_clause(s.someone, s.verb, rest, front=ADVERBS[s.adverb])} .",
    )


def fronted_book(s: Scene) -> tuple[str, str]:
    """in the book about the river the man saw the bank ."""
    front = f"im Buch {after('über', s.cue, ACCUSATIVE)}"
    return (
        f"in the book about {s.cue.english} {s.someone.english} {s.verb.past} {s.word.english} .",
        f"{main_clause(s.someone, s.verb, s.word.german(ACCUSATIVE), front=front)} .",
    )


def because(s: Scene) -> tuple[str, str]:
    """the man saw the bank because the aunt wanted to describe the river ."""
    modal = MODALS[s.modal][s.other.plural]
    return (
        f"{s.someone.english} {s.verb.past} {s.word.english} because "
        f"{s.other.english} {s.modal} {s.cue_verb.base} {s.cue.english} .",
        f"{main_clause(s.someone, s.verb, s.word.german(ACCUSATIVE))} , weil "
        f"{s.other.nominative} {s.cue.german(ACCUSATIVE)} {s.cue_verb.infinitive} {modal} .",
    )


def _clause_first(conjunction: str, german: str) -> Callable[[Scene], tuple[str, str]]:
    def frame(s: Scene) -> tuple[str, str]:
        clause = subordinate_clause(s.other, s.cue_verb, s.cue.german(ACCUSATIVE))
        main = f"{past(s.verb, s.someone)} {s.someone.nominative} {s.word.german(ACCUSATIVE)} {s.verb.prefix}".rstrip()
        return (
            f"{conjunction} {s.other.english} {s.cue_verb.past} {s.cue.english} , "
            f"{s.someone.english} {s.verb.past} {s.word.english} .",
            f"{german} {clause} , {main} .",
        )

    return frame


def before(s: Scene) -> tuple[str, str]:
    """the man talked about the river in the morning before the aunt saw the bank ."""
    talked = "sprachen" if s.someone.plural else "sprach"
    return (
        f"{s.someone.english} talked about {s.cue.english} {s.time} before "
        f"{s.other.english} {s.verb.past} {s.word.english} .",
        f"{s.someone.nominative} {talked} {TIMES[s.time]} {after('über', s.cue, ACCUSATIVE)} , bevor "
        f"{subordinate_clause(s.other, s.verb, s.word.german(ACCUSATIVE))} .",
    )


def subject_relative(s: Scene) -> tuple[str, str]:
    """the man who described the river saw the bank ."""
    main = f"{past(s.verb, s.someone)} {s.word.german(ACCUSATIVE)} {s.verb.prefix}".rstrip()
    return (
        f"{s.someone.english} who {s.cue_verb.past} {s.cue.english} {s.verb.past} {s.word.english} .",
        f"{s.someone.nominative} , {s.someone.relative} {s.cue.german(ACCUSATIVE)} "
        f"{finite_last(s.cue_verb, s.someone)} , {main} .",
    )


def object_relative(s: Scene) -> tuple[str, str]:
    """the bank that the man saw near the river was old ."""
    relative = {"m": "den", "f": "die", "n": "das"}[s.word.noun.gender]
    clause = subordinate_clause(s.someone, s.verb, s.near_german)
    return (
        f"{s.word.english} that {s.someone.english} {s.verb.past} {s.near_english} was {s.predicate} .",
        f"{s.word.german(NOMINATIVE)} , {relative} {clause} , war {ADJECTIVES[s.predicate]} .",
    )


def modal(s: Scene) -> tuple[str, str]:
    """the man wanted to see the bank near the river ."""
    verb = MODALS[s.modal][s.someone.plural]
    return (
        f"{s.someone.english} {s.modal} {s.verb.base} {s.word.english} {s.near_english} .",
        f"{s.someone.nominative} {verb} {s.word.german(ACCUSATIVE)} {s.near_german} {s.verb.infinitive} .",
    )


def perfect(s: Scene) -> tuple[str, str]:
    """the man has seen the bank near the river ."""
    has, hat = ("have", "haben") if s.someone.plural else ("has", "hat")
    return (
        f"{s.someone.english} {has} {s.verb.participle} {s.word.english} {s.near_english} .",
        f"{s.someone.nominative} {hat} {s.word.german(ACCUSATIVE)} {s.near_german} {s.verb.german_participle} .",
    )


def question(s: Scene) -> tuple[str, str]:
    """did the man see the bank near the river ?"""
    rest = f"{s.word.german(ACCUSATIVE)} {s.near_german} {s.verb.prefix}".rstrip()
    return (
        f"did {s.someone.english} {s.verb.base} {s.word.english} {s.near_english} ?",
        f"{past(s.verb, s.someone)} {s.someone.nominative} {rest} ?",
    )


def negation(s: Scene) -> tuple[str, str]:
    """the man did not see the bank near the river ."""
    return (
        f"{s.someone.english} did not {s.verb.base} {s.word.english} {s.near_english} .",
        f"{main_clause(s.someone, s.verb, f'{s.word.german(ACCUSATIVE)} {s.near_german} nicht')} .",
    )


def ditransitive(s: Scene) -> tuple[str, str]:
    """the man showed the aunt the bank near the river ."""
    showed = "zeigten" if s.someone.plural else "zeigte"
    return (
        f"{s.someone.english} showed {s.other.english} {s.word.english} {s.near_english} .",
        f"{s.someone.nominative} {showed} {s.other.dative} {s.word.german(ACCUSATIVE)} {s.near_german} .",
    )


def coordinated_nouns(s: Scene) -> tuple[str, str]:
    """the man saw the river and the bank ."""
    return (
        f"{s.someone.english} {s.verb.past} {s.cue.english} and {s.word.english} .",
        f"{main_clause(s.someone, s.verb, f'{s.cue.german(ACCUSATIVE)} und {s.word.german(ACCUSATIVE)}')} .",
    )


def coordinated_clauses(s: Scene) -> tuple[str, str]:
    """the aunt described the river in the morning , and the man saw the bank ."""
    first = main_clause(s.other, s.cue_verb, f"{TIMES[s.time]} {s.cue.german(ACCUSATIVE)}")
    return (
        f"{s.other.english} {s.cue_verb.past} {s.cue.english} {s.time} , and "
        f"{s.someone.english} {s.verb.past} {s.word.english} .",
        f"{first} , und {main_clause(s.someone, s.verb, s.word.german(ACCUSATIVE))} .",
    )


def predicate(s: Scene) -> tuple[str, str]:
    """the bank near the river was old ."""
    return (
        f"{s.word.english} {s.near_english} was {s.predicate} .",
        f"{s.word.german(NOMINATIVE)} {s.near_german} war {ADJECTIVES[s.predicate]} .",
    )


def passive(s: Scene) -> tuple[str, str]:
    """the bank was seen near the river ."""
    return (
        f"{s.word.english} was {s.verb.participle} {s.near_english} .",
        f"{s.word.german(NOMINATIVE)} wurde {s.near_german} {s.verb.german_participle} .",
    )


def reported(s: Scene) -> tuple[str, str]:
    """the aunt knew that the man had to see the bank near the river ."""
    knew = "wussten" if s.other.plural else "wusste"
    modal = MODALS[s.modal][s.someone.plural]
    return (
        f"{s.other.english} knew that {s.someone.english} {s.modal} {s.verb.base} {s.word.english} {s.near_english} .",
        f"{s.other.nominative} {knew} , dass {s.someone.nominative} {s.word.german(ACCUSATIVE)} "
        f"{s.near_german} {s.verb.infinitive} {modal} .",
    )


def but_not(s: Scene) -> tuple[str, str]:
    """the river was old , but the aunt did not see the bank ."""
    return (
        f"{s.cue.english} was {s.predicate} , but {s.other.english} did not {s.verb.base} {s.word.english} .",
        f"{s.cue.german(NOMINATIVE)} war {ADJECTIVES[s.predicate]} , aber "
        f"{main_clause(s.other, s.verb, f'{s.word.german(ACCUSATIVE)} nicht')} .",
    )


FRAMES: dict[str, Callable[[Scene], tuple[str, str]]] = {
    "simple": simple,
    "fronted-place": fronted_place,
    "fronted-adverb": fronted_adverb,
    "fronted-book": fronted_book,
    "because": because,
    "when": _clause_first("when", "als"),
    "although": _clause_first("although", "obwohl"),
    "before": before,
    "subject-relative": subject_relative,
    "object-relative": object_relative,
    "modal": modal,
    "perfect": perfect,
    "question": question,
    "negation": negation,
    "ditransitive": ditransitive,
    "coordinated-nouns": coordinated_nouns,
    "coordinated-clauses": coordinated_clauses,
    "predicate": predicate,
    "passive": passive,
    "reported": reported,
    "but-not": but_not,
}

# What a frame asks of its scene.
NEAR = frozenset(  # "near the river" says where the word is
    {"simple", "fronted-place", "fronted-adverb", "modal", "perfect", "question", "negation", "ditransitive"}
    | {"object-relative", "predicate", "passive", "reported"}
)
SUBJECT = frozenset({"object-relative", "predicate", "passive"})  # the word is a subject: "ein alter Kran"
DEFINITE = frozenset({"negation", "but-not"})  # "sah einen Kran nicht" is no German; "keinen" is another lesson
WORD_INTENDED = frozenset({"modal", "reported"})  # "wanted to see the bank"
CUE_INTENDED = frozenset({"because"})  # "wanted to describe the river"
IN_A_BOOK = frozenset({"fronted-book"})
PASSIVE = frozenset({"passive"})
OF_ANY_CUE = ("beautiful", "wonderful", "ugly", "strange", "unusual", "interesting")  # no "the hair was big"
