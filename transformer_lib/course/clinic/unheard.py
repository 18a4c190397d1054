"""Seven faults that no instrument of the clinic heard until `alone` and those of the data were built."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...model.layers import LayerNorm
from ...model.masks import padding_mask
from ...model.transformer import Transformer
from ...training.loss import shift_right
from .faults import Fault
from .patients import Patient
from .recipe import Recipe, train
from .task import EOS_ID, FIRST_ID, LETTERS, PAD_ID

FIRST = (  # instruments that need no model that has learned something, without those built for these faults
    "reported / real loss",
    "row sums",
    "weight on the future",
    "weight on padding",
    "embedding factor",
    "position factor",
    "score factor",
    "repeat",
    "future",
    "padding",
    "order",
    "tensors standing still",
    "first movement / rate",
    "gradient mismatch",
)
BUILT_LATER = ("alone", "fresh rows", "labels used", "labels right")
EARLY = (*FIRST, *BUILT_LATER)


def norm_over_batch(model: Transformer) -> None:
    """Take mean and variance over the rows of the batch, at each position, in place of the features of a token."""
    norm_over(model, dim=0)


def norm_over(model: Transformer, dim: int) -> None:
    """Let every layer norm take mean and variance over this axis of [batch, seq_len, d_model]."""

    def forward(norm: LayerNorm, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=dim, keepdim=True)
        spread = (centred.square().mean(dim=dim, keepdim=True) + norm.eps).sqrt()
        return centred / spread * norm.weight + norm.bias

    for layer in model.modules():
        if isinstance(layer, LayerNorm):
            layer.forward = lambda x, layer=layer: forward(layer, x)


def read_neighbour(model: Transformer) -> None:
    """Let each row of the batch read the memory of the row before it."""
    model.encoder.register_forward_hook(lambda module, args, memory: memory.roll(1, dims=0))


def half_dropped(model: Transformer) -> None:
    """Drop out half of everything in training, in place of a twentieth."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.5


def mask_too_strict(model: Transformer) -> None:
    """Hide each target token from itself, too; only the first may see itself, as its row would be empty."""

    def mask(tgt_so_far: Tensor, q_len: int) -> Tensor:
        k_len = tgt_so_far.shape[1]
        visible = torch.ones(k_len, k_len, dtype=torch.bool).tril(-1)
        visible[0, 0] = True
        return visible[k_len - q_len :] & padding_mask(tgt_so_far, PAD_ID)

    model.tgt_mask = mask


def without_end(tgt: Tensor) -> tuple[Tensor, Tensor]:
    """Return decoder input and labels in which the end counts as padding."""
    tgt_in, tgt_out = shift_right(tgt)
    return tgt_in, tgt_out.masked_fill(tgt_out == EOS_ID, PAD_ID)


def some_labels_random(tgt: Tensor) -> tuple[Tensor, Tensor]:
    """Return decoder input and labels, of which 15 in 100 are drawn at random."""
    tgt_in, tgt_out = shift_right(tgt)
    drawn = torch.randint(FIRST_ID, FIRST_ID + len(LETTERS), tgt_out.shape)
    hit = (torch.rand(tgt_out.shape) < 0.15) & (tgt_out != PAD_ID)
    return tgt_in, torch.where(hit, drawn, tgt_out)


UNHEARD = (
    Fault("norm over the batch", "x.mean(dim=0)", "x.mean(dim=-1)", norm_over_batch),
    Fault("memory of the neighbouring row", "memory[i - 1]", "memory[i]", read_neighbour),
    Fault("same batch every step", "batch = next(iter(loader))", "for batch in loader", draws=False),
    Fault("<eos> never a label", "ignore_index=eos_id", "ignore_index=pad_id", feed=without_end),
    Fault("15 % random labels", "labels with typing errors", "labels as they should be", feed=some_labels_random),
    Fault("dropout .5", "dropout=0.5", "dropout=0.05", half_dropped),
    Fault("causal mask one too strict", "tril(-1)", "tril()", mask_too_strict),
)

NAMES = tuple(fault.name for fault in UNHEARD)


def admit(name: str, *, seed: int = 0, steps: int = 2) -> Patient:
    """Train a model with one of these faults, and return it as a patient.

    Args:
        name: one of NAMES. seed: of the weights and the rows. steps: of training; 200 take two or three seconds.

    Raises:
        ValueError: there is no such fault.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}")
    case = UNHEARD[NAMES.index(name)]
    return Patient(name, *train(case, seed, Recipe(steps=steps)), case, seed)
