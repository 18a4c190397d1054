"""How much dropout? The course's translator with none to a fifth, judged by the validation split (notebook 13).

The rate with the lowest validation loss, smoothed as in training, is the course's: `translators.SIZES["dropout"]`. No
test split is looked at here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from statistics import mean
from typing import Any

from transformer_lib.course.lab import translators
from transformer_lib.data.corpora import Corpus, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.fast.eligibility import fastest_path

from .engine import Step, Steps, Study

RATES = (0.0, 0.1, 0.2)
PASSES = (2, 4)
TRAIN_EVERY = 20  # every twentieth training pair is read again at the end, without dropout


def run_rate(corpus: Corpus, rate: float, seed: int, **options: Any) -> dict[str, Any]:
    """Train one translator and return its losses in nats per token, and the share of validation pairs exactly right."""
    translator = translators.new_translator(corpus["train"], seed=seed, dropout=rate)
    validation = translators.Watched(translator, corpus["validation"])
    train = translators.Watched(translator, corpus["train"][::TRAIN_EVERY])
    translators.train_translator(
        translator, corpus["train"], seed=seed, progress=False, on_step=validation.look, **options
    )
    translate = functools.partial(translator.translate, path=fastest_path(translator.model))
    right = exact_matches(translate([pair.src for pair in corpus["validation"]]), corpus["validation"])
    smoothing = translators.TRAINING["label_smoothing"]
    return {
        "seed": seed,
        "curve": validation.curve,
        "validation": round(validation.loss(label_smoothing=smoothing), 4),
        "training": round(train.loss(label_smoothing=smoothing), 4),
        "validation, not smoothed": round(validation.loss(), 4),
        "exact match": round(mean(map(float, right)), 4),
    }


def chosen(content: dict[str, Any]) -> float:
    """Return the rate with the lowest validation loss after the course's number of passes, as the mean of the seeds."""
    runs = content["runs"][f"{translators.TRAINING['epochs']} passes"]
    return float(min(runs, key=lambda rate: mean(one["validation"] for one in runs[rate])))


def steps(seeds: Sequence[int]) -> Steps:
    """Train with every rate and seed, with half of the passes and with all."""
    corpus = load_corpus("context")
    for passes, rate, seed in itertools.product(PASSES, RATES, seeds):
        where = ("runs", f"{passes} passes", f"{rate:g}", {"seed": seed})
        yield Step(where, functools.partial(run_rate, corpus, rate, seed, epochs=passes))


STUDY = Study("dropout", __doc__, steps, by_seed=True)


if __name__ == "__main__":
    STUDY.command()
