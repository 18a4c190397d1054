"""What a causal mask on the memory costs, where the task needs later source words (notebook 11).

Six letters are written in reverse, with and without an encoder layer, with and without the wrong mask.
`python -m transformer_lib.course.studies.memory_masks` trains each of the four with every seed and for every number of
steps, and writes data/memory_masks.json.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..._files import DATA
from ..._streams import run_command
from ...model.config import TransformerConfig
from ...model.masks import causal_mask
from ...model.transformer import Transformer
from . import reversal, stored

RESULTS = DATA / "memory_masks.json"
STEPS = (80, 150, 750)
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


@torch.no_grad()
def right_letters(model: Transformer) -> list[float]:
    """Return the share of right letters at each of the six places, the right earlier letters given."""
    src, tgt_in, tgt_out = new_letters()
    right = (model(src, tgt_in).argmax(dim=-1) == tgt_out).double().mean(dim=0)
    return [round(share, 3) for share in right.tolist()]


def weights_of(model: Transformer) -> Tensor:
    """Return the weights of the cross-attention, mean over sentences and heads, [letter written, letter read]."""
    return reversal.cross_weights(model)[1].mean(dim=(0, 1))


def measure(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what the file stores: {name: {steps: for each seed six shares}}."""
    right: dict[str, dict[str, list[list[float]]]] = {name: {} for name in NAMES}
    for name, steps in itertools.product(NAMES, STEPS):
        right[name][str(steps)] = [right_letters(train(name, seed, steps)) for seed in seeds]
        print(name, steps, right[name][str(steps)], flush=True)
    return {"right": right}


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the command wrote; `["right"]["encoder, open"]["150"][seed]` has a share for each place."""
    return stored.read(path)


def main() -> None:
    """Run the command line."""
    seeds, path = stored.arguments(__doc__, RESULTS)
    stored.measure_and_save("memory_masks", seeds, path, measure)


if __name__ == "__main__":
    run_command(main)
