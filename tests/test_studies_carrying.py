"""How a noun's sense is carried: what happens at each sub-layer, what a probe and a decoder are left with, a file."""

from __future__ import annotations

import json

import pytest
import torch

from read_once import TRAINED
from studies import carrying as study
from transformer_lib.course.lab import carrying as lab
from transformer_lib.course.lab import sense_vectors

STORED = lab.load_results()


@pytest.fixture(scope="module")
def reader():
    return lab.Reader(TRAINED, every=53, asked_every=13)


def test_the_stations_lead_from_the_embeddings_through_both_layers():
    src = TRAINED.src_tokenizer.encode_batch(["The woman saw the bank.", "The woman saw the bank near the money."])
    stations = lab.stations(TRAINED, src)
    assert len(stations) == 1 + len(lab.SUBLAYERS) and all(x.shape == (2, 9, 96) for x in stations)
    torch.testing.assert_close(stations[-1], TRAINED.model.encode(src))
    wanted = sense_vectors.levels(TRAINED, src)
    for station, level in zip(stations[::2], wanted, strict=True):
        torch.testing.assert_close(station, level)


def test_the_senses_start_together_and_end_as_far_apart_as_they_are_in_the_memory():
    at, texts = lab.gaps(TRAINED, "bank"), sense_vectors.sentences("bank")
    assert len(at) == 5 and abs(at[0]) < 1e-4
    means = [sense_vectors.layer_outputs(TRAINED, group)[-1].mean(dim=0) for group in texts.values()]
    assert 0 < at[4] <= (means[1] - means[0]).norm().item() + 1e-4


def test_gaps_refuses_nouns_that_it_cannot_measure():
    with pytest.raises(ValueError, match="word must have two senses, got 'bow' with 3"):
        lab.gaps(TRAINED, "bow")
    with pytest.raises(ValueError, match="word must be one of"):
        lab.gaps(TRAINED, "garden")
    assert len(lab.words()) == 20 and "bow" not in lab.words()


def test_the_largest_step_is_one_forward():
    assert lab.largest_step([0, 2, 5, 6, 3]) == "feed-forward 1"
    assert lab.largest_step([0, -7, 0, 0, 0]) == "feed-forward 1"
    assert lab.nouns_at("attention 2", {"a": [0, 1, 1, 3, 3], "b": [0, 5, 5, 5, 5], "c": [0, 0, 0, 1, 1.5]}) == 2


def test_both_cuts_hold_at_once(reader):
    made = lab.interventions(reader)

    def blind(asked):
        return lab.cuts.hidden(reader.model, asked, asked.cue)

    closed = reader.decides_under(made["cut in both"], blind)
    assert len(closed) == len(reader.batch) == 71 and closed.double().mean() < 0.6
    assert reader.decides_under(blind).double().mean() > 0.8 and reader.decides_under().all()


def test_the_probe_guesses_under_the_cut_alone(reader):
    made = lab.interventions(reader)
    assert (
        lab.share(reader.read_under(made["nothing cut"]))
        > 0.9
        > 0.7
        > lab.share(reader.read_under(made["cut in both"]))
    )


def test_ours_are_the_first():
    assert lab.ours_and_others({"a": [2, 3, 5], "b": [7, 11, 13]}) == (
        {"a": [2], "b": [7]},
        {"a": [3, 5], "b": [11, 13]},
    )
    said = lab.decisions(STORED["models"])
    assert len(said) == 5 and all(len(shares) == 5 for shares in said.values())


def test_the_file_has_all_models_and_ours_can_be_measured_again():
    assert [*STORED["models"]] == ["course", "seed 1", "seed 2", "seed 3", "seed 4"]
    for word in ("bank", "letter"):
        assert lab.gaps(TRAINED, word) == pytest.approx(STORED["models"]["course"]["gaps"][word], abs=0.02)


def test_the_study_measures_what_the_file_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(study.lab, "measure", lambda translator: {"translator": translator})
    monkeypatch.setattr("studies.translators.load_trained", lambda: "ours")
    monkeypatch.setattr(study, "translator_of", lambda seed, weights: f"{seed} of {weights}")
    file = tmp_path / "carrying.json"
    study.STUDY.main(["--seeds", "7", "11", "--results", str(file), "--weights", "here"])
    models = json.loads(file.read_text(encoding="utf-8"))["models"]
    assert models == {
        "course": {"translator": "ours"},
        "seed 7": {"translator": "7 of here"},
        "seed 11": {"translator": "11 of here"},
    }


def test_weights_at_hand_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "trained", lambda corpus, seed: f"trained from {seed}")
    TRAINED.save(tmp_path / "seed3.safetensors")
    assert study.translator_of(5, tmp_path) == "trained from 5" == study.translator_of(5)
    read = study.translator_of(3, tmp_path)
    assert torch.equal(
        read.model.encoder.layers[0].self_attention.w_q.weight,
        TRAINED.model.encoder.layers[0].self_attention.w_q.weight,
    )
