"""What several tests share: small models and inputs. Sizes are distinct primes where they may be, so that a swapped
axis cannot pass; d_model = 30 is the exception (it must be divisible by n_heads, and even)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

import transformer_lib as tl

BATCH, SRC_LEN, TGT_LEN = 5, 7, 11
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "none")
SIZES = {
    "src_vocab_size": 23,
    "tgt_vocab_size": 29,
    "d_model": 30,
    "n_heads": 3,
    "n_layers": 2,
    "d_ff": 17,
    "max_len": 37,
    "dropout": 0.0,
}


def make_config(**changes) -> tl.TransformerConfig:
    return tl.TransformerConfig(**{**SIZES, **changes})


def make_model(seed: int = 0, *, scale: float = 1.0, dtype: torch.dtype = torch.float32, **changes) -> tl.Transformer:
    """Return a model in evaluation mode with no parameter left at a special value (biases at 0, gains at 1, …).

    A `scale` above one exaggerates its weights, so that different inputs lead to quite different outputs.
    """
    torch.manual_seed(seed)
    with default_dtype(dtype):
        model = tl.Transformer(make_config(**changes))
    return randomise(model, scale).eval()


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def randomise(module: nn.Module, scale: float = 1.0) -> nn.Module:
    """Move every parameter off its initial value: biases and gains too, which initialisation leaves at 0 and 1."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(scale).add_(torch.randn_like(parameter) * 0.1 * scale)
    return module


def random_ids(vocab_size: int, batch: int, length: int, *, seed: int = 0, padded: bool = False) -> Tensor:
    """Ids of real words (no special tokens); if `padded`, row i loses i words at its end, at least one remains."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, vocab_size, (batch, length), generator=generator)
    if padded:
        for row in range(batch):
            ids[row, max(1, length - row) :] = 0
    return ids


def sources(batch: int = BATCH, length: int = SRC_LEN, *, seed: int = 0, padded: bool = True) -> Tensor:
    return random_ids(SIZES["src_vocab_size"], batch, length, seed=seed, padded=padded)


def targets(batch: int = BATCH, length: int = TGT_LEN, *, seed: int = 1, padded: bool = False) -> Tensor:
    ids = random_ids(SIZES["tgt_vocab_size"], batch, length, seed=seed, padded=padded)
    ids[:, 0] = 1
    return ids


@torch.no_grad()
def greedy_by_forward(model: tl.Transformer, src: Tensor, max_new_tokens: int) -> Tensor:
    """Greedy decoding in the plainest way: the whole model again for every token, and what follows eos cut off."""
    ids = torch.full((len(src), 1), model.config.bos_id)
    for _ in range(max_new_tokens):
        ids = torch.cat((ids, model(src, ids)[:, -1].argmax(dim=-1, keepdim=True)), dim=1)
    rows = []
    for row in ids.tolist():
        end = row.index(model.config.eos_id, 1) + 1 if model.config.eos_id in row[1:] else len(row)
        rows.append(row[:end])
    return tl.pad_batch(rows, model.config.pad_id)


def with_frequent_eos(model: tl.Transformer, src: Tensor, max_new_tokens: int) -> tl.Transformer:
    """Declare a word to be eos that the model says to these sources, to each at another time if possible."""
    model.config = replace(model.config, eos_id=2)
    free = tl.greedy_decode(model, src, max_new_tokens=max_new_tokens, stop_at_eos=False)[:, 1:].tolist()

    def spread(word: int) -> int:
        return len({row.index(word) if word in row else -1 for row in free})

    candidates = range(2, model.config.src_vocab_size)
    model.config = replace(model.config, eos_id=max(candidates, key=spread))
    return model
