"""The study of dropout: what a run measures, which rate is chosen, and that the command goes on where it stopped."""

from __future__ import annotations

import pytest

from studies import dropout as study
from transformer_lib.course.lab import dropout as study_lab
from transformer_lib.course.lab import translators
from transformer_lib.data.corpora import Corpus, load_corpus

STORED = study_lab.load_results()


@pytest.fixture
def tiny() -> Corpus:
    few = load_corpus("context")["train"][:64]
    return Corpus("context", {"train": few, "validation": few[:9]})


def test_a_rate_is_chosen_by_the_mean_over_the_seeds():
    def runs(*losses: float) -> list[dict]:
        return [{"validation": loss} for loss in losses]

    passes = f"{translators.TRAINING['epochs']} passes"
    assert study.chosen({"runs": {passes: {"0": runs(1.0, 4.0), "0.1": runs(2.0, 2.0), "0.2": runs(3.0, 2.5)}}}) == 0.1


def test_the_losses_are_of_the_model_as_it_ends(tiny):
    run = study.run_rate(tiny, 0.3, 5, epochs=1, warmup_steps=2)
    translator = translators.new_translator(tiny["train"], seed=5, dropout=0.3)
    translators.train_translator(translator, tiny["train"], seed=5, epochs=1, warmup_steps=2, progress=False)
    log_probs = translator.log_probabilities([p.src for p in tiny["validation"]], [p.tgt for p in tiny["validation"]])
    assert run["validation, not smoothed"] == pytest.approx(-log_probs[log_probs != 0].mean().item(), abs=1e-3)
    assert run["validation"] > run["validation, not smoothed"] * 0.5 and 0 <= run["exact match"] <= 1


def test_the_course_takes_the_rate_that_the_validation_split_chose():
    assert study.chosen(STORED) == translators.SIZES["dropout"]
