"""Draw the context corpus and write its five splits.

`python -m transformer_lib.data.context_generator.generate --out data/context`: the same seed
gives the same files, byte for byte.

Every sentence has twins in the same split that differ from it in the deciding word alone, one for each other sense of
the ambiguous word. So nothing but the deciding word, neither frame nor verb, determiner, adjective, order, position or
length, says anything about the sense, and a reader who does not see it is right as often as a coin.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..._streams import run_command
from . import frames as kinds
from .frames import FRAMES
from .german import NounPhrase
from .lexicon import (
    ADJECTIVES,
    ADVERBS,
    AMBIGUOUS,
    CUES,
    KINDS_OF_ADJECTIVES,
    MODALS,
    NEVER_DONE,
    NEVER_NEAR,
    NOT_INTENDED,
    ONLY_ADJECTIVES,
    PEOPLE,
    TIMES,
    VERBS,
    Noun,
    Sense,
    Verb,
)
from .pronouns import FAMILIES, ORDERS, Family, Pronominal
from .scene import Scene

TRAIN, VALIDATION, HELDOUT, COMPOSITIONAL, HARD = SPLITS = ("train", "validation", "heldout", "compositional", "hard")
# Pairs per sense of an ambiguous noun, in each split, and twins of "it" for each verb, order and pair of genders.
PER_SENSE = {TRAIN: 420, VALIDATION: 20, HELDOUT: 20, COMPOSITIONAL: 20, HARD: 20}
IT_TWINS = {TRAIN: 24, VALIDATION: 1, HELDOUT: 1, COMPOSITIONAL: 1, HARD: 0}
HELD_FRAMES_PER_WORD = 2
CUE_AFTER = "because"  # "the man saw the match because the aunt wanted to describe the team"
PATIENCE = 2000  # draws that may fail before the lexicon is thought too small


@dataclass(frozen=True)
class Row:
    """One line of a split; the fields are the columns."""

    src: str
    tgt: str
    contrast: str
    word: str
    sense: str
    expected: str
    cue: str
    frame: str
    gap: int
    held: str = ""

    @property
    def combinations(self) -> dict[str, tuple[str, str]]:
        """What it combines, by the name that the column `held` uses."""
        return {
            "word×frame": (self.word, self.frame),
            "cue×frame": (self.cue, self.frame),
            "word×cue": (self.word, self.cue),
        }


def write_text(tokens: str) -> str:
    """Turn "the man , who …" into "The man, who …"."""
    text = re.sub(r" ([.,?:])", r"\1", tokens)
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class HeldOut:
    """What training never sees: word × frame, cue × frame, and word × cue (the hard split)."""

    word_frames: dict[str, tuple[str, ...]]  # for each word
    word_cue_frame: dict[str, tuple[str, dict[Sense, str]]]  # for each word a frame, and a cue of each sense
    word_cues: dict[str, dict[Sense, str]]  # for each word a cue of each sense
    it_cue_orders: dict[tuple[str, str], tuple[str, str]]  # for each family and order an adjective of each side
    combinations: frozenset[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        """Collect all that is held out."""
        held_out = {(word, frame) for word, held in self.word_frames.items() for frame in held}
        held_out |= {(cue, frame) for frame, cues in self.word_cue_frame.values() for cue in cues.values()}
        held_out |= {(word, cue) for word, cues in self.word_cues.items() for cue in cues.values()}
        held_out |= {(cue, f"it-{order}") for (_, order), cues in self.it_cue_orders.items() for cue in cues}
        object.__setattr__(self, "combinations", frozenset(held_out))

    def trains(self, row: Row) -> bool:
        """Return True when nothing that `row` combines is held out."""
        return not self.combinations & set(row.combinations.values())


def frames_for(word: str) -> list[str]:
    """Return the frames in which `word` may occur."""
    return sorted(frame for frame in FRAMES if word not in NEVER_NEAR or frame not in kinds.NEAR)


def fits(cue: str, frame: str) -> bool:
    """Say whether the cue's form in `frame` occurs elsewhere: only "but-not" has "der Zeuge", the others "Zeugen"."""
    return frame != "but-not" or len(CUES[cue].forms) == 1


def draw_held_out(rng: random.Random) -> HeldOut:
    """Choose what is held out. Each part stays in training with others, and a sense's first cue always with it."""
    word_cues = _draw_word_cues(rng)
    word_frames, word_cue_frame = {}, {}
    for word, senses in AMBIGUOUS.items():
        spared = {CUE_AFTER} if word in NEVER_NEAR else set()  # there the cue comes before the word in all others
        *held, frame = rng.sample([f for f in frames_for(word) if f not in spared], HELD_FRAMES_PER_WORD + 1)
        left = {
            sense: [c for c in sense.cues[1:] if c != word_cues[word][sense] and fits(c, frame)] for sense in senses
        }
        word_frames[word] = tuple(held)
        word_cue_frame[word] = (frame, {sense: rng.choice(cues) for sense, cues in left.items()})
    return HeldOut(word_frames, word_cue_frame, word_cues, _draw_it_cue_orders(rng))


