from __future__ import annotations

import pytest
import torch

import transformer_lib as tl

pytestmark = pytest.mark.fast


def test_the_digits_are_there():
    images, labels = tl.load_digits()
    assert images.shape == (1797, 8, 8) and labels.shape == (1797,)
    assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
    assert (images.min(), images.max()) == (0, 1) and torch.equal((images * 16).round() / 16, images)
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_first_is_a_zero():
    images, labels = tl.load_digits()
    assert labels[:10].tolist() == list(range(10))
    assert (images[0] * 16).int()[1].tolist() == [0, 0, 13, 15, 10, 15, 5, 0]
