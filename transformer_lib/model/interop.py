"""PyTorch's own modules, and the weights of GPT-2 and BERT, into ours: same outputs, our mask convention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .._validate import check_mask
from .decoder import Decoder, DecoderLayer
from .encoder import Encoder, EncoderLayer
from .layers import LayerNorm
from .multihead import MultiHeadAttention
from .one_stack import LanguageModel, MaskedLanguageModel


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


def load_gpt2(state_dict: Mapping[str, Tensor], n_heads: int) -> LanguageModel:
    """Return GPT-2 (Radford et al. 2019) with these weights, as a model of this library.

    Its blocks are an `EncoderLayer` each, pre-norm and with biases, under a causal mask; positions are learned and
    added; the activation is "gelu_tanh"; the table of the words is the output head, too.

    Args:
        state_dict: of `GPT2LMHeadModel` of transformers; or of its `GPT2Model`, as names without "transformer." are.
        n_heads: per layer. The weights do not tell it, and a wrong one gives another model without an error.

    Raises:
        ValueError: an entry is missing, left over, or of another shape; d_model is not divisible by n_heads.
    """
    weights = _Weights(state_dict, "transformer.", ignored=(".attn.bias", ".attn.masked_bias"))  # constants: the mask
    words, places = weights.take("wte.weight"), weights.take("wpe.weight")
    weights.drop_copy("lm_head.weight", of=words)
    sizes = (weights.count("h."), words.shape[1], n_heads, len(weights.look("h.0.mlp.c_fc.bias")))
    options: dict[str, Any] = {"norm_first": True, "attention_bias": True, "activation": "gelu_tanh"}
    model = LanguageModel(len(words), *sizes, position="learned", max_len=len(places), scale=1.0, **options)
    _set(model.embedding, "weight", words)
    _set(model.position, "table", places)
    weights.fill("ln_f", model.stack.norm)
    for number, layer in enumerate(model.stack.layers):
        for name, modules in _gpt2_parts(layer).items():
            weights.fill(f"h.{number}.{name}", *modules, turned=True)
    weights.finish()
    return model


def _gpt2_parts(layer: Any) -> dict[str, tuple[nn.Module, ...]]:
    """Return which modules of an `EncoderLayer` each of GPT-2's is; the three projections of its attention are one."""
    attention = layer.self_attention
    return {
        "ln_1": (layer.self_attention_residual.norm,),
        "attn.c_attn": (attention.w_q, attention.w_k, attention.w_v),
        "attn.c_proj": (attention.w_o,),
        "ln_2": (layer.feed_forward_residual.norm,),
        "mlp.c_fc": (layer.feed_forward.expand,),
        "mlp.c_proj": (layer.feed_forward.contract,),
    }


def load_bert(state_dict: Mapping[str, Tensor], n_heads: int) -> MaskedLanguageModel:
    """Return BERT (Devlin et al. 2019) with these weights, as a model of this library.

    Its blocks are an `EncoderLayer` each, post-norm and with biases, under a padding mask; see `MaskedLanguageModel`
    for what stands before and behind them.

    Args:
        state_dict: of `BertForMaskedLM` of transformers. Entries of a pooler and of a guess at the next sentence, as
            `BertForPreTraining` has them, are left out.
        n_heads: per layer. The weights do not tell it, and a wrong one gives another model without an error.

    Raises:
        ValueError: an entry is missing, left over, or of another shape; d_model is not divisible by n_heads.
    """
    of_others = [f"{name}.{kind}" for name in ("pooler.dense", "cls.seq_relationship") for kind in ("weight", "bias")]
    others = ("embeddings.position_ids", *of_others)
    weights = _Weights(state_dict, "bert.", ignored=others)
    names = {"word": "words", "position": "places", "token_type": "segments"}
    tables = {ours: weights.take(f"embeddings.{theirs}_embeddings.weight") for theirs, ours in names.items()}
    bias = weights.take("cls.predictions.bias")
    weights.drop_copy("cls.predictions.decoder.weight", of=tables["words"])
    weights.drop_copy("cls.predictions.decoder.bias", of=bias)
    d_ff = len(weights.look("encoder.layer.0.intermediate.dense.bias"))
    sizes = (weights.count("encoder.layer."), tables["words"].shape[1], n_heads, d_ff)
    lengths = {"max_len": len(tables["places"]), "n_segments": len(tables["segments"])}
    model = MaskedLanguageModel(len(tables["words"]), *sizes, **lengths)
    for owner, attribute, tensor in (
        (model.embedding, "weight", tables["words"]),
        (model.position, "table", tables["places"]),
        (model.segment, "weight", tables["segments"]),
        (model, "bias", bias),
    ):
        _set(owner, attribute, tensor)
    weights.fill("embeddings.LayerNorm", model.norm)
    weights.fill("cls.predictions.transform.dense", model.transform)
    weights.fill("cls.predictions.transform.LayerNorm", model.head_norm)
    for number, layer in enumerate(model.stack.layers):
        for name, module in _bert_parts(layer).items():
            weights.fill(f"encoder.layer.{number}.{name}", module)
    weights.finish()
    return model


