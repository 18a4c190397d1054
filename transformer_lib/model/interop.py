"""PyTorch's own modules, and the weights of GPT-2, BERT, Llama and its relatives, into ours: same outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from .._validate import check_mask
from . import modern
from .base import WithoutMemory
from .decoder import Decoder, DecoderLayer
from .encoder import Encoder, EncoderLayer
from .layers import LayerNorm, Residual
from .multihead import MultiHeadAttention
from .one_stack import LanguageModel, MaskedLanguageModel
from .peer_config import BERT, GPT2, choices


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


def load_gpt2(weights: Mapping[str, Tensor] | str | Path, config: Any = None) -> LanguageModel:
    """Return GPT-2 (Radford et al. 2019) with these weights, as a model of this library.

    Its blocks are an `EncoderLayer` each, pre-norm and with biases, under a causal mask; positions are learned and
    added; the table of the words is the output head, too.

    Args:
        weights: the state dict of `GPT2LMHeadModel` of transformers, or of its `GPT2Model`, as names without
            "transformer." are; or a .safetensors file, or a folder of them.
        config: its configuration, an object of transformers or the dictionary of a config.json; by default the
            config.json of the folder. It tells what weights do not: n_head, activation_function and
            layer_norm_epsilon. What a dictionary leaves out is as GPT-2 has it.

    Raises:
        TypeError: config is neither. ValueError: an entry is missing, left over, or of another shape; d_model is not
            divisible by n_head; the configuration has something that our blocks do not compute, such as
            scale_attn_by_inverse_layer_idx, or contradicts the weights.
    """
    weights, config = _weights_and_config(weights, config)
    left = _Weights(weights, "transformer.", ignored=(".attn.bias", ".attn.masked_bias"))  # constants: the mask
    words, places = left.take("wte.weight"), left.take("wpe.weight")
    left.drop_copy("lm_head.weight", of=words)
    sizes: dict[str, Any] = {
        "n_layers": left.count("h."),
        "d_model": words.shape[1],
        "d_ff": len(left.look("h.0.mlp.c_fc.bias")),
    }
    said = choices(GPT2, config, sizes | {"vocab_size": len(words), "max_len": len(places)})
    options: dict[str, Any] = {"norm_first": True, "attention_bias": True, "activation": said.activation}
    lengths: dict[str, Any] = {"position": "learned", "max_len": len(places), "scale": 1.0}
    model = LanguageModel(len(words), n_heads=said.n_heads, **sizes, **lengths, **options)
    _set_eps(model, said.eps)
    _set(model.embedding, "weight", words)
    _set(model.position, "table", places)
    left.fill("ln_f", model.stack.norm)
    for number, layer in enumerate(model.stack.layers):
        for name, modules in _gpt2_parts(layer).items():
            left.fill(f"h.{number}.{name}", *modules, turned=True)
    left.finish()
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


def load_bert(weights: Mapping[str, Tensor] | str | Path, config: Any = None) -> MaskedLanguageModel:
    """Return BERT (Devlin et al. 2019) with these weights, as a model of this library.

    Its blocks are an `EncoderLayer` each, post-norm and with biases, under a padding mask; see `MaskedLanguageModel`
    for what comes before and after them.

    Args:
        weights: the state dict of `BertForMaskedLM` of transformers; or a .safetensors file, or a folder of them.
            Entries of a pooler and of a guess at the next sentence, as `BertForPreTraining` has them, are left out,
            and "gamma" and "beta" of old files are weight and bias of a norm.
        config: its configuration, an object of transformers or the dictionary of a config.json; by default the
            config.json of the folder. It tells what weights do not: num_attention_heads, hidden_act and
            layer_norm_eps. What a dictionary leaves out is as BERT has it.

    Raises:
        TypeError: config is neither. ValueError: an entry is missing, left over, or of another shape; d_model is not
            divisible by num_attention_heads; the configuration has something that our blocks do not compute, such as
            is_decoder, or contradicts the weights.
    """
    weights, config = _weights_and_config(weights, config)
    of_others = [f"{name}.{kind}" for name in ("pooler.dense", "cls.seq_relationship") for kind in ("weight", "bias")]
    others = ("embeddings.position_ids", *of_others)
    left = _Weights(_new_names(weights), "bert.", ignored=others)
    names = {"word": "words", "position": "places", "token_type": "segments"}
    tables = {ours: left.take(f"embeddings.{theirs}_embeddings.weight") for theirs, ours in names.items()}
    bias = left.take("cls.predictions.bias")
    left.drop_copy("cls.predictions.decoder.weight", of=tables["words"])
    left.drop_copy("cls.predictions.decoder.bias", of=bias)
    d_ff = len(left.look("encoder.layer.0.intermediate.dense.bias"))
    sizes: dict[str, Any] = {
        "n_layers": left.count("encoder.layer."),
        "d_model": tables["words"].shape[1],
        "d_ff": d_ff,
    }
    lengths: dict[str, Any] = {"max_len": len(tables["places"]), "n_segments": len(tables["segments"])}
    said = choices(BERT, config, sizes | lengths | {"vocab_size": len(tables["words"])})
    options: dict[str, Any] = {"activation": said.activation, "eps": said.eps}
    model = MaskedLanguageModel(len(tables["words"]), n_heads=said.n_heads, **sizes, **lengths, **options)
    for owner, attribute, tensor in (
        (model.embedding, "weight", tables["words"]),
        (model.position, "table", tables["places"]),
        (model.segment, "weight", tables["segments"]),
        (model, "bias", bias),
    ):
        _set(owner, attribute, tensor)
    left.fill("embeddings.LayerNorm", model.norm)
    left.fill("cls.predictions.transform.dense", model.transform)
    left.fill("cls.predictions.transform.LayerNorm", model.head_norm)
    for number, layer in enumerate(model.stack.layers):
        for name, module in _bert_parts(layer).items():
            left.fill(f"encoder.layer.{number}.{name}", module)
    left.finish()
    return model


def _new_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a state dict in which a norm has a weight and a bias, as in all but the oldest files."""
    return {name.replace(".gamma", ".weight").replace(".beta", ".bias"): weight for name, weight in weights.items()}


