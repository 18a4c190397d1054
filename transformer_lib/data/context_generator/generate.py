"""Draw the context corpus and write its four splits.

`python -m transformer_lib.data.context_generator.generate --out data/context`: the same seed
gives the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .frames import FRAMES
from .german import NounPhrase
from .lexicon import ADJECTIVES, ADVERBS, AMBIGUOUS, CUES, MODALS, PEOPLE, TIMES, VERBS, Sense
from .pronouns import ADJECTIVES as IT_ADJECTIVES
from .pronouns import FAMILIES, ORDERS, Pronominal, all_pronominals
from .scene import Scene

# Pairs per sense of an ambiguous noun, and "it" sentences, in each split.
PER_SENSE = {"train": 378, "heldout": 17, "compositional": 17, "hard": 18}
PRONOMINAL = {"train": 3480, "heldout": 126, "compositional": 126, "hard": 0}
HELD_FRAMES_PER_WORD = 2
NOMINATIVE_FRAMES = ("predicate", "passive", "object-relative")
SPLITS = tuple(PER_SENSE)
DEFINITE_FRAMES = ("negation", "but-not")  # "sah einen Kran nicht" is no German; "keinen" would be another lesson


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
    held: str


def write_text(tokens: str) -> str:
    """Turn "the man , who …" into "The man, who …"."""
    text = re.sub(r" ([.,?!:])", r"\1", tokens)
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class HeldOut:
    """What training never sees: word × frame, cue × frame, and word-sense × cue (the hard split)."""

    word_frames: frozenset[tuple[str, str]]
    cue_frames: frozenset[tuple[str, str]]
    word_cues: frozenset[tuple[str, str]]

    def kinds(self, word: str, cue: str, frame: str) -> list[str]:
        """Return which of the combinations are held out."""
        found = {
            "word×frame": (word, frame) in self.word_frames,
            "cue×frame": (cue, frame) in self.cue_frames,
            "word×cue": (word, cue) in self.word_cues,
        }
        return [kind for kind, held in found.items() if held]


def draw_held_out(rng: random.Random) -> HeldOut:
    """Choose the held-out combinations: 2 frames a word, 1 frame a cue, 1 cue a sense; each part stays in training."""
    frames = sorted(FRAMES)
    word_frames = {(word, frame) for word in AMBIGUOUS for frame in rng.sample(frames, HELD_FRAMES_PER_WORD)}
    cue_frames = {(cue, rng.choice(frames)) for cue in CUES}
    adjectives = sorted({a for pair in IT_ADJECTIVES.values() for side in pair for a in side})
    cue_frames |= {(adjective, f"it-{rng.choice(ORDERS)}") for adjective in adjectives}
    uses = {cue: sum(cue in s.cues for senses in AMBIGUOUS.values() for s in senses) for cue in CUES}
    word_cues = set()
    for word, senses in AMBIGUOUS.items():
        for sense in senses:
            shared = [cue for cue in sense.cues if uses[cue] >= 2]
            cue = rng.choice(shared)
            uses[cue] -= 1
            word_cues.add((word, cue))
    return HeldOut(frozenset(word_frames), frozenset(cue_frames), frozenset(word_cues))


def leaks(src: list[str], tgt: list[str], contrast: list[str], expected: str, cue_en: str, cue_de: set[str]) -> bool:
    """Say whether a model that sees only position i, and the target word before it, would see the cue.

    What counts are the first target word that depends on the sense, and the ambiguous word itself.
    """
    first = next(i for i, (a, b) in enumerate(zip(tgt, contrast, strict=True)) if a != b)
    places = (first, tgt.index(expected))
    seen = {src[i] for i in places if i < len(src)}
    return cue_en in seen or (first > 0 and tgt[first - 1] in cue_de)


def noun_row(rng: random.Random, word: str, sense: Sense, cue: str, frame: str, held: HeldOut) -> Row | None:
    """Build one sentence with `word` in `sense`; None if it would leak, or show a noun's form seen nowhere else."""
    if frame == "but-not" and CUES[cue].oblique != CUES[cue].german:
        return None  # the only frame with a cue in the nominative: "der Zeuge", elsewhere "Zeugen"
    someone, other = rng.sample(PEOPLE, 2)
    verb, cue_verb = rng.sample(VERBS, 2)
    subject = frame in NOMINATIVE_FRAMES  # rare otherwise: "ein alter Kran"
    look: dict[str, Any] = {
        "definite": frame in DEFINITE_FRAMES or rng.random() < (0.4 if subject else 0.7),
        "adjective": rng.choice(sorted(ADJECTIVES)) if rng.random() < (0.8 if subject else 0.5) else "",
    }
    scene: dict[str, Any] = {
        "cue": NounPhrase(CUES[cue]),
        "someone": someone,
        "other": other,
        "verb": verb,
        "cue_verb": cue_verb,
        "modal": rng.choice(sorted(MODALS)),
        "adverb": rng.choice(sorted(ADVERBS)),
        "time": rng.choice(sorted(TIMES)),
        "predicate": rng.choice(sorted(ADJECTIVES)),
    }
    src, tgt = FRAMES[frame](Scene(word=NounPhrase(sense.noun, **look), **scene))
    others = [s.noun for s in AMBIGUOUS[word] if s is not sense]
    contrasts = [FRAMES[frame](Scene(word=NounPhrase(noun, **look), **scene))[1] for noun in others]
    tokens, german = src.split(), tgt.split()
    expected = next(token for token in german if token in (sense.noun.german, sense.noun.oblique))
    cue_forms = {CUES[cue].german, CUES[cue].oblique}
    if any(leaks(tokens, german, text.split(), expected, cue, cue_forms) for text in contrasts):
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
        "+".join(held.kinds(word, cue, frame)),
    )


