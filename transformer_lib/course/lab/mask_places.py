"""A translator's logits with one of its four masks left out (notebook 12)."""

from __future__ import annotations

import torch
from torch import Tensor

from ...model.evaluating import evaluating
from ...model.masks import causal_mask, padding_mask
from ...model.transformer import Transformer

MASKS = ("source padding, in the encoder", "source padding, in the memory", "later words", "target padding")


@torch.no_grad()
def logits(model: Transformer, src: Tensor, tgt_in: Tensor, without: str | None = None) -> Tensor:
    """Return the logits [batch, tgt_len, vocab_size] that the model gives without one mask.

    Args:
        src, tgt_in: ids [batch, src_len] and [batch, tgt_len]. without: one of MASKS, or None for the whole model.

    Raises:
        ValueError: `without` is none of MASKS.
    """
    if without is not None and without not in MASKS:
        raise ValueError(f"without must be one of {', '.join(map(repr, MASKS))}, got {without!r}")
    pad_id, factor = model.config.pad_id, model.config.d_model**0.5
    in_encoder, in_memory, later, real = (name != without for name in MASKS)
    source = padding_mask(src, pad_id)
    target = causal_mask(tgt_in.shape[1]) | torch.tensor(not later)
    if real:
        target = target & padding_mask(tgt_in, pad_id)
    with evaluating(model):
        memory = model.encoder(
            model.position(model.src_embedding(src) * factor), source if in_encoder else torch.ones_like(source)
        )
        rows = model.position(model.tgt_embedding(tgt_in) * factor)
        return model.output_head(model.decoder(rows, memory, target, source if in_memory else torch.ones_like(source)))
