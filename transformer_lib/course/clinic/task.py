"""What all patients were trained for: a row of three to six letters, written in reverse."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ...model.config import TransformerConfig

LETTERS, FIRST_ID = "ABCDEFGHIJ", 3
PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
SHORTEST, LONGEST = 3, 6
CONFIG = TransformerConfig(
    src_vocab_size=13, tgt_vocab_size=13, d_model=32, n_heads=2, n_layers=1, d_ff=64, dropout=0.05, max_len=24
)
STEPS, BATCH_SIZE, LEARNING_RATE = 200, 64, 0.01


def reversals(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return src [size, LONGEST] and tgt [size, LONGEST + 2] (bos, the letters in reverse, eos), padded."""
    src = torch.randint(FIRST_ID, FIRST_ID + len(LETTERS), (size, LONGEST), generator=generator)
    length = torch.randint(SHORTEST, LONGEST + 1, (size, 1), generator=generator)
    place = torch.arange(LONGEST)
    src = src.masked_fill(place >= length, PAD_ID)
    answer = src.gather(1, (length - 1 - place).clamp(min=0)).masked_fill(place >= length, PAD_ID)
    tgt = F.pad(answer, (1, 1)).scatter(1, length + 1, EOS_ID)
    tgt[:, 0] = BOS_ID
    return src, tgt


def held_out(size: int, seed: int = 99) -> tuple[Tensor, Tensor]:
    """Return rows that no patient was trained on (its training draws from another generator)."""
    return reversals(size, torch.Generator().manual_seed(10_000 + seed))


def rows() -> tuple[Tensor, Tensor]:
    """Return the batch that most instruments read: held-out src, and tgt_in as it should be fed."""
    src, tgt = held_out(64)
    return src, tgt[:, :-1]


def full_rows() -> Tensor:
    """Return held-out sources without padding, [size, LONGEST]."""
    src = held_out(256)[0]
    return src[(src != PAD_ID).all(dim=1)]


def words(ids: Sequence[int] | Tensor) -> list[str]:
    """Return ids as text: letters, and · for padding."""
    names = ["·", "<bos>", "<eos>", *LETTERS]
    return [names[int(i)] for i in ids]