def it_row(sentence: Pronominal, held: HeldOut) -> Row:
    """Build one "it" sentence."""
    src, tgt = sentence.sentences(sentence.meant)
    _, contrast = sentence.sentences(1 - sentence.meant)
    tokens = src.split()
    german = tgt.split()
    expected = next(a for a, b in zip(german, contrast.split(), strict=True) if a != b)
    frame = f"it-{sentence.order}"
    return Row(
        write_text(src),
        write_text(tgt),
        write_text(contrast),
        "it",
        sentence.nouns[sentence.meant].lemma,
        expected,
        sentence.adjective,
        frame,
        tokens.index(sentence.adjective) - tokens.index("it"),
        "+".join(held.kinds("it", sentence.adjective, frame)),
    )


def belongs(row: Row, split: str) -> bool:
    """Return True when `row` may stand in `split`: nothing held out in train and heldout, only its kind elsewhere."""
    if split == "hard":
        return row.held == "word×cue"
    if split == "compositional":
        return bool(row.held) and "word×cue" not in row.held
    return not row.held


def _draw_nouns(rng: random.Random, held: HeldOut, split: str, used: set[str]) -> Iterator[Row]:
    """Yield PER_SENSE[split] new pairs for each sense, so that the senses of a word are equally frequent."""
    for word, senses in AMBIGUOUS.items():
        for sense in senses:
            found = 0
            while found < PER_SENSE[split]:
                row = noun_row(rng, word, sense, rng.choice(sense.cues), rng.choice(sorted(FRAMES)), held)
                if row is not None and belongs(row, split) and row.src not in used:
                    used.add(row.src)
                    found += 1
                    yield row


def _draw_pronouns(rng: random.Random, held: HeldOut, split: str, used: set[str]) -> Iterator[Row]:
    """Yield PRONOMINAL[split] new "it" sentences, evenly over both nouns and er, sie, es (in train, per verb)."""
    by_verb = split == "train"
    wanted = PRONOMINAL[split] // (6 * len(FAMILIES) if by_verb else 6)
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for sentence in all_pronominals():
        key = (sentence.family.name * by_verb, sentence.meant, sentence.nouns[sentence.meant].gender)
        groups.setdefault(key, []).append(it_row(sentence, held))
    for rows in groups.values():
        fitting = [row for row in rows if belongs(row, split) and row.src not in used]
        for row in rng.sample(fitting, wanted):
            used.add(row.src)
            yield row


def generate(seed: int) -> dict[str, list[Row]]:
    """Return the rows of every split, shuffled. No source sentence occurs twice, in one split or in two."""
    rng = random.Random(seed)
    held = draw_held_out(rng)
    used: set[str] = set()
    splits = {}
    for split in reversed(SPLITS):  # the small ones first: training takes what is left
        draws: list[Callable[..., Iterator[Row]]] = [_draw_nouns]
        if PRONOMINAL[split]:
            draws.append(_draw_pronouns)
        rows = [row for draw in draws for row in draw(rng, held, split, used)]
        rng.shuffle(rows)
        splits[split] = rows
    return splits


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
    main()
