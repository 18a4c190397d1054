"""When does training need a warm-up? Peak rates with and without one, for post-norm and pre-norm (notebook 13).

Two kinds of runs: one pass over the corpus by the course's recipe, whose rate falls to zero, and 200 steps at a
constant rate. Arms of one seed read the same batches in the same order, and begin with the same weights if they have
the same norm.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from transformer_lib.course.lab import translators
from transformer_lib.course.lab.warmup import ARMS, STEPS, WARMUPS
from transformer_lib.data.corpora import Corpus, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.training.evaluation import loss_per_token

from .engine import Step, Steps, Study

EVERY = 4  # every fourth held-out sentence is tested
SHORT, RISE = 200, 50  # steps of a run at a constant rate, and of the rise to it
LAST = 50  # steps at the end over which its loss is averaged
CONSTANT = (3e-3, 1e-2)


def epoch(
    corpus: Corpus, norm: str, rate: float, warmup: str, seed: int, *, steps: int = STEPS, every: int = EVERY
) -> dict[str, Any]:
    """Train for one pass; return the held-out loss per token (nats, not smoothed) and the share exactly right.

    Args:
        norm: "post-norm" or "pre-norm". rate: its peak. warmup: a name in WARMUPS.
        steps: pairs for this many steps are read. every: every n-th held-out sentence is tested.
    """
    translator = translators.new_translator(corpus["train"], seed=seed, norm_first=norm == "pre-norm")
    pairs = corpus["train"][: steps * translators.BATCH_SIZE]
    recipe = {"epochs": 1, "learning_rate": rate, "warmup_steps": WARMUPS[warmup], "progress": False}
    translators.train_translator(translator, pairs, seed=seed, **recipe)
    tested, path = corpus["heldout"][::every], fastest_path(translator.model)
    right = exact_matches(translator.translate([pair.src for pair in tested], path=path), tested)
    loss = loss_per_token(translator.model, translator.batches(tested, 64), path=path)
    return {"loss": round(loss, 4), "exact match": round(statistics.mean(map(float, right)), 4)}


def final_loss(corpus: Corpus, warmup: str, rate: float, seed: int, *, steps: int = SHORT) -> float:
    """Return the mean training loss of the last steps of a post-norm model at a constant rate."""
    pairs = corpus["train"][: steps * translators.BATCH_SIZE]
    translator = translators.new_translator(corpus["train"], seed=seed)
    recipe = {"epochs": 1, "schedule": "constant", "learning_rate": rate, "progress": False}
    rise = RISE if warmup == "with" else 1
    history = translators.train_translator(translator, pairs, seed=seed, warmup_steps=rise, **recipe)
    return round(statistics.mean(history.loss[-LAST:]), 4)


def steps(seeds: Sequence[int]) -> Steps:
    """Train every arm, then the short runs."""
    corpus = load_corpus("context")
    for (norm, rate), warmup, seed in itertools.product(ARMS, WARMUPS, seeds):
        where = ("epoch", norm, f"{rate:g}", warmup, {"seed": seed})
        yield Step(where, epoch, corpus, norm, rate, warmup, seed)
    for rate, warmup, (position, seed) in itertools.product(CONSTANT, WARMUPS, enumerate(seeds)):
        yield Step(("constant", f"{rate:g}", warmup, position), final_loss, corpus, warmup, rate, seed)


STUDY = Study(
    "warmup", __doc__, steps, by_seed=True, constants={"threads": 1, "steps": STEPS, "every": EVERY, "short": SHORT}
)


if __name__ == "__main__":
    STUDY.command()
