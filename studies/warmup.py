"""Does the learning rate need warm-up? Peak rates with and without it, post-norm and pre-norm (notebook 13).

The study of `ablations` runs it and keeps its results.
"""

from __future__ import annotations

import itertools
import statistics

from transformer_lib.course.lab import translators
from transformer_lib.data.corpora import Corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.training.evaluation import loss_per_token

from .translators import trained

STEPS, RISE, LAST = 200, 50, 50  # of training; of the rise to the peak; over which the loss is averaged at the end
NORMS, WARMUPS, RATES = ("post-norm",), ("with", "without"), (3e-3, 1e-2)
ARMS = tuple(itertools.product(NORMS, WARMUPS, RATES))


def name_of(norm: str, warmup: str, rate: float) -> str:
    """Return the name under which the results of an arm are kept: "post-norm, with, 0.003"."""
    return f"{norm}, {warmup}, {rate:g}"


def epoch_without(corpus: Corpus, seed: int, *, every: int) -> dict[str, float]:
    """Train for one epoch by the course's recipe, without its warm-up; return loss and share exactly right, held out.

    Args:
        every: every n-th held-out sentence is tested. The loss is per token in nats, not smoothed.
    """
    translator = trained(corpus, seed, epochs=1, warmup_steps=1)
    pairs, path = corpus["heldout"][::every], fastest_path(translator.model)
    right = exact_matches(translator.translate([pair.src for pair in pairs], path=path), pairs)
    loss = loss_per_token(translator.model, translator.batches(pairs, 64), path=path)
    return {"seed": seed, "loss": round(loss, 4), "exact match": round(statistics.mean(map(float, right)), 4)}


def final_loss(corpus: Corpus, norm: str, warmup: str, rate: float, seed: int, *, steps: int = STEPS) -> float:
    """Return the mean training loss of the last steps at a constant rate, with or without a rise to it.

    Arms of one seed read the same batches in the same order and, of one norm, begin with the same weights.
    """
    pairs = corpus["train"][: steps * translators.BATCH_SIZE]
    translator = translators.new_translator(corpus["train"], seed=seed, norm_first=norm == "pre-norm")
    rise = RISE if warmup == "with" else 1
    history = translators.train_translator(
        translator,
        pairs,
        seed=seed,
        epochs=1,
        schedule="constant",
        learning_rate=rate,
        warmup_steps=rise,
        progress=False,
    )
    return round(statistics.mean(history.loss[-LAST:]), 4)
