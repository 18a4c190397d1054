"""Parts taken out of a model: each test computes by hand what is left."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from factories import make_model, random_ids
from studies import parts
from transformer_lib.course.lab import parts as parts_lab
from transformer_lib.decoding.sampling import greedy_decode
from transformer_lib.model.recording import record_attention

SRC, TGT = random_ids(23, 5, 7), random_ids(29, 5, 11, seed=1)


def test_without_positions_the_memory_moves_with_the_tokens():
    model, order = make_model(), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    moved = model.encode(SRC[:, order]) - model.encode(SRC)[:, order]
    assert moved.abs().max() > 0.1
    parts.without_positions(model)
    torch.testing.assert_close(model.encode(SRC[:, order]), model.encode(SRC)[:, order])


def test_without_the_mask_the_first_token_sees_the_last_and_still_no_padding():
    model, changed = make_model(), TGT.clone()
    changed[:, -1] = (TGT[:, -1] - 2) % 26 + 3
    torch.testing.assert_close(model(SRC, TGT)[:, 0], model(SRC, changed)[:, 0])
    parts.without_mask(model)
    assert (model(SRC, TGT)[:, 0] - model(SRC, changed)[:, 0]).abs().max() > 1e-3
    padded = torch.nn.functional.pad(TGT, (0, 2))
    torch.testing.assert_close(model(SRC, padded)[:, :11], model(SRC, TGT))


def test_with_a_cache_the_missing_mask_changes_nothing():
    model = make_model(3, scale=2.0)
    whole = greedy_decode(model, SRC, max_new_tokens=11, stop_at_eos=False)
    parts.without_mask(model)
    cached, reread = (
        greedy_decode(model, SRC, max_new_tokens=11, stop_at_eos=False, use_cache=use) for use in (True, False)
    )
    assert torch.equal(cached, whole) and not torch.equal(reread, whole)


def test_without_residual_a_layer_is_its_sublayers_alone():
    model = make_model()
    parts_lab.without_residual(model)
    layer, x = model.encoder.layers[1], torch.randn(5, 7, 30)
    attended = layer.self_attention_residual.norm(layer.self_attention(x, x, x))
    expected = layer.feed_forward_residual.norm(layer.feed_forward(attended))
    torch.testing.assert_close(layer(x), expected)
    assert not any(type(module).__name__ == "Residual" for module in model.modules())


def test_without_layer_norm_a_layer_is_its_sums_alone():
    model = make_model()
    parts.without_layer_norm(model)
    layer, x = model.encoder.layers[0], torch.randn(5, 7, 30)
    attended = x + layer.self_attention(x, x, x)
    torch.testing.assert_close(layer(x), attended + layer.feed_forward(attended))


@pytest.mark.parametrize("recorded", [True, False])
def test_without_scaling_the_weights_are_the_softmax_of_the_bare_products(recorded):
    model = make_model()
    layer, x = model.encoder.layers[0].self_attention, torch.randn(5, 7, 30)
    q, k, v = (w(x).unflatten(-1, (3, 10)).transpose(1, 2) for w in (layer.w_q, layer.w_k, layer.w_v))
    weights = (q @ k.mT).softmax(-1)
    parts.without_scaling(model)
    torch.testing.assert_close(layer(x, x, x), layer.w_o((weights @ v).transpose(1, 2).flatten(2)))
    if recorded:
        with record_attention(model) as record:
            layer(x, x, x)
        torch.testing.assert_close(record["encoder.layers.0.self_attention"], weights)


def test_the_single_heads_add_up_to_the_whole():
    model, x = make_model(), torch.randn(5, 7, 30)
    whole, alone = model.encoder.layers[1].self_attention(x, x, x), []
    for head in range(3):
        changed = copy.deepcopy(model)
        parts.with_head_only(head)(changed)
        alone.append(changed.encoder.layers[1].self_attention(x, x, x))
    torch.testing.assert_close(sum(alone), whole)
    assert min((a - b).abs().max() for a, b in zip(alone, alone[1:], strict=False)) > 0.01
    layer = model.encoder.layers[1].self_attention
    q, k, v = (w(x)[..., 10:20] for w in (layer.w_q, layer.w_k, layer.w_v))
    second = (q @ k.mT / math.sqrt(10)).softmax(-1) @ v @ layer.w_o.weight[:, 10:20].T
    torch.testing.assert_close(alone[1], second)


def test_a_model_without_a_part_still_decodes():
    model = make_model()
    parts.without_layer_norm(model)
    ids = greedy_decode(model, SRC, max_new_tokens=3)
    assert torch.equal(ids, greedy_decode(model, SRC, max_new_tokens=3, use_cache=False))
