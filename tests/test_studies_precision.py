"""Training in bfloat16: a short run repeats, and what the stored runs say of its quality."""

from __future__ import annotations

from statistics import mean

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


def test_it_learns_as_well_as_in_float32(results):
    table = precision.compared(results)
    assert results["seeds"] == [0, 1, 2] and all(len(runs) == 3 for runs in table["bfloat16"].values())
    for split in TEST_SPLITS:
        half_interval = max(
            (run["scores"][split]["exact match"][2] - run["scores"][split]["exact match"][1]) / 2
            for run in load_results()["transformer"]
        )
        spread = max(table["float32"][split]) - min(table["float32"][split])
        assert abs(mean(table["bfloat16"][split]) - mean(table["float32"][split])) <= half_interval + spread


def test_the_readme_says_so(results):
    assert precision.sentence(results) in " ".join(README.read_text(encoding="utf-8").split())
