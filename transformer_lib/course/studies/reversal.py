"""Six letters written in reverse: a task that dictates where attention must look (notebooks 11 and 15).

`python -m transformer_lib.course.studies.reversal` trains the model of the panel and writes data/reverser.safetensors.
"""

from __future__ import annotations

import argparse
from functools import cache
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._files import DATA
from ...model.config import TransformerConfig
from ...model.recording import record_attention
from ...model.transformer import Transformer
from ...training.checkpoint import load_checkpoint, save_checkpoint

COMMAND = "python -m transformer_lib.course.studies.reversal"
STORED = DATA / "reverser.safetensors"
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


@cache
def train_reverser(seed: int, steps: int = STEPS) -> Transformer:
    """Return a small Transformer that has learned to reverse, in a second or two."""
    torch.manual_seed(seed)
    return fit(Transformer(TransformerConfig(**CONFIG)), seed, steps)


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


@cache
def stored_reverser() -> Transformer:
    """Return `train_reverser(0)` as it once came out, so that all readers see the same weights.

    On a processor that rounds differently, training finds other weights: as good, but not the same.
    """
    with torch.random.fork_rng(devices=[]):  # a new model draws weights, before they are replaced
        return load_checkpoint(STORED).model


@torch.no_grad()
def cross_weights(model: Transformer, size: int = 500, seed: int = 99) -> tuple[Tensor, Tensor, Tensor]:
    """Return letters [size, LENGTH], cross-attention [size, n_heads, LENGTH, LENGTH], share of right letters."""
    src, tgt_in, tgt_out = reversal(size, torch.Generator().manual_seed(seed))
    with record_attention(model) as record:
        right = (model(src, tgt_in).argmax(dim=-1) == tgt_out).double().mean()
    return src, record["decoder.layers.0.cross_attention"], right


def on_anti_diagonal(weights: Tensor) -> float:
    """Return the share of rows of weights [..., LENGTH, LENGTH] whose largest entry lies on the anti-diagonal."""
    place = torch.arange(weights.shape[-1] - 1, -1, -1)
    return (weights.argmax(dim=-1) == place).double().mean().item()


def main() -> None:
    """Train the model and write it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    save_checkpoint(STORED, train_reverser(0), extra={"command": COMMAND})


if __name__ == "__main__":
    main()
