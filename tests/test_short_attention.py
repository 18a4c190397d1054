"""Attention by a few products, and its gradients by hand, against torch's."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.fast.short_attention import short_attention

pytestmark = pytest.mark.fast

ROWS, Q_LEN, K_LEN, D = 3, 5, 7, 11
EXACT = {"rtol": 0, "atol": 1e-12}


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


def draw_bias(*shape):
    """−∞ in places, but not for a whole query."""
    hidden = draw(*shape, seed=9) > 0.5
    hidden[..., 2] = False
    return torch.zeros(shape, dtype=torch.float64).masked_fill(hidden, -math.inf)


@pytest.mark.parametrize("sizes", [(1, 2), (1, 1, 1), (2, 1), (3,)], ids=str)
def test_output_and_gradients_equal_torchs(sizes):
    q_len = Q_LEN if sizes[0] == 1 else K_LEN  # stacked with keys, queries are as many
    parts = [draw(size, ROWS, q_len if n == 0 else K_LEN, D, seed=n) for n, size in enumerate(sizes)]
    bias = draw_bias(ROWS, q_len, K_LEN)
    heads = short_attention(bias, *parts)
    q, k, v = (x for part in parts for x in part)
    reference = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    torch.testing.assert_close(heads, reference, **EXACT)
    wanted = draw(ROWS, q_len, D, seed=5).detach()
    gradients, references = (torch.autograd.grad((y * wanted).sum(), parts) for y in (heads, reference))
    torch.testing.assert_close(gradients, references, **EXACT)
    assert all(gradient.abs().max() > 1e-3 for gradient in gradients)


def test_gradients_are_those_of_finite_differences_that_of_the_bias_too():
    inputs = draw(2, 3, 5), draw(1, 2, 3, 2, seed=1), draw(2, 2, 5, 2, seed=2)
    assert torch.autograd.gradcheck(short_attention, inputs)


def test_hidden_keys_weigh_nothing():
    bias, parts = draw_bias(ROWS, K_LEN, K_LEN), draw(3, ROWS, K_LEN, D)
    bias[:, :, 4] = -math.inf
    changed = parts.detach().clone()
    changed[1:, :, 4] = 100.0
    torch.testing.assert_close(short_attention(bias, changed), short_attention(bias, parts), **EXACT)


def test_large_scores_do_not_overflow():
    heads = short_attention(torch.zeros(ROWS, K_LEN, K_LEN), 1e4 * draw(3, ROWS, K_LEN, D).float())
    assert heads.isfinite().all()


def test_there_is_no_second_derivative():
    parts = draw(3, ROWS, K_LEN, D)
    heads = short_attention(draw_bias(ROWS, K_LEN, K_LEN), parts)
    (gradient,) = torch.autograd.grad((heads**2).sum(), parts, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()
