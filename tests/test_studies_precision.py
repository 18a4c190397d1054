"""Training in bfloat16: a short run repeats, and what the stored runs say of its quality."""

from __future__ import annotations

from statistics import mean, stdev

import pytest
import torch

from studies import precision
from studies.translators import short_run
from transformer_lib.course.lab import stored
from transformer_lib.course.lab.translators import TEST_SPLITS
from transformer_lib.data.corpora import load_corpus


@pytest.fixture(scope="module")
def results():
    return stored.read(precision.RESULTS)


def test_a_short_run_repeats_the_stored_one(results):
    losses = short_run(load_corpus("context"), "transformer", precision="bfloat16")
    torch.testing.assert_close(losses, results["short"], atol=0.03, rtol=0)  # 16 bits round early
    assert losses != short_run(load_corpus("context"), "transformer")  # another run


def test_what_the_page_concludes(results):
    changes, table = precision.differences(results), precision.compared(results)
    assert results["seeds"] == [0, 1, 2] and all(len(scores) == 3 for scores in table["bfloat16"].values())
    for split in ("heldout", "compositional"):  # a hundredth at most, and no more than the seeds explain
        assert abs(changes[split][0]) <= min(changes[split][1] + 1e-4, 0.011)
    assert abs(changes["hard"][0]) <= changes["hard"][1]


def test_differences_are_taken_seed_by_seed():
    runs = [{"scores": {split: {"exact match": [score]} for split in TEST_SPLITS}} for score in (0.2, 0.4, 0.9)]
    full = precision.compared({"bfloat16": runs})["float32"]
    for split, (change, noise) in precision.differences({"bfloat16": runs}).items():
        steps = [low - high for low, high in zip((0.2, 0.4, 0.9), full[split], strict=True)]
        assert change == pytest.approx(0.5 - mean(full[split]))
        assert noise == pytest.approx(2 * stdev(steps) / 3**0.5)
