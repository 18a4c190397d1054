"""PyTorch's own modules into ours: the same outputs, from the same weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..._validate import check_mask
from ..decoder import Decoder, DecoderLayer
from ..encoder import Encoder, EncoderLayer
from ..layers import LayerNorm, Residual
from ..multihead import MultiHeadAttention


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

    Dropout comes along where ours has it, on attention weights and on what sub-layers return. PyTorch's layers have one
    more, inside the feed-forward network, so that ours drop less while they are trained.

    Args:
        module: an nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer or nn.Transformer,
            pre- or post-norm, with or without biases, ReLU or GELU.

    Raises:
        TypeError: another kind of module. ValueError: an option that ours does not have; a part that is not PyTorch's
            own, or that a hook watches.
    """
    converters: dict[type, Callable[[Any], nn.Module]] = {
        nn.MultiheadAttention: _attention,
        nn.TransformerEncoderLayer: _encoder_layer,
        nn.TransformerDecoderLayer: _decoder_layer,
        nn.Transformer: _transformer,
    }
    for kind, convert in converters.items():
        if isinstance(module, kind):
            _check_parts(module)
            return convert(module).to(next(module.parameters())).train(module.training)
    raise TypeError(f"module must be one of {', '.join(k.__name__ for k in converters)}, got {type(module).__name__}")


_OWN = (
    *(nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.Transformer),
    *(nn.TransformerEncoder, nn.TransformerDecoder, nn.ModuleList, nn.Linear, nn.LayerNorm, nn.Dropout),
)


def _check_parts(module: nn.Module) -> None:
    """Raise unless all parts of a module compute what PyTorch's do, as their weights alone are copied."""
    for name, part in module.named_modules():
        last = name.rpartition(".")[2]
        if last == "activation" or "parametrizations" in name.split("."):
            continue  # the one is looked at for itself, the others only make weights
        kind = next((kind for kind in _OWN if isinstance(part, kind)), None)
        if kind is None or _overridden(part, kind):
            raise ValueError(f"module must have PyTorch's own parts, but {name or 'it'} is a {type(part).__name__}")
        if part._forward_hooks or part._forward_pre_hooks:
            raise ValueError(f"module must have no hooks, but {name or 'it'} has one")
        if isinstance(part, nn.LayerNorm) and part.weight is None:
            raise ValueError(f"module must have norms with elementwise_affine = True, but {name} has False")


def _overridden(part: nn.Module, kind: type[nn.Module]) -> bool:
    """Return whether a part has a method of its own in place of one of PyTorch's class."""
    between = type(part).__mro__[: type(part).__mro__.index(kind)]
    names = {name for base in between for name, value in vars(base).items() if callable(value)} | vars(part).keys()
    return any(callable(getattr(kind, name, None)) for name in names if not name.startswith("__"))


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
    residuals = (ours.self_attention_residual, ours.feed_forward_residual)
    _copy_residuals(residuals, (theirs.norm1, theirs.norm2), (theirs.dropout1, theirs.dropout2))
    return ours


def _decoder_layer(theirs: nn.TransformerDecoderLayer) -> DecoderLayer:
    ours = DecoderLayer(*_sizes(theirs), **_options(theirs))
    ours.self_attention = _attention(theirs.self_attn)
    ours.cross_attention = _attention(theirs.multihead_attn)
    _copy_feed_forward(ours, theirs)
    residuals = (ours.self_attention_residual, ours.cross_attention_residual, ours.feed_forward_residual)
    norms, dropouts = (theirs.norm1, theirs.norm2, theirs.norm3), (theirs.dropout1, theirs.dropout2, theirs.dropout3)
    _copy_residuals(residuals, norms, dropouts)
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
    has_bias = theirs.linear1.bias is not None
    return {
        "norm_first": theirs.norm_first,
        "attention_bias": has_bias,
        "bias": has_bias,
        "activation": _activation(theirs.activation),
    }


def _activation(theirs: object) -> str:
    """Return our name for an activation, which PyTorch has as a function or as a module."""
    if isinstance(theirs, nn.GELU):
        return "gelu" if theirs.approximate == "none" else "gelu_tanh"
    if type(theirs) is nn.ReLU:
        return "relu"
    for function, name in ((torch.nn.functional.relu, "relu"), (torch.nn.functional.gelu, "gelu")):
        if theirs is function:
            return name
    raise ValueError(f"module must have the activation relu or gelu, got {theirs!r}")


def _copy_feed_forward(
    ours: EncoderLayer | DecoderLayer, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
) -> None:
    _copy(ours.feed_forward.expand, theirs.linear1.weight, theirs.linear1.bias)
    _copy(ours.feed_forward.contract, theirs.linear2.weight, theirs.linear2.bias)


def _copy_residuals(ours: Sequence[Residual], norms: Sequence[nn.LayerNorm], dropouts: Sequence[nn.Dropout]) -> None:
    _copy_norms((residual.norm for residual in ours), norms)
    for residual, theirs in zip(ours, dropouts, strict=True):
        residual.dropout.p = theirs.p


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
    ours.weight, ours.bias = _parameter(weight), None if bias is None else _parameter(bias)


def _parameter(theirs: Tensor) -> nn.Parameter:
    """Return a copy that is trained if theirs is."""
    return nn.Parameter(theirs.detach().clone(), requires_grad=theirs.requires_grad)
