"""What training and decoding ask of a model, be it a `Transformer` or something to compare it with."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from .cache import DecoderCache
from .config import TransformerConfig


def initialise(model: nn.Module, embeddings: Iterable[nn.Embedding]) -> None:
    """Xavier for the matrices, N(0, 1/d_model) for the embeddings, which × √d_model have unit-sized entries."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for embedding in embeddings:
        nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)


class TranslationModel(nn.Module):
    """A model that reads source ids and gives logits for target ids; a subclass says how.

    Attributes:
        config: vocabulary sizes, special ids and max_len are what training and decoding look at.
    """

    config: TransformerConfig

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size] for src [batch, src_len] and tgt_in [batch, tgt_len]."""
        return self.decode(tgt_in, self.encode(src), src)

    def encode(self, src: Tensor) -> Tensor:
        """Return what the decoder needs of the source, a tensor whose first axis is the batch."""
        raise NotImplementedError

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits for tgt_in; with a cache, for the tokens after those that it holds."""
        raise NotImplementedError

    def new_cache(self) -> DecoderCache | None:
        """Return an empty cache for `decode`, or None where the target is read again at each step."""
        return None
