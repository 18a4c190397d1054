"""The study of the exported translator: what is stored, and a part of it again."""

from __future__ import annotations

import pytest

from studies import exported as study
from transformer_lib.course.lab import exported as study_lab

SENTENCES = {"validation": 1064, "heldout": 1064, "compositional": 1064, "hard": 920}


STORED = study_lab.load_results()


def test_float32_changes_no_sentence_of_4112():
    assert {split: found["sentences"] for split, found in STORED["splits"].items()} == SENTENCES
    for found in STORED["splits"].values():
        for way in study.WAYS:
            assert found["float32"][way] == {"same": found["sentences"], "exact": found["ours"][way]}
        assert found["float32"]["loss"] == pytest.approx(found["ours"]["loss"], abs=2e-5)
        assert found["float32"]["changed"] == []


def test_int8_takes_a_quarter_and_changes_a_few_hard_sentences():
    sizes = STORED["bytes"]
    assert sizes["ours"] < sizes["float32"] < 1.05 * sizes["ours"]
    assert 0.25 * sizes["ours"] < sizes["int8"] < 0.3 * sizes["ours"]
    for split, found in STORED["splits"].items():
        eight = found["int8"]
        assert found["sentences"] - eight["greedy"]["same"] == len(eight["changed"]) <= 0.03 * found["sentences"]
        assert 0 < eight["loss"] - found["ours"]["loss"] < 0.002
        assert bool(eight["changed"]) == (split == "hard")
        right = sum(one["theirs"] == one["tgt"] for one in eight["changed"])
        wrong = sum(one["ours"] == one["tgt"] for one in eight["changed"])
        assert eight["greedy"]["exact"] == found["ours"]["greedy"] + right - wrong


def test_a_part_is_found_again():
    pytest.importorskip("ctranslate2", reason='needs pip install -e ".[deploy]"')
    found = study.measure(every=29)
    assert found["bytes"] == STORED["bytes"]
    for split, row in found["splits"].items():
        assert row["sentences"] == len(range(0, SENTENCES[split], 29))
        assert row["float32"]["greedy"] == {"same": row["sentences"], "exact": row["ours"]["greedy"]}
        assert row["float32"]["beam"]["same"] == row["sentences"]
        assert row["int8"]["greedy"]["same"] >= row["sentences"] - 2  # another version may round otherwise
        assert 0 < abs(row["int8"]["loss"] - row["ours"]["loss"]) < 0.005
