"""The study of senses: what each encoder may read, how answers are judged, and a short run against what is stored."""

from __future__ import annotations

import pytest
import torch

from studies import senses as study
from transformer_lib.course.lab import senses as study_lab

STORED = study_lab.load_results()


@pytest.fixture(scope="module")
def loaded():
    return study_lab.load_senses()


def test_the_places_and_labels_are_those_of_the_sentences(loaded):
    tokenizer, senses, splits = loaded
    assert len(senses) == 46
    for split in splits.values():
        ids = split.ids[torch.arange(len(split.ids)), split.places]
        assert [tokenizer.words[i] for i in ids.tolist()] == [pair.word for pair in split.pairs]
        assert [senses[i] for i in split.labels.tolist()] == [(pair.word, pair.sense) for pair in split.pairs]
        assert split.candidates[torch.arange(len(split.ids)), split.labels].all()
    gaps = [pair.gap for pair in splits["heldout"].pairs]
    groups = splits["heldout"].groups
    assert groups["cue before"].tolist() == [gap < 0 for gap in gaps]
    assert (groups["cue before"] ^ groups["cue after"]).all()


@pytest.mark.parametrize("kind", study.KINDS)
def test_each_kind_reads_what_its_name_says(kind, loaded):
    torch.manual_seed(0)
    tagger, place = study.SenseTagger(kind, len(loaded[0]), 46), torch.tensor([3])
    ids = torch.tensor([[5, 7, 11, 13, 17, 19, 23]])
    before, noticed = tagger(ids, place), []
    for j in range(7):
        changed = ids.clone()
        changed[0, j] = 29
        noticed.append(not torch.allclose(tagger(changed, place), before, atol=1e-6))
    wanted = {"no layer": [3], "self only": [3], "left side only": [0, 1, 2, 3]}.get(kind, list(range(7)))
    assert [j for j, seen in enumerate(noticed) if seen] == wanted
    padded = torch.cat([ids, torch.zeros(1, 2, dtype=torch.long)], dim=1)
    torch.testing.assert_close(tagger(padded, place), before)


def test_only_the_words_own_senses_are_compared(loaded):
    split = loaded[2]["hard"]

    def scores(ids, places):
        others = 100.0 * (~split.candidates)  # senses of other words score highest, and do not count
        return others + torch.nn.functional.one_hot(split.labels, 46)

    assert study.choices(scores, split).all()


def test_the_majority_is_the_stored_one_and_near_one_over_the_senses():
    assert round(study.majority(), 3) == STORED["majority"]
    assert 1 / 3 < STORED["majority"] < 1 / 2


def test_a_short_run_finds_what_is_stored():
    for kind in ("one layer", "no layer"):
        for group, (value,) in study.shares(kind, [1]).items():
            assert value == pytest.approx(STORED["accuracy"][kind][group][1], abs=0.12 if group == "hard" else 0.03)
