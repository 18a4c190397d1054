from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import randomise
from transformer_lib.model.layers import Residual

pytestmark = pytest.mark.fast

D_MODEL, D_FF = 7, 13


def draw(seed=0):
    return torch.randn(2, 5, D_MODEL, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_layer_norm_equals_the_numpy_reference(eps):
    norm = randomise(tl.LayerNorm(D_MODEL, eps=eps)).double()
    wanted = tl.numpy_reference.layer_norm(
        draw().numpy(), norm.weight.detach().numpy(), norm.bias.detach().numpy(), eps
    )
    np.testing.assert_allclose(norm(draw()).detach().numpy(), wanted, rtol=0, atol=1e-10)


def test_layer_norm_without_a_shift():
    norm = randomise(tl.LayerNorm(D_MODEL, bias=False)).double()
    assert norm.bias is None and len(list(norm.parameters())) == 1
    wanted = tl.numpy_reference.layer_norm(draw().numpy(), norm.weight.detach().numpy(), np.zeros(D_MODEL))
    np.testing.assert_allclose(norm(draw()).detach().numpy(), wanted, rtol=0, atol=1e-10)


def test_feed_forward_equals_the_numpy_reference():
    layer = randomise(tl.FeedForward(D_MODEL, D_FF)).double()
    w_1, w_2 = layer.expand.weight.detach().numpy().T, layer.contract.weight.detach().numpy().T
    b_1, b_2 = layer.expand.bias.detach().numpy(), layer.contract.bias.detach().numpy()
    wanted = tl.numpy_reference.feed_forward(draw().numpy(), w_1, b_1, w_2, b_2)
    np.testing.assert_allclose(layer(draw()).detach().numpy(), wanted, rtol=0, atol=1e-10)


def test_feed_forward_with_gelu_and_without_biases():
    layer = tl.FeedForward(D_MODEL, D_FF, activation="gelu", bias=False).double()
    assert [tuple(p.shape) for p in layer.parameters()] == [(D_FF, D_MODEL), (D_MODEL, D_FF)]
    hidden = draw() @ layer.expand.weight.T
    gelu = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2  # x times the normal distribution function
    torch.testing.assert_close(layer(draw()), gelu @ layer.contract.weight.T, rtol=0, atol=1e-10)


def sublayer(x):
    return 3 * x.roll(1, dims=-1)


def test_post_norm_normalises_the_sum():
    residual = randomise(Residual(D_MODEL)).double()
    torch.testing.assert_close(residual(draw(), sublayer), residual.norm(draw() + sublayer(draw())))


def test_pre_norm_normalises_the_sublayer_input_alone():
    residual = randomise(Residual(D_MODEL, norm_first=True)).double()
    torch.testing.assert_close(residual(draw(), sublayer), draw() + sublayer(residual.norm(draw())))


def test_dropout_acts_on_the_sublayer_output_alone():
    torch.manual_seed(0)
    residual = Residual(997, dropout=0.25, norm_first=True)
    x = torch.randn(2, 3, 997)
    change = residual(x, torch.ones_like) - x
    kept = change != 0
    torch.testing.assert_close(change[kept], torch.full((int(kept.sum()),), 4 / 3), rtol=0, atol=1e-5)
    assert 0.70 < kept.float().mean() < 0.80
    assert torch.equal(residual.eval()(x, torch.ones_like), x + 1)


def test_dropout_comes_before_the_post_norm():
    torch.manual_seed(0)
    residual = Residual(997, dropout=0.25)
    output = residual(torch.randn(2, 3, 997), torch.ones_like)
    torch.testing.assert_close(output.mean(dim=-1), torch.zeros(2, 3), rtol=0, atol=1e-5)
    torch.testing.assert_close(output.std(dim=-1, correction=0), torch.ones(2, 3), rtol=0, atol=1e-4)


@pytest.mark.parametrize("layer", [tl.LayerNorm(D_MODEL), tl.FeedForward(D_MODEL, D_FF)], ids=["norm", "ffn"])
def test_a_wrong_width_is_refused(layer):
    with pytest.raises(ValueError, match=r"x must end in d_model = 7 features, got 8: shape \(2, 8\)"):
        layer(torch.zeros(2, 8))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tl.LayerNorm(0), "d_model must be at least 1, got 0"),
        (lambda: tl.FeedForward(0, 3), "d_model must be at least 1, got 0"),
        (lambda: tl.FeedForward(3, 0), "d_ff must be at least 1, got 0"),
        (lambda: tl.FeedForward(3, 5, activation="tanh"), "activation must be one of 'relu', 'gelu', .*, got 'tanh'"),
        (lambda: Residual(3, dropout=1.0), r"dropout must lie in \[0, 1\), got 1.0"),
    ],
)
def test_bad_sizes_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(("name", "approximate"), [("gelu", "none"), ("gelu_tanh", "tanh")])
def test_both_forms_of_gelu(name, approximate):
    network = randomise(tl.FeedForward(D_MODEL, D_FF, activation=name), 3.0).double()
    x = 2 * draw()
    hidden = torch.nn.functional.gelu(network.expand(x), approximate=approximate)
    torch.testing.assert_close(network(x), network.contract(hidden), rtol=0, atol=1e-12)
    other = tl.FeedForward(D_MODEL, D_FF, activation={"gelu": "gelu_tanh", "gelu_tanh": "gelu"}[name]).double()
    other.load_state_dict(network.state_dict())
    assert 1e-5 < (other(x) - network(x)).abs().max() < 1e-2  # near each other, and not the same
