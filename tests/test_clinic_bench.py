"""The bench of notebook 17: a batch of one's own model, and more padding."""

from __future__ import annotations

import pytest
import torch

from transformer_lib.course import mine
from transformer_lib.course.lab import clinic_bench as bench

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def translator():
    return mine.assembled(parts=())


def test_the_batch_is_padded_and_every_other_token_differs(translator):
    src, tgt = bench.held_out_batch(translator, 7)
    assert len(src) == len(tgt) == 7 and len(set((src != 0).sum(dim=1).tolist())) > 1
    assert (tgt[:, 0] == 1).all() and (tgt == 2).any(dim=1).all()
    other = bench.other_tokens(tgt, 23)
    assert (other != tgt).all() and other.min() >= 4 and other.max() < 23
    assert bench.other_tokens(torch.tensor([[0, 3, 4, 21, 22]]), 23).tolist() == [[4, 4, 5, 22, 4]]


def test_padding_moves_a_model_that_reads_it(translator):
    src, tgt = bench.held_out_batch(translator, 5)
    assert bench.padding_effect(translator.model, src, tgt[:, :-1]) < 1e-4
    with mine.breaking("padding_mask", translator=translator) as broken:
        assert bench.padding_effect(broken.model, src, tgt[:, :-1]) > 0.1
