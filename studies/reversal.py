"""Six letters written in reverse: a task that dictates where attention must look (notebook 11)."""

from __future__ import annotations

from functools import cache

import torch

from transformer_lib.course.lab.reversal import CONFIG, STEPS, fit
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer


@cache
def train_reverser(seed: int, steps: int = STEPS) -> Transformer:
    """Return a small Transformer that has learned to reverse, in a second or two."""
    torch.manual_seed(seed)
    return fit(Transformer(TransformerConfig(**CONFIG)), seed, steps)
