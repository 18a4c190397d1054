"""What is left of a translator that was never shown the source: a language model of German (notebook 11).

The translator of the ladder's rung 11 is trained on the same German sentences with "." for every source. What it learns
with the sources is in the study `ladder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transformer_lib.course.lab.blind import RUNG
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.decoding.translator import Translator

from . import ladder, translators
from .engine import Step, Steps, Study

PASSES = (1, 4)  # over the corpus
NOTHING = "."


def blindfold(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with a source that says nothing."""
    return [replace(pair, src=NOTHING) for pair in pairs]


def curve(corpus: Corpus, seed: int, *, passes: Sequence[int] = PASSES, **options: Any) -> list[float]:
    """Train without the sources; return the loss on the validation split after each of `passes`, in nats per token."""
    tested = blindfold(corpus["validation"])
    translator: Translator = ladder.new_translator(corpus, RUNG, seed)  # the vocabularies are those of the corpus
    losses: list[float] = []

    def look(done: int) -> None:
        if done in passes:
            losses.append(ladder.loss_of(translator, tested))

    options = {"epochs": max(passes), "on_epoch": look, **options}
    ladder.climb(translator, RUNG, blindfold(corpus["train"]), seed, **options)
    return losses


def short_run(corpus: Corpus) -> list[float]:
    """Return the training losses of the first `translators.SHORT_PAIRS` pairs' single epoch, seed 0."""
    translator = ladder.new_translator(corpus, RUNG, 0)
    pairs = blindfold(corpus["train"][: translators.SHORT_PAIRS])
    return [round(loss, 4) for loss in ladder.climb(translator, RUNG, pairs, 0).loss]


def steps(seeds: Sequence[int]) -> Steps:
    """Train with every seed."""
    corpus = load_corpus("context")
    yield Step("short", short_run, corpus)
    for position, seed in enumerate(seeds):
        yield Step(("without the source", position), curve, corpus, seed)


STUDY = Study("blind", __doc__, steps, by_seed=True, constants={"passes": list(PASSES)})


if __name__ == "__main__":
    STUDY.command()
