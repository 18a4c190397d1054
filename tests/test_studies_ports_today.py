"""The study of today's ports: what is stored, that it is found again, and that each slip is what it is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from studies import ports_today as study
from transformer_lib.course.lab import ports_today as study_lab
from transformer_lib.model import interop, modern

SLIPS = {
    "Llama": {"neighbouring pairs": 3, "ten times the base": 3, "heads shared in turns": 2},
    "Qwen3": {"neighbouring pairs": 3, "ten times the base": 3, "heads shared in turns": 2, "no QK-norm": 3},
    "Mixtral": {"neighbouring pairs": 3, "ten times the base": 3, "heads shared in turns": 2},
}
SLIPS["Mistral"] = SLIPS["Llama"] | {"window one longer": 3, "window one shorter": 3, "no window": 3}


STORED = study_lab.load_results()


@pytest.mark.parametrize("kind", study.KINDS)
def test_all_agree_and_every_slip_is_far_off(kind):
    found = STORED[kind]
    assert {name: len(each) for name, each in found["moved"].items()} == {"right": 3} | SLIPS[kind]
    assert max(found["moved"]["right"]) < 1e-5 and max(found["float64"]) < 1e-12
    assert found["stays"]["right"] == [1, 1, 1]
    assert min(found["spread of the logits"]) > 1
    wrong = [name for name in SLIPS[kind] if name != "ten times the base"]
    assert min(min(found["moved"][name]) for name in wrong) > 2
    assert min(found["moved"]["ten times the base"]) > 0.1


def test_a_trained_model_with_a_slip_is_worse_and_still_writes():
    assert len(STORED["trained"]) == len(study.TRAINED_SEEDS)
    for run in STORED["trained"]:
        right, *wrong = run.values()
        assert all(slip["nats"] > right["nats"] + 0.02 for slip in wrong)
        assert all(len(slip["says"].split()) > 3 for slip in run.values())


@pytest.mark.parametrize("kind", study.KINDS)
def test_what_is_stored_is_found_again(kind):
    pytest.importorskip("transformers")
    found = study.differences(kind, 0)
    for name, number in found["moved"].items():
        if name == "right":
            assert number < 1e-5
        else:
            assert number == pytest.approx(STORED[kind]["moved"][name][0], rel=0.1), name


def small(**changes):
    config = modern.Config(vocab_size=11, d_model=15, n_heads=6, n_kv_heads=3, d_head=4, n_layers=2, d_ff=7, **changes)
    torch.manual_seed(0)
    return study_lab.draw_anew(modern.LanguageModel(config), 0)


@torch.no_grad()
def test_heads_shared_in_turns_read_key_head_i_modulo_all():
    right, ids = small(), torch.arange(7)[None]
    wrong = study.shared_in_turns(right)
    # with a key head for each query head, laid out in turns, the same is said without sharing
    alone = modern.LanguageModel(replace(right.config, n_kv_heads=6))
    state = right.state_dict()
    for layer in range(2):
        for name in ("w_k", "w_v"):
            key = f"layers.{layer}.attention.{name}.weight"
            state[key] = state[key].unflatten(0, (3, 4))[[0, 1, 2, 0, 1, 2]].flatten(0, 1)
    alone.load_state_dict(state)
    torch.testing.assert_close(wrong(ids), alone(ids))
    assert (wrong(ids) - right(ids)).abs().max() > 0.1


@torch.no_grad()
def test_other_slips_keep_the_weights_and_change_one_thing():
    right, ids = small(window=3, qk_norm=True), torch.arange(9)[None]
    found = study.slips("Qwen3", right)
    changes = {
        "neighbouring pairs": {"pairs": "neighbours"},
        "ten times the base": {"rope_base": 100000.0},
        "window one longer": {"window": 4},
        "window one shorter": {"window": 2},
        "no window": {"window": None},
        "no QK-norm": {"qk_norm": False},
    }
    for name, change in changes.items():
        assert found[name].config == replace(right.config, **change)
        assert (found[name](ids) - right(ids)).abs().max() > 1e-3, name
        for key, weight in found[name].state_dict().items():
            assert torch.equal(weight, right.state_dict()[key])
    assert found["right"] is right


def test_a_trained_model_is_measured_with_each_slip(monkeypatch):
    model, first = study.trained(0, steps=2), next(study.masks.heldout())[:7]
    monkeypatch.setattr(study.masks, "heldout", lambda: iter([first]))
    found = study.written(model, number=3)
    assert list(found) == ["right", "neighbouring pairs", "window one longer", "window one shorter"]
    for slip in found.values():
        assert 4 < slip["nats"] < 20 and 0 <= slip["grammatical"] <= 1 and isinstance(slip["says"], str)


def test_all_kinds_are_measured(monkeypatch):
    pytest.importorskip("transformers")
    for module in (study, study_lab):
        monkeypatch.setattr(module, "MODELS", study_lab.MODELS[2:])
    monkeypatch.setattr(study, "TRAINED_SEEDS", ())
    found = study.measure([0])
    assert found["versions"]["torch"] == torch.__version__ and len(found["Qwen3"]["moved"]["right"]) == 1


def test_a_window_slip_moves_nothing_in_a_shorter_text():
    config = small(norm="rms", feed_forward="swiglu", window=5).config
    assert study_lab.moved_by(config, {"window": 6}, 0.3, 5) == 0
    assert study_lab.moved_by(config, {"window": 6}, 0.3, 13) > 0.1
    assert study_lab.moved_by(config, {"pairs": "neighbours"}, 0.3, 5) > 0.1
    assert study_lab.moved_by(config, {}, 0.3, 13) == 0


def test_llama_3_1_has_scaled_rotary_positions_and_nothing_else_that_is_new():
    scaled = interop.hf_config(study_lab.LLAMA_31)
    assert (scaled.rope_scaling.factor, scaled.rope_scaling.original_length) == (8, 8192)
    plain = study_lab.LLAMA_31 | {"rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0}}
    assert interop.hf_config(plain).rope_base == 500_000
    assert interop.hf_config(plain) == replace(scaled, rope_scaling=None)
