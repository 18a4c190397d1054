"""Cutting readings and replacing results: against masks and rows set by hand, and nothing is left behind."""

from __future__ import annotations

import numpy as np
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
        {"query": QUERY, "key": KEY, "layer": [0, 1], "head": [0, 2]},
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
            named = {"layer": n, "head": head}
            if all(number in torch.tensor(where.get(name, number)) for name, number in named.items()):
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
    for cached in (True, False):  # a token that is not there yet cannot be read anyway
        with tl.cut(model, key=2, attention="decoder"):
            ids = tl.greedy_decode(model, sources(), max_new_tokens=TGT_LEN, use_cache=cached)
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
        ({"head": 3, "key": 1}, ValueError, "head must be less than 3, got 3"),
        ({"attention": "self"}, ValueError, "attention must be one of 'encoder', 'decoder', 'cross'"),
        ({"query": 1, "mask": torch.ones(2, 2, dtype=torch.bool)}, ValueError, "mask must come without query and key"),
        ({"mask": torch.ones(2, 2)}, TypeError, "mask must be boolean"),
        ({"mask": torch.ones(2, 2, dtype=torch.bool)}, ValueError, r"mask must have shape \[q_len, k_len\] = "),
        ({"mask": torch.ones(SRC_LEN, dtype=torch.bool)}, ValueError, r"mask must have shape \[q_len, k_len\], got"),
        ({}, ValueError, "query, key or mask must be given, got none of them"),
        ({"query": []}, ValueError, "query must hold at least one position, got none"),
        ({"query": True}, TypeError, "query must be an int"),
    ],
)
def test_what_cannot_be_cut_is_said(model, arguments, error, message):
    with pytest.raises(error, match=message), tl.cut(model, **arguments):
        model.encode(sources())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("encoders", torch.zeros(1)), ValueError, "a submodule of Transformer that is called, got 'encoders'"),
        (("", torch.zeros(1)), ValueError, "name must be a submodule"),
        (("encoder.layers", torch.zeros(1)), ValueError, "that is called, got 'encoder.layers'"),
        (("encoder", 3.0), TypeError, "value must be a torch.Tensor, got float"),
        (("encoder", torch.zeros(2, 1, 1)), ValueError, "value must have the shape of encoder's output"),
    ],
)
def test_what_cannot_be_patched_is_said(model, arguments, error, message):
    with pytest.raises(error, match=message), tl.patch(model, *arguments):
        model.encode(sources())


def test_a_value_of_another_dtype_or_of_a_tuple_cannot_be_patched(model):
    value = model.encode(sources())
    with (
        pytest.raises(ValueError, match="value must have the dtype of encoder's output"),
        tl.patch(model, "encoder", value.float()),
    ):
        model.encode(sources())
    attention, x = model.encoder.layers[0].self_attention, torch.randn(1, 3, model.config.d_model).double()
    message = "name must be a module that returns a tensor, and self_attention returns tuple"
    with pytest.raises(TypeError, match=message), tl.patch(model.encoder.layers[0], "self_attention", x):
        attention(x, x, x, return_weights=True)


def test_what_a_function_does_to_its_argument_stays_with_the_positions_named(model):
    before = model.encode(sources())
    with tl.patch(model, "encoder", lambda output: output.zero_(), positions=QUERY):
        after = model.encode(sources())
    assert not after[:, QUERY].any()
    kept = [n for n in range(SRC_LEN) if n != QUERY]
    torch.testing.assert_close(after[:, kept], before[:, kept], rtol=0, atol=0)


@pytest.mark.parametrize("part", ["decoder", "decoder.layers.1.feed_forward", "decoder.layers.0.self_attention"])
def test_positions_of_a_growing_sentence_are_refused_rather_than_mistaken(model, part):
    message = "positions must be None while decoding with a cache"
    with tl.patch(model, part, lambda output: 0 * output, positions=0):
        model(sources(), targets())
        with pytest.raises(ValueError, match=message):
            tl.greedy_decode(model, sources(), max_new_tokens=3)
    with tl.patch(model, part, lambda output: 0 * output):
        tl.greedy_decode(model, sources(), max_new_tokens=3)


def test_calls_by_name_are_cut_like_others(model):
    attention, x = model.encoder.layers[0].self_attention, torch.randn(1, 5, model.config.d_model).double()
    mask = tl.causal_mask(5)
    with masked(attention, torch.eye(5, dtype=torch.bool)):
        expected = attention(x, x, x, mask)
        torch.testing.assert_close(attention(query=x, key=x, value=x, mask=mask), expected)
        torch.testing.assert_close(attention(x, x, value=x, mask=mask), expected)
    assert not torch.allclose(attention(x, x, x, mask), expected)


def test_positions_may_be_tensors_or_numpys(model):
    with tl.cut(model, query=QUERY, key=KEY):
        expected = model.encode(sources())
    for query, key in ((torch.tensor(QUERY), np.int64(KEY)), ([np.int32(QUERY)], torch.tensor([KEY])[0])):
        with tl.cut(model, query=query, key=key):
            torch.testing.assert_close(model.encode(sources()), expected, rtol=0, atol=0)


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


def test_a_mask_of_one_attention_is_boolean():
    attention = tl.MultiHeadAttention(6, 2)
    with pytest.raises(TypeError, match="may must be boolean"), masked(attention, torch.ones(2, 2)):
        pass