def _set_eps(model: nn.Module, eps: float) -> None:
    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.eps = eps


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


# What a key means that a config.json leaves out: the defaults of transformers' classes, where ours need them.
HF_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6},
    "qwen3": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "head_dim": 128, "num_key_value_heads": 32},
    "mistral": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-5,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
}


def load_hf(weights: Mapping[str, Tensor] | str | Path, config: Any = None) -> modern.LanguageModel:
    """Return Llama, Qwen3, Mistral or Mixtral with these weights, as a model of `tl.modern`.

    These are the blocks of Touvron et al. (2023), with normed queries and keys (Yang et al. 2025), with a sliding
    window (Jiang et al. 2023), and with experts (Jiang et al. 2024).

    Args:
        weights: the state dict of `LlamaForCausalLM`, `Qwen3ForCausalLM`, `MistralForCausalLM` or `MixtralForCausalLM`
            of transformers; or a .safetensors file, or a folder of them.
        config: its configuration, an object of transformers or the dictionary of a config.json. By default the
            config.json of the folder.

    Raises:
        ValueError: an entry is missing, left over, or of another shape; the configuration has something that
            `modern.Config` does not, such as a scaled rotary position or biases.
    """
    weights, config = _weights_and_config(weights, config)
    with WithoutMemory():  # each parameter is replaced
        model = modern.LanguageModel(hf_config(config))
    left = _Weights(weights, "model.", ignored=("rotary_emb.inv_freq",))
    words = left.take("embed_tokens.weight")
    _set(model.embedding, "weight", words, "state_dict['model.embed_tokens.weight']")
    if model.config.tied:
        left.drop_copy("lm_head.weight", of=words)
        model.head.weight = model.embedding.weight
    else:
        left.fill_weight("lm_head", model.head)
    left.fill_weight("norm", model.norm)
    for number, layer in enumerate(model.layers):
        for name, module in _hf_parts(layer).items():
            left.fill_weight(f"layers.{number}.{name}", module)
        if isinstance(layer.feed_forward, modern.MixtureOfExperts):
            _fill_experts(left, f"layers.{number}.", layer.feed_forward)
    left.finish()
    return model


