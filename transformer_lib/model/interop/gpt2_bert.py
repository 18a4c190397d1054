"""GPT-2 and BERT: their weights in our models of one stack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..base import WithoutMemory
from ..layers import LayerNorm
from ..one_stack import LanguageModel, MaskedLanguageModel, TextEncoder
from .files import Entries
from .peer_config import BERT, GPT2, choices
from .state_dict import StateDict, opened, set_parameter


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
    return gpt2_of(*opened(weights, config))


def gpt2_of(entries: Entries, config: Any) -> LanguageModel:
    """Return GPT-2 with these entries of a state dict; see `load_gpt2`."""
    left = StateDict(entries, "transformer.", ignored=(".attn.bias", ".attn.masked_bias"))  # constants: the mask
    words, places = left.take("wte.weight"), left.take("wpe.weight")
    left.drop_copy("lm_head.weight", of=words)
    sizes: dict[str, Any] = {
        "n_layers": left.count("h."),
        "d_model": words.shape[1],
        "d_ff": left.look("h.0.mlp.c_fc.bias").shape[0],
    }
    said = choices(GPT2, config, sizes | {"vocab_size": len(words), "max_len": len(places)})
    options: dict[str, Any] = {"norm_first": True, "attention_bias": True, "activation": said.activation}
    lengths: dict[str, Any] = {"position": "learned", "max_len": len(places), "scale": 1.0}
    with WithoutMemory():  # each parameter is replaced
        model = LanguageModel(len(words), n_heads=said.n_heads, **sizes, **lengths, **options)
    _set_eps(model, said.eps)
    set_parameter(model.embedding, "weight", words)
    set_parameter(model.position, "table", places)
    left.fill("ln_f", model.stack.norm)
    for number, layer in enumerate(model.stack.layers):
        for name, modules in gpt2_parts(layer).items():
            left.fill(f"h.{number}.{name}", *modules, turned=True)
    left.finish()
    return model


def gpt2_parts(layer: Any) -> dict[str, tuple[nn.Module, ...]]:
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


def load_bert(weights: Mapping[str, Tensor] | str | Path, config: Any = None) -> TextEncoder:
    """Return BERT (Devlin et al. 2019) with these weights, as a model of this library.

    Its blocks are an `EncoderLayer` each, post-norm and with biases, under a padding mask. With a head that guesses
    hidden words it is a `MaskedLanguageModel`. Without one, as sentence encoders come (Reimers and Gurevych 2019), it
    is a `TextEncoder`, whose output `tl.mean_pool` makes one vector of.

    Args:
        weights: the state dict of `BertForMaskedLM` or `BertModel` of transformers; or a .safetensors file, or a folder
            of them. Entries of a pooler and of a guess at the next sentence, as `BertForPreTraining` has them, are left
            out, and "gamma" and "beta" of old files are weight and bias of a norm.
        config: its configuration, an object of transformers or the dictionary of a config.json; by default the
            config.json of the folder. It tells what weights do not: num_attention_heads, hidden_act and
            layer_norm_eps. What a dictionary leaves out is as BERT has it.

    Raises:
        TypeError: config is neither. ValueError: an entry is missing, left over, or of another shape; d_model is not
            divisible by num_attention_heads; the configuration has something that our blocks do not compute, such as
            is_decoder, or contradicts the weights.
    """
    return bert_of(*opened(weights, config))


_OF_OTHERS = (
    *("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"),
    *("cls.seq_relationship.weight", "cls.seq_relationship.bias"),
)


def bert_of(entries: Entries, config: Any) -> TextEncoder:
    """Return BERT with these entries of a state dict; see `load_bert`."""
    left = StateDict(_new_names(entries), "bert.", ignored=_OF_OTHERS)
    tables = {kind: left.take(f"embeddings.{kind}_embeddings.weight") for kind in ("word", "position", "token_type")}
    words, places, segments = tables.values()
    sizes: dict[str, Any] = {
        "n_layers": left.count("encoder.layer."),
        "d_model": words.shape[1],
        "d_ff": left.look("encoder.layer.0.intermediate.dense.bias").shape[0],
        "max_len": len(places),
        "n_segments": len(segments),
    }
    said = choices(BERT, config, sizes | {"vocab_size": len(words)})
    kind = MaskedLanguageModel if left.has("cls.") else TextEncoder
    with WithoutMemory():  # each parameter is replaced
        model = kind(len(words), n_heads=said.n_heads, activation=said.activation, eps=said.eps, **sizes)
    set_parameter(model.embedding, "weight", words)
    set_parameter(model.position, "table", places)
    set_parameter(model.segment, "weight", segments)
    left.fill("embeddings.LayerNorm", model.norm)
    for number, layer in enumerate(model.stack.layers):
        for name, module in bert_parts(layer).items():
            left.fill(f"encoder.layer.{number}.{name}", module)
    if isinstance(model, MaskedLanguageModel):
        _fill_head(left, model)
    left.finish()
    return model


def _fill_head(left: StateDict, model: MaskedLanguageModel) -> None:
    bias = left.take("cls.predictions.bias")
    left.drop_copy("cls.predictions.decoder.weight", of=model.embedding.weight)
    left.drop_copy("cls.predictions.decoder.bias", of=bias)
    set_parameter(model, "bias", bias)
    left.fill("cls.predictions.transform.dense", model.transform)
    left.fill("cls.predictions.transform.LayerNorm", model.head_norm)


def _new_names(entries: Entries) -> Entries:
    """Return a state dict in which a norm has a weight and a bias, as in all but the oldest files."""
    return {name.replace(".gamma", ".weight").replace(".beta", ".bias"): entry for name, entry in entries.items()}


def _set_eps(model: nn.Module, eps: float) -> None:
    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.eps = eps


def bert_parts(layer: Any) -> dict[str, nn.Module]:
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
