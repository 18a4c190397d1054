"""Products with a weight laid out once are those of `F.linear`, whether or not the machine can lay it out."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.fast import products
from transformer_lib.fast.products import Product

pytestmark = pytest.mark.fast

D_IN, D_OUT = 37, 53
# The sums of 37 products of about one: float32 rounds each to 6e-8 of its size.
CLOSE = {torch.float32: {"rtol": 0, "atol": 1e-5}, torch.float64: {"rtol": 0, "atol": 1e-12}}


def numbers(*shape, dtype, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("rows", [1, 7, 101])
def test_a_product_is_linear(monkeypatch, rows, has_bias, dtype, onednn):
    weight, x = (numbers(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate([(D_OUT, D_IN), (rows, D_IN)]))
    bias = numbers(D_OUT, dtype=dtype, seed=3) if has_bias else None
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", onednn)
    torch.testing.assert_close(Product(weight, bias)(x), F.linear(x, weight, bias), **CLOSE[dtype])


def test_only_float32_is_laid_out_and_only_by_onednn(monkeypatch):
    weight = numbers(D_OUT, D_IN, dtype=torch.float32)
    assert (Product(weight).packed is not None) == products._ONEDNN
    assert Product(weight.double()).packed is None
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert Product(weight).packed is None
