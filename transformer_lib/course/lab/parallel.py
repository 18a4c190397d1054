"""Data-parallel training: every process has the whole model and takes its part of each batch."""

from __future__ import annotations

import torch
from torch import Tensor

from ...model.config import TransformerConfig
from ...model.transformer import Transformer
from ...training.gradients import count_targets
from ...training.loss import TrainingLoss

LENGTHS = (11, 7, 5, 3, 2, 2)  # of the sentences of a batch, bos included; longest first, so the halves are uneven


def new_model() -> Transformer:
    """Return the small model that every process starts with."""
    torch.manual_seed(16)
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 16, "dropout": 0.0, "max_len": 16}
    return Transformer(TransformerConfig(src_vocab_size=13, tgt_vocab_size=13, **sizes)).double()


def batch(step: int) -> tuple[Tensor, Tensor]:
    """Return random source and target ids [6, 11] of one step: sentences of LENGTHS tokens, then padding (0)."""
    generator = torch.Generator().manual_seed(step)
    ids = torch.randint(3, 13, (2, len(LENGTHS), max(LENGTHS)), generator=generator)
    real = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    src, tgt = ids * real
    tgt[:, 0] = 1  # bos
    return src, tgt


def summed_loss(model: Transformer, src: Tensor, tgt: Tensor) -> tuple[Tensor, int]:
    """Return the cross-entropy summed over the real target tokens, and how many these are."""
    return TrainingLoss(model)(src, tgt), count_targets(tgt, model.config.pad_id)
