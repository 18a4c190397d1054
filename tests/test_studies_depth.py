"""The study of deep stacks: its blocks against the library's, its measures by hand, and a short repeated run."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from studies import depth as study
from transformer_lib.course.lab import depth as study_lab

STORED = study_lab.load_results()


@pytest.mark.parametrize(("norm", "norm_first"), [("post", False), ("pre", True)])
def test_a_block_is_the_librarys_encoder_layer(norm, norm_first):
    torch.manual_seed(0)
    block, x = study_lab.Block(True, norm), torch.randn(3, 7, study_lab.WIDTH)
    layer = tl.EncoderLayer(study_lab.WIDTH, study_lab.HEADS, 4 * study_lab.WIDTH, norm_first=norm_first)
    layer.self_attention.load_state_dict(block.attention.state_dict())
    layer.feed_forward.load_state_dict(block.feed_forward.state_dict())
    torch.testing.assert_close(block(x), layer(x))


def test_what_is_switched_off_is_gone():
    torch.manual_seed(0)
    x = torch.randn(2, 5, study_lab.WIDTH)
    bare = study_lab.Block(False, "none", feed_forward=False)
    torch.testing.assert_close(bare(x), bare.attention(x, x, x))
    with_residual = study_lab.Block(True, "none", feed_forward=False)
    torch.testing.assert_close(with_residual(x), x + with_residual.attention(x, x, x))
    normed = study_lab.Block(False, "post", feed_forward=False)
    torch.testing.assert_close(normed(x), F.layer_norm(normed.attention(x, x, x), (study_lab.WIDTH,)))


@pytest.mark.parametrize("gain", [study_lab.SMALL, 1.0, 1.5])
def test_the_gain_is_the_spread_of_the_weights(gain):
    torch.manual_seed(0)
    block = study_lab.Block(True, "none", gain=gain)
    weights = block.feed_forward.expand.weight
    assert weights.std().item() * math.sqrt(study_lab.WIDTH) == pytest.approx(gain, rel=0.05)
    assert not block.feed_forward.contract.bias.any()


def test_signals_begin_with_the_input_and_end_with_the_given_gradient():
    found = study_lab.signals(3, True, "post", seed=5)
    assert {len(part) for part in (found.activation, found.gradient, found.spread)} == {4}
    assert found.activation[0] == pytest.approx(1, abs=0.05)
    assert found.gradient[-1] == pytest.approx(1, abs=0.05)
    assert found.activation[1:] == pytest.approx([1] * 3, abs=1e-4)  # post-norm
    assert found.spread[0] == pytest.approx(math.sqrt(11 / 12), abs=0.02)


def test_signals_leave_the_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    study_lab.signals(2, False, "none", seed=7)
    assert torch.equal(torch.rand(2), expected)


def test_the_default_precision_changes_nothing():
    torch.set_default_dtype(torch.float64)
    try:
        found = study_lab.signals.__wrapped__(2, True, "pre", seed=11)
        trained = study.train_reverser(study.SETUPS[0], seed=0, steps=2)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert found == study_lab.signals.__wrapped__(2, True, "pre", seed=11)
    assert trained == study.train_reverser(study.SETUPS[0], seed=0, steps=2)


def test_without_sublayers_that_do_anything_all_passes_unchanged():
    found = study_lab.signals(5, True, "none", gain=0.0)
    assert found.activation == pytest.approx([found.activation[0]] * 6)
    assert found.gradient == pytest.approx([found.gradient[0]] * 6)
    assert found.spread == pytest.approx([found.spread[0]] * 6)


def test_equal_rows_have_no_spread():
    rows = torch.randn(1, 1, study_lab.WIDTH).expand(2, 5, -1)
    assert study_lab._spread(rows) == pytest.approx(0, abs=1e-6)


def test_a_detached_norm_is_a_layer_norm_with_constant_statistics():
    torch.manual_seed(0)
    norm, x = study_lab.DetachedNorm(7), (2 + torch.randn(3, 7)).requires_grad_()
    wanted = tl.LayerNorm(7)(x)
    torch.testing.assert_close(norm(x), wanted)
    g_y = torch.randn(3, 7)
    (found,), (true,) = (torch.autograd.grad(y, x, g_y) for y in (norm(x), wanted))
    size = (x.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(found, g_y / size)
    centred = found - found.mean(dim=-1, keepdim=True)
    torch.testing.assert_close(true, centred - wanted * (found * wanted).mean(dim=-1, keepdim=True))


def test_detached_blocks_are_the_same_function_with_other_gradients():
    models = []
    for detached in (False, True):
        torch.manual_seed(5)
        models.append(study.Reverser(study_lab.Setup(2, True, "post", 1.0, 1e-3, detached=detached)))
    ids = torch.randint(study.SYMBOLS, (3, study.TOKENS))
    logits = [model(ids) for model in models]
    torch.testing.assert_close(*logits)
    gradients = [
        torch.autograd.grad(out.square().sum(), model.embedding.weight)[0]
        for out, model in zip(logits, models, strict=True)
    ]
    assert (gradients[0] - gradients[1]).norm() > 0.1 * gradients[0].norm()


def test_a_warm_up_starts_slowly():
    torch.manual_seed(0)
    plain, warm = (study_lab.Setup(2, True, "pre", 1.0, 1e-2, warmup=warmup) for warmup in (0, 10**9))
    moved = study.train_reverser(plain, seed=1, steps=5)
    still = study.train_reverser(warm, seed=1, steps=5)
    assert moved["first_loss"] == still["first_loss"]
    assert moved["accuracy"] != still["accuracy"] == study.train_reverser(warm, seed=1, steps=1)["accuracy"]


def test_what_the_notebook_compares_is_stored():
    for (around, warmup), gain, rate in product(study_lab.SHOWN.values(), study_lab.GAINS, study_lab.RATES):
        setup = study_lab.Setup(12, *around, gain, rate, warmup=warmup)
        assert study_lab.steps_of(setup) == STORED["runs"][study.SETUPS.index(setup)]["steps"]
    with pytest.raises(ValueError, match="setup must be one of those stored in depth.json, got Setup"):
        study_lab.steps_of(study_lab.Setup(3, True, "pre", 1.0, 1e-3))


def test_a_short_run_finds_what_is_stored():
    setup = study_lab.Setup(2, True, "pre", 1.0, 1e-2)
    found = study.train_reverser(setup, seed=1)
    then = STORED["runs"][study.SETUPS.index(setup)]
    assert found["first_loss"] == pytest.approx(then["first_loss"][1], abs=0.02)
    assert found["steps"] == pytest.approx(then["steps"][1], rel=0.2)
    assert found["accuracy"] == pytest.approx(then["accuracy"][1], abs=0.05)


def test_a_run_that_misses_the_goal_says_so():
    found = study.train_reverser(study_lab.Setup(2, True, "pre", 1.0, 1e-3), seed=4, steps=2)
    assert found["steps"] is None
    assert found["accuracy"] == pytest.approx(study.CHANCE, abs=0.1)
