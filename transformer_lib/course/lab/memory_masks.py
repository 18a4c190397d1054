"""What a causal mask on the memory costs, where the task needs later source words (notebook 11).

`load_results()["right"]["encoder, open"]["150"][seed]` has a share for each place.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...model.config import TransformerConfig
from ...model.masks import causal_mask
from ...model.transformer import Transformer
from . import reversal, stored

load_results = stored.loader("memory_masks.json")
NAMES = ("no encoder, open", "no encoder, causal mask", "encoder, open", "encoder, causal mask")


class Reverser(Transformer):
    """A Transformer that may have the causal mask on its memory, too."""

    causal_memory = False

    def memory_mask(self, src: Tensor, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Return the mask of the cross-attention, [1, 1, q_len, q_len] if it is the wrong one."""
        return causal_mask(q_len) if self.causal_memory else super().memory_mask(src, tgt_so_far, q_len)


class NoEncoder(nn.Module):
    """Hands the letters' embeddings, with their positions, on as the memory."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return x as it is."""
        return x


def train(name: str, seed: int, steps: int = reversal.STEPS) -> Reverser:
    """Return the model `name` of NAMES, trained with the recipe of `reversal`."""
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(map(repr, NAMES))}, got {name!r}")
    torch.manual_seed(seed)
    model = Reverser(TransformerConfig(**reversal.CONFIG))
    model.causal_memory = name.endswith("causal mask")
    if name.startswith("no"):
        model.encoder = NoEncoder()
    return reversal.fit(model, seed, steps)


def new_letters(size: int = 500) -> tuple[Tensor, Tensor, Tensor]:
    """Return letters [size, 6], what the decoder reads, and the answer: the same for every model."""
    return reversal.reversal(size, torch.Generator().manual_seed(99))


def weights_of(model: Transformer) -> Tensor:
    """Return the weights of the cross-attention, mean over sentences and heads, [letter written, letter read]."""
    return reversal.cross_weights(model)[1].mean(dim=(0, 1))
