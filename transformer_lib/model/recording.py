"""Reading the attention weights of a model without changing how it is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from .multihead import MultiHeadAttention


class AttentionRecord(dict[str, Tensor]):
    """{layer name: weights [batch, n_heads, q_len, k_len]} of the latest call; `calls` has every call in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[Tensor]] = {}

    def add(self, name: str, weights: Tensor) -> None:
        """Store one call's weights."""
        self[name] = weights
        self.calls.setdefault(name, []).append(weights)


@contextmanager
def record_attention(model: nn.Module) -> Iterator[AttentionRecord]:
    """Record the attention weights of every call made inside the `with` block.

    Args:
        model: any module that contains `MultiHeadAttention`; names are as in `model.named_modules()`,
            for example "encoder.layers.0.self_attention".

    Raises:
        TypeError, ValueError: `model` is no module, or has no `MultiHeadAttention`.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    layers = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    if not layers:
        raise ValueError(f"model must contain a MultiHeadAttention, and {type(model).__name__} has none")
    record = AttentionRecord()
    before = {name: module.recorder for name, module in layers.items()}
    try:
        for name, module in layers.items():
            module.recorder = lambda weights, name=name: record.add(name, weights)
        yield record
    finally:
        for name, module in layers.items():
            module.recorder = before[name]
