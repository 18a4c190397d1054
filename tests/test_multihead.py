from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import randomise
from transformer_lib.model.cache import KeyValueCache

pytestmark = pytest.mark.fast

BATCH, Q_LEN, K_LEN, D_MODEL, N_HEADS, D_K, D_V = 2, 5, 11, 35, 7, 3, 13


def make(dtype=torch.float64, **options):
    torch.manual_seed(0)
    options = {"d_k": D_K, "d_v": D_V, **options}
    return randomise(tl.MultiHeadAttention(D_MODEL, N_HEADS, **options)).to(dtype).eval()


def draw(dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    lengths = (Q_LEN, K_LEN, K_LEN)
    return [torch.randn(BATCH, n, D_MODEL, generator=generator, dtype=torch.float64).to(dtype) for n in lengths]


def draw_mask(*shape):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) > 0.4
    mask[..., 3] = True
    return mask


def matrices(layer):
    """W_Q, W_K, W_V, W_O as the paper writes them: they act from the right."""
    return [linear.weight.detach().numpy().T for linear in (layer.w_q, layer.w_k, layer.w_v, layer.w_o)]


@pytest.mark.parametrize(("d_k", "d_v"), [(D_K, D_V), (None, None), (17, None), (None, 2)])
@pytest.mark.parametrize("masked", [False, True])
def test_it_equals_a_loop_over_heads(d_k, d_v, masked):
    layer, inputs = make(d_k=d_k, d_v=d_v), draw()
    mask = draw_mask(BATCH, 1, Q_LEN, K_LEN) if masked else None
    wanted = tl.numpy_reference.multi_head_attention(
        *(x.numpy() for x in inputs), *matrices(layer), N_HEADS, mask.numpy() if masked else None
    )
    np.testing.assert_allclose(layer(*inputs, mask).detach().numpy(), wanted, rtol=0, atol=1e-10)
    output, _ = layer(*inputs, mask, return_weights=True)
    np.testing.assert_allclose(output.detach().numpy(), wanted, rtol=0, atol=1e-10)


def test_the_widths_of_a_head():
    layer = tl.MultiHeadAttention(35, 7)
    assert (layer.d_k, layer.d_v) == (5, 5)
    layer = tl.MultiHeadAttention(35, 3, d_k=2, d_v=11)
    assert [tuple(p.shape) for p in layer.parameters()] == [(6, 35), (6, 35), (33, 35), (35, 33)]


@pytest.mark.parametrize("bias", [False, True])
def test_both_paths_agree_with_gradients(bias):
    inputs, mask = draw(), draw_mask(BATCH, N_HEADS, Q_LEN, K_LEN)
    gradients = []
    for return_weights in (False, True):
        layer = make(bias=bias)
        own = [x.clone().requires_grad_() for x in inputs]
        result = layer(*own, mask, return_weights=return_weights)
        (result[0] if return_weights else result).square().sum().backward()
        gradients.append([x.grad for x in own] + [p.grad for p in layer.parameters()])
    for fused, explicit in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, explicit, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("return_weights", [False, True])
def test_a_query_that_sees_nothing(dtype, return_weights):
    layer, inputs = make(dtype, bias=True), draw(dtype)
    mask = draw_mask(BATCH, 1, Q_LEN, K_LEN)
    mask[:, :, 2] = False
    result = layer(*inputs, mask, return_weights=return_weights)
    output = result[0] if return_weights else result
    torch.testing.assert_close(output[:, 2], layer.w_o.bias.expand(BATCH, D_MODEL))  # zeros, through W_O
    output.float().square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@pytest.mark.parametrize("return_weights", [False, True])
def test_weights_are_dropped_in_training_only(return_weights):
    layer, inputs = make(dropout=0.5), draw()

    def run():
        result = layer(*inputs, return_weights=return_weights)
        return (result[0] if return_weights else result).detach()

    still = run()
    assert torch.equal(run(), still)
    layer.train()
    torch.manual_seed(0)
    runs = torch.stack([run() for _ in range(300)])
    assert not torch.equal(runs[0], runs[1])
    torch.testing.assert_close(runs.mean(dim=0), still, rtol=0, atol=6 * float(runs.std()) / 300**0.5)


