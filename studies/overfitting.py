"""What does a translator learn from few sentences? Its loss on them, and on sentences it never saw (notebook 13).

All sets are trained on for the same number of steps; the smallest also for four times as many, and with what hinders
overfitting: dropout and label smoothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transformer_lib.course.lab import translators
from transformer_lib.course.lab.overfitting import SIZES, STEPS
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.evaluating import evaluating
from transformer_lib.training.loss import shift_right

from .engine import Step, Steps, Study

TESTED = 266  # pairs on which a loss is measured: every fourth of the validation split, as many of the training pairs
SHORT = 12  # steps of a run that a test repeats


@dataclass(frozen=True)
class Setup:
    """One run: pairs trained on, the two remedies, steps (a multiple of STEPS), and the seed of pairs and weights."""

    pairs: int
    dropout: float
    smoothing: float
    steps: int
    seed: int


def setups(seeds: Sequence[int]) -> list[Setup]:
    """Return what is run, in this order."""
    small = SIZES[0]
    rows = [(size, 0.0, 0.0, STEPS) for size in SIZES]
    rows += [(small, 0.3, 0.0, STEPS), (small, 0.0, 0.1, STEPS), (small, 0.0, 0.0, 4 * STEPS)]
    return [Setup(*row, seed) for row in rows for seed in seeds]


def looked_at(steps: int) -> list[int]:
    """Return the steps after which the losses are measured: closer together at the beginning, and the last."""
    early, late = range(32, 224, 32), range(256, steps, 76 * max(1, steps // STEPS))
    return sorted({*(step for step in early if step <= steps), *late, steps})


def chosen(corpus: Corpus, number: int, seed: int) -> list[Pair]:
    """Return this number of training pairs, drawn with the seed."""
    return random.Random(seed).sample(list(corpus["train"]), min(number, len(corpus["train"])))


def train(corpus: Corpus, setup: Setup, **options: Any) -> tuple[Translator, dict[str, Any]]:
    """Train one translator; return it and its curves: losses per token in nats, not smoothed, and words right.

    The vocabularies are those of the whole corpus, so that the sets differ in nothing but the sentences.
    """
    pairs = chosen(corpus, setup.pairs, setup.seed)
    translator = translators.new_translator(corpus["train"], seed=setup.seed, dropout=setup.dropout)
    split = {"training": pairs[:TESTED], "validation": corpus["validation"][::4]}
    watched = {name: translators.Watched(translator, some) for name, some in split.items()}
    curve: dict[str, list] = {"steps": [], "training": [], "validation": [], "words right": []}

    def look(step: int, loss: float) -> None:
        if step in at:
            curve["steps"].append(step)
            for name, some in watched.items():
                curve[name].append(round(some.loss(), 4))
            curve["words right"].append(round(words_right(translator, split["validation"]), 4))
        if step == setup.steps:
            raise KeyboardInterrupt  # `train` ends and keeps the model

    per_epoch = -(-len(pairs) // translators.BATCH_SIZE)
    at, epochs = set(looked_at(setup.steps)), -(-setup.steps // per_epoch)
    recipe = {"warmup_steps": 100, "label_smoothing": setup.smoothing, "progress": False, **options}
    translators.train_translator(translator, pairs, seed=setup.seed, epochs=epochs, on_step=look, **recipe)
    return translator, curve


@torch.no_grad()
def words_right(translator: Translator, pairs: Sequence[Pair]) -> float:
    """Return how often the likeliest token is the right one, the right earlier tokens given."""
    right = tokens = 0
    with evaluating(translator.model):
        for src, tgt in translator.batches(pairs, 64):
            tgt_in, tgt_out = shift_right(tgt)
            real = tgt_out != translator.model.config.pad_id
            right += int((translator.model(src, tgt_in).argmax(dim=-1) == tgt_out)[real].sum())
            tokens += int(real.sum())
    return right / tokens


def run_setup(corpus: Corpus, setup: Setup) -> dict[str, Any]:
    """Return the curves of a run, and the share of sentences that it translates exactly at the end."""
    translator, curve = train(corpus, setup)
    seen = chosen(corpus, setup.pairs, setup.seed)[:TESTED]
    exact = {}
    for name, pairs in (("training", seen), ("validation", corpus["validation"][::4])):
        said = translator.translate([pair.src for pair in pairs], path="fast")
        exact[name] = round(sum(exact_matches(said, pairs)) / len(pairs), 4)
    return {"curve": curve, "exact": exact}


def short_run(corpus: Corpus) -> list[float]:
    """Return the losses on the training and the validation pairs after SHORT steps on the smallest set, seed 0."""
    translator, _ = train(corpus, Setup(SIZES[0], 0.0, 0.0, SHORT, 0))
    pairs = chosen(corpus, SIZES[0], 0)[:TESTED]
    return [round(translators.Watched(translator, some).loss(), 4) for some in (pairs, corpus["validation"][::4])]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every set-up."""
    corpus = load_corpus("context")
    yield Step("short", short_run, corpus)
    for setup in setups(seeds):
        yield Step(("runs", setup), run_setup, corpus, setup)


STUDY = Study("overfitting", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
