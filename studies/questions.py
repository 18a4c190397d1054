"""Sentences whose context decides, and what a translator decides about them (notebook 15)."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer_lib.course.lab.questions import Questions


def articles(asked: Questions) -> Tensor:
    """Return the mask [n, src_len] that is True at "the" and "a"."""
    rows = torch.zeros_like(asked.src, dtype=torch.bool)
    for i, words in enumerate(asked.words):
        rows[i, : len(words)] = torch.tensor([word in ("the", "a", "an") for word in words])
    return rows
