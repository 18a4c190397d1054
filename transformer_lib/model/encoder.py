"""The encoder (Vaswani et al. 2017, §3.1): self-attention, then feed-forward, n_layers times."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .._validate import check_flag, check_int, check_sequence
from .cache import KeyValueCache
from .layers import FeedForward, LayerNorm, Residual
from .multihead import MultiHeadAttention
from .positional import make_score_position


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each inside a `Residual`.

    Args:
        d_model, n_heads, d_ff: sizes. dropout: on each sub-layer's output.
        norm_first: pre-norm instead of the paper's post-norm.
        attention_bias: whether the attention projections have biases. bias: whether everything else has.
        activation: of the feed-forward network, as there. position: "rotary", "relative" or "none"; those that are
            added to the embeddings act outside the layer.
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
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation, bias=bias)
        wrap: dict[str, Any] = {"dropout": dropout, "norm_first": norm_first, "bias": bias}
        self.self_attention_residual = Residual(d_model, **wrap)
        self.feed_forward_residual = Residual(d_model, **wrap)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, cache: KeyValueCache | None = None) -> Tensor:
        """Return x [batch, seq_len, d_model] after both sub-layers; `mask` and `cache` as in `MultiHeadAttention`."""
        check_sequence("x", x, self.d_model)
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, mask, cache=cache))
        return self.feed_forward_residual(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of `EncoderLayer`s with their own weights; `final_norm` closes a pre-norm stack.

    Args:
        n_layers: how many. d_model, n_heads, d_ff, layer_options: as for `EncoderLayer`.
        final_norm: whether a LayerNorm follows the last layer; by default only with norm_first.
    """

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
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers))
        wants_norm = layer_options.get("norm_first", False) if final_norm is None else final_norm
        self.norm = LayerNorm(d_model, bias=layer_options.get("bias", True)) if wants_norm else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the memory [batch, src_len, d_model] for embedded tokens x of that shape."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