def test_returned_weights_are_those_before_dropout():
    layer, inputs = make(dropout=0.5).train(), draw()
    weights = layer(*inputs, return_weights=True)[1]
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(BATCH, N_HEADS, Q_LEN, dtype=torch.float64))


@pytest.mark.parametrize("return_weights", [False, True])
def test_rotary_positions_turn_queries_and_keys_but_not_values(return_weights):
    layer = make(d_k=6, position=tl.RotaryPosition())
    x = draw()[1]
    result = layer(x, x, x, return_weights=return_weights)
    rotate = layer.position.rotate
    heads = []
    for i in range(N_HEADS):
        query, key = (rotate(w(x)[..., 6 * i : 6 * i + 6]) for w in (layer.w_q, layer.w_k))
        heads.append(tl.scaled_dot_product_attention(query, key, layer.w_v(x)[..., D_V * i : D_V * (i + 1)])[0])
    wanted = layer.w_o(torch.cat(heads, dim=-1))
    torch.testing.assert_close(result[0] if return_weights else result, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True])
def test_relative_positions_add_to_the_scores(masked):
    layer = make(position=tl.RelativeBias(N_HEADS, max_offset=2))
    x = draw()[1]
    mask = tl.causal_mask(K_LEN) if masked else None
    q, k, v = (w(x).unflatten(-1, (N_HEADS, -1)).transpose(1, 2) for w in (layer.w_q, layer.w_k, layer.w_v))
    heads = tl.scaled_dot_product_attention(q, k, v, mask, bias=layer.position(K_LEN, K_LEN))[0]
    wanted = layer.w_o(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x, x, x, mask), wanted, rtol=0, atol=1e-10)
    torch.testing.assert_close(layer(x, x, x, mask, return_weights=True)[0], wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("sizes", "options", "error", "message"),
    [
        ((35, 3), {}, ValueError, "d_model must be divisible by n_heads .*got d_model=35, n_heads=3"),
        ((35, 3), {"d_k": 2}, ValueError, "unless d_k and d_v are given"),
        ((35, 0), {}, ValueError, "n_heads must be at least 1, got 0"),
        ((0, 7), {}, ValueError, "d_model must be at least 1, got 0"),
        ((35, 7), {"d_k": 0}, ValueError, "d_k must be at least 1, got 0"),
        ((35, 7), {"d_v": 2.5}, TypeError, "d_v must be an int, got 2.5"),
        ((35, 7), {"dropout": -0.1}, ValueError, r"dropout must lie in \[0, 1\), got -0.1"),
    ],
)
def test_bad_sizes_are_refused(sizes, options, error, message):
    with pytest.raises(error, match=message):
        tl.MultiHeadAttention(*sizes, **options)


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_bad_inputs_are_refused(name):
    layer = make()
    for bad, error, message in (
        (torch.zeros(BATCH, D_MODEL), ValueError, rf"{name} must have 3 axes, got 2: shape \(2, 35\)"),
        (torch.zeros(BATCH, K_LEN, 34), ValueError, f"{name} must end in d_model = 35 features, got 34"),
        (torch.zeros(0, K_LEN, D_MODEL), ValueError, rf"{name} must not be empty, got shape \(0, 11, 35\)"),
        ([1.0], TypeError, f"{name} must be a torch.Tensor, got list"),
    ):
        inputs = dict(zip(("query", "key", "value"), draw(), strict=True)) | {name: bad}
        with pytest.raises(error, match=message):
            layer(**inputs)


@pytest.mark.parametrize("return_weights", [False, True])
def test_inputs_that_do_not_fit_each_other_are_refused(return_weights):
    layer = make()
    query, key, value = draw()
    with pytest.raises(ValueError, match="key and value must have the same k_len, got 11 and 10"):
        layer(query, key, value[:, 1:], return_weights=return_weights)
    with pytest.raises(ValueError, match="mask must broadcast to the scores' shape"):
        layer(query, key, value, torch.ones(K_LEN, Q_LEN, dtype=torch.bool), return_weights=return_weights)
    with pytest.raises(TypeError, match="mask must be boolean, True = may attend, got dtype torch.float32"):
        layer(query, key, value, torch.zeros(Q_LEN, K_LEN), return_weights=return_weights)


