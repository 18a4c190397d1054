"""What a configuration of `transformers` says of Llama or a relative: each field is used, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import modern
from ..positional import RotaryScaling

# What a key means that a config.json leaves out: the defaults of transformers' classes, where ours need them.
HF_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6},
    "qwen2": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "num_key_value_heads": 32},
    "qwen3": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "head_dim": 128, "num_key_value_heads": 32},
    "smollm3": {
        "rope_theta": 2000000.0,
        "rms_norm_eps": 1e-6,
        "num_key_value_heads": 4,
        "tie_word_embeddings": True,
        "no_rope_layer_interval": 4,
    },
    "mistral": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-5,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
}

# What our blocks lack for the weights of other kinds, by model_type.
LACKING: dict[str, str] = {
    "cohere": "a layer whose attention and feed-forward network read the same input, and LayerNorm without biases",
    "deepseek_v2": "keys and values made of one compressed vector (MLA), experts that all tokens share",
    "deepseek_v3": "keys and values made of one compressed vector (MLA), experts that all tokens share",
    "falcon": "one matrix for queries, keys and values, and a layer whose two sub-layers read the same input",
    "gemma": "an RMSNorm with a gain of 1 + w, and SwiGLU with the GELU of tanh in place of silu",
    "gemma2": "an RMSNorm with a gain of 1 + w, norms behind sub-layers, soft caps on scores and logits, windows in "
    "every second layer alone, and SwiGLU with the GELU of tanh in place of silu",
    "gemma3": "images; and in its text model what gemma3_text has",
    "gemma3_text": "an RMSNorm with a gain of 1 + w, norms behind sub-layers, windows in five of six layers with a "
    "rotary base of their own, and SwiGLU with the GELU of tanh in place of silu",
    "gpt_neox": "one matrix for queries, keys and values, rotary positions of a part of the features, and a layer "
    "whose two sub-layers read the same input",
    "gpt_oss": "a learned score for nothing at all in each head's softmax (sinks), biases everywhere, clamped gates, "
    "and windows in every second layer alone",
    "granite": "multipliers of embeddings, scores, sub-layers and logits",
    "mamba": "a recurrent state in place of attention",
    "olmo2": "norms behind sub-layers in place of before them, and an RMSNorm over the queries of all heads together",
    "olmo3": "norms behind sub-layers in place of before them, and an RMSNorm over the queries of all heads together",
    "phi3": "one matrix for queries, keys and values and one for both halves of SwiGLU (in larger ones also rotary "
    "positions of type 'longrope')",
    "qwen2_moe": "an expert that all tokens share, with a gate of its own",
    "qwen3_moe": "a router that weighs before it chooses, experts under names of their own, and layers without any",
    "roberta": "positions that are counted from pad_id + 1 on, and a head under other names",
    "t5": "an encoder-decoder whose RMSNorms and positions as biases of scores are arranged otherwise",
}
_READERS = {"gpt2": "load_gpt2", "bert": "load_bert"}
# What of rope_parameters a rope_type uses beside the base.
_OF_SCALING = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}


def hf_config(config: Any) -> modern.Config:
    """Return the sizes and choices of a configuration of transformers, as an object or the dictionary of config.json.

    Raises:
        TypeError: it is neither. ValueError: it is of another kind of model, and what our blocks lack for it; or it has
            something that `modern.Config` does not.
    """
    given = _with_defaults(config)
    _refuse_others(given)
    kind = given["model_type"]
    base, scaling = _rotation(given)
    return modern.Config(
        vocab_size=_entry(given, "vocab_size"),
        d_model=_entry(given, "hidden_size"),
        n_heads=_entry(given, "num_attention_heads"),
        n_layers=_entry(given, "num_hidden_layers"),
        d_ff=_entry(given, "intermediate_size"),
        n_kv_heads=given.get("num_key_value_heads"),
        d_head=given.get("head_dim"),
        eps=given["rms_norm_eps"],
        rope_base=base,
        rope_scaling=scaling,
        rotary_layers=_rotary_layers(given) if kind == "smollm3" else None,
        qkv_bias=kind == "qwen2",
        qk_norm=kind == "qwen3",
        window=_window(given),
        tied=bool(given.get("tie_word_embeddings", False)),
        **(_experts(given) if kind == "mixtral" else {}),
    )


def _with_defaults(config: Any) -> dict[str, Any]:
    """Return a configuration as a dictionary, with what its class would add, if it is of a kind that ours can be."""
    if not isinstance(config, Mapping) and not hasattr(config, "to_dict"):
        what = "a configuration of transformers or the dictionary of a config.json"
        raise TypeError(f"config must be {what}, got {config!r}")
    given = dict(config) if isinstance(config, Mapping) else config.to_dict()
    kind = given.get("model_type")
    if kind in HF_DEFAULTS:
        return HF_DEFAULTS[kind] | given
    message = f"config must have a model_type of {', '.join(map(repr, HF_DEFAULTS))}, got {kind!r}"
    if kind in _READERS:
        raise ValueError(f"{message}: tl.interop.{_READERS[kind]} reads it")
    raise ValueError(f"{message}, which has {LACKING[kind]}" if kind in LACKING else message)


def _entry(given: Mapping[str, Any], name: str) -> Any:
    if given.get(name) is None:
        raise ValueError(f"config must have {name!r}, got without it {', '.join(sorted(given)[:4])}, …")
    return given[name]


def _refuse_others(given: Mapping[str, Any]) -> None:
    """Raise where the model has what our blocks do not: other biases, another activation, quantised weights."""
    for name in ("attention_bias", "mlp_bias"):
        if given.get(name):
            raise ValueError(f"config must have {name} = False, got {given[name]!r}")
    if given.get("hidden_act", "silu") != "silu":
        raise ValueError(f"config must have hidden_act = 'silu', got {given['hidden_act']!r}")
    if given.get("quantization_config"):
        raise ValueError("config must have weights in floats, quantization_config = None, got one")


def _experts(given: Mapping[str, Any]) -> dict[str, Any]:
    sizes = {"n_experts": given["num_local_experts"], "experts_per_token": given["num_experts_per_tok"]}
    return {"feed_forward": "experts", **sizes}


def _rotation(given: Mapping[str, Any]) -> tuple[float, RotaryScaling | None]:
    """Return the base of the rotary frequencies, and how these are scaled.

    transformers 5 keeps all of it in `rope_parameters`. Before, the base was `rope_theta` of the configuration itself,
    and the scaling stood in `rope_scaling`.
    """
    rope = _rope_parameters(given)
    base, kind = float(rope.get("rope_theta", given["rope_theta"])), rope.get("rope_type", rope.get("type", "default"))
    if kind not in _OF_SCALING:
        known = ", ".join(map(repr, _OF_SCALING))
        raise ValueError(f"config must have rotary positions of rope_type {known}, got {kind!r}")
    others = sorted(rope.keys() - {"rope_type", "type", "rope_theta", "partial_rotary_factor", *_OF_SCALING[kind]})
    if others:
        raise ValueError(f"config must have rotary positions of one kind, {kind!r}, got {others[0]!r} in theirs")
    part = rope.get("partial_rotary_factor", given.get("partial_rotary_factor", 1.0))
    if part not in (None, 1.0):
        raise ValueError(f"config must rotate all features, partial_rotary_factor = 1, got {part}")
    return base, _scaling(kind, rope, given)


def _rope_parameters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    today, before = given.get("rope_parameters") or {}, given.get("rope_scaling") or {}
    if today and before and today != before:
        raise ValueError(f"config must have rope_parameters or rope_scaling, got both: {today} and {before}")
    return today or before


def _scaling(kind: str, rope: Mapping[str, Any], given: Mapping[str, Any]) -> RotaryScaling | None:
    if kind == "default":
        return None
    factor = float(_entry(rope, "factor"))
    if kind == "linear":
        return RotaryScaling(factor=factor)
    low, high = (float(_entry(rope, f"{which}_freq_factor")) for which in ("low", "high"))
    return RotaryScaling(factor=factor, original_length=_original_length(rope, given), low=low, high=high)


def _original_length(rope: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    """Return the length of the first training, which some configurations have beside the other rotary parameters."""
    name = "original_max_position_embeddings"
    lengths = {place[name] for place in (rope, given) if place.get(name) is not None}
    if len(lengths) > 1:
        raise ValueError(f"config must have one {name}, got {given[name]} and, in the rotary parameters, {rope[name]}")
    return lengths.pop() if lengths else _entry(given, "max_position_embeddings")


def _rotary_layers(given: Mapping[str, Any]) -> tuple[bool, ...] | None:
    """Return which layers of SmolLM3 have rotary positions: by default all but every fourth."""
    n_layers, interval = _entry(given, "num_hidden_layers"), given["no_rope_layer_interval"]
    listed = given.get("no_rope_layers") or [number % interval for number in range(1, n_layers + 1)]
    rotary = tuple(map(bool, listed[:n_layers]))  # named after what a 0 means
    return None if all(rotary) and len(rotary) == n_layers else rotary


def _window(given: Mapping[str, Any]) -> int | None:
    """Return the sliding window, which counts the position itself; a model has one for all layers, or none."""
    window: int | None = given.get("sliding_window")
    used = given.get("use_sliding_window", given["model_type"] in ("mistral", "mixtral"))
    if given["model_type"] == "llama" or window is None or not used:
        return None
    kinds = given.get("layer_types") or _kinds_of_layers(given)
    if len(set(kinds)) > 1:
        raise ValueError(f"config must have one kind of attention in all layers, got {', '.join(kinds)}")
    return window if kinds[0] == "sliding_attention" else None


def _kinds_of_layers(given: Mapping[str, Any]) -> list[str]:
    """Return the kind of each layer as transformers has it where use_sliding_window is all that is said."""
    n_layers = _entry(given, "num_hidden_layers")
    full = [False] * n_layers
    if given["model_type"] in ("qwen2", "qwen3"):
        full = [number < given.get("max_window_layers", 28) for number in range(n_layers)]
    if given["model_type"] == "smollm3":
        full = list(_rotary_layers(given) or (True,) * n_layers)
    return ["full_attention" if one else "sliding_attention" for one in full]
