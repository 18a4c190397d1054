from __future__ import annotations

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import BATCH, SRC_LEN, TGT_LEN, make_model, sources, targets
from transformer_lib.model.recording import record_attention

pytestmark = pytest.mark.fast

NAMES = [
    f"{stack}.layers.{i}.{kind}"
    for stack, kinds in (("encoder", ["self"]), ("decoder", ["self", "cross"]))
    for i in range(2)
    for kind in (f"{k}_attention" for k in kinds)
]


def test_names_and_shapes():
    model = make_model()
    with tl.record_attention(model) as record:
        model(sources(), targets())
    assert list(record) == NAMES
    for name, weights in record.items():
        lengths = {"encoder": (SRC_LEN, SRC_LEN), "decoder": (TGT_LEN, TGT_LEN)}[name.split(".")[0]]
        lengths = (TGT_LEN, SRC_LEN) if "cross" in name else lengths
        assert weights.shape == (BATCH, 3, *lengths) and not weights.requires_grad


def test_the_weights_are_those_that_were_used():
    model = make_model()
    layer, seen = model.encoder.layers[0].self_attention, []
    layer.register_forward_pre_hook(lambda _, args: seen.append(args))
    with record_attention(model) as record:
        model.encode(sources())
    weights = layer(*seen[0], return_weights=True)[1]
    torch.testing.assert_close(record["encoder.layers.0.self_attention"], weights)
    assert not weights[1, :, :, -1].any()  # sentence 1 is one word shorter: its last key is padding


def test_all_calls_are_kept_in_order():
    model = make_model()
    with record_attention(model) as record:
        first = model.encode(sources(seed=3))
        second = model.encode(sources(seed=4))
    calls = record.calls["encoder.layers.1.self_attention"]
    assert len(calls) == 2 and torch.equal(calls[1], record["encoder.layers.1.self_attention"])
    assert not torch.equal(calls[0], calls[1]) and not torch.equal(first, second)


def test_decoding_records_one_call_per_step():
    model = make_model()
    with record_attention(model) as record:
        tl.greedy_decode(model, sources(), max_new_tokens=5, stop_at_eos=False)
    calls = record.calls["decoder.layers.0.self_attention"]
    assert [tuple(weights.shape) for weights in calls] == [(BATCH, 3, 1, step) for step in range(1, 6)]


def test_nothing_is_recorded_outside():
    model = make_model()
    with record_attention(model) as record:
        pass
    model.encode(sources())
    assert record == {} and record.calls == {}


def test_an_error_ends_the_recording():
    model = make_model()
    with pytest.raises(ValueError, match="src must have 2 axes"), record_attention(model):
        model.encode(sources()[0])
    assert all(m.recorder is None for m in model.modules() if isinstance(m, tl.MultiHeadAttention))


def test_recordings_may_nest():
    model = make_model()
    with record_attention(model) as outer:
        with record_attention(model) as inner:
            model.encode(sources(seed=3))
        model.encode(sources(seed=4))
    name = "encoder.layers.0.self_attention"
    assert len(inner.calls[name]) == len(outer.calls[name]) == 1
    assert not torch.equal(inner[name], outer[name])


def test_what_has_no_attention_is_refused():
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, got str"), record_attention("model"):
        pass
    message = "model must contain a MultiHeadAttention, and Linear has none"
    with pytest.raises(ValueError, match=message), record_attention(nn.Linear(2, 3)):
        pass


def test_layers_and_rows_may_be_chosen():
    model = make_model()
    with record_attention(model) as whole:
        model(sources(), targets())
    with record_attention(model, layer=1, query=[4, 0]) as record:
        model(sources(), targets())
    assert list(record) == [name for name in NAMES if ".1." in name]
    for name, weights in record.items():
        torch.testing.assert_close(weights, whole[name][:, :, [4, 0]])
        assert weights.untyped_storage().nbytes() == weights.numel() * 4
    assert all(part.recorder is None for part in model.modules() if isinstance(part, tl.MultiHeadAttention))
    with (
        pytest.raises(ValueError, match="layer must be one that has attention, got 2"),
        record_attention(model, layer=2),
    ):
        pass
