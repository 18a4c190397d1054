"""Products with a weight laid out once are those of `F.linear`, in whatever order the weight lies."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.fast import products
from transformer_lib.fast.products import Product, order

pytestmark = pytest.mark.fast

D_IN, D_OUT = 37, 53
# The sums of 37 products of about one: float32 rounds each to 6e-8 of its size.
CLOSE = {torch.float32: {"rtol": 0, "atol": 1e-5}, torch.float64: {"rtol": 0, "atol": 1e-12}}
needs_onednn = pytest.mark.skipif(not products._ONEDNN, reason="oneDNN has no order of its own here")
ORDERS = ["as it is", "columns", pytest.param("onednn", marks=needs_onednn)]


def numbers(*shape, dtype, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def on(monkeypatch, *, intel, onednn=True):
    monkeypatch.setattr(products, "made_by_intel", lambda: intel)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(products, "_ONEDNN", onednn)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("arranged", ORDERS)
def test_a_product_is_linear_for_any_number_of_rows(monkeypatch, arranged, has_bias):
    monkeypatch.setattr(products, "order", lambda weight: arranged)
    weight = numbers(D_OUT, D_IN, dtype=torch.float32)
    bias = numbers(D_OUT, dtype=torch.float32, seed=1) if has_bias else None
    product = Product(weight, bias)
    for rows in (7, 1, 101, 2):  # sentences end and beams begin, so that the same product sees all of them
        x = numbers(rows, D_IN, dtype=torch.float32, seed=rows)
        torch.testing.assert_close(product(x), F.linear(x, weight, bias), **CLOSE[torch.float32])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 7])
def test_it_is_in_the_order_of_this_machine_too(rows, dtype):
    weight, x = (numbers(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate([(D_OUT, D_IN), (rows, D_IN)]))
    torch.testing.assert_close(Product(weight)(x), F.linear(x, weight), **CLOSE[dtype])


def test_the_order_follows_the_processor(monkeypatch):
    weight = numbers(D_OUT, D_IN, dtype=torch.float32)
    on(monkeypatch, intel=True)
    assert order(weight) == "columns"
    on(monkeypatch, intel=False)
    assert order(weight) == "onednn"
    on(monkeypatch, intel=False, onednn=False)
    assert order(weight) == "as it is"


@pytest.mark.parametrize("intel", [True, False])
def test_only_float32_on_a_cpu_is_laid_out(monkeypatch, intel):
    on(monkeypatch, intel=intel)
    assert order(numbers(D_OUT, D_IN, dtype=torch.float64)) == "as it is"
    assert order(torch.empty(D_OUT, D_IN, device="meta")) == "as it is"


@needs_onednn
@pytest.mark.parametrize("intel", [True, False])
@pytest.mark.parametrize("has_units", [True, False])
def test_bfloat16_is_laid_out_where_onednn_multiplies_in_it(monkeypatch, has_units, intel):
    on(monkeypatch, intel=intel)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: has_units)
    assert order(numbers(D_OUT, D_IN, dtype=torch.bfloat16)) == ("onednn" if has_units else "as it is")


@pytest.mark.parametrize("rows", [1, 7, 101])
def test_a_product_in_bfloat16_is_rounded_once(rows):
    weight, x = (
        numbers(*shape, dtype=torch.bfloat16, seed=seed) for seed, shape in enumerate([(D_OUT, D_IN), (rows, D_IN)])
    )
    exact = F.linear(x.double(), weight.double())
    # Sums in float32, then eight significant bits: half a unit in the last of them, and a little for the sums.
    torch.testing.assert_close(Product(weight)(x).double(), exact, rtol=2**-8, atol=1e-5)


def test_bytes_are_those_of_what_is_kept_beside_the_model(monkeypatch):
    weight = numbers(D_OUT, D_IN, dtype=torch.float32)
    monkeypatch.setattr(products, "order", lambda weight: "columns")
    product, own = Product(weight), {weight.data_ptr()}
    assert (product.bytes_beside(own), product.bytes_beside(set())) == (0, 4 * D_OUT * D_IN)
    product(numbers(2, D_IN, dtype=torch.float32))
    assert (product.bytes_beside(own), product.bytes_beside(set())) == (4 * D_OUT * D_IN, 8 * D_OUT * D_IN)


def test_without_onednn_or_mkl_the_weight_stays_as_it_is(monkeypatch):
    weight = numbers(D_OUT, D_IN, dtype=torch.float32)
    on(monkeypatch, intel=False)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert order(weight) == "as it is"
    monkeypatch.setattr(products, "made_by_intel", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert order(weight) == "as it is"


def test_one_row_needs_no_copy(monkeypatch):
    on(monkeypatch, intel=True)
    product = Product(numbers(D_OUT, D_IN, dtype=torch.float32))
    product(numbers(1, D_IN, dtype=torch.float32))
    assert product.copy is None
    product(numbers(2, D_IN, dtype=torch.float32))
    assert product.copy is not None and product.copy.is_contiguous()
