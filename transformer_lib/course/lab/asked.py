"""Twenty questions of each of six kinds for a real model, asked in two ways, and how many it got right (notebook 23).

Either the question is asked in a chat, or the model goes on with a list of three questions with their answers, to which
the question is added. Sums are asked in words and in signs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import transformer_lib as tl

from . import stored

CHAT, LIST = 16, 6  # the most tokens of an answer in a chat, and in a list, where it ends with its line
SUMS = 200  # in a chat, sums are talked about at length

load_results = stored.loader("asked.json")


@dataclass(frozen=True)
class Kind:
    """A kind of question: `form` has the place of its word; what is asked, and examples, each with its answers.

    In a list the question is written as `line`.
    """

    form: str
    asked: Mapping[str, str]
    examples: Mapping[str, str]
    line: str = "Q: {}\nA:"

    def in_list(self, word: str) -> str:
        """Return the question about this word as it is written in a list."""
        return self.line.format(self.form.format(word))


def _pairs(text: str) -> dict[str, str]:
    """Return {word: answers, separated by |} of “hot cold, old young|new”."""
    return {word.replace("_", " "): answer.replace("_", " ") for word, answer in map(str.split, text.split(","))}


def _sums(sign: str, text: str) -> dict[str, str]:
    return {f"{a} {sign} {b}": str(a + b) for a, b in (map(int, pair) for pair in text.split())}


def _lengths(text: str) -> dict[str, str]:
    names = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"]
    return {word: f"{len(word)}|{names[len(word)]}" for word in text.split()}


_ASKED = "75 22 34 81 66 93 48 51 16 29 33 87 99 45 62 71 59 12 84 25"  # 7 and 5, and so on
_EXAMPLES = "36 86 11 27 96 14 55 72"

KINDS = {
    "opposites": Kind(
        "What is the opposite of {}?",
        _pairs(
            "hot cold, big small|little, old young|new, dark light|bright, open closed|close, high low, fast slow, "
            "hard soft|easy, good bad|evil, full empty, rich poor, left right, up down, day night, war peace, "
            "love hate, black white, north south, strong weak, happy sad"
        ),
        _pairs("long short, wet dry, early late, deep shallow, clean dirty, thick thin, loud quiet, true false"),
    ),
    "capitals": Kind(
        "What is the capital of {}?",
        _pairs(
            "France Paris, Germany Berlin, Italy Rome, Spain Madrid, Japan Tokyo, Russia Moscow, China Beijing, "
            "Egypt Cairo, Greece Athens, Sweden Stockholm, Norway Oslo, Canada Ottawa, Cuba Havana, Iran Tehran, "
            "Peru Lima, Poland Warsaw, Austria Vienna, Turkey Ankara, Australia Canberra, Kenya Nairobi"
        ),
        _pairs(
            "Finland Helsinki, Hungary Budapest, Iraq Baghdad, Belgium Brussels, Denmark Copenhagen, Chile Santiago, "
            "Ireland Dublin, Portugal Lisbon"
        ),
    ),
    "sums in signs": Kind("{} =", _sums("+", _ASKED), _sums("+", _EXAMPLES), line="{}"),
    "sums in words": Kind("What is {}?", _sums("plus", _ASKED), _sums("plus", _EXAMPLES)),
    "German words": Kind(
        "What is the German word for {}?",
        _pairs(
            "house Haus, water Wasser, bread Brot, tree Baum, dog Hund, cat Katze, man Mann, woman Frau, child Kind, "
            "hand Hand, fire Feuer, moon Mond, sun Sonne, book Buch, day Tag, night Nacht, milk Milch, horse Pferd, "
            "fish Fisch, school Schule"
        ),
        _pairs("apple Apfel, mother Mutter, white weiß, bird Vogel, winter Winter, door Tür, city Stadt, heart Herz"),
    ),
    "letters of a word": Kind(
        "How many letters are in the word {}?",
        _lengths("cat house elephant dog tree banana sun winter garden city window music paper water stone river bread "
                 "table moon tea"),
        _lengths("dad lovely home kitchen bed apple summer night"),
    ),
}  # fmt: skip


def in_a_chat(kind: Kind, words: tl.ByteLevelTokenizer) -> list[list[int]]:
    """Return the ids of each question as a conversation of one turn."""
    return [words.encode_chat([{"role": "user", "content": kind.form.format(word)}]) for word in kind.asked]


def in_a_list(kind: Kind, words: tl.ByteLevelTokenizer, seed: int, shown: int = 3) -> list[list[int]]:
    """Return the ids of each question behind some examples with their answers, the same for all questions."""
    examples = random.Random(seed).sample(list(kind.examples.items()), shown)
    lines = "".join(f"{kind.in_list(word)} {answer.split('|')[0]}\n\n" for word, answer in examples)
    return [words.encode(lines + kind.in_list(word)) for word in kind.asked]


def answers(
    model: tl.modern.LanguageModel, words: tl.ByteLevelTokenizer, texts: Sequence[Sequence[int]], most: int
) -> list[str]:
    """Return what the model says greedily after each text, at most so many tokens; equally long texts as a batch."""
    said: dict[int, str] = {}
    for length in sorted({len(ids) for ids in texts}):
        rows = [row for row, ids in enumerate(texts) if len(ids) == length]
        batch = torch.tensor([texts[row] for row in rows])
        tokens = torch.stack(list(tl.generate(model, batch, max_new_tokens=most, stop=words.stop_ids)), dim=1)
        said |= {row: words.decode(ids) for row, ids in zip(rows, tokens, strict=True)}
    return [said[row] for row in range(len(texts))]


def first_line(said: str) -> str:
    """Return the answer in a list: what is said before the next line begins."""
    return said.strip().partition("\n")[0]


def is_right(said: str, answer: str) -> bool:
    """Return whether one of the answers, separated by |, is among the words of what was said."""
    return re.search(rf"\b({answer})\b", said, re.IGNORECASE) is not None


def ends_with(said: str, number: str) -> bool:
    """Return whether this is the last number of what was said: on the way to a sum others may be named."""
    return re.findall(r"\d+", said)[-1:] == [number]


def marks(kind: str, said: Sequence[str]) -> list[bool]:
    """Return for each answer to the questions of this kind whether it is right; of a sum, its last number counts."""
    judge = ends_with if kind.startswith("sums") else is_right
    return [judge(text, answer) for text, answer in zip(said, KINDS[kind].asked.values(), strict=True)]


def counted(results: Mapping[str, Any]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return how many of 20 are right of each kind: behind each set of three examples, and in a chat (one number)."""
    lists: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for run in results["runs"]:
        lists[run["kind"]].append(sum(marks(run["kind"], run["said"])))
    return lists, {kind: [sum(marks(kind, results["chat"][kind]))] for kind in KINDS}
