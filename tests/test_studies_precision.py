"""Training in bfloat16: a short run repeats, and what the stored runs say of its quality."""

from __future__ import annotations

from statistics import mean, stdev

import pytest
import torch

from transformer_lib.corpus import load_corpus
from transformer_lib.experiments import TEST_SPLITS, load_results
from transformer_lib.studies import precision, stored
from transformer_lib.studies.multi30k import README


@pytest.fixture(scope="module")
def results():
    return stored.read(precision.RESULTS)


def test_a_short_run_repeats_the_stored_one(results):
    losses = precision.short_run(load_corpus("context"))
    torch.testing.assert_close(losses, results["short"], atol=0.03, rtol=0)  # 16 bits round early
    assert losses != load_results()["short"]["transformer"]  # in 32 bits it is another run


def test_no_score_changes_by_more_than_the_seeds_do(results):
    assert results["seeds"] == [0, 1, 2]
    assert all(len(scores) == 3 for table in precision.compared(results).values() for scores in table.values())
    for split, (change, noise) in precision.differences(results).items():
        assert abs(change) <= noise, split
    assert precision.differences(results)["heldout"][1] < 0.01  # there the noise is small


def test_differences_are_those_of_the_means():
    runs = [{"scores": {split: {"exact match": [score]} for split in TEST_SPLITS}} for score in (0.2, 0.4, 0.9)]
    own = precision.compared({"bfloat16": runs})
    for split, (change, noise) in precision.differences({"bfloat16": runs}).items():
        full = own["float32"][split]
        assert change == pytest.approx(0.5 - mean(full))
        errors = [stdev(scores) / 3**0.5 for scores in ((0.2, 0.4, 0.9), full)]
        assert noise == pytest.approx(2 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5)


def test_the_readme_says_so(results):
    assert precision.sentence(results) in " ".join(README.read_text(encoding="utf-8").split())
