"""A translator of one's own on the clinic's bench (notebook 17): a batch, other tokens, and one more instrument."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data.corpora import load_corpus
from ...decoding.translator import Translator

Model = Callable[[Tensor, Tensor], Tensor]
PADDING = 3  # how many padding tokens `padding_effect` puts behind each source


def held_out_batch(translator: Translator, size: int = 16) -> tuple[Tensor, Tensor]:
    """Return held-out sentences of different lengths as one padded batch.

    Args:
        translator: whose tokenizers are used. size: how many sentences.

    Returns:
        src [size, src_len] and tgt [size, tgt_len], from `<bos>` to `<eos>`.
    """
    pairs = load_corpus("context")["heldout"][:size]
    src = translator.src_tokenizer.encode_batch([pair.src for pair in pairs])
    return src, translator.tgt_tokenizer.encode_batch([pair.tgt for pair in pairs], bos=True, eos=True)


def other_tokens(ids: Tensor, vocab_size: int, first: int = 4) -> Tensor:
    """Return words that differ from ids [batch, len] at every position; the first `first` ids are no words."""
    return first + (ids + 1 - first).clamp(min=0) % (vocab_size - first)


@torch.no_grad()
def padding_effect(model: Model, src: Tensor, tgt_in: Tensor, pad_id: int = 0) -> float:
    """Return the largest change of the logits at real positions when three padding tokens follow each source."""
    longer = F.pad(src, (0, PADDING), value=pad_id)
    return (model(longer, tgt_in) - model(src, tgt_in))[tgt_in != pad_id].abs().max().item()
