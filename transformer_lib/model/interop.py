"""PyTorch's own modules into ours: same weights, same outputs, our mask convention."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from .._validate import check_mask
from .decoder import Decoder, DecoderLayer
from .encoder import Encoder, EncoderLayer
from .layers import LayerNorm
from .multihead import MultiHeadAttention


class EncoderDecoder(nn.Module):
    """An encoder and a decoder stack without embeddings and output head: what `nn.Transformer` is."""

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Return [batch, tgt_len, d_model] for embedded src [batch, src_len, d_model] and tgt."""
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)


def invert_mask(mask: Tensor) -> Tensor:
    """Turn our mask (True = may attend) into `nn.MultiheadAttention`'s (True = may not), or back."""
    return ~check_mask("mask", mask)


def from_torch(module: nn.Module) -> nn.Module:
    """Return our module with `module`'s weights, dtype and mode; its inputs are batch first and its masks ours.

    Args:
        module: an nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer or nn.Transformer,
            pre- or post-norm, with or without biases, ReLU or GELU.

    Raises:
        TypeError: another kind of module. ValueError: an option that ours does not have.
    """
    converters: dict[type, Callable[[Any], nn.Module]] = {
        nn.MultiheadAttention: _attention,
        nn.TransformerEncoderLayer: _encoder_layer,
        nn.TransformerDecoderLayer: _decoder_layer,
        nn.Transformer: _transformer,
    }
    for kind, convert in converters.items():
        if isinstance(module, kind):
            return convert(module).to(next(module.parameters())).train(module.training)
    raise TypeError(f"module must be one of {', '.join(k.__name__ for k in converters)}, got {type(module).__name__}")


def _attention(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    for name, wanted in (("bias_k", None), ("bias_v", None), ("add_zero_attn", False), ("_qkv_same_embed_dim", True)):
        if getattr(theirs, name) is not wanted:
            raise ValueError(f"module must have {name.lstrip('_')} = {wanted}, got {getattr(theirs, name)}")
    has_bias = theirs.in_proj_bias is not None
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads, bias=has_bias, dropout=theirs.dropout)
    projections = (ours.w_q, ours.w_k, ours.w_v)
    weights = theirs.in_proj_weight.chunk(3)
    biases = theirs.in_proj_bias.chunk(3) if has_bias else (None,) * 3
    for projection, weight, bias in zip(projections, weights, biases, strict=True):
        _copy(projection, weight, bias)
    _copy(ours.w_o, theirs.out_proj.weight, theirs.out_proj.bias)
    return ours


def _encoder_layer(theirs: nn.TransformerEncoderLayer) -> EncoderLayer:
    ours = EncoderLayer(*_sizes(theirs), **_options(theirs))
    ours.self_attention = _attention(theirs.self_attn)
    _copy_feed_forward(ours, theirs)
    _copy_norms((ours.self_attention_residual.norm, ours.feed_forward_residual.norm), (theirs.norm1, theirs.norm2))
    return ours


def _decoder_layer(theirs: nn.TransformerDecoderLayer) -> DecoderLayer:
    ours = DecoderLayer(*_sizes(theirs), **_options(theirs))
    ours.self_attention = _attention(theirs.self_attn)
    ours.cross_attention = _attention(theirs.multihead_attn)
    _copy_feed_forward(ours, theirs)
    residuals = (ours.self_attention_residual, ours.cross_attention_residual, ours.feed_forward_residual)
    _copy_norms((r.norm for r in residuals), (theirs.norm1, theirs.norm2, theirs.norm3))
    return ours


def _transformer(theirs: nn.Transformer) -> EncoderDecoder:
    encoder_layers = [_encoder_layer(layer) for layer in theirs.encoder.layers]
    decoder_layers = [_decoder_layer(layer) for layer in theirs.decoder.layers]
    sizes = (theirs.d_model, theirs.nhead, 1)
    encoder, decoder = Encoder(1, *sizes), Decoder(1, *sizes)  # stacks whose layers and norms are then replaced
    encoder.layers, decoder.layers = nn.ModuleList(encoder_layers), nn.ModuleList(decoder_layers)
    encoder.norm, decoder.norm = _norm(theirs.encoder.norm), _norm(theirs.decoder.norm)
    return EncoderDecoder(encoder, decoder)


def _sizes(theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> tuple[int, int, int]:
    """Return d_model, n_heads, d_ff."""
    return theirs.self_attn.embed_dim, theirs.self_attn.num_heads, theirs.linear1.out_features


def _options(theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> dict[str, Any]:
    """Return the options that both of our layers take, read off PyTorch's layer."""
    activations = {torch.nn.functional.relu: "relu", torch.nn.functional.gelu: "gelu"}
    if theirs.activation not in activations:
        raise ValueError(f"module must have the activation relu or gelu, got {theirs.activation!r}")
    has_bias = theirs.linear1.bias is not None
    return {
        "dropout": theirs.dropout1.p,
        "norm_first": theirs.norm_first,
        "attention_bias": has_bias,
        "bias": has_bias,
        "activation": activations[theirs.activation],
    }


def _copy_feed_forward(
    ours: EncoderLayer | DecoderLayer, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
) -> None:
    _copy(ours.feed_forward.expand, theirs.linear1.weight, theirs.linear1.bias)
    _copy(ours.feed_forward.contract, theirs.linear2.weight, theirs.linear2.bias)


def _copy_norms(ours: Iterable[LayerNorm], theirs: Iterable[nn.LayerNorm]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        mine.eps = other.eps
        _copy(mine, other.weight, other.bias)


def _norm(theirs: nn.LayerNorm | None) -> LayerNorm | nn.Identity:
    if theirs is None:
        return nn.Identity()
    ours = LayerNorm(theirs.normalized_shape[0], bias=theirs.bias is not None)
    _copy_norms([ours], [theirs])
    return ours


def _copy(ours: Any, weight: Tensor, bias: Tensor | None) -> None:
    ours.weight = nn.Parameter(weight.detach().clone())
    ours.bias = None if bias is None else nn.Parameter(bias.detach().clone())
