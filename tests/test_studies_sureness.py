"""How sure a translator is: what is measured is the model's own, and all seeds are stored."""

from __future__ import annotations

import pytest
import torch

from read_once import CORPUS
from studies import sureness as study
from transformer_lib.course.lab import sureness as study_lab
from transformer_lib.data.corpora import Corpus
from transformer_lib.decoding.translator import load_trained

STORED = study_lab.load_results()


def test_answers_are_those_of_the_model():
    translator, pairs = load_trained(), CORPUS["validation"][:3]
    right, sure, loss = study_lab.answers(translator, pairs)
    labels = sum(len(translator.tgt_tokenizer.encode(pair.tgt, eos=True)) for pair in pairs)
    assert len(right) == len(sure) == len(loss) == labels
    torch.testing.assert_close(loss[right], -sure[right].log())
    assert bool((loss[~right] >= -sure[~right].log()).all())


def test_a_short_run():
    few = Corpus("context", {"train": CORPUS["train"], "validation": CORPUS["validation"][:12]})
    curve = study.run(few, 0, pairs=35, looks=(2, 3))
    assert list(curve) == [*study.MEASURED, "always wrong, p"] and all(len(values) == 2 for values in curve.values())
    assert curve["loss"][1] < 20 and 0 <= curve["wrong, p"][1] <= 1


def test_the_average_loss_is_that_of_right_and_wrong_words():
    assert [run["seed"] for run in STORED["runs"]] == STORED["seeds"]
    for run in STORED["runs"]:
        for share, right, wrong, loss in zip(
            *(run[name] for name in ("right", "right, loss", "wrong, loss", "loss")), strict=True
        ):
            assert share * right + (1 - share) * wrong == pytest.approx(loss, abs=2e-3)
    steps, curves = study_lab.curves(STORED, "wrong, p")
    assert steps == list(study_lab.LOOKS) and curves == [run["wrong, p"] for run in STORED["runs"]]


def test_the_labels_that_stay_wrong_grow_as_sure_as_all_that_are_wrong():
    for run in STORED["runs"]:
        kept, wrong = run["always wrong, p"], run["wrong, p"]
        assert kept == pytest.approx(wrong, abs=0.04) and kept == sorted(kept)