def _draw_word_cues(rng: random.Random) -> dict[str, dict[Sense, str]]:
    """Return for each word and sense a cue that training shows with other words only."""
    uses = Counter(cue for senses in AMBIGUOUS.values() for sense in senses for cue in sense.cues)
    chosen: dict[str, dict[Sense, str]] = {word: {} for word in AMBIGUOUS}
    open_senses = [(word, sense) for word, senses in AMBIGUOUS.items() for sense in senses]

    def options(choice: tuple[str, Sense]) -> list[str]:
        return [cue for cue in choice[1].cues[1:] if uses[cue] >= 2]

    while open_senses:
        word, sense = min(open_senses, key=lambda choice: len(options(choice)))  # who has little choice goes first
        open_senses.remove((word, sense))
        chosen[word][sense] = rng.choice(options((word, sense)))
        uses[chosen[word][sense]] -= 1
    return chosen


def _draw_it_cue_orders(rng: random.Random) -> dict[tuple[str, str], tuple[str, str]]:
    """Return for each verb and order an adjective of each side; every adjective keeps its other orders."""
    chosen: dict[tuple[str, str], tuple[str, str]] = {}
    order_of: dict[str, str] = {}
    for family, order in itertools.product(FAMILIES, ORDERS):
        pair = []
        for side in family.sides:
            genders: dict[str, set[str]] = defaultdict(set)
            for noun, adjectives in side.items():
                for adjective in adjectives:
                    genders[adjective].add(noun.gender)
            common = [a for a in genders if order_of.get(a, order) == order and len(genders[a]) == 3]
            again = [a for a in common if a in order_of]
            pair.append(again[0] if again else rng.choice(common))
            order_of[pair[-1]] = order
        chosen[family.name, order] = (pair[0], pair[1])
    return chosen


def leaks(src: Sequence[str], tgt: Sequence[str], contrast: Sequence[str], expected: str, cue: Noun) -> bool:
    """Say whether a model that sees only position i, and the target word before it, would see the cue.

    What counts are the first target word that depends on the sense, and the ambiguous word itself.
    """
    first = next(i for i, (a, b) in enumerate(zip(tgt, contrast, strict=True)) if a != b)
    places = (first, tgt.index(expected))
    seen = {src[i] for i in places if i < len(src)}
    return cue.english in seen or (first > 0 and tgt[first - 1] in cue.forms)


def draw_look(rng: random.Random, word: str, frame: str) -> dict[str, Any]:
    """Return determiner and adjective of the ambiguous noun."""
    subject = frame in kinds.SUBJECT  # often indefinite and with an adjective, or "ein alter Kran" would be rare
    definite = frame in kinds.DEFINITE or rng.random() < (0.4 if subject else 0.7)
    adjective = rng.choice(adjectives_of(word))
    described = rng.random() < (0.8 if subject else 0.5) and bool(other_adjectives(word, adjective))
    return {"definite": definite, "adjective": adjective if described else ""}


def adjectives_of(word: str) -> list[str]:
    """Return what may be said of `word` in all its senses."""
    return list(ONLY_ADJECTIVES.get(word, ADJECTIVES))


def other_adjectives(word: str, adjective: str) -> list[str]:
    """Return what may be said of `word` beside `adjective` without repeating or contradicting it."""
    clashing = next((kind for kind in KINDS_OF_ADJECTIVES if adjective in kind), set())
    return [other for other in adjectives_of(word) if other not in clashing]


def verbs_for(word: str, frame: str) -> list[Verb]:
    """Return the verbs that may have `word` as their object in `frame`."""
    without = set(NOT_INTENDED) if frame in kinds.WORD_INTENDED | kinds.IN_A_BOOK else set()
    without |= {"draw", "photograph"} if frame in kinds.IN_A_BOOK else set()
    without |= {"look at"} if frame in kinds.PASSIVE else set()
    without |= NEVER_DONE.get(word, set())
    return [verb for verb in VERBS if verb.base not in without]


