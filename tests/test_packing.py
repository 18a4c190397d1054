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


@pytest.mark.parametrize(("parts", "n_heads"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_heads_stand_at_their_places(parts, n_heads):
    x = values(8, parts * n_heads * 7)
    split = RealTokens(REAL).split_heads(x, parts, n_heads)
    assert split.shape == (parts, 3, n_heads, 5, 7)
    at_tokens = split.permute(1, 3, 0, 2, 4)[REAL]  # [tokens, parts, n_heads, 7]
    assert torch.equal(at_tokens.flatten(1), x)
    rows = x.view(-1, 7).tolist()
    assert all(row in rows for row in split[:, ~REAL[:, None].expand(3, n_heads, 5)].view(-1, 7).tolist())


@pytest.mark.parametrize("n_heads", [1, 3])
def test_joined_heads_are_those_of_the_real_tokens(n_heads):
    x = values(3, n_heads, 5, 7)
    assert torch.equal(RealTokens(REAL).join_heads(x), x.transpose(1, 2)[REAL].flatten(1))


def test_splitting_undoes_joining():
    where, x = RealTokens(REAL), values(8, 21)
    assert torch.equal(where.join_heads(where.split_heads(x, 1, 3)[0]), x)


def test_padding_alone_holds_no_token():
    where, x = RealTokens(torch.zeros(3, 5, dtype=torch.bool)), values(3, 5, 7)
    assert where.pick(x).shape == (0, 7)
    (gradient,) = torch.autograd.grad(where.split_heads(where.pick(x), 1, 1).sum(), x)
    assert torch.equal(gradient, torch.zeros_like(x))
    assert where.split_heads(values(0, 30), 2, 3).shape == (2, 3, 3, 5, 5)


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        (lambda where, x: where.pick(x), (3, 5, 2)),
        (lambda where, x: where.join_heads(x), (3, 2, 5, 3)),
        (lambda where, x: where.split_heads(x, 2, 3)[:, REAL[:, None].expand(3, 3, 5)], (8, 12)),
    ],
    ids=["pick", "join", "split"],
)
def test_gradients_are_those_of_finite_differences(move, shape):
    assert torch.autograd.gradcheck(lambda x: move(RealTokens(REAL), x), values(*shape))


def test_what_stands_in_padding_gives_no_gradient():
    """A mask hides it, so that none should come; what comes all the same is left out, not added to some token's."""
    x = values(8, 7)
    split = RealTokens(REAL).split_heads(x, 1, 1)[0, :, 0]  # [3, 5, 7]
    (gradient,) = torch.autograd.grad(split.sum(), x)
    assert torch.equal(gradient, torch.ones_like(x))


def test_a_mask_of_another_rank_is_refused():
    with pytest.raises(ValueError, match="real must have 2 axes"):
        RealTokens(REAL[0])


@pytest.mark.parametrize("rows", [0, 7, 11])
def test_another_number_of_tokens_is_refused(rows):
    with pytest.raises(ValueError, match=f"x must have one row for each of the 8 real tokens, got {rows}"):
        RealTokens(REAL).split_heads(values(rows, 7), 1, 1)


def test_a_mask_of_numbers_means_the_same():
    x = values(3, 2, 5, 7)
    results = []
    for real in (REAL, REAL.long()):
        joined = RealTokens(real).join_heads(x)
        results.append((joined, torch.autograd.grad((joined**2).sum(), x)[0]))
    (booleans, gradient), (numbers, same_gradient) = results
    assert torch.equal(numbers, booleans) and torch.equal(same_gradient, gradient)


def test_without_padding_nothing_is_picked():
    where, x = RealTokens(torch.ones(3, 5, dtype=torch.bool)), values(3, 5, 7)
    picked = where.pick(x)
    assert torch.equal(picked, x.flatten(0, 1)) and picked.data_ptr() == x.data_ptr()
    factors = torch.arange(105.0, dtype=torch.float64).view(3, 5, 7)
    (gradient,) = torch.autograd.grad((where.split_heads(picked, 1, 1)[0, :, 0] * factors).sum(), x)
    assert torch.equal(gradient, factors)
