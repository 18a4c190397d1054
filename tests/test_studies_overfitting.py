"""The study of overfitting: its pairs, a short run that repeats the stored one, and what is stored."""

from __future__ import annotations

import pytest

from studies import overfitting as study
from transformer_lib.course.lab import overfitting as study_lab
from transformer_lib.data.corpora import Corpus, load_corpus

STORED = study_lab.load_results()


def test_the_pairs_are_drawn_with_the_seed():
    corpus = load_corpus("context")
    few, again, other = (study.chosen(corpus, 256, seed) for seed in (0, 0, 1))
    assert len(few) == 256 == len(set(few)) and few == again != other and set(few) <= set(corpus["train"])
    assert len(study.chosen(corpus, 10**6, 0)) == len(corpus["train"]) == study_lab.SIZES[-1]


def test_the_last_step_is_looked_at():
    for steps in (12, study_lab.STEPS, 4 * study_lab.STEPS):
        found = study.looked_at(steps)
        assert found[-1] == steps and found == sorted(set(found)) and len(found) < 20


def test_a_run_ends_at_its_last_step_and_keeps_the_model():
    few = load_corpus("context")["train"][:64]
    corpus = Corpus("context", {"train": few, "validation": few[:32]})
    translator, curve = study.train(corpus, study.Setup(32, 0.1, 0.0, 40, 3), warmup_steps=2)
    assert curve["steps"] == [32, 40] and all(len(values) == 2 for values in curve.values())
    watched = study.translators.Watched(translator, corpus["validation"][::4])
    assert watched.loss() == pytest.approx(curve["validation"][-1], abs=1e-3)
    assert 0 < curve["words right"][-1] <= 1 and curve["training"][-1] < curve["training"][0]


def test_few_sentences_are_memorised_and_many_are_not():
    for run in study_lab.runs_of(STORED, 256):
        validation = run["curve"]["validation"]
        assert run["curve"]["training"][-1] < 0.01 and validation[-1] > min(validation) + 0.4
        assert run["exact"] == {"training": 1.0, "validation": 0.0}
    for run in study_lab.runs_of(STORED, study_lab.SIZES[-1]):
        assert abs(run["curve"]["training"][-1] - run["curve"]["validation"][-1]) < 0.005


def test_the_means_and_the_panels_are_of_the_stored_runs():
    curves = [
        {"steps": [1, 2, 3], "training": [3.0, 1.0, 0.0], "validation": [3.0, low, 4.0], "words right": [0.1, 0.3, 0.5]}
        for low in (1.0, 2.0)
    ]
    head = {"pairs": 256, "dropout": 0.0, "smoothing": 0.0, "steps": study_lab.STEPS}
    results = {"runs": [{**head, "seed": seed, "curve": curve} for seed, curve in enumerate(curves)]}
    assert study_lab.best_and_last(results, 256) == pytest.approx((1.5, 4.0, 0.3, 0.5))
    assert study_lab.runs_of(results, 1024) == [] == study_lab.runs_of(results, 256, 0.3)


def test_what_is_stored_of_each_run():
    for run in STORED["runs"]:
        assert run["curve"]["steps"] == study.looked_at(run["steps"])
        assert set(run["exact"]) == {"training", "validation"}