def test_equal_slices_of_the_same_tokens_grow_the_cache():
    """Self-attention is told by an argument: three equal slices are three objects, and each token is appended."""
    layer, cache = make(), KeyValueCache()
    x = draw()[1]  # [BATCH, K_LEN, D_MODEL]
    pieces = [layer(x[:, i : i + 1], x[:, i : i + 1], x[:, i : i + 1], cache=cache) for i in range(K_LEN)]
    assert cache.length == K_LEN
    causal = tl.causal_mask(K_LEN)
    torch.testing.assert_close(torch.cat(pieces, dim=1), layer(x, x, x, causal), rtol=0, atol=1e-10)


def test_static_keys_are_projected_once():
    layer, cache = make(), KeyValueCache()
    query, memory, _ = draw()
    wanted = layer(query, memory, memory)
    calls = []
    layer.w_k.register_forward_hook(lambda *_: calls.append("w_k"))
    pieces = [layer(query[:, i : i + 1], memory, memory, cache=cache, static_keys=True) for i in range(query.shape[1])]
    assert calls == ["w_k"] and cache.length == K_LEN
    torch.testing.assert_close(torch.cat(pieces, dim=1), wanted, rtol=0, atol=1e-10)


def test_the_same_object_as_query_and_static_keys_does_not_grow_the_cache():
    layer, cache = make(), KeyValueCache()
    x = draw()[1]
    for _ in range(3):
        layer(x, x, x, cache=cache, static_keys=True)
    assert cache.length == K_LEN


def test_static_keys_that_do_not_fit_the_cache_are_refused():
    layer, cache = make(), KeyValueCache()
    query, memory, _ = draw()
    layer(query, memory, memory, cache=cache, static_keys=True)
    with pytest.raises(ValueError, match=r"key must be the one that filled the cache, \[2, 11, d_model\], got .*7, 35"):
        layer(query, memory[:, :7], memory[:, :7], cache=cache, static_keys=True)


def test_static_keys_have_no_position():
    layer = make(d_k=4, position=tl.RotaryPosition())
    query, memory, _ = draw()
    with pytest.raises(ValueError, match="static_keys must be False with a position, got a RotaryPosition"):
        layer(query, memory, memory, static_keys=True)


# --- Types ---------------------------------------------------------------------------------------------------------

TYPED = """
from typing import assert_type

from torch import Tensor

from transformer_lib import MultiHeadAttention


def attend(layer: MultiHeadAttention, x: Tensor) -> None:
    assert_type(layer.forward(x, x, x), Tensor)
    assert_type(layer.forward(x, x, x, return_weights=False), Tensor)
    assert_type(layer.forward(x, x, x, return_weights=True), tuple[Tensor, Tensor])
    assert_type(layer.forward(x, x, x, return_weights=True), Tensor)
"""


@pytest.mark.slow  # without a cache mypy reads all of torch first
def test_a_type_checker_knows_when_weights_are_returned(tmp_path):
    """Only the last line is wrong. mypy runs alone, as it changes limits of Python that other tests live with."""
    file = tmp_path / "typed.py"
    file.write_text(TYPED, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--no-color-output", "--no-error-summary", file]
    checked = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=600)
    [error] = checked.stdout.splitlines()
    assert f"typed.py:{len(TYPED.splitlines())}: " in error
    assert 'Expression is of type "tuple[Tensor, Tensor]", not "Tensor"' in error and checked.stderr == ""


@pytest.mark.parametrize("cached", [False, True])
def test_lengths_and_batches_are_not_mixed_by_broadcasting(cached):
    layer, (query, key, value) = make(), draw()
    cache = KeyValueCache() if cached else None
    with pytest.raises(ValueError, match="key and value must have the same k_len, got 11 and 1"):
        layer(query, key, value[:, :1], cache=cache)
    for wrong in ((query, key[:1], value[:1]), (query, key, value[:1])):
        with pytest.raises(ValueError, match="query, key and value must have the same batch size, got 2, .*1"):
            layer(*wrong, cache=cache)
