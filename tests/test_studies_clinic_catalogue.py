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


def test_the_stored_study_is_complete():
    assert list(STORED["found"]) == list(study.NAMES)
    for numbers in STORED["found"].values():
        assert list(numbers) == list(INSTRUMENTS)
        assert {len(values) for values in numbers.values()} == {5}
    assert {name: list(one) for name, one in STORED["recipes"].items()} == dict.fromkeys(
        study.RECIPES, list(study.CHANGES)
    )


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_is_seen_on_every_seed_of_its_fault_and_nowhere_else(name):
    sign, found = SIGNS[name], STORED["found"]
    assert all(map(sign.present, found[name][sign.instrument]))
    assert study.with_sign(found, name) == [name]
    assert study.detected(found, name, sign.instrument) == 5


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_a_healthy_model_is_normal_on_every_instrument(name):
    assert study.detected(STORED["found"], "healthy", name) == 0


def test_which_losses_are_higher():
    higher = [name for name in study.NAMES if study.higher_loss(STORED["found"], name)]
    assert higher == [
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
    assert {name: list(one) for name, one in STORED["one batch"].items()} == dict.fromkeys(
        study.NAMES, ["loss", "right"]
    )
    found, then = study.overfit("target not shifted", 1), STORED["one batch"]["target not shifted"]
    assert found["loss"] == pytest.approx(then["loss"][1], abs=0.02)
    assert found["right"] == then["right"][1] == 0


def test_another_recipe_is_another_run():
    assert study.retrain("healthy", 0, steps=2, n_heads=4) < 0.1


def test_numbers_are_lists_over_the_seeds(monkeypatch):
    monkeypatch.setattr(study, "measure", lambda name, seed: {"last loss": 0.5 + seed})
    monkeypatch.setattr(study, "overfit", lambda name, seed: {"loss": 0.1, "right": seed})
    monkeypatch.setattr(study, "retrain", lambda name, seed, **changes: seed / 4)
    content = study.measured([3, 4])
    assert content["found"]["healthy"] == {"last loss": [3.5, 4.5]}
    assert content["recipes"]["as in the clinic"]["healthy"] == [0.75, 1.0]
    assert content["one batch"]["healthy"] == {"loss": [0.1, 0.1], "right": [3, 4]}


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
