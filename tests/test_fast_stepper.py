"""The fast decoding step gives the logits of the readable one, for every kind of model, and after every selection."""

from __future__ import annotations

import pytest
import torch

from factories import BATCH, POSITIONS, make_model, random_ids, sources
from transformer_lib.decoding.stepping import Stepper
from transformer_lib.fast.stepper import FastStepper

pytestmark = pytest.mark.fast

STEPS = 11
EXACT = {"rtol": 0, "atol": 1e-11}
CLOSE = {torch.float64: EXACT, torch.float32: {"rtol": 0, "atol": 1e-4}}


def steppers(model, src, max_len=STEPS):
    return FastStepper(model, src, max_len), Stepper(model, src, use_cache=True)


@torch.no_grad()
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_logits_equal_the_readable_ones_step_by_step(position, norm_first, dtype):
    model = make_model(position=position, norm_first=norm_first, dtype=dtype)
    src, tgt = random_ids(23, BATCH, 7, padded=True), random_ids(29, BATCH, STEPS, seed=1)
    tgt[2, 3] = tgt[0, 5] = 0  # a model may say <pad> in the middle
    quick, plain = steppers(model, src)
    for length in range(1, STEPS + 1):
        found, wanted = quick.next_logits(tgt[:, :length]), plain.next_logits(tgt[:, :length])
        torch.testing.assert_close(found, wanted, **CLOSE[dtype])


@torch.no_grad()
def test_several_tokens_at_once():
    model = make_model(dtype=torch.float64)
    tgt = random_ids(29, BATCH, STEPS, seed=1)
    quick, plain = steppers(model, sources())
    torch.testing.assert_close(quick.next_logits(tgt[:, :7]), plain.next_logits(tgt[:, :7]), **EXACT)
    torch.testing.assert_close(quick.next_logits(tgt), plain.next_logits(tgt), **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("rows", [[3, 1], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 2, 2], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]])
def test_selected_rows_go_on_alone(rows):
    model = make_model(dtype=torch.float64)
    src, tgt = random_ids(23, BATCH, 7, padded=True), random_ids(29, BATCH, STEPS, seed=1)
    rows = torch.tensor(rows)
    quick, plain = steppers(model, src)
    for stepper in (quick, plain):
        stepper.next_logits(tgt[:, :4])
        stepper.select(rows)
        stepper.next_logits(tgt[rows, :5])
        stepper.select(torch.arange(len(rows)).flip(0))
    kept = rows.flip(0)
    torch.testing.assert_close(quick.next_logits(tgt[kept, :6]), plain.next_logits(tgt[kept, :6]), **EXACT)


@torch.no_grad()
def test_beams_of_one_sentence_share_its_memory():
    model = make_model(dtype=torch.float64)
    tgt = random_ids(29, 6, STEPS, seed=1)
    quick, plain = steppers(model, sources()[:2])
    beams = torch.tensor([0, 0, 0, 1, 1, 1])
    for stepper in (quick, plain):
        stepper.next_logits(tgt[[0, 3], :1])
        stepper.select(beams)
        stepper.next_logits(tgt[:, :2])
    memory = quick.layers[0].memory_keys
    for stepper in (quick, plain):
        stepper.select(torch.tensor([1, 0, 0, 5, 5, 3]))
    assert quick.layers[0].memory_keys is memory
    crossed = tgt[[1, 0, 0, 5, 5, 3], :3]
    torch.testing.assert_close(quick.next_logits(crossed), plain.next_logits(crossed), **EXACT)


def test_the_same_length_again_is_refused():
    stepper = FastStepper(make_model(), sources(), STEPS)
    tgt = random_ids(29, BATCH, 3)
    stepper.next_logits(tgt)
    with pytest.raises(ValueError, match="tgt must be longer than the 3 tokens seen so far, got 3"):
        stepper.next_logits(tgt)


def test_more_tokens_than_the_buffers_hold_are_refused():
    stepper = FastStepper(make_model(), sources(), 3)
    with pytest.raises(ValueError, match="tgt must have at most max_len = 3 tokens, got 4"):
        stepper.next_logits(random_ids(29, BATCH, 4))
