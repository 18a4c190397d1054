"""The stored study of the clinic: complete, every sign separates its fault from all others, and a short repeat."""

from __future__ import annotations

import sys

import pytest
import torch

from studies import clinic_catalogue as study
from studies import clinic_ward
from transformer_lib.course.clinic import INSTRUMENTS, SIGNS, ward
from transformer_lib.course.clinic.recipe import Recipe, trained
from transformer_lib.course.lab import clinic_catalogue as study_lab

STORED = study_lab.load_results()


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_is_seen_on_every_seed_of_its_fault_and_nowhere_else(name):
    sign, found = SIGNS[name], STORED["found"]
    assert all(map(sign.present, found[name][sign.instrument]))
    assert [other for other in found if any(map(sign.present, found[other][sign.instrument]))] == [name]
    assert all(map(INSTRUMENTS[sign.instrument].abnormal, found[name][sign.instrument]))


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_a_healthy_model_is_normal_on_every_instrument(name):
    assert not any(map(INSTRUMENTS[name].abnormal, STORED["found"]["healthy"][name]))


def test_which_losses_are_higher():
    losses = {name: found["last loss"] for name, found in STORED["found"].items()}
    above = {name: zip(found, losses["healthy"], strict=True) for name, found in losses.items()}
    assert [name for name, pairs in above.items() if all(loss > healthy for loss, healthy in pairs)] == [
        "scores not scaled",
        "positions lost",
        "encoder not trained",
        "feed-forward left out",
        "gradients not cleared",
        "rate ten times too high",
        "rate a hundred times too low",
    ]


def test_measuring_again_finds_what_is_stored():
    found, then = study.measure("target not shifted", 1), STORED["found"]["target not shifted"]
    for name in (
        "first loss / ln V",
        "last loss",
        "training accuracy",
        "copies",
        "teacher-forced",
        "reverses",
        "row sums",
        "embedding factor",
        "score factor",
    ):
        assert found[name] == pytest.approx(then[name][1], abs=0.02), name


def test_one_batch_is_learned_by_heart_or_as_stored():
    found, then = study.overfit("target not shifted", 1), STORED["one batch"]["target not shifted"]
    assert found["loss"] == pytest.approx(then["loss"][1], abs=0.02)
    assert found["right"] == then["right"][1] == 0


def test_the_ward_that_is_written_is_the_one_that_is_read(tmp_path, monkeypatch):
    path = tmp_path / "ward.safetensors"
    short = clinic_ward.content(Recipe(steps=2))
    monkeypatch.setattr(clinic_ward, "WARD", path)
    monkeypatch.setattr(clinic_ward, "content", lambda: short)
    monkeypatch.setattr(sys, "argv", ["clinic_ward"])
    clinic_ward.main()
    monkeypatch.setattr(ward, "WARD", path)
    ward._stored.cache_clear()
    model, log = ward.load("positions lost")
    ward._stored.cache_clear()
    trained_model, trained_log = trained("positions lost", 0, Recipe(steps=2))
    assert log == trained_log
    for name, parameter in trained_model.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name))
