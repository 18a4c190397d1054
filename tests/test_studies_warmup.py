"""The warm-up study: its runs on a few pairs, and what is stored."""

from __future__ import annotations

import itertools

import pytest

from read_once import CORPUS
from studies import warmup as study
from transformer_lib.course.lab import warmup as study_lab
from transformer_lib.data.corpora import Corpus

STORED = study_lab.load_results()


@pytest.fixture
def tiny() -> Corpus:
    few = CORPUS["train"][:96]
    return Corpus("context", {"train": few, "heldout": few[:7]})


def test_an_epoch_is_scored_and_depends_on_norm_and_warm_up(tiny):
    runs = [
        study.epoch(tiny, norm, 0.003, arm, 1, steps=3, every=2)
        for norm, arm in itertools.product(("post-norm", "pre-norm"), study_lab.WARMUPS)
    ]
    assert len({run["loss"] for run in runs}) == 4
    assert all(1 < run["loss"] < 20 and 0 <= run["exact match"] <= 1 for run in runs)


def test_a_short_run_at_a_constant_rate(tiny):
    losses = {arm: study.final_loss(tiny, arm, 0.01, 1, steps=3) for arm in study_lab.WARMUPS}
    assert losses["with"] != losses["without"] and all(1 < loss < 20 for loss in losses.values())


def test_all_arms_are_stored_with_all_seeds():
    for (norm, rate), arm in itertools.product(study_lab.ARMS, study_lab.WARMUPS):
        runs = STORED["epoch"][norm][f"{rate:g}"][arm]
        assert [run["seed"] for run in runs] == STORED["seeds"]
        assert study_lab.shares(STORED, norm, rate, arm) == [run["exact match"] for run in runs]
    assert list(study_lab.dots(STORED, "with")) == [f"{norm}, rate {rate:g}" for norm, rate in study_lab.ARMS]
    for rate, arm in itertools.product(study.CONSTANT, study_lab.WARMUPS):
        assert len(STORED["constant"][f"{rate:g}"][arm]) == len(STORED["seeds"])
