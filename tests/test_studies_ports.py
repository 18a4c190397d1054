"""The study of ports: what is stored, and that it is found again where `transformers` is there."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from torch import nn

from studies import ports as study
from transformer_lib.course.lab import ports as study_lab

SLIPS = {
    "GPT-2": ["exact gelu", "relu", "no biases in the attention", "output projection not transposed", "no causal mask"],
    "BERT": ["ε = 1e-5", "no padding mask", "causal mask", "all segments 0"],
}


@pytest.fixture(scope="module")
def stored() -> dict:
    return study_lab.load_results()


@pytest.mark.parametrize("kind", SLIPS)
def test_both_models_agree_and_slips_show_where_all_is_drawn_anew(stored, kind):
    found = stored[kind]
    for weights in study_lab.WEIGHTS:
        assert list(found[weights]) == ["spread of the logits", "right", *SLIPS[kind]]
        assert all(len(numbers) == len(study_lab.MODELS) for numbers in found[weights].values())
        assert max(found[weights]["right"]) < 1e-5
    assert max(found["float64"]) < 1e-12
    assert min(min(found["drawn anew"][slip]) for slip in SLIPS[kind]) > 1e-4
    assert min(found["drawn anew"]["spread of the logits"]) > 1 > max(found["as drawn"]["spread of the logits"])


def test_weights_as_drawn_let_the_wrong_gelu_pass(stored):
    assert max(stored["GPT-2"]["as drawn"]["exact gelu"]) < 1e-5
    assert min(stored["GPT-2"]["drawn anew"]["exact gelu"]) > 50 * max(stored["GPT-2"]["drawn anew"]["right"])


@pytest.mark.parametrize("kind", SLIPS)
def test_what_is_stored_is_found_again(stored, kind):
    pytest.importorskip("transformers")
    found = study.differences(kind, 0, "drawn anew")
    for what, number in found.items():
        if what == "right":
            assert number < 1e-5
        else:
            assert number == pytest.approx(stored[kind]["drawn anew"][what][0], rel=0.1), what


def test_drawing_anew_leaves_no_parameter_as_it_was():
    model = nn.Sequential(nn.Linear(50, 50), nn.LayerNorm(50))
    study_lab.draw_anew(model, 0)
    centres = {"0.weight": 0, "0.bias": 0, "1.weight": 1, "1.bias": 0}
    for name, parameter in model.named_parameters():
        assert abs(parameter.mean().item() - centres[name]) < 0.15
        assert parameter.std().item() == pytest.approx(study_lab.SPREAD, rel=0.35)


def test_the_command_stores_what_is_measured(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    path = tmp_path / "ports.json"
    monkeypatch.setattr(study_lab, "MODELS", study_lab.MODELS[2:])
    monkeypatch.setattr(sys, "argv", ["ports", "--results", str(path)])
    study.main()
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["versions"]["torch"] == torch.__version__ and len(content["BERT"]["as drawn"]["right"]) == 1
    assert content["command"] == "python -m studies.ports --seeds 0"
