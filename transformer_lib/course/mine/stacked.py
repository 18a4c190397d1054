"""A single stack of encoder layers whose every part can be the learner's: a language model, or one that fills gaps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..._validate import check_ids
from ...model.encoder import Encoder
from .layers import Layers, beyond_parts
from .library import Parts


class AssembledStack(Layers, nn.Module):
    """Computes with `Parts` what a tied table and a post-norm `Encoder` with sinusoidal positions compute.

    Args:
        embedding: the table of both ends. stack: the layers. Both are used and trained as they are.
        parts: the functions. pad_id: fills up shorter sentences.

    Raises:
        ValueError: a pre-norm stack, one whose positions act inside the attention, or one with another activation than
            ReLU, biases or dropout in its attention, or a norm after its last layer.
    """

    def __init__(self, embedding: nn.Embedding, stack: Encoder, parts: Parts, pad_id: int = 0) -> None:
        super().__init__()
        reason = beyond_parts(stack)
        if reason is not None:
            wanted = "post-norm, with its positions outside (position='none'), and the rest as by default"
            raise ValueError(f"stack must be {wanted}, got another {reason}")
        if embedding.max_norm is not None:
            raise ValueError(f"embedding must have max_norm None, got {embedding.max_norm}")
        self.embedding, self.stack, self.parts, self.pad_id = embedding, stack, parts, pad_id

    def forward(self, ids: Tensor, prefix_lengths: Tensor | None = None) -> Tensor:
        """Return logits [batch, seq_len, vocab_size] of ids [batch, seq_len].

        prefix_lengths [batch] says how many tokens of each row all may see each other; by default none, so that the
        mask is causal.
        """
        ids = check_ids("ids", ids, self.embedding.num_embeddings)
        lengths = torch.zeros(len(ids), dtype=torch.long) if prefix_lengths is None else prefix_lengths
        table = self.embedding.weight
        return self.parts.stack_logits(
            ids,
            lengths.to(ids.device),
            self._embed,
            lambda x, mask: self._layers(self.stack, x, mask),
            lambda hidden: self.parts.similarity(hidden, table),
            self.pad_id,
        )

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.parts.embed(ids, self.embedding.weight)
        return x + self.parts.sinusoidal_table(ids.shape[1], x.shape[-1]).to(x)
