"""What PyTorch reports of a call agrees with counting by hand."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import transformer_lib as tl
from transformer_lib.course.lab import counting

pytestmark = pytest.mark.fast


def attention(query, key, value):
    return tl.scaled_dot_product_attention(query, key, value)[0]


def test_products_are_counted_in_multiply_adds():
    assert counting.multiply_adds(lambda a, b: a @ b + a @ b, torch.zeros(2, 3), torch.zeros(3, 5)) == 2 * 2 * 3 * 5
    assert counting.multiply_adds(attention, *torch.randn(3, 7, 11)) == 2 * 7 * 7 * 11


@pytest.mark.parametrize("recorded", [False, True])
def test_a_layer_has_the_same_products_on_either_path(recorded):
    layer, x = tl.EncoderLayer(10, 2, 23), torch.zeros(3, 13, 10)
    with tl.record_attention(layer) if recorded else nullcontext():
        assert counting.multiply_adds(layer, x) == 3 * tl.costs.encoder_layer_cost(13, 10, 23).total


def test_modules_of_torch_are_counted_too():
    heads, x = torch.nn.MultiheadAttention(10, 2, batch_first=True), torch.zeros(1, 13, 10)
    assert counting.multiply_adds(heads, x, x, x) == tl.costs.attention_cost(13, 13, 10).total


@pytest.mark.parametrize(
    "product",
    [lambda a, b: a @ b.mT, lambda a, b: torch.stack([b @ row for row in a]), lambda a, b: torch.einsum("ik,jk", a, b)],
)
def test_a_product_counts_the_same_however_it_is_written(product):
    assert counting.multiply_adds(product, torch.zeros(5, 7), torch.zeros(3, 7)) == 5 * 7 * 3


def test_a_dot_product_counts_its_length():
    assert counting.multiply_adds(torch.dot, torch.zeros(9), torch.zeros(9)) == 9


def test_every_product_needs_two_more_on_the_way_back():
    inputs = torch.randn(3, 7, 11)
    assert counting.backward_multiply_adds(attention, *inputs) == 2 * counting.multiply_adds(attention, *inputs)


@pytest.mark.parametrize("width", [16, 64])
def test_a_fused_attention_has_five_products_instead_of_four_on_the_way_back(width):
    inputs = torch.randn(3, 1, 2, 32, width)
    forward = counting.multiply_adds(F.scaled_dot_product_attention, *inputs)
    assert forward == 2 * (2 * 32 * 32 * width)
    assert counting.backward_multiply_adds(F.scaled_dot_product_attention, *inputs) == 2.5 * forward


def test_the_largest_tensor_is_remembered_wherever_it_appears():
    assert counting.largest_tensor(lambda x: (x[:, None] * x).sum(), torch.ones(9)) == 9 * 9 * 4
    assert counting.largest_tensor(lambda x: x.split(3), torch.ones(9).double()) == 3 * 8
    assert counting.largest_tensor(attention, *torch.randn(3, 2, 31, 5)) == 2 * 31 * 31 * 4


def test_what_is_held_at_one_time_is_added_up_and_what_is_forgotten_is_not():
    x = torch.ones(7, 11)

    def one_after_another(x):
        for _ in range(5):
            x.exp().sum()

    size = x.nbytes
    assert size <= counting.most_held(one_after_another, x) < 2.2 * size
    assert counting.most_held(lambda x: [x.exp() for _ in range(5)], x) == 5 * size
    assert counting.most_held(lambda x: [(y := x.exp()), y.T, y[2:]], x) == size  # views share their storage
    assert counting.most_held(lambda x: len(x), x) == 0


def test_kept_storages_are_counted_once():
    x = torch.randn(5, 5)
    assert counting.kept_for_backward(lambda x: x @ x, x) == x.nbytes
    assert counting.kept_for_backward(lambda a, b: a @ b, x, x) == 2 * x.nbytes
    grid = counting.kept_for_backward(attention, *torch.randn(3, 64, 2))
    assert grid >= 64 * 64 * 4 + 3 * 64 * 2 * 4
    fused = counting.kept_for_backward(F.scaled_dot_product_attention, *torch.randn(3, 1, 1, 64, 2))
    assert fused == (4 * 2 + 1) * 64 * 4  # queries, keys, values, output, and one number per query


def test_what_leads_nowhere_is_not_kept():
    x = torch.randn(8, 8)
    assert counting.kept_for_backward(lambda x: x + x.exp().detach(), x) == 0


def test_what_checkpoint_forgets_is_not_counted_and_what_it_runs_again_is():
    inputs = torch.randn(3, 64, 2)

    def squared(*tensors):
        return checkpoint(lambda *x: attention(*x).square(), *tensors, use_reentrant=False)

    assert counting.kept_for_backward(squared, *inputs) == 3 * inputs[0].nbytes
    assert counting.backward_multiply_adds(squared, *inputs) == 3 * counting.multiply_adds(attention, *inputs)


def test_inputs_are_left_as_they_are():
    x = torch.randn(3, 3)
    counting.kept_for_backward(lambda x: x @ x, x)
    counting.backward_multiply_adds(lambda x: x @ x, x)
    assert not x.requires_grad and x.grad is None
