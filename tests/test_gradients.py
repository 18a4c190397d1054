"""How a batch is cut into parts and shared; that the sum is the gradient of the whole is tested where it trains."""

from __future__ import annotations

import pytest
import torch

from factories import make_model, targets
from transformer_lib.training import distributed
from transformer_lib.training.gradients import BatchGradient, computing, count_targets
from transformer_lib.training.loss import TrainingLoss

pytestmark = pytest.mark.fast


def parts_of(rank, world, rows, accumulate, monkeypatch):
    monkeypatch.setattr(distributed, "rank", lambda: rank)
    monkeypatch.setattr(distributed, "world_size", lambda: world)
    gradient = BatchGradient(TrainingLoss(make_model()), pad_id=0, accumulate=accumulate)
    return list(gradient._parts(rows))


@pytest.mark.parametrize("accumulate", [1, 2, 5])
@pytest.mark.parametrize("world", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 2, 11, 13])
def test_every_row_counts_once_and_all_processes_take_as_many_parts(monkeypatch, rows, world, accumulate):
    parts = [parts_of(rank, world, rows, accumulate, monkeypatch) for rank in range(world)]
    assert len({len(own) for own in parts}) == 1 and len(parts[0]) <= accumulate
    counted = [row for own in parts for part, counts in own if counts for row in range(rows)[part]]
    assert sorted(counted) == list(range(rows))
    assert all(len(range(rows)[part]) >= 1 for own in parts for part, _ in own)  # a model refuses an empty batch
    if world == 1:
        assert all(counts for _, counts in parts[0])


def test_shares_are_of_about_equal_size(monkeypatch):
    sizes = [len(range(23)[part]) for rank in range(3) for part, _ in parts_of(rank, 3, 23, 2, monkeypatch)]
    assert sorted(sizes) == [3, 4, 4, 4, 4, 4]


def test_gradients_are_added_and_the_loss_is_the_mean():
    model = make_model(dtype=torch.float64)
    src, tgt = targets() % 23, targets(padded=True)
    gradient = BatchGradient(TrainingLoss(model), pad_id=0)
    loss = gradient.add(src, tgt)
    once = model.output_head.weight.grad.clone()
    assert gradient.add(src, tgt) == loss
    torch.testing.assert_close(model.output_head.weight.grad, 2 * once)
    summed = TrainingLoss(model)(src, tgt)
    assert loss == pytest.approx(summed.item() / count_targets(tgt, 0))


def test_padding_and_bos_are_no_targets():
    assert count_targets(torch.tensor([[1, 5, 6, 2], [1, 2, 0, 0]]), 0) == 4
    assert count_targets(torch.tensor([[1, 5, 6, 2], [1, 2, 9, 9]]), 9) == 4


@pytest.mark.parametrize(("precision", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_what_a_product_is_computed_in(precision, dtype):
    with computing(precision, torch.device("cpu")):
        assert (torch.ones(2, 3) @ torch.ones(3, 2)).dtype == dtype
