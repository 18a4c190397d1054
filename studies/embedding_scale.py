"""What does the factor √d_model on the embeddings do to training (notebook 12)?

The factor does two things at once. At the start it makes a token's vector √d_model times longer than the row of the
table, and Adam, whose steps do not depend on the size of a gradient, moves the vector √d_model times farther at each
step. The ablations have three of the four combinations; the fourth, trained here by their recipe, has the factor and
rows that begin √d_model times shorter. A control leaves the factor out and shortens the positions √d_model times, too:
if only the ratio of words and positions counts, it trains as with the factor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from transformer_lib.course.lab import ablations, translators
from transformer_lib.course.lab.embedding_scale import SHORT_POSITIONS, SHORT_START
from transformer_lib.data.corpora import load_corpus
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.model.positional import SinusoidalPosition
from transformer_lib.model.transformer import Transformer

from . import ablations as ablations_study
from .engine import Step, Steps, Study
from .parts import without_embedding_scale


def with_short_rows(model: Transformer) -> None:
    """Let both tables begin √d_model times smaller; the factor is kept."""
    with torch.no_grad():
        for table in (model.src_embedding, model.tgt_embedding):
            table.weight /= math.sqrt(table.embedding_dim)


def with_short_positions(model: Transformer) -> None:
    """Leave the factor out, and make the positions √d_model times smaller, too."""
    without_embedding_scale(model)
    assert isinstance(model.position, SinusoidalPosition)
    model.position.table /= math.sqrt(model.config.d_model)


CHANGES = {SHORT_START: with_short_rows, SHORT_POSITIONS: with_short_positions}
BUDGETS = {SHORT_START: ablations.PASSES, SHORT_POSITIONS: ablations.PASSES[:1]}  # passes over the corpus


def run_one(arm: str, seed: int, passes: int) -> dict:
    """Train one translator of an arm of CHANGES, and return its loss and its scores as the ablations have them."""
    corpus = load_corpus("context")
    translator = translators.new_translator(corpus["train"], seed=seed)
    CHANGES[arm](translator.model)
    ablations_study.train_variant(translator, "baseline", corpus["train"], seed, epochs=passes)
    path = fastest_path(translator.model)
    scores = ablations_study.scores(lambda texts: translator.translate(texts, path=path), corpus)
    loss = ablations_study.teacher_forced_loss(translator, corpus["heldout"][:: ablations_study.EVERY])
    return {"seed": seed, "loss": round(loss, 4), "scores": scores}


def short_run(arm: str) -> list[float]:
    """Return the losses of the first 640 pairs' single epoch, seed 0: quick to repeat, for a test."""
    corpus = load_corpus("context")
    translator = translators.new_translator(corpus["train"], seed=0)
    CHANGES[arm](translator.model)
    return ablations_study.first_losses(translator, "baseline", corpus["train"])


def steps(seeds: Sequence[int]) -> Steps:
    """Train every arm with its budgets."""
    for arm in CHANGES:
        yield Step(("short", arm), short_run, arm)
        for passes, seed in itertools.product(BUDGETS[arm], seeds):
            yield Step(("runs", arm, str(passes), {"seed": seed}), run_one, arm, seed, passes)


STUDY = Study("embedding_scale", __doc__, steps, by_seed=True, constants={"threads": 1}, says_seeds=False)


if __name__ == "__main__":
    STUDY.command()
