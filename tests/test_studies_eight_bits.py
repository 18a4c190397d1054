"""The study of eight bits: a short run repeats, and what is stored holds."""

from __future__ import annotations

import pytest

import transformer_lib as tl
from studies import eight_bits as study
from transformer_lib.course.lab import eight_bits as study_lab
from transformer_lib.course.lab import translators

STORED = study_lab.load_results()


def test_changed_sentences_are_counted():
    translator, pairs = tl.load_trained(), tl.load_corpus("context")["heldout"][:31]
    coarse = study.with_rounded_weights(translator, "tensor", 3)
    found = study.compare(translator, pairs, {"same": translator, "coarse": coarse})
    said, other = (one.translate([pair.src for pair in pairs]) for one in (translator, coarse))
    assert found["changed"] == {"same": 0, "coarse": sum(a != b for a, b in zip(said, other, strict=True))}
    assert found["changed"]["coarse"] > 10 and found["coarse"]["loss"] > found["float32"]["loss"] + 0.5
    assert found["same"] == found["float32"]
    log_probabilities = translator.log_probabilities([p.src for p in pairs], [p.tgt for p in pairs])
    mean = -log_probabilities.sum() / (log_probabilities != 0).sum()
    assert found["float32"]["loss"] == pytest.approx(mean.item(), abs=1e-4)


def test_what_the_notebook_says_is_stored():
    for run in STORED["runs"]:
        for one in run["splits"].values():
            assert one["changed"]["row"] <= 0.02 * one["sentences"]
            assert abs(one["row"]["loss"] - one["float32"]["loss"]) < 0.01
        assert run["splits"]["heldout"]["changed"]["row"] == 0
        right = [row["row"]["right"] for row in run["fewer"]]
        assert right[0] == run["splits"]["heldout"]["row"]["right"] and right[-1] < 0.1 * right[0]


def test_another_seed_is_trained(monkeypatch):
    asked = []
    monkeypatch.setattr(translators, "train_translator", lambda *_, **options: asked.append(options))
    monkeypatch.setattr(study, "measure", lambda translator, corpus: translator)
    corpus = {"train": tl.load_corpus("context")["train"][:50]}
    found = study.run_seed(3, corpus)
    assert asked == [{"seed": 3, "progress": False}] and found.model.config.d_model == 96
    assert study.run_seed(0, corpus).model.config == tl.load_trained().model.config and len(asked) == 1


def test_what_is_stored_of_each_seed():
    assert STORED["bytes"]["row"] < 0.27 * STORED["bytes"]["float32"]
    for run in STORED["runs"]:
        assert list(run["splits"]) == list(study.SPLITS) and [row["bits"] for row in run["fewer"]] == list(study.FEWER)
