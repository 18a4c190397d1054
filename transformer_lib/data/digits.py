"""Handwritten digits of 8 × 8 pixels, for a Transformer that reads an image as a sequence of patches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._files import DATA


class Digits(NamedTuple):
    """Images and what they show.

    images: [n, 8, 8], from 0 (paper) to 1 (ink). labels: the digits 0 to 9, [n].
    """

    images: Tensor
    labels: Tensor


def load_digits() -> Digits:
    """Return the 1,797 digits of 13 people that are included (see data/README.md)."""
    with np.load(DATA / "digits.npz") as stored:
        images, labels = stored["images"], stored["labels"]
    return Digits(torch.tensor(images) / 16, torch.tensor(labels).long())
