"""Six letters written in reverse: a task that dictates where attention must look (notebook 11)."""

from __future__ import annotations

from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ...model.recording import record_attention
from ...model.transformer import Transformer

LENGTH, LETTERS, FIRST_ID = 6, "ABCDEFGHIJ", 3
CONFIG = {
    "src_vocab_size": 13,
    "tgt_vocab_size": 13,
    "d_model": 32,
    "n_heads": 2,
    "n_layers": 1,
    "d_ff": 64,
    "dropout": 0.0,
    "max_len": 8,
}
STEPS, BATCH_SIZE, LEARNING_RATE = 150, 64, 0.01
Model = TypeVar("Model", bound=Transformer)


def reversal(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return letters [size, LENGTH], what the decoder reads (bos and the answer, one later), and the answer."""
    letters = torch.randint(FIRST_ID, FIRST_ID + len(LETTERS), (size, LENGTH), generator=generator)
    answer = letters.flip(1)
    bos = torch.ones(size, 1, dtype=torch.long)
    return letters, torch.cat([bos, answer[:, :-1]], dim=1), answer


def fit(model: Model, seed: int, steps: int = STEPS) -> Model:
    """Train a Transformer of CONFIG to reverse, on letters drawn with `seed`; returns the model itself."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        src, tgt_in, tgt_out = reversal(BATCH_SIZE, generator)
        optimizer.zero_grad()
        F.cross_entropy(model(src, tgt_in).flatten(0, 1), tgt_out.flatten()).backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def cross_weights(model: Transformer, size: int = 500, seed: int = 99) -> tuple[Tensor, Tensor, Tensor]:
    """Return letters [size, LENGTH], cross-attention [size, n_heads, LENGTH, LENGTH], share of right letters."""
    src, tgt_in, tgt_out = reversal(size, torch.Generator().manual_seed(seed))
    with record_attention(model) as record:
        right = (model(src, tgt_in).argmax(dim=-1) == tgt_out).double().mean()
    return src, record["decoder.layers.0.cross_attention"], right
