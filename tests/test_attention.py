from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from transformer_lib.model.attention import fused_attention

pytestmark = pytest.mark.fast

B, H, Q_LEN, K_LEN, D_K, D_V = 2, 3, 5, 11, 7, 13


def draw(dtype=torch.float64, seed=0, grad=False):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(B, H, Q_LEN, D_K), (B, H, K_LEN, D_K), (B, H, K_LEN, D_V)]
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype).requires_grad_(grad) for s in shapes]


def draw_mask(*shape, seed=1, empty_row=None):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) > 0.4
    mask[..., 0] = True  # every query sees something …
    if empty_row is not None:
        mask[..., empty_row, :] = False  # … but this one
    return mask


def explicit(*args, **kwargs):
    return tl.scaled_dot_product_attention(*args, **kwargs)[0]


PATHS = pytest.mark.parametrize("path", [explicit, fused_attention], ids=["explicit", "fused"])


def test_one_query_by_hand():
    query = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
    key = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.0, 9.0], [1.0, 5.0, 3.0, 5.0]])
    value = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    exponentials = [math.exp(2 / 2), math.exp(0), math.exp(4 / 2)]  # dot products 2, 0, 4 over the root of d_k = 4
    wanted = [e / sum(exponentials) for e in exponentials]
    output, weights = tl.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(weights, torch.tensor([wanted]))
    mean = wanted[0] + 2 * wanted[1] + 3 * wanted[2]
    torch.testing.assert_close(output, torch.tensor([[mean, 10 * mean]]))