def _bert_parts(layer: Any) -> dict[str, nn.Module]:
    """Return which module of an `EncoderLayer` each of BERT's is."""
    return {
        "attention.self.query": layer.self_attention.w_q,
        "attention.self.key": layer.self_attention.w_k,
        "attention.self.value": layer.self_attention.w_v,
        "attention.output.dense": layer.self_attention.w_o,
        "attention.output.LayerNorm": layer.self_attention_residual.norm,
        "intermediate.dense": layer.feed_forward.expand,
        "output.dense": layer.feed_forward.contract,
        "output.LayerNorm": layer.feed_forward_residual.norm,
    }


class _Weights:
    """A state dict that is taken entry by entry, so that it can be told what is missing and what is left over.

    Args:
        prefix: of names, which not all files have. ignored: how names end that are no weights of ours.
    """

    def __init__(self, state_dict: Mapping[str, Tensor], prefix: str, *, ignored: tuple[str, ...]) -> None:
        entries = {name.removeprefix(prefix): weight for name, weight in state_dict.items()}
        self.left = {name: weight for name, weight in entries.items() if not name.endswith(ignored)}

    def look(self, name: str) -> Tensor:
        """Return an entry, and leave it there."""
        if name not in self.left:
            others = ", ".join(sorted(self.left)[:4])
            raise ValueError(f"state_dict must have {name!r}, got without it {others or 'nothing'}, …")
        return self.left[name]

    def take(self, name: str) -> Tensor:
        """Return an entry, and take it away."""
        self.look(name)
        return self.left.pop(name)

    def drop_copy(self, name: str, *, of: Tensor) -> None:
        """Take away an entry, if it is there, that must equal another."""
        if not torch.equal(self.left.pop(name, of), of):
            raise ValueError(f"state_dict[{name!r}] must be the same as what it is tied to, got other numbers")

    def count(self, prefix: str) -> int:
        """Return how many numbers follow the prefix in names: the layers."""
        return len({name.removeprefix(prefix).split(".")[0] for name in self.left if name.startswith(prefix)})

    def fill(self, name: str, *modules: nn.Module, turned: bool = False) -> None:
        """Make `name.weight` and `name.bias`, in as many equal parts as there are modules, those of the modules.

        Args:
            turned: their matrices are [in, out], as those of GPT-2's `Conv1D` are; ours are [out, in].
        """
        for kind in ("weight", "bias"):
            whole = self.take(f"{name}.{kind}")
            whole = whole.T if turned and whole.dim() == 2 else whole
            for module, part in zip(modules, whole.chunk(len(modules)), strict=True):
                _set(module, kind, part, f"state_dict['{name}.{kind}']")

    def finish(self) -> None:
        """Raise if anything is left."""
        if self.left:
            raise ValueError(f"state_dict must have what the model has, got besides {', '.join(sorted(self.left)[:4])}")


def _set(owner: nn.Module, attribute: str, tensor: Tensor, name: str = "") -> None:
    """Make a copy of a tensor the parameter of that name; its entry's name is for the error."""
    wanted = tuple(getattr(owner, attribute).shape)
    if tuple(tensor.shape) != wanted:
        raise ValueError(f"{name or attribute} must give a weight of shape {wanted}, got {tuple(tensor.shape)}")
    setattr(owner, attribute, nn.Parameter(tensor.detach().clone(memory_format=torch.contiguous_format)))
