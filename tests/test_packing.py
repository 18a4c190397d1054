from __future__ import annotations

import pytest
import torch

from transformer_lib.fast.packing import RealTokens

pytestmark = pytest.mark.fast

REAL = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)


def values(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


def test_pick_takes_the_real_tokens_in_order():
    x = values(3, 5, 7)
    assert torch.equal(RealTokens(REAL).pick(x), x[REAL])


def test_pad_puts_them_back_with_zeros_between():
    x = values(8, 7)
    padded = RealTokens(REAL).pad(x)
    assert padded.shape == (3, 5, 7) and torch.equal(padded[REAL], x) and not padded[~REAL].any()


@pytest.mark.parametrize("move", [lambda where, x: where.pick(x.view(3, 5, 2)), lambda where, x: where.pad(x[:8])])
def test_gradients_are_those_of_finite_differences(move):
    assert torch.autograd.gradcheck(lambda x: move(RealTokens(REAL), x), values(15, 2))
    assert torch.autograd.gradgradcheck(lambda x: move(RealTokens(REAL), x), values(15, 2))


def test_what_stands_in_padding_gives_no_gradient():
    """A mask hides it, so that none should come; what comes all the same is left out, not added to some token's."""
    x = values(8, 7)
    (gradient,) = torch.autograd.grad(RealTokens(REAL).pad(x).sum(), x)
    assert torch.equal(gradient, torch.ones_like(x))


def test_padding_alone_holds_no_token():
    where, x = RealTokens(torch.zeros(3, 5, dtype=torch.bool)), values(3, 5, 7)
    assert where.pick(x).shape == (0, 7)
    (gradient,) = torch.autograd.grad(where.pad(where.pick(x)).sum(), x)
    assert torch.equal(gradient, torch.zeros_like(x))


def test_a_mask_of_another_rank_is_refused():
    with pytest.raises(ValueError, match="real must have 2 axes"):
        RealTokens(REAL[0])


@pytest.mark.parametrize("rows", [0, 7, 11])
def test_another_number_of_tokens_is_refused(rows):
    with pytest.raises(ValueError, match=f"x must have one row for each of the 8 tokens, got {rows}"):
        RealTokens(REAL).pad(values(rows, 7))


def test_without_padding_nothing_is_moved():
    where, x = RealTokens(torch.ones(3, 5, dtype=torch.bool)), values(3, 5, 7)
    picked = where.pick(x)
    assert torch.equal(picked, x.flatten(0, 1)) and picked.data_ptr() == x.data_ptr()
    assert where.pad(picked).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("multiple, padding", [(1, 0), (2, 0), (3, 1), (5, 2), (11, 3), (13, 5), (97, 7)])
def test_some_padding_makes_the_number_of_rows_a_multiple(multiple, padding):
    """At most all of it: of the fifteen tokens, seven are padding."""
    where, x = RealTokens(REAL, multiple=multiple), values(3, 5, 7)
    picked = where.pick(x)
    assert (where.count, len(picked)) == (8, 8 + padding)
    assert torch.equal(picked[:8], x[REAL]) and torch.equal(picked[8:], x[~REAL][:padding])
    padded = where.pad(picked)
    assert torch.equal(padded[REAL], x[REAL]) and torch.equal(padded[~REAL][:padding], x[~REAL][:padding])
    assert not padded[~REAL][padding:].any()


def test_gradients_pass_through_those_rows_too():
    where = RealTokens(REAL, multiple=11)
    assert torch.autograd.gradcheck(lambda x: where.pad(where.pick(x)), values(3, 5, 2))


@pytest.mark.parametrize("multiple", [1, 4])
def test_without_padding_there_is_none_to_add(multiple):
    where = RealTokens(torch.ones(3, 5, dtype=torch.bool), multiple=multiple)
    assert where.all and len(where.rows) == where.count == 15
