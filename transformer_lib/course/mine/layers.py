"""The library's layers, computed with `Parts`: what a whole Transformer and a single stack have in common."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from ...model.encoder import Encoder, EncoderLayer
from ...model.layers import FeedForward, LayerNorm
from ...model.multihead import MultiHeadAttention
from .library import Function, Parts

_RESIDUALS = ("self_attention_residual", "feed_forward_residual")
_MAPS = ("w_q", "w_k", "w_v", "w_o")


def beyond_parts(stack: Encoder) -> str | None:
    """Return which option of a stack of encoder layers the parts do not compute, or None."""
    for number, layer in enumerate(cast("list[EncoderLayer]", stack.layers)):
        own = layer.self_attention
        computed = {
            **{f"{name}.norm_first": not getattr(layer, name).norm_first for name in _RESIDUALS},
            "self_attention.position": own.position is None,
            "self_attention.dropout": not own.dropout,
            **{f"self_attention.{name}.bias": getattr(own, name).bias is None for name in _MAPS},
            "feed_forward.activation": layer.feed_forward.activation == "relu",
        }
        for name, is_so in computed.items():
            if not is_so:
                return f"layers.{number}.{name}"
    return None if isinstance(stack.norm, nn.Identity) else "norm (final_norm=True)"


class Layers:
    """Computes post-norm layers with `parts`, and with the weights of the library's modules."""

    parts: Parts

    def _layers(self, stack: Encoder, x: Tensor, mask: Tensor) -> Tensor:
        for layer in cast("list[EncoderLayer]", stack.layers):
            x = self._encoder_layer(layer, x, mask)
        return x

    def _encoder_layer(self, layer: EncoderLayer, x: Tensor, mask: Tensor) -> Tensor:
        attention, feed_forward = layer.self_attention_residual, layer.feed_forward_residual
        return self.parts.encoder_layer(
            x,
            lambda y: attention.dropout(self._attend(layer.self_attention, y, y, y, mask)),
            lambda y: feed_forward.dropout(self._feed_forward(layer.feed_forward, y)),
            self._norm(attention.norm),
            self._norm(feed_forward.norm),
        )

    def _attend(
        self, attention: MultiHeadAttention, asking: Tensor, key_from: Tensor, value_from: Tensor, mask: Tensor
    ) -> Tensor:
        """Return multi-head attention, [batch, q_len, d_model]: what makes the queries, the keys and the values."""
        matrices = [linear.weight.T for linear in (attention.w_q, attention.w_k, attention.w_v)]
        query, key, value = self.parts.project(asking, *matrices)
        if key_from is not asking:
            _, key, value = self.parts.project(key_from, *matrices)
        if value_from is not key_from:
            value = self.parts.project(value_from, *matrices)[2]
        q, k, v = (self.parts.split_heads(part, attention.n_heads) for part in (query, key, value))
        output, weights = self.parts.masked_attention(q, k, v, mask)
        if attention.recorder is not None:
            attention.recorder(weights.detach())
        return self.parts.merge_heads(output) @ attention.w_o.weight.T

    def _feed_forward(self, layer: FeedForward, x: Tensor) -> Tensor:
        first, second = layer.expand, layer.contract
        return self.parts.feed_forward(x, first.weight.T, _bias(first), second.weight.T, _bias(second))

    def _norm(self, norm: LayerNorm) -> Function:
        return lambda x: self.parts.layer_norm(x, norm.weight, _bias(norm), norm.eps)


def _bias(module: nn.Linear | LayerNorm) -> Tensor:
    """Return a module's bias [rows], zeros where it has none: the parts add one always."""
    return module.weight.new_zeros(len(module.weight)) if module.bias is None else module.bias
