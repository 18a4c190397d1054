"""The decoder (Vaswani et al. 2017, §3.1): masked self-attention, cross-attention, feed-forward, n_layers times."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .._validate import check_flag, check_int, check_sequence
from .cache import DecoderCache, LayerCache, check_depth
from .layers import FeedForward, LayerNorm, Residual
from .multihead import MultiHeadAttention
from .positional import make_score_position


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the encoder's memory, feed-forward, each inside a `Residual`.

    Arguments as for `EncoderLayer`; positions act in the self-attention alone.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        attention_bias: bool = False,
        bias: bool = True,
        activation: str = "relu",
        position: str = "none",
    ) -> None:
        super().__init__()
        self.d_model = d_model
        check_flag("norm_first", norm_first)
        self.self_attention = MultiHeadAttention(
            d_model, n_heads, bias=attention_bias, position=make_score_position(position, n_heads)
        )
        self.cross_attention = MultiHeadAttention(d_model, n_heads, bias=attention_bias)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation, bias=bias)
        wrap: dict[str, Any] = {"dropout": dropout, "norm_first": norm_first, "bias": bias}
        self.self_attention_residual = Residual(d_model, **wrap)
        self.cross_attention_residual = Residual(d_model, **wrap)
        self.feed_forward_residual = Residual(d_model, **wrap)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Return x [batch, tgt_len, d_model] after the three sub-layers.

        Args:
            x: target vectors. memory: the encoder's output [batch, src_len, d_model].
            tgt_mask: broadcastable to [batch, n_heads, tgt_len, tokens so far]: those in the cache, then x.
            memory_mask: broadcastable to [batch, n_heads, tgt_len, src_len].
            cache: keys and values of the tokens before x, and those of the memory.
        """
        check_sequence("x", x, self.d_model)
        check_sequence("memory", memory, self.d_model)
        if memory.shape[0] != x.shape[0]:
            raise ValueError(f"memory must have x's batch size {x.shape[0]}, got {memory.shape[0]}")
        own, cross = (cache.self_attention, cache.cross_attention) if cache is not None else (None, None)
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, tgt_mask, cache=own))
        x = self.cross_attention_residual(
            x, lambda y: self.cross_attention(y, memory, memory, memory_mask, cache=cross, static_keys=True)
        )
        return self.feed_forward_residual(x, self.feed_forward)


class Decoder(nn.Module):
    """A stack of `DecoderLayer`s; every layer reads the same memory. Arguments as for `Encoder`."""

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        final_norm: bool | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        check_int("n_layers", n_layers)
        self.layers = nn.ModuleList(DecoderLayer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers))
        wants_norm = layer_options.get("norm_first", False) if final_norm is None else final_norm
        self.norm = LayerNorm(d_model, bias=layer_options.get("bias", True)) if wants_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """Return [batch, tgt_len, d_model]; arguments as for `DecoderLayer.forward`, `cache` for all layers."""
        if cache is not None:
            check_depth(cache.layers, self.layers)
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, tgt_mask, memory_mask, cache=cache.layers[i] if cache is not None else None)
        return self.norm(x)