def draw_scene(rng: random.Random, word: str, frame: str, adjective: str) -> dict[str, Any]:
    """Return all that a frame needs beside the ambiguous noun, whose adjective is `adjective`, and the cue."""
    someone, other = rng.sample(PEOPLE, 2)
    verb = rng.choice(verbs_for(word, frame))
    cue_verbs = [v for v in VERBS if frame not in kinds.CUE_INTENDED or v.base not in NOT_INTENDED]
    return {
        "someone": someone,
        "other": other,
        "verb": verb,
        "cue_verb": rng.choice([cue_verb for cue_verb in cue_verbs if cue_verb is not verb]),
        "modal": rng.choice(sorted(MODALS)),
        "adverb": rng.choice(sorted(ADVERBS)),
        "time": rng.choice(sorted(TIMES)),
        "predicate": rng.choice(kinds.OF_ANY_CUE if frame == "but-not" else other_adjectives(word, adjective)),
    }


def noun_row(word: str, sense: Sense, cue: str, frame: str, look: dict[str, Any], scene: dict[str, Any]) -> Row | None:
    """Build one sentence with `word` in `sense`; None if it would leak."""
    scene = {**scene, "cue": NounPhrase(CUES[cue])}
    src, tgt = FRAMES[frame](Scene(word=NounPhrase(sense.noun, **look), **scene))
    others = [s.noun for s in AMBIGUOUS[word] if s is not sense]
    contrasts = [FRAMES[frame](Scene(word=NounPhrase(noun, **look), **scene))[1] for noun in others]
    tokens, german = src.split(), tgt.split()
    expected = next(token for token in german if token in sense.noun.forms)
    if any(leaks(tokens, german, text.split(), expected, CUES[cue]) for text in contrasts):
        return None
    return Row(
        write_text(src),
        write_text(tgt),
        "|".join(map(write_text, contrasts)),
        word,
        sense.noun.lemma,
        expected,
        cue,
        frame,
        tokens.index(cue) - tokens.index(word),
    )


def it_row(sentence: Pronominal) -> Row:
    """Build one "it" sentence."""
    src, tgt = sentence.sentences(sentence.meant)
    _, contrast = sentence.sentences(1 - sentence.meant)
    tokens = src.split()
    return Row(
        write_text(src),
        write_text(tgt),
        write_text(contrast),
        "it",
        sentence.nouns[sentence.meant].lemma,
        next(a for a, b in zip(tgt.split(), contrast.split(), strict=True) if a != b),
        sentence.adjective,
        f"it-{sentence.order}",
        tokens.index(sentence.adjective) - tokens.index("it"),
    )


