"""Attention in blocks beside the whole grid and autograd: values, gradients, masks, what is kept."""

from __future__ import annotations

import doctest

import pytest
import torch

import transformer_lib as tl
from factories import make_model, sources, targets
from transformer_lib.course.lab import counting
from transformer_lib.model import blockwise
from transformer_lib.model.positional import RelativeBias

pytestmark = pytest.mark.fast

BATCH, HEADS, Q_LEN, K_LEN, D_K, D_V = 2, 3, 13, 17, 5, 7
BLOCKS = (1, 4, 19)


def inputs(seed=0, *, q_len=Q_LEN, k_len=K_LEN, scale=3.0):
    """Return query, key, value and the gradient with respect to the output, in float64."""
    draw = torch.Generator().manual_seed(seed)
    shapes = ((q_len, D_K), (k_len, D_K), (k_len, D_V), (q_len, D_V))
    query, key, value, g = (torch.randn(BATCH, HEADS, *s, generator=draw, dtype=torch.float64) for s in shapes)
    return scale * query, key, value, g


def grid(query, key, value, mask):
    """The formula with every score in its place, written here again: a row without keys is 0."""
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / D_K**0.5
    grown = scores.exp() if mask is None else scores.exp() * mask
    total = grown.sum(dim=-1, keepdim=True)
    return grown @ value / (total + (total == 0)), total[..., 0].log()


def padding():
    mask = torch.ones(BATCH, 1, 1, K_LEN, dtype=torch.bool)
    mask[1, ..., 11:] = False
    return mask


def some_see_nothing():
    mask = torch.rand(BATCH, HEADS, Q_LEN, K_LEN, generator=torch.Generator().manual_seed(5)) < 0.4
    mask[:, 1, 3] = mask[1, :, 8:] = False
    return mask


MASKS = {
    "none": lambda: None,
    "padding": padding,
    "own for each head": some_see_nothing,
    "the same for each key": lambda: some_see_nothing()[..., :1],
    "a row for all": lambda: padding()[1, 0, 0],
}


def past(q_len=Q_LEN, k_len=K_LEN):
    return torch.arange(k_len)[None] <= torch.arange(q_len)[:, None] + k_len - q_len


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_values_and_gradients_are_those_of_the_grid(name, causal, block):
    mask = MASKS[name]()
    *given, g = inputs()
    whole = past() if causal and mask is None else mask & past() if causal else mask
    leaves = [x.clone().requires_grad_() for x in given]
    wanted, wanted_totals = grid(*leaves, whole)
    wanted_gradients = torch.autograd.grad(wanted, leaves, g)
    output, log_totals = blockwise.forward(*given, mask, causal=causal, block=block)
    torch.testing.assert_close(output, wanted.detach(), rtol=0, atol=1e-12)
    torch.testing.assert_close(log_totals, wanted_totals.detach(), rtol=0, atol=1e-12)
    found = blockwise.backward(g, *given, output, log_totals, mask, causal=causal, block=block)
    torch.testing.assert_close(found, wanted_gradients, rtol=0, atol=1e-10)
    again = [x.clone().requires_grad_() for x in given]
    mine = blockwise.attention(*again, mask, causal=causal, block=block)
    assert torch.equal(mine, output)
    assert all(map(torch.equal, torch.autograd.grad(mine, again, g), found))


def test_more_queries_than_keys_begin_with_queries_that_see_nothing():
    query, key, value, _ = inputs(q_len=11, k_len=7)
    output, _ = blockwise.forward(query, key, value, causal=True, block=3)
    assert (output[..., :4, :] == 0).all()
    torch.testing.assert_close(output, grid(query, key, value, past(11, 7))[0], rtol=0, atol=1e-12)


def test_what_is_kept_grows_with_the_length_and_what_is_held_is_a_block():
    def blocks(query, key, value):
        return blockwise.attention(query, key, value, block=32)

    def whole(query, key, value):
        return tl.scaled_dot_product_attention(query, key, value)[0]

    def made(n):
        return torch.randn(3, 1, n, 8, generator=torch.Generator().manual_seed(0))

    kept = {f: [counting.kept_for_backward(f, *made(n)) for n in (128, 256)] for f in (blocks, whole)}
    assert kept[blocks] == [4 * n * (8 + 8 + 8 + 8 + 1) for n in (128, 256)]  # inputs, output, one number per query
    assert kept[whole][1] > 3 * kept[whole][0]
    assert counting.largest_tensor(blocks, *made(256)) == 4 * 256 * 8
    assert counting.largest_tensor(whole, *made(256)) == 4 * 256**2


def test_five_products_instead_of_four_and_half_of_them_when_causal():
    given = torch.randn(3, 1, 256, 8, generator=torch.Generator().manual_seed(0))

    def causal(*x):
        return blockwise.attention(*x, causal=True, block=16)

    one = 256**2 * 8
    assert counting.multiply_adds(blockwise.attention, *given) == 2 * one
    assert counting.backward_multiply_adds(blockwise.attention, *given) == 5 * one
    blocks = 16 * 17 / 2 / 16**2  # on and below the diagonal
    assert counting.multiply_adds(causal, *given) == 2 * one * blocks
    assert counting.backward_multiply_adds(causal, *given) == 5 * one * blocks


