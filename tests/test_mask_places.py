"""The logits of a translator without one of its masks (notebook 12)."""

import pytest
import torch

from factories import make_model
from transformer_lib.course.lab import mask_places

SRC, TGT = torch.tensor([[5, 7, 9, 11, 13], [6, 8, 0, 0, 0]]), torch.tensor([[1, 5, 7], [1, 6, 0]])


@pytest.fixture(scope="module")
def model():
    return make_model(3, scale=1.5, norm_first=False).double()


def moved(model, without, src=SRC, tgt=TGT):
    return (mask_places.logits(model, src, tgt, without) - mask_places.logits(model, src, tgt)).abs().amax(dim=-1)


def test_with_all_masks_it_is_the_model(model):
    torch.testing.assert_close(mask_places.logits(model, SRC, TGT), model(SRC, TGT))


def test_each_mask_moves_whom_it_protects(model):
    encoder, memory, later, padding = (moved(model, name) > 1e-6 for name in mask_places.MASKS)
    assert encoder.tolist() == memory.tolist() == [[False] * 3, [True] * 3]
    assert later.all()  # the last word, too: in the second layer it reads rows that have looked ahead
    assert padding.tolist() == [[False] * 3, [False, False, True]]


def test_padding_at_the_front_is_seen_by_words(model):
    assert (moved(model, "target padding", tgt=torch.tensor([[1, 5, 7], [0, 1, 6]]))[1, 1:] > 1e-6).all()


def test_other_names_are_refused(model):
    with pytest.raises(ValueError, match="without must be one of 'source padding, in the encoder', .*, got 'all'"):
        mask_places.logits(model, SRC, TGT, "all")