class Drawing:
    """Draws twins, and remembers every sentence drawn, so that none occurs twice, in one split or in two."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.held = draw_held_out(rng)
        self.used: set[str] = set()
        self.seen: set[tuple[str, str]] = set()  # the combinations that training shows, known once it is drawn

    def generate(self) -> dict[str, list[Row]]:
        """Return the rows of every split, shuffled."""
        splits: dict[str, list[Row]] = {}
        for split in SPLITS:
            splits[split] = [row for word in AMBIGUOUS for row in self._nouns(word, split)]
            splits[split] += [row for group in self._pronoun_groups() for row in self._pronouns(*group, split)]
            if split == TRAIN:
                self.seen = {pair for row in splits[split] for pair in row.combinations.values()}
            splits[split] = [replace(row, held=self._unseen(row)) for row in splits[split]]
            self.rng.shuffle(splits[split])
        return splits

    def _unseen(self, row: Row) -> str:
        """Return the column `held`: which of the row's combinations training does not show."""
        return "+".join(kind for kind, pair in row.combinations.items() if pair not in self.seen)

    def _belongs(self, row: Row, split: str) -> bool:
        """Return True when what training does not show of `row` is what `split` is for."""
        held = self._unseen(row)
        if split == COMPOSITIONAL:
            return bool(held) and "word×cue" not in held
        return split == TRAIN or held == ("word×cue" if split == HARD else "")

    def _nouns(self, word: str, split: str) -> Iterator[Row]:
        """Yield PER_SENSE[split] new sentences for each sense of `word`, twins one after the other."""
        cycles = {sense: _Cycle(self.rng) for sense in AMBIGUOUS[word]}
        frames = self._frames(word, split)
        for index in range(PER_SENSE[split]):
            if split == COMPOSITIONAL and index % 2:
                frame, only = self.held.word_cue_frame[word]
                choices = {sense: [cue] for sense, cue in only.items()}
            else:
                frame = frames[(index // 2 if split == COMPOSITIONAL else index) % len(frames)]
                choices = {sense: self._cues(word, sense, frame, split) for sense in AMBIGUOUS[word]}
            yield from self._new(split, f"{word} in {frame}", self._noun_twins, word, frame, choices, cycles)

    def _frames(self, word: str, split: str) -> list[str]:
        """Return the frames that a split shows `word` in, shuffled, so that each occurs equally often."""
        held = self.held.word_frames[word]
        frames = list(held) if split == COMPOSITIONAL else [f for f in frames_for(word) if f not in held]
        if split == HARD:  # where training shows its cues, with other words
            hard = self.held.word_cues[word].values()
            frames = [frame for frame in frames if all((cue, frame) in self.seen for cue in hard)]
        return self.rng.sample(frames, len(frames))

    def _cues(self, word: str, sense: Sense, frame: str, split: str) -> list[str]:
        """Return the cues that a split may show with `word` in `sense` and `frame`."""
        hard = self.held.word_cues[word][sense]
        if split == HARD:
            return [hard]
        new = self.held.combinations
        return [cue for cue in sense.cues if cue != hard and fits(cue, frame) and (cue, frame) not in new]

    def _noun_twins(
        self, word: str, frame: str, choices: dict[Sense, list[str]], cycles: dict[Sense, _Cycle]
    ) -> list[Row] | None:
        look = draw_look(self.rng, word, frame)
        scene = draw_scene(self.rng, word, frame, look["adjective"])
        cues = {sense: cycles[sense].least_used(frame, cues) for sense, cues in choices.items()}
        rows = [noun_row(word, sense, cue, frame, look, scene) for sense, cue in cues.items()]
        for sense, cue in cues.items():
            cycles[sense].use(frame, cue)
        complete = [row for row in rows if row is not None]
        return complete if len(complete) == len(rows) else None

    def _pronoun_groups(self) -> Iterator[tuple[Family, str, list[tuple[Noun, Noun]]]]:
        """Yield each verb and order with its pairs of nouns, once for each of the six pairs of different genders."""
        for family, order, genders in itertools.product(FAMILIES, ORDERS, itertools.permutations("mfn", 2)):
            pairs = itertools.product(*family.sides)
            yield family, order, [pair for pair in pairs if tuple(noun.gender for noun in pair) == genders]

    def _pronouns(self, family: Family, order: str, pairs: list[tuple[Noun, Noun]], split: str) -> Iterator[Row]:
        for _ in range(IT_TWINS[split]):
            yield from self._new(
                split, f"it-{order} with {family.name} and {pairs[0]}", self._it_twins, family, order, pairs, split
            )

    def _it_twins(self, family: Family, order: str, pairs: list[tuple[Noun, Noun]], split: str) -> list[Row] | None:
        nouns = self.rng.choice(pairs)
        rows = []
        for meant, side in enumerate(family.sides):
            adjectives = [a for a in side[nouns[meant]] if self._shows(a, family, order, meant, split)]
            if not adjectives:
                return None
            rows.append(it_row(Pronominal(family, *nouns, self.rng.choice(adjectives), meant, order)))
        return rows

    def _shows(self, adjective: str, family: Family, order: str, meant: int, split: str) -> bool:
        if split == COMPOSITIONAL:
            return adjective == self.held.it_cue_orders[family.name, order][meant]
        return (adjective, f"it-{order}") not in self.held.combinations

    def _new(self, split: str, what: str, draw: Callable[..., list[Row] | None], *arguments: Any) -> list[Row]:
        """Return the first twins drawn that belong to `split` and are new."""
        for _ in range(PATIENCE):
            rows = draw(*arguments)
            if rows and not any(row.src in self.used or not self._belongs(row, split) for row in rows):
                self.used |= {row.src for row in rows}
                return rows
        raise ValueError(f"the lexicon is too small: no new sentence for {what} in {PATIENCE} draws")


class _Cycle:
    """Chooses cues so that each occurs equally often in each frame."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)

    def least_used(self, frame: str, cues: Iterable[str]) -> str:
        counts = self.counts[frame]
        return min(cues, key=lambda cue: (counts[cue], self.rng.random()))

    def use(self, frame: str, cue: str) -> None:
        self.counts[frame][cue] += 1


def generate(seed: int) -> dict[str, list[Row]]:
    """Return the rows of every split. No source sentence occurs twice, in one split or in two."""
    return Drawing(random.Random(seed)).generate()


def write(splits: dict[str, list[Row]], folder: Path) -> None:
    """Write one TSV per split, with a header."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in fields(Row)]
    for split, rows in splits.items():
        lines = ["\t".join(names), *("\t".join(str(getattr(row, name)) for name in names) for row in rows)]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    splits = generate(arguments.seed)
    write(splits, arguments.out)
    for split, rows in splits.items():
        print(f"{split}: {len(rows):,} pairs")


if __name__ == "__main__":
    run_command(main)