def hf_config(config: Any) -> modern.Config:
    """Return the sizes and choices of a configuration of transformers, as an object or the dictionary of config.json.

    Raises:
        ValueError: it is of another kind of model, or has something that `modern.Config` does not.
    """
    given = dict(config) if isinstance(config, Mapping) else config.to_dict()
    kind = given.get("model_type")
    if kind not in HF_DEFAULTS:
        raise ValueError(f"config must have a model_type of {', '.join(map(repr, HF_DEFAULTS))}, got {kind!r}")
    given = HF_DEFAULTS[kind] | given
    _refuse_others(given)
    more: dict[str, Any] = {"feed_forward": "swiglu"}
    if kind == "mixtral":
        more = {
            "feed_forward": "experts",
            "n_experts": given["num_local_experts"],
            "experts_per_token": given["num_experts_per_tok"],
        }
    return modern.Config(
        vocab_size=_entry(given, "vocab_size"),
        d_model=_entry(given, "hidden_size"),
        n_heads=_entry(given, "num_attention_heads"),
        n_layers=_entry(given, "num_hidden_layers"),
        d_ff=_entry(given, "intermediate_size"),
        n_kv_heads=given.get("num_key_value_heads"),
        d_head=given.get("head_dim"),
        eps=given["rms_norm_eps"],
        rope_base=_rope_base(given),
        qk_norm=kind == "qwen3",
        window=_window(given, kind),
        tied=bool(given.get("tie_word_embeddings", False)),
        **more,
    )


def _entry(given: Mapping[str, Any], name: str) -> int:
    if name not in given:
        raise ValueError(f"config must have {name!r}, got without it {', '.join(sorted(given)[:4])}, …")
    return given[name]


def _refuse_others(given: Mapping[str, Any]) -> None:
    """Raise where the model has what our blocks do not: biases, another activation than silu, quantised weights."""
    for name in ("attention_bias", "mlp_bias"):
        if given.get(name):
            raise ValueError(f"config must have {name} = False, got {given[name]!r}")
    if given.get("hidden_act", "silu") != "silu":
        raise ValueError(f"config must have hidden_act = 'silu', got {given['hidden_act']!r}")
    if given.get("quantization_config"):
        raise ValueError("config must have weights in floats, quantization_config = None, got one")


def _rope_base(given: Mapping[str, Any]) -> float:
    """Return the base of the rotary frequencies, which transformers 5 keeps in `rope_parameters`.

    Before, it was `rope_theta` of the configuration itself, and a scaling stood in `rope_scaling`.
    """
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    scaled = rope.get("rope_type", rope.get("type", "default"))
    if scaled != "default":
        raise ValueError(f"config must have rotary positions of rope_type 'default', got {scaled!r}")
    others = sorted(rope.keys() - {"rope_type", "type", "rope_theta", "partial_rotary_factor"})
    if others:
        raise ValueError(f"config must have one kind of unscaled rotary positions, got {others[0]!r} in theirs")
    part = rope.get("partial_rotary_factor", given.get("partial_rotary_factor", 1.0))
    if part not in (None, 1.0):
        raise ValueError(f"config must rotate all features, partial_rotary_factor = 1, got {part}")
    return float(rope.get("rope_theta", given["rope_theta"]))


def _window(given: Mapping[str, Any], kind: str) -> int | None:
    """Return the sliding window, which counts the position itself; a model has one for all layers, or none."""
    window: int | None = given.get("sliding_window")
    if kind == "llama" or window is None or not given.get("use_sliding_window", kind != "qwen3"):
        return None
    n_layers = _entry(given, "num_hidden_layers")
    full = min(given.get("max_window_layers", 28), n_layers) if kind == "qwen3" else 0  # the first ones have no window
    kinds = given.get("layer_types") or ["full_attention"] * full + ["sliding_attention"] * (n_layers - full)
    if len(set(kinds)) > 1:
        raise ValueError(f"config must have one kind of attention in all layers, got {', '.join(kinds)}")
    return window if kinds[0] == "sliding_attention" else None


