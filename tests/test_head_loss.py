from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from transformer_lib.fast import head_loss as losses
from transformer_lib.fast.head_loss import head_loss

pytestmark = pytest.mark.fast

TOKENS, WIDTH, WORDS = 13, 5, 29


def inputs(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    states, weight = (torch.randn(n, WIDTH, generator=generator, dtype=dtype).requires_grad_() for n in (TOKENS, WORDS))
    return states, weight, torch.randint(0, WORDS, (TOKENS,), generator=generator)


def reference(states, weight, labels, smoothing):
    return F.cross_entropy(states @ weight.T, labels, label_smoothing=smoothing, reduction="sum")


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("rows", [TOKENS, 7, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_equal_those_of_separate_steps(monkeypatch, rows, smoothing, multiple):
    monkeypatch.setattr(losses, "CHUNK_ENTRIES", rows * WORDS)
    monkeypatch.setattr(losses, "row_multiple", lambda device: multiple)
    states, weight, labels = inputs()
    found = head_loss(states, weight, labels, label_smoothing=smoothing)
    wanted = reference(states, weight, labels, smoothing)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(3 * found, (states, weight)),
        torch.autograd.grad(3 * wanted, (states, weight)),
        rtol=0,
        atol=1e-12,
    )


def test_large_logits_do_not_overflow():
    states, weight, labels = inputs(torch.float32)
    loss = head_loss(1e4 * states, weight, labels)
    assert loss.isfinite()
    torch.testing.assert_close(loss, reference(1e4 * states, weight, labels, 0.0))


def test_the_loss_alone_needs_no_gradient():
    states, weight, labels = inputs()
    with torch.no_grad():
        loss = head_loss(states, weight, labels)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, reference(states, weight, labels, 0.0))


def test_autocast_multiplies_in_bfloat16_and_sums_in_float32():
    states, weight, labels = inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head_loss(states, weight, labels)
    exact = reference(states, weight, labels, 0.0)
    low = F.cross_entropy((states.bfloat16() @ weight.bfloat16().T).float(), labels, reduction="sum")
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, low)
    assert loss != exact
    gradients = [torch.autograd.grad(x, (states, weight)) for x in (loss, exact)]
    for found, wanted in zip(*gradients, strict=True):
        assert found.dtype == torch.float32
        assert 0 < (found - wanted).norm() / wanted.norm() < 2**-7  # bfloat16 has eight significant bits


def test_without_gradients_the_head_is_multiplied_once():
    states, weight, labels = inputs()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        head_loss(states, weight, labels)
    assert counter.get_total_flops() == 2 * TOKENS * WIDTH * WORDS


def test_three_products_with_gradients_however_many_parts(monkeypatch):
    monkeypatch.setattr(losses, "CHUNK_ENTRIES", 2 * WORDS)
    states, weight, labels = inputs()
    with FlopCounterMode(display=False) as counter:
        head_loss(states, weight, labels).backward()
    assert counter.get_total_flops() == 3 * 2 * TOKENS * WIDTH * WORDS


def test_no_token_makes_a_gradient_of_zeros():
    states, weight, labels = inputs()
    head_loss(states[:0], weight, labels[:0]).backward()
    assert torch.equal(weight.grad, torch.zeros_like(weight))


def test_many_parts_are_summed_in_float32(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    states, weight = (torch.randn(n, WIDTH, generator=generator).requires_grad_() for n in (997, WORDS))
    labels = torch.zeros(997, dtype=torch.long)  # one label: its terms have one sign and pile up
    exact = torch.autograd.grad(reference(states, weight, labels, 0.0), weight)[0]
    errors = []
    for rows in (997, 1):
        monkeypatch.setattr(losses, "CHUNK_ENTRIES", rows * WORDS)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = head_loss(states, weight, labels)
        errors.append(float((torch.autograd.grad(loss, weight)[0] - exact).norm() / exact.norm()))
    assert errors[1] < 2 * errors[0]


def test_float16_is_left_to_float32():
    states, weight, labels = inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.equal(head_loss(states, weight, labels), head_loss(states.detach(), weight, labels))
        low = head_loss(states, weight, labels)
    assert torch.equal(low, head_loss(states, weight, labels))


def test_inputs_that_do_not_fit_are_refused():
    states, weight, labels = inputs()
    with pytest.raises(ValueError, match=r"labels must have one id per row of states \(13, 5\), got \(12,\)"):
        head_loss(states, weight, labels[1:])
    with pytest.raises(ValueError, match="label_smoothing"):
        head_loss(states, weight, labels, label_smoothing=1.0)
    with pytest.raises(ValueError, match="states"):
        head_loss(states[None], weight, labels)
