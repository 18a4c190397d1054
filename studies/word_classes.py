"""What does an embedding table learn? 22 words in four classes, and a model of the next word (notebook 05)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from transformer_lib.course.lab import word_classes as lab

from .engine import Step, Steps, Study

LONGER = 1000  # steps: five times as many, to see whether anything still changes
RATES = (1e-3, lab.LEARNING_RATE, 1e-2)
STARTS = (0.1, 0.25, 1.0)  # 0.25 is 1 / √WIDTH, the size that a `Transformer` starts with; 1 is that of nn.Embedding
LANGUAGES = {  # by an example of a sentence
    "the red dog sees the cat": lab.TEMPLATE,
    "the red dog sees wet cat": ("article", "adjective", "noun", "verb", "adjective", "noun"),
    "the red dog the sees wet": ("article", "adjective", "noun", "article", "verb", "adjective"),
    "the red dog sees cat the": ("article", "adjective", "noun", "verb", "noun", "article"),
}


def best_loss(template: Sequence[str] = lab.TEMPLATE) -> float:
    """Return the least possible mean loss in nats: within its class, no word can be predicted."""
    return sum(math.log(len(lab.CLASSES[name])) for name in template[1:]) / (len(template) - 1)


def run(language: str, start: float, frozen: bool, rate: float, seed: int, steps: int) -> dict[str, Any]:
    """Train once; return what came of it: the loss above the best, and how the table is sorted."""
    template = LANGUAGES[language]
    tables, loss = lab.train(seed, start, template, frozen=frozen, steps=steps, learning_rate=rate)
    cosines = [[round(value, 3) for value in row] for row in lab.class_cosines(tables[steps]).tolist()]
    result = {"loss": round(loss - best_loss(template), 4), "nearest": round(lab.nearest_in_class(tables[steps]), 3)}
    return result | {"cosines": cosines}


def steps(seeds: Sequence[int]) -> Steps:
    """Train from each start, with a table that stays, and in the other languages, at every rate."""
    first, *others = LANGUAGES
    kinds = [(first, start, False) for start in STARTS] + [(first, STARTS[-1], True)]
    kinds += [(language, STARTS[0], False) for language in others]
    names, budgets = ("language", "start", "frozen", "rate", "seed", "steps"), (lab.SNAPSHOTS[-1], LONGER)
    for kind, rate, seed, budget in itertools.product(kinds, RATES, seeds, budgets):
        setup = dict(zip(names, (*kind, rate, seed, budget), strict=True))
        yield Step(("runs", setup), partial(run, **setup))


STUDY = Study("word_classes", __doc__, steps, by_seed=True)


if __name__ == "__main__":
    STUDY.command()