@pytest.mark.parametrize("masked", [False, True])
def test_it_equals_the_numpy_reference(masked):
    query, key, value = draw()
    mask = draw_mask(B, 1, Q_LEN, K_LEN, empty_row=2) if masked else None
    output, weights = tl.scaled_dot_product_attention(query, key, value, mask)
    wanted = tl.numpy_reference.attention(query.numpy(), key.numpy(), value.numpy(), mask.numpy() if masked else None)
    np.testing.assert_allclose(output.numpy(), wanted[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(weights.numpy(), wanted[1], rtol=0, atol=1e-10)


@PATHS
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("mask_shape", [None, (B, H, Q_LEN, K_LEN), (B, 1, 1, K_LEN), (Q_LEN, K_LEN)])
def test_it_equals_torch_with_gradients(path, dtype, atol, mask_shape):
    mask = draw_mask(*mask_shape) if mask_shape else None
    ours, theirs = draw(dtype, grad=True), draw(dtype, grad=True)
    output, wanted = path(*ours, mask), F.scaled_dot_product_attention(*theirs, attn_mask=mask)
    torch.testing.assert_close(output, wanted, rtol=0, atol=atol)
    upstream = torch.randn(output.shape, dtype=dtype, generator=torch.Generator().manual_seed(3))
    output.backward(upstream)
    wanted.backward(upstream)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=10 * atol)


@PATHS
@pytest.mark.parametrize("shape", [(H, Q_LEN, K_LEN), (1, Q_LEN, K_LEN), (B, 1, 1, K_LEN)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_is_added_after_scaling(path, shape, masked):
    query, key, value = draw()
    bias = torch.randn(shape, dtype=torch.float64)
    mask = draw_mask(B, 1, Q_LEN, K_LEN) if masked else torch.ones(1, 1, 1, 1, dtype=torch.bool)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(D_K) + bias
    weights = torch.where(mask, scores.exp(), 0.0)
    wanted = weights / weights.sum(dim=-1, keepdim=True) @ value
    torch.testing.assert_close(path(query, key, value, mask if masked else None, bias=bias), wanted)


@PATHS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("biased", [False, True])
def test_a_row_that_sees_nothing_gives_zeros_and_finite_gradients(path, dtype, biased):
    query, key, value = draw(dtype, grad=True)
    bias = torch.zeros(H, Q_LEN, K_LEN, dtype=dtype, requires_grad=True) if biased else None
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        output = path(query, key, value, draw_mask(B, 1, Q_LEN, K_LEN, empty_row=2), bias=bias)
        output.square().sum().backward()
    assert torch.equal(output[:, :, 2], torch.zeros(B, H, D_V, dtype=dtype))
    assert output[:, :, :2].abs().min() > 0
    for tensor in (query, key, value, *([bias] if biased else [])):
        assert tensor.grad.isfinite().all()
    assert torch.equal(query.grad[:, :, 2], torch.zeros(B, H, D_K, dtype=dtype))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_autocast_on_a_cpu_leaves_the_fused_kernel_in_float32(masked, biased):
    """What comes in 16 bits is computed on in 32, forward and backward; numbers in 64 bits stay so."""
    mask = draw_mask(B, 1, Q_LEN, K_LEN) if masked else None
    bias = torch.randn(H, Q_LEN, K_LEN) if biased else None
    for dtype, exact in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        inputs = draw(dtype, grad=True)
        widened = [x.detach().to(exact).requires_grad_() for x in inputs]
        wanted = fused_attention(*widened, mask, bias=None if bias is None else bias.to(exact))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = fused_attention(*inputs, mask, bias=bias)
        assert found.dtype == exact and torch.equal(found, wanted)
        found.square().sum().backward()
        wanted.square().sum().backward()
        for x, wide in zip(inputs, widened, strict=True):
            assert torch.equal(x.grad, wide.grad.to(dtype))


@PATHS
def test_nothing_to_see_anywhere(path):
    query, key, value = draw(grad=True)
    output = path(query, key, value, torch.zeros(Q_LEN, K_LEN, dtype=torch.bool))
    output.sum().backward()
    assert not output.any() and not query.grad.any() and not key.grad.any() and not value.grad.any()


@PATHS
@pytest.mark.parametrize("shape", [(K_LEN,), (), (1, K_LEN), (Q_LEN, 1), (B, 1, 1, K_LEN), (H, Q_LEN, K_LEN)])
def test_a_mask_may_leave_axes_out(path, shape):
    query, key, value = draw()
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) > 0.3
    whole = mask.expand(B, H, Q_LEN, K_LEN)
    torch.testing.assert_close(path(query, key, value, mask), explicit(query, key, value, whole))


@pytest.mark.parametrize("leading", [(), (H,), (B, H), (2, B, H)])
def test_any_leading_axes(leading):
    query, key, value = torch.randn(*leading, 5, 7), torch.randn(*leading, 11, 7), torch.randn(*leading, 11, 13)
    output, weights = tl.scaled_dot_product_attention(query, key, value)
    assert output.shape == (*leading, 5, 13) and weights.shape == (*leading, 5, 11)
    torch.testing.assert_close(fused_attention(query, key, value), output)


@PATHS
def test_leading_axes_broadcast(path):
    query, key, value = torch.randn(1, H, 5, 7), torch.randn(B, 1, 11, 7), torch.randn(B, 1, 11, 13)
    wanted = torch.stack(
        [torch.stack([explicit(query[0, h], key[b, 0], value[b, 0]) for h in range(H)]) for b in range(B)]
    )
    torch.testing.assert_close(path(query, key, value), wanted)


@PATHS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_products_that_are_large_before_they_are_scaled(path, dtype, masked):
    """Entries of ±60: a dot product of 64 of them is ±230,400, divided by 8 it is ±28,800; float16 ends at 65,504."""
    _, signs, values = draw()
    inputs = torch.full((B, H, Q_LEN, 64), 60.0), (60 * signs[..., :1].sign()).expand(B, H, K_LEN, 64), values
    query, key, value = (x.to(dtype).requires_grad_() for x in inputs)
    mask = draw_mask(B, 1, Q_LEN, K_LEN, empty_row=2) if masked else None
    wide = [x.detach().double().requires_grad_() for x in (query, key, value)]
    wanted, output = explicit(*wide, mask), path(query, key, value, mask)
    assert output.dtype == dtype
    rounding = {"rtol": 0, "atol": 8 * torch.finfo(dtype).eps}
    torch.testing.assert_close(output.double(), wanted, **rounding)
    output.float().sum().backward()
    wanted.sum().backward()
    torch.testing.assert_close(value.grad.double(), wide[2].grad, **rounding)
    assert query.grad.isfinite().all() and key.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_numbers_in_16_bits_are_those_of_the_exact_scores(dtype):
    query, key, value = (x.to(dtype) for x in draw())
    weights = tl.scaled_dot_product_attention(5 * query, key, value)[1]
    exact = tl.scaled_dot_product_attention((5 * query).double(), key.double(), value.double())[1]
    assert weights.dtype == dtype
    torch.testing.assert_close(weights.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-7)  # rounded once


def test_autocast_leaves_the_scores_in_float32():
    query, key, value = (60 * x.float().sign() for x in draw())
    wanted = tl.scaled_dot_product_attention(query, key, value)[1]
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            assert torch.equal(tl.scaled_dot_product_attention(query, key, value)[1], wanted)


@PATHS
def test_one_batch_at_a_time_by_vmap(path):
    query, key, value = draw()
    mask, bias = draw_mask(Q_LEN, K_LEN), torch.randn(H, Q_LEN, K_LEN, dtype=torch.float64)
    found = torch.func.vmap(lambda *one: path(*one, mask, bias=bias))(query, key, value)
    torch.testing.assert_close(found, path(query, key, value, mask, bias=bias))


def test_the_fused_path_drops_weights():
    query, key, value = draw(torch.float32)
    torch.manual_seed(0)
    dropped = torch.stack([fused_attention(query, key, value, dropout=0.5) for _ in range(400)])
    assert not torch.equal(dropped[0], dropped[1])
    assert (dropped.mean(dim=0) - explicit(query, key, value)).abs().mean() < 0.05


@PATHS
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((7,), (11, 7), (11, 13)), r"query must have at least 2 axes, got 1: shape \(7,\)"),
        (((5, 7), (7,), (11, 13)), "key must have at least 2 axes, got 1"),
        (((5, 7), (11, 7), (13,)), "value must have at least 2 axes, got 1"),
        (((5, 7), (11, 8), (11, 13)), r"key must end in query's d_k = 7 features, got 8: shape \(11, 8\)"),
        (((5, 7), (11, 7), (10, 13)), r"key and value must have the same k_len, got 11 and 10: shapes \(11, 7\)"),
        (((2, 5, 7), (3, 11, 7), (3, 11, 13)), r"the leading axes .* must broadcast, got shapes \(2, 5, 7\), \(3"),
        (((2, 5, 7), (2, 11, 7), (3, 11, 13)), "the leading axes .* must broadcast"),
        (((0, 5, 7), (1, 11, 7), (1, 11, 13)), r"query must not be empty, got shape \(0, 5, 7\)"),
        (((5, 7), (0, 7), (0, 13)), r"key must not be empty, got shape \(0, 7\)"),
        (((5, 7), (11, 7), (11, 0)), r"value must not be empty, got shape \(11, 0\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(path, shapes, message):
    with pytest.raises(ValueError, match=message):
        path(*(torch.zeros(shape) for shape in shapes))


@PATHS
def test_bad_types_and_masks_are_refused(path):
    query, key, value = draw()
    with pytest.raises(TypeError, match="key must be a torch.Tensor, got ndarray"):
        path(query, key.numpy(), value)
    with pytest.raises(TypeError, match="must have one dtype, got torch.float64, torch.float32 and torch.float64"):
        path(query, key.float(), value)
    with pytest.raises(TypeError, match="query must hold floating-point numbers, got dtype torch.int64"):
        path(query.long(), key.long(), value.long())
    with pytest.raises(TypeError, match="mask must be boolean, True = may attend, got dtype torch.float64"):
        path(query, key, value, torch.ones(Q_LEN, K_LEN, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"mask must broadcast to the scores' shape \(2, 3, 5, 11\), got \(11, 5\)"):
        path(query, key, value, torch.ones(K_LEN, Q_LEN, dtype=torch.bool))
