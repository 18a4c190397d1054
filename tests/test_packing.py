from __future__ import annotations

import pytest
import torch

from transformer_lib.packing import RealTokens

REAL = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)


def values(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


def test_pick_takes_the_real_tokens_in_order():
    x = values(3, 5, 7)
    assert torch.equal(RealTokens(REAL).pick(x), x[REAL])


def test_spread_puts_them_back_with_zeros_between():
    x = values(8, 7)
    spread = RealTokens(REAL).spread(x)
    assert spread.shape == (3, 5, 7)
    assert torch.equal(spread[REAL], x) and not spread[~REAL].any()


def test_padding_alone_holds_no_token():
    where, x = RealTokens(torch.zeros(3, 5, dtype=torch.bool)), values(3, 5, 7)
    assert where.pick(x).shape == (0, 7)
    (gradient,) = torch.autograd.grad(where.spread(where.pick(x)).sum(), x)
    assert torch.equal(gradient, torch.zeros_like(x))


@pytest.mark.parametrize(("name", "shape"), [("pick", (3, 5, 2)), ("spread", (8, 2))])
def test_gradients_are_those_of_finite_differences(name, shape):
    assert torch.autograd.gradcheck(getattr(RealTokens(REAL), name), values(*shape))


def test_a_mask_of_another_rank_is_refused():
    with pytest.raises(ValueError, match="real must have 2 axes"):
        RealTokens(REAL[0])


@pytest.mark.parametrize("rows", [0, 7, 11])
def test_another_number_of_tokens_is_refused(rows):
    with pytest.raises(ValueError, match=f"x must have one row for each of the 8 real tokens, got {rows}"):
        RealTokens(REAL).spread(values(rows, 7))


def test_a_mask_of_numbers_means_the_same():
    assert torch.equal(RealTokens(REAL.long()).spread(x := values(8, 7)), RealTokens(REAL).spread(x))


def test_without_padding_nothing_is_moved():
    where, x = RealTokens(torch.ones(3, 5, dtype=torch.bool)), values(3, 5, 7)
    picked = where.pick(x)
    assert torch.equal(picked, x.flatten(0, 1)) and picked.data_ptr() == x.data_ptr()
    assert torch.equal(where.spread(picked), x) and where.spread(picked).data_ptr() == x.data_ptr()
    factors = torch.arange(105.0, dtype=torch.float64).view(3, 5, 7)
    (gradient,) = torch.autograd.grad((where.spread(where.pick(x)) * factors).sum(), x)
    assert torch.equal(gradient, factors)
