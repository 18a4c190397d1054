"""What a configuration of `transformers` says of GPT-2 or BERT: each field that changes the outputs is used or refused.

Weights alone do not tell how many heads they are for, which activation is between them or how a norm is protected, and
a model built on a wrong guess computes something, without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACTIVATIONS_OF_PEERS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(frozen=True)
class Peer:
    """One family: how its fields are named, what they mean where they are left out, and which values ours have.

    Args:
        model_type: as config.json has it. heads, activation, eps: names of the fields that are used.
        defaults: of `transformers`' class, for fields that a file may leave out.
        only: fields of which our blocks compute one value, with this value.
        sizes: fields that the weights tell, too: what of the weights they must agree with.
    """

    model_type: str
    heads: str
    activation: str
    eps: str
    defaults: Mapping[str, Any]
    only: Mapping[str, Any]
    sizes: Mapping[str, str]


GPT2 = Peer(
    "gpt2",
    "n_head",
    "activation_function",
    "layer_norm_epsilon",
    {"n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
    {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    {
        "vocab_size": "vocab_size",
        "n_positions": "max_len",
        "n_embd": "d_model",
        "n_layer": "n_layers",
        "n_inner": "d_ff",
    },
)
BERT = Peer(
    "bert",
    "num_attention_heads",
    "hidden_act",
    "layer_norm_eps",
    {"num_attention_heads": 12, "hidden_act": "gelu", "layer_norm_eps": 1e-12},
    {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False},
    {
        "vocab_size": "vocab_size",
        "max_position_embeddings": "max_len",
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
        "intermediate_size": "d_ff",
        "type_vocab_size": "n_segments",
    },
)


@dataclass(frozen=True)
class Choices:
    """What the weights do not tell: heads per layer, our name of the activation, ε of every norm."""

    n_heads: int
    activation: str
    eps: float


def choices(peer: Peer, config: Any, sizes: Mapping[str, int]) -> Choices:
    """Return what a configuration says beyond the weights.

    Args:
        config: an object of transformers, or the dictionary of a config.json. Fields that have no part in a model's
            outputs, such as rates of dropout, are passed over. sizes: what the weights tell, by our names.

    Raises:
        TypeError: it is neither. ValueError: a field has a value that our blocks do not compute, or that contradicts
            the weights.
    """
    given = _as_dictionary(peer, config)
    if given.get("model_type", peer.model_type) != peer.model_type:
        raise ValueError(f"config must have a model_type of {peer.model_type!r}, got {given['model_type']!r}")
    for name, wanted in (*peer.only.items(), ("quantization_config", None)):
        value = given.get(name)
        if value is not None and value != wanted:
            raise ValueError(f"config must have {name} = {wanted!r}, got {value!r}")
    for name, ours in peer.sizes.items():
        value = given.get(name)
        if value is not None and value != sizes[ours]:
            raise ValueError(f"config must have {name} = {sizes[ours]}, as the weights have, got {value!r}")
    said = {**peer.defaults, **given}
    activation = said[peer.activation]
    if activation not in ACTIVATIONS_OF_PEERS:
        known = ", ".join(map(repr, ACTIVATIONS_OF_PEERS))
        raise ValueError(f"config must have {peer.activation} one of {known}, got {activation!r}")
    return Choices(said[peer.heads], ACTIVATIONS_OF_PEERS[activation], float(said[peer.eps]))


def _as_dictionary(peer: Peer, config: Any) -> dict[str, Any]:
    if isinstance(config, Mapping):
        return dict(config)
    if hasattr(config, "to_dict"):
        return dict(config.to_dict())
    what = f"a configuration of transformers or a dictionary such as {{{peer.heads!r}: 12}}"
    raise TypeError(f"config must be {what}, got {config!r}")
