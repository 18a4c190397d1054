"""What training and decoding ask of a model, be it a `Transformer` or something to compare it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

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


def check_has_config(name: str, model: object) -> None:
    """Raise TypeError unless `model` describes itself as a `TranslationModel` does; a translator's model does."""
    if not isinstance(model, nn.Module) or not isinstance(getattr(model, "config", None), TransformerConfig):
        hint = "; take its .model" if isinstance(getattr(model, "model", None), nn.Module) else ""
        kind = type(model).__name__
        raise TypeError(f"{name} must be a module with a TransformerConfig as its config, got {kind}{hint}")


class WithoutMemory(TorchFunctionMode):
    """Within the `with` block, matrices and tables are shapes alone, on the meta device, and no random number is drawn.

    Gains, biases and positions are small and made of numbers: torch loads its compiler, for over a second, to compute
    on that device.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return named["tensor"]
        if func is torch.empty:
            return func(*args, **named | {"device": "meta"})
        return (torch.zeros if func is torch.randn else func)(*args, **named)


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
