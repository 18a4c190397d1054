"""Cutting readings and replacing results: against masks and rows set by hand, and nothing is left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import transformer_lib as tl
from factories import SRC_LEN, TGT_LEN, make_model, sources, targets
from transformer_lib.model.interventions import masked

pytestmark = pytest.mark.fast
QUERY, KEY = 3, 1


@pytest.fixture
def model():
    return make_model(dtype=torch.float64)


def memory_with_mask(model, may):
    """Encode with an extra mask, by running the layers by hand."""
    src = sources()
    x = model.position(model.src_embedding(src) * model.config.d_model**0.5)
    for layer in model.encoder.layers:
        x = layer(x, tl.padding_mask(src, model.config.pad_id) & may)
    return model.encoder.norm(x)


def test_a_cut_is_an_entry_of_the_mask(model):
    may = torch.ones(SRC_LEN, SRC_LEN, dtype=torch.bool)
    may[QUERY, KEY] = False
    with tl.cut(model, query=QUERY, key=KEY):
        inside = model.encode(sources())
    torch.testing.assert_close(inside, memory_with_mask(model, may), rtol=0, atol=1e-12)
    with tl.cut(model, mask=may):
        torch.testing.assert_close(model.encode(sources()), inside, rtol=0, atol=1e-12)
    assert not torch.allclose(inside, model.encode(sources()))


@pytest.mark.parametrize(
    "where",
    [
        {"query": QUERY, "key": KEY},
        {"query": [0, QUERY], "key": KEY},
        {"query": QUERY},
        {"key": [KEY, 2]},
        {"query": QUERY, "key": KEY, "layer": 1},
        {"query": QUERY, "key": KEY, "head": 2},
        {"query": QUERY, "key": KEY, "layer": 0, "head": 1},
    ],
)
def test_what_is_cut_gets_no_weight_and_nothing_else_loses_its_right(model, where):
    with tl.record_attention(model) as before:
        model.encode(sources())
    with tl.cut(model, **where), tl.record_attention(model) as record:
        model.encode(sources())
    rows = torch.tensor(where.get("query", list(range(SRC_LEN)))).reshape(-1)
    columns = torch.tensor(where.get("key", list(range(SRC_LEN)))).reshape(-1)
    for n in range(2):
        name = f"encoder.layers.{n}.self_attention"
        expected = before[name] > 0  # padding stays hidden
        for head in range(3):
            if where.get("layer", n) == n and where.get("head", head) == head:
                expected[:, head, rows[:, None], columns] = False
        assert torch.equal(record[name] > 0, expected)
        assert not record[name].isnan().any()


@pytest.mark.parametrize("attention", ["decoder", "cross"])
def test_the_decoders_readings_can_be_cut(model, attention):
    with tl.record_attention(model) as before:
        model(sources(), targets())
    with tl.cut(model, query=QUERY, key=KEY, attention=attention), tl.record_attention(model) as record:
        model(sources(), targets())
    for name, weights in record.items():
        hit = name.startswith("decoder") and ("cross" in name) == (attention == "cross")
        expected = before[name] > 0
        if hit:
            expected[:, :, QUERY, KEY] = False
        assert torch.equal(weights > 0, expected)


def test_a_key_is_cut_while_decoding_step_by_step(model):
    with tl.cut(model, key=KEY, attention="cross"):
        ids = tl.greedy_decode(model, sources(), max_new_tokens=TGT_LEN)
        whole = model(sources(), ids[:, :-1]).argmax(dim=-1)
    open_rows = ids[:, 1:] != model.config.pad_id
    assert torch.equal(ids[:, 1:][open_rows], whole[open_rows])
    message = "query and mask must be None while decoding with a cache"
    with tl.cut(model, query=0, key=KEY, attention="decoder"), pytest.raises(ValueError, match=message):
        tl.greedy_decode(model, sources(), max_new_tokens=3)


def test_gradients_flow_around_a_cut(model):
    rows = torch.randn(1, SRC_LEN, model.config.d_model, dtype=torch.float64, requires_grad=True)
    with tl.cut(model, query=QUERY):
        out = model.encoder(rows)
    (gradient,) = torch.autograd.grad(out[0, QUERY].square().sum(), rows)
    assert gradient[0, QUERY].any() and not gradient[0, [n for n in range(SRC_LEN) if n != QUERY]].any()
    assert not gradient.isnan().any()


@pytest.mark.parametrize("stop", [False, True])
def test_nothing_is_left_behind(model, stop):
    before = model.encode(sources())
    try:
        with tl.cut(model, query=QUERY), tl.patch(model, "encoder", torch.zeros_like(before)):
            assert not model.encode(sources()).any()
            if stop:
                raise KeyError
    except KeyError:
        pass
    torch.testing.assert_close(model.encode(sources()), before, rtol=0, atol=0)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_patch_replaces_the_rows_named_and_no_others(model):
    other = model.encode(sources(seed=5))
    mine = model.encode(sources())
    with tl.patch(model, "encoder", other, positions=[0, QUERY]):
        patched = model.encode(sources())
    for n in range(SRC_LEN):
        source = other if n in (0, QUERY) else mine
        torch.testing.assert_close(patched[:, n], source[:, n], rtol=0, atol=0)


def test_a_patch_may_be_computed_from_the_output(model):
    block = model.decoder.layers[0].feed_forward
    x = torch.randn(2, 3, model.config.d_model, dtype=torch.float64, requires_grad=True)
    with tl.patch(model, "decoder.layers.0.feed_forward", lambda output: 2 * output):
        doubled = block(x)
    torch.testing.assert_close(doubled, 2 * block(x), rtol=0, atol=0)
    assert torch.autograd.grad(doubled.sum(), x)[0].any()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"query": SRC_LEN}, ValueError, f"query must be less than {SRC_LEN}"),
        ({"key": [0, 99]}, ValueError, "key must be less than .* got 99"),
        ({"query": -1}, ValueError, "query must be at least 0, got -1"),
        ({"query": "4"}, TypeError, "query must be an int"),
        ({"layer": 2}, ValueError, "layer must be less than 2, got 2"),
        ({"head": 3}, ValueError, "head must be less than 3, got 3"),
        ({"attention": "self"}, ValueError, "attention must be one of 'encoder', 'decoder', 'cross'"),
        ({"query": 1, "mask": torch.ones(2, 2, dtype=torch.bool)}, ValueError, "mask must come without query and key"),
        ({"mask": torch.ones(2, 2)}, TypeError, "mask must be boolean"),
        ({"mask": torch.ones(2, 2, dtype=torch.bool)}, ValueError, "mask must broadcast"),
    ],
)
def test_what_cannot_be_cut_is_said(model, arguments, error, message):
    with pytest.raises(error, match=message), tl.cut(model, **arguments):
        model.encode(sources())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("encoders", torch.zeros(1)), ValueError, "name must be a submodule of Transformer, got 'encoders'"),
        (("", torch.zeros(1)), ValueError, "name must be a submodule"),
        (("encoder", 3.0), TypeError, "value must be a torch.Tensor, got float"),
        (("encoder", torch.zeros(2, 1, 1)), ValueError, "value must have the shape of encoder's output"),
    ],
)
def test_what_cannot_be_patched_is_said(model, arguments, error, message):
    with pytest.raises(error, match=message), tl.patch(model, *arguments):
        model.encode(sources())


def test_a_position_outside_of_the_sentence_cannot_be_patched(model):
    value = torch.zeros_like(model.encode(sources()))
    message = f"positions must be less than {SRC_LEN}"
    with pytest.raises(ValueError, match=message), tl.patch(model, "encoder", value, positions=SRC_LEN):
        model.encode(sources())


def test_other_modules_are_refused():
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got str"), tl.cut("model", query=1):
        pass
    message = "model must have a module encoder.layers.0.self_attention, and Linear has none"
    with pytest.raises(ValueError, match=message), tl.cut(nn.Linear(2, 2), query=1):
        pass


def test_the_fast_path_refuses_a_model_that_is_cut(model):
    with tl.cut(model, query=QUERY), pytest.raises(ValueError, match="path"):
        tl.greedy_decode(model, sources(), max_new_tokens=3, path="fast")


def test_a_mask_of_one_attention_is_boolean():
    attention = tl.MultiHeadAttention(6, 2)
    with pytest.raises(TypeError, match="may must be boolean"), masked(attention, torch.ones(2, 2)):
        pass