@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_a_training_step_of_the_whole_model_has_the_same_gradients(position):
    model = make_model(dtype=torch.float64, position=position)
    src, tgt = sources(), targets(padded=True)
    parameters = list(model.parameters())

    def step():
        logits = model(src, tgt)
        return logits.detach(), torch.autograd.grad(logits.square().sum(), parameters)

    wanted = step()
    with blockwise.blockwise_in(model, block=3):
        layer = model.decoder.layers[1].self_attention
        assert "attend" in vars(layer)
        found = step()
    assert "attend" not in vars(layer)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


def test_a_second_derivative_is_refused_rather_than_wrong():
    leaves = [x.requires_grad_() for x in inputs()[:3]]
    (gradient,) = torch.autograd.grad(blockwise.attention(*leaves).square().sum(), leaves[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_errors_say_what_is_wrong():
    query, key, value, g = inputs()
    output, log_totals = blockwise.forward(query, key, value)
    with pytest.raises(ValueError, match=r"key must end in query's d_k = 5 features, got 7"):
        blockwise.forward(query, value, value)
    with pytest.raises(ValueError, match="query, key and value must have the same leading axes"):
        blockwise.forward(query, key[:1], value[:1])
    with pytest.raises(TypeError, match="mask must be boolean"):
        blockwise.attention(query, key, value, padding().float())
    with pytest.raises(ValueError, match=r"mask must broadcast to the scores' shape \(2, 3, 13, 17\)"):
        blockwise.attention(query, key, value, padding()[..., :-1])
    with pytest.raises(ValueError, match="block must be at least 1, got 0"):
        blockwise.attention(query, key, value, block=0)
    with pytest.raises(TypeError, match="causal must be True or False, got 1"):
        blockwise.attention(query, key, value, causal=1)
    with pytest.raises(ValueError, match=r"g must have the output's shape \(2, 3, 13, 7\), got \(2, 3, 12, 7\)"):
        blockwise.backward(g[:, :, 1:], query, key, value, output, log_totals)
    with pytest.raises(ValueError, match="output must end in value's d_v = 7 features, got 5"):
        blockwise.backward(g, query, key, value, query, log_totals)
    with pytest.raises(ValueError, match=r"log_totals must have a number per query, \(2, 3, 13\), got shape \(2, 3\)"):
        blockwise.backward(g, query, key, value, output, log_totals[..., 0])


def test_models_that_cannot_take_blocks_are_refused():
    def entered(model, **options):
        with blockwise.blockwise_in(model, **options):
            raise AssertionError("not reached")

    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got int"):
        entered(3)
    with pytest.raises(ValueError, match="model must contain a MultiHeadAttention, and Linear has none"):
        entered(torch.nn.Linear(2, 3))
    with pytest.raises(ValueError, match="block must be at least 1"):
        entered(make_model(), block=0)
    with pytest.raises(ValueError, match=r"encoder\.layers\.0\.self_attention has a RelativeBias"):
        entered(make_model(position="relative"))
    with pytest.raises(ValueError, match="it drops 0.5 of them"):
        entered(tl.MultiHeadAttention(6, 3, dropout=0.5))
    model = make_model()
    with blockwise.blockwise_in(model), pytest.raises(ValueError, match="was replaced before"):
        entered(model)
    assert isinstance(tl.MultiHeadAttention(6, 3, position=RelativeBias(3)).score_bias(2, 2), torch.Tensor)


def test_the_example_in_the_docstring():
    assert doctest.testmod(blockwise, extraglobs={"torch": torch}) == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_of_numbers_in_16_bits_are_taken_in_32(dtype):
    """Products of 64 entries of ±60 overflow float16 before they are scaled; 2,003 weights of 1 are no sum for it."""
    draw = torch.Generator().manual_seed(0)
    query = torch.randn(2, 5, 64, generator=draw)
    key, value = torch.randn(2, 2003, 64, generator=draw) / 64, 3 + torch.randn(2, 2003, 7, generator=draw)
    g = torch.randn(2, 5, 7, generator=draw).to(dtype)
    large = torch.full((2, 5, 64), 60.0), 60 * key[:, :11, :1].sign().expand(2, 11, 64), value[:, :11]
    for inputs in ((query, key, value), large):
        given = [x.to(dtype).requires_grad_() for x in inputs]
        wide = [x.detach().double().requires_grad_() for x in given]
        wanted, output = tl.scaled_dot_product_attention(*wide)[0], blockwise.attention(*given, block=16)
        assert output.dtype == dtype
        error = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 1e-7}
        torch.testing.assert_close(output.double(), wanted, **error)
        found = torch.autograd.grad(output, given, g)
        exact = torch.autograd.grad(wanted, wide, g.double())
        assert all(x.dtype == dtype and x.isfinite().all() for x in found)
        torch.testing.assert_close(found[2].double(), exact[2], **error)
        log_totals = blockwise.forward(*given, block=16)[1]
        scores = wide[0] @ wide[1].mT / 8
        torch.testing.assert_close(log_totals, scores.logsumexp(dim=-1).float(), rtol=1e-5, atol=1e-5)
