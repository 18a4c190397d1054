"""The study of ports: what is stored, and that it is found again where `transformers` is there."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from studies import ports as study
from transformer_lib.course.lab import ports as study_lab

SLIPS = {
    "GPT-2": ["exact gelu", "relu", "no biases in the attention", "output projection not transposed", "no causal mask"],
    "BERT": ["ε = 1e-5", "no padding mask", "causal mask", "all segments 0"],
}


STORED = study_lab.load_results()


@pytest.mark.parametrize("kind", SLIPS)
def test_both_models_agree_and_slips_show_where_all_is_drawn_anew(kind):
    found = STORED[kind]
    for weights in study_lab.WEIGHTS:
        assert list(found[weights]) == ["spread of the logits", "right", *SLIPS[kind]]
        assert all(len(numbers) == len(study_lab.MODELS) for numbers in found[weights].values())
        assert max(found[weights]["right"]) < 1e-5
    assert max(found["float64"]) < 1e-12
    assert min(min(found["drawn anew"][slip]) for slip in SLIPS[kind]) > 1e-4
    assert min(found["drawn anew"]["spread of the logits"]) > 1 > max(found["as drawn"]["spread of the logits"])


def test_weights_as_drawn_let_the_wrong_gelu_pass():
    assert max(STORED["GPT-2"]["as drawn"]["exact gelu"]) < 1e-5
    assert min(STORED["GPT-2"]["drawn anew"]["exact gelu"]) > 50 * max(STORED["GPT-2"]["drawn anew"]["right"])


@pytest.mark.parametrize("kind", SLIPS)
def test_what_is_stored_is_found_again(kind):
    pytest.importorskip("transformers")
    found = study.differences(kind, 0, "drawn anew")
    for what, number in found.items():
        if what == "right":
            assert number < 1e-5
        else:
            assert number == pytest.approx(STORED[kind]["drawn anew"][what][0], rel=0.1), what


def test_drawing_anew_leaves_no_parameter_as_it_was():
    model = nn.Sequential(nn.Linear(50, 50), nn.LayerNorm(50))
    study_lab.draw_anew(model, 0)
    centres = {"0.weight": 0, "0.bias": 0, "1.weight": 1, "1.bias": 0}
    for name, parameter in model.named_parameters():
        assert abs(parameter.mean().item() - centres[name]) < 0.15
        assert parameter.std().item() == pytest.approx(study_lab.SPREAD, rel=0.35)


def test_all_kinds_and_weights_are_measured(monkeypatch):
    pytest.importorskip("transformers")
    for module in (study, study_lab):
        monkeypatch.setattr(module, "MODELS", study_lab.MODELS[2:])
    found = study.measure([0])
    assert found["versions"]["torch"] == torch.__version__ and len(found["BERT"]["as drawn"]["right"]) == 1


def test_our_own_port_is_compared_where_transformers_is_there(monkeypatch):
    pytest.importorskip("transformers")
    off = study_lab.compared()
    assert list(off) == ["GPT-2", "BERT"] and max(float(value) for value in off.values()) < 1e-5
    monkeypatch.setattr(study_lab.importlib.util, "find_spec", lambda name: None)
    assert study_lab.compared() is None
