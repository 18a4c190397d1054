"""Interventions on a translator, each against what it must do to a small model; and the stored study."""

from __future__ import annotations

import copy
import sys

import pytest
import torch

import transformer_lib as tl
from factories import make_model, random_ids
from transformer_lib.studies import heads as study
from transformer_lib.studies import interventions as change
from transformer_lib.studies import reversal


@pytest.fixture(scope="module")
def trained():
    return tl.load_trained()


@pytest.fixture(scope="module")
def heldout():
    return tl.load_corpus("context")["heldout"]


@pytest.fixture(scope="module")
def it(trained, heldout):
    return change.Questions(trained, [pair for pair in heldout if pair.word == "it"][:23])


@pytest.fixture(scope="module")
def noun(trained, heldout):
    return change.Questions(trained, [pair for pair in heldout if pair.word != "it"][:17])


def test_questions_find_the_word_and_its_cue(noun):
    assert len(noun) == 17 and noun.right.sum() == 17
    for words, pair, word, cue in zip(noun.words, noun.pairs, noun.word, noun.cue, strict=True):
        assert (words[word], words[cue]) == (pair.word, pair.cue)


def test_the_margin_is_the_difference_of_the_log_probabilities(trained, noun):
    for pair, margin in zip(noun.pairs[:5], change.margins(trained.model.eval(), noun)[:5], strict=True):
        texts = [pair.tgt, *pair.contrast]
        log_p = trained.log_probabilities([pair.src] * len(texts), texts).sum(dim=1)
        torch.testing.assert_close(margin, log_p[0] - log_p[1:].max(), rtol=0, atol=1e-3)


def test_the_nouns_of_it_are_the_one_meant_and_the_other(it):
    meant, other = change.nouns(it)
    for words, pair, m, o in zip(it.words, it.pairs, meant, other, strict=True):
        assert m != o and not {words[m], words[o]} & {"it", "the", pair.cue}
    dog = next(i for i, pair in enumerate(it.pairs) if pair.sense == "das Pferd")
    assert it.words[dog][meant[dog]] == "horse"


def test_a_silent_head_is_one_with_a_zero_matrix():
    model, x = make_model(), torch.randn(5, 7, 30)
    layer = model.encoder.layers[1].self_attention
    twin, before = copy.deepcopy(layer), layer(x, x, x)
    with torch.no_grad():
        twin.w_o.weight[:, 10:20] = 0
    with change.silenced(layer, 1):
        torch.testing.assert_close(layer(x, x, x), twin(x, x, x))
    torch.testing.assert_close(layer(x, x, x), before)


def test_a_masked_entry_is_not_read_in_the_head_named():
    model, src = make_model(), random_ids(23, 5, 7)
    may = torch.ones(5, 3, 7, 7, dtype=torch.bool)
    may[2, 1, 3, 5] = False
    with change.masked(model.encoder.layers[0].self_attention, may), tl.record_attention(model) as record:
        model.encode(src)
    weights = record["encoder.layers.0.self_attention"]
    assert weights[2, 1, 3, 5] == 0 and (weights > 0).sum() == weights.numel() - 1


def test_cutting_and_hiding_reach_every_layer(trained, it):
    model, here = trained.model.eval(), torch.arange(len(it))
    with change.cut(model, it, it.word, it.cue), tl.record_attention(model) as record:
        model.encode(it.src)
    assert all((grid[here, :, it.word, it.cue] == 0).all() for grid in record.values()) and len(record) == 2
    with change.hidden(model, it, it.cue), tl.record_attention(model) as record:
        change.margins(model, it)
    crossed = [grid for name, grid in record.items() if "cross" in name]
    assert len(crossed) == 2
    for grid in crossed:
        assert (grid[torch.arange(len(it.owner)), :, :, it.cue[it.owner]] == 0).all()


def test_a_donor_differs_in_the_deciding_word_alone_and_turns_the_decision(trained, noun):
    donor = change.donors(trained, noun, tl.load_corpus("context")["train"])
    differs = donor != noun.src
    assert differs.sum() == 17 and differs[torch.arange(17), noun.cue].all()
    assert change.flipped(trained.model, noun, donor) > 0.9
    assert change.flipped(trained.model, noun, noun.src, noun.word) == 0


def test_the_row_of_the_pronoun_writes_it(trained, it):
    rows = change.pronoun_rows(trained, it)
    assert [tuple(grid.shape[:2]) for grid in rows.values()] == [(23, 4)] * 2
    for grid in rows.values():
        torch.testing.assert_close(grid.sum(dim=-1), torch.ones(23, 4))


def test_the_stored_study_is_complete():
    stored = study.load_results()
    assert list(stored["models"]) == ["course", "seed 1", "seed 2", "seed 1, one pass", "seed 2, one pass"]
    assert stored["command"] == "python -m transformer_lib.studies.heads --seeds 1 2"
    for found in stored["models"].values():
        assert all(len(grid) == 6 for grid in found["head silenced"].values())


def test_measuring_again_finds_what_is_stored(trained, monkeypatch):
    monkeypatch.setattr(study, "head_effects", lambda model, asked: {})
    found, stored = study.measure(trained, tl.load_corpus("context")), study.load_results()["models"]["course"]
    for key in ("right", "cut", "hidden", "flipped, it", "flipped, noun"):
        assert found[key] == pytest.approx(stored[key], abs=0.02)


def test_the_command_writes_what_is_loaded(tmp_path, monkeypatch):
    path = tmp_path / "heads.json"
    monkeypatch.setattr(study, "measure", lambda translator, corpus: {"right": {"noun": 0.5}})
    monkeypatch.setattr(study.experiments, "train_translator", lambda *args, **options: None)
    monkeypatch.setattr(sys, "argv", ["heads", "--seeds", "5", "--results", str(path)])
    study.main()
    assert list(study.load_results(path)["models"]) == ["course", "seed 5", "seed 5, one pass"]


def test_a_reversed_source_is_the_answer_and_the_anti_diagonal_is_counted():
    src, tgt_in, tgt_out = reversal.reversal(7, torch.Generator().manual_seed(3))
    assert torch.equal(src.flip(1), tgt_out) and torch.equal(tgt_in[:, 1:], tgt_out[:, :-1])
    assert reversal.on_anti_diagonal(torch.eye(6).flip(1)) == 1.0
    assert reversal.on_anti_diagonal(torch.eye(6)) == 0.0