def _weights_and_config(weights: Mapping[str, Tensor] | str | Path, config: Any) -> tuple[Mapping[str, Tensor], Any]:
    """Return a state dict and a configuration, read from files where `weights` is a path."""
    if not isinstance(weights, Mapping):
        return _read_hf(Path(weights), config)
    if config is None:
        raise ValueError("config must be given with a state dict: the weights do not tell the heads, got None")
    return weights, config


def _read_hf(path: Path, config: Any) -> tuple[dict[str, Tensor], Any]:
    """Return the weights of a .safetensors file or a folder of them, and the configuration: the given one, or its."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files or not all(file.exists() for file in files):
        raise ValueError(f"weights must be a state dict, a .safetensors file or a folder with one, got {path}")
    described = (path if path.is_dir() else path.parent) / "config.json"
    if config is None and described.exists():
        config = json.loads(described.read_text(encoding="utf-8"))
    if config is None:
        raise ValueError(f"config must be given, or be in config.json beside the weights, got neither in {path}")
    return {name: tensor for file in files for name, tensor in load_file(file).items()}, config


def _hf_parts(layer: Any) -> dict[str, nn.Module]:
    """Return which module of a `modern.Block` each of Llama's is; the experts have their own names."""
    attention, feed_forward = layer.attention, layer.feed_forward
    parts = {
        "input_layernorm": layer.attention_norm,
        "self_attn.q_proj": attention.w_q,
        "self_attn.k_proj": attention.w_k,
        "self_attn.v_proj": attention.w_v,
        "self_attn.o_proj": attention.w_o,
        "post_attention_layernorm": layer.feed_forward_norm,
    }
    if isinstance(attention.q_norm, modern.RMSNorm):
        parts |= {"self_attn.q_norm": attention.q_norm, "self_attn.k_norm": attention.k_norm}
    if isinstance(feed_forward, modern.SwiGLU):
        names = ("gate", "up", "down")
        parts |= {f"mlp.{name}_proj": getattr(feed_forward, name) for name in names}
    return parts


def _fill_experts(weights: _Weights, layer: str, ours: modern.MixtureOfExperts) -> None:
    """Fill Mixtral's experts, from a state dict of transformers 5, which stacks them, or from a file, as published."""
    stacked = f"{layer}mlp.experts.gate_up_proj"
    if stacked not in weights.left:
        weights.fill_weight(f"{layer}block_sparse_moe.gate", ours.router)
        for number, expert in enumerate(ours.experts):
            for name, part in (("w1", "gate"), ("w3", "up"), ("w2", "down")):
                weights.fill_weight(f"{layer}block_sparse_moe.experts.{number}.{name}", getattr(expert, part))
        return
    weights.fill_weight(f"{layer}mlp.gate", ours.router)
    both, down = weights.take(stacked), weights.take(f"{layer}mlp.experts.down_proj")
    for entry, whole in ((stacked, both), (f"{layer}mlp.experts.down_proj", down)):
        if len(whole) != len(ours.experts):
            raise ValueError(f"state_dict['model.{entry}'] must have {len(ours.experts)} experts, got {len(whole)}")
    for number, expert in enumerate(ours.experts):
        parts = (*both[number].chunk(2), down[number])
        for name, weight in zip(("gate", "up", "down"), parts, strict=True):
            _set(getattr(expert, name), "weight", weight, f"state_dict, expert {number},")


class _Weights:
    """A state dict that is taken entry by entry, so that errors can name what is missing and what is left over.

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

    def fill_weight(self, name: str, module: nn.Module) -> None:
        """Make `name.weight` the weight of a module that has no bias."""
        _set(module, "weight", self.take(f"{name}.weight"), f"state_dict['{name}.weight']")

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
