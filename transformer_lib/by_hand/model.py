"""The encoder-decoder as a whole: masks, forward, backward, and a first set of parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .blocks import (
    Parameters,
    decoder_layer,
    decoder_layer_backward,
    encoder_layer,
    encoder_layer_backward,
)
from .parts import (
    Array,
    Ids,
    Mask,
    Saved,
    cross_entropy,
    cross_entropy_backward,
    embed,
    embed_backward,
    linear,
    linear_backward,
)

SRC_TABLE = "src_embedding.weight"
COMPUTED = {"norm_first": False, "position": "sinusoidal"}  # fields of `tl.TransformerConfig` that have one value here
UNUSED = frozenset({"dropout", "max_len"})  # and those that may have any


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The fields of `tl.TransformerConfig` that matter here, under the same names.

    `Sizes.of` makes them from a model's configuration, and refuses what is not computed here.

    Raises:
        ValueError: d_model is odd or not divisible by n_heads, or tied vocabularies differ.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    tie_embeddings: bool = False  # one table for source, target and output head, stored under the source's name
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        if self.d_model % 2 or self.d_model % self.n_heads:
            raise ValueError(f"d_model must be even and divisible by n_heads {self.n_heads}, got {self.d_model}")
        if self.tie_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            sizes = f"{self.src_vocab_size} and {self.tgt_vocab_size}"
            raise ValueError(f"src_vocab_size and tgt_vocab_size must be equal for tie_embeddings, got {sizes}")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Sizes:
        """Return the sizes of a model with this configuration, such as `model.config.to_dict()`.

        Dropout is left out, and there is no longest sequence: `dropout` and `max_len` may be anything.

        Raises:
            ValueError: a field says what the model by hand does not compute, such as norm_first=True.
        """
        known = cls.__dataclass_fields__.keys()
        for name in sorted(config.keys() - known - UNUSED):
            if name not in COMPUTED:
                raise ValueError(f"config must have no field that by_hand does not know, got {name}={config[name]!r}")
            if config[name] != COMPUTED[name]:
                raise ValueError(f"config must have {name}={COMPUTED[name]!r}, as by_hand has, got {config[name]!r}")
        return cls(**{name: value for name, value in config.items() if name in known})

    @property
    def tgt_table(self) -> str:
        """The name of the target's embedding table."""
        return SRC_TABLE if self.tie_embeddings else "tgt_embedding.weight"

    @property
    def head(self) -> str:
        """The name of the output head's weight."""
        return SRC_TABLE if self.tie_embeddings else "output_head.weight"


def new_parameters(sizes: Sizes, seed: int = 0, dtype: type[np.floating] = np.float64) -> Parameters:
    """Return fresh parameters: Xavier for matrices, N(0, 1/d_model) for embeddings, biases 0, gains 1."""
    rng = np.random.default_rng(seed)
    d_model = sizes.d_model
    parameters: Parameters = {SRC_TABLE: rng.normal(size=(sizes.src_vocab_size, d_model)) / math.sqrt(d_model)}
    if not sizes.tie_embeddings:
        parameters[sizes.tgt_table] = rng.normal(size=(sizes.tgt_vocab_size, d_model)) / math.sqrt(d_model)
        parameters[sizes.head] = _xavier(rng, sizes.tgt_vocab_size, d_model)
    for stack, attentions in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        for layer in range(sizes.n_layers):
            _add_layer(parameters, f"{stack}.layers.{layer}", attentions, sizes, rng)
    return {name: array.astype(dtype) for name, array in parameters.items()}


def _add_layer(
    parameters: Parameters, name: str, attentions: tuple[str, ...], sizes: Sizes, rng: np.random.Generator
) -> None:
    d_model, d_ff = sizes.d_model, sizes.d_ff
    for attention in attentions:
        for matrix in ("w_q", "w_k", "w_v", "w_o"):
            parameters[f"{name}.{attention}_attention.{matrix}.weight"] = _xavier(rng, d_model, d_model)
    for part, d_out, d_in in (("expand", d_ff, d_model), ("contract", d_model, d_ff)):
        parameters[f"{name}.feed_forward.{part}.weight"] = _xavier(rng, d_out, d_in)
        parameters[f"{name}.feed_forward.{part}.bias"] = np.zeros(d_out)
    for sublayer in (*(f"{attention}_attention" for attention in attentions), "feed_forward"):
        parameters[f"{name}.{sublayer}_residual.norm.weight"] = np.ones(d_model)
        parameters[f"{name}.{sublayer}_residual.norm.bias"] = np.zeros(d_model)


def _xavier(rng: np.random.Generator, d_out: int, d_in: int) -> Array:
    bound = math.sqrt(6 / (d_in + d_out))
    return rng.uniform(-bound, bound, size=(d_out, d_in))


def padding_mask(ids: Ids, pad_id: int) -> Mask:
    """Return which keys are real tokens, [batch, seq_len] -> [batch, 1, 1, seq_len]."""
    return np.asarray(ids != pad_id)[:, None, None, :]


def causal_mask(seq_len: int) -> Mask:
    """Return which keys are not later than the query, [1, 1, seq_len, seq_len]."""
    return np.tril(np.ones((1, 1, seq_len, seq_len), dtype=bool))


def encode(parameters: Parameters, sizes: Sizes, src: Ids) -> tuple[Array, Saved]:
    """Return the memory [batch, src_len, d_model] of source ids [batch, src_len]."""
    x, saved_embedding = embed(src, parameters[SRC_TABLE])
    mask, saved_layers = padding_mask(src, sizes.pad_id), []
    for layer in range(sizes.n_layers):
        x, saved = encoder_layer(x, parameters, f"encoder.layers.{layer}", sizes.n_heads, mask)
        saved_layers.append(saved)
    return x, (saved_embedding, saved_layers)


def encode_backward(g_memory: Array, saved: Saved, gradients: Parameters) -> None:
    """Write the gradients of the encoder and of the source table."""
    saved_embedding, saved_layers = saved
    for layer, saved_layer in reversed(list(enumerate(saved_layers))):
        g_memory = encoder_layer_backward(g_memory, saved_layer, gradients, f"encoder.layers.{layer}")
    _add(gradients, SRC_TABLE, embed_backward(g_memory, saved_embedding))


def decode(parameters: Parameters, sizes: Sizes, tgt_in: Ids, memory: Array, src: Ids) -> tuple[Array, Saved]:
    """Return logits [batch, tgt_len, tgt_vocab_size]; row t scores the token after tgt_in[:, t].

    Args:
        tgt_in: target ids beginning with bos [batch, tgt_len]. memory: that of src. src: [batch, src_len].
    """
    x, saved_embedding = embed(tgt_in, parameters[sizes.tgt_table])
    tgt_mask = causal_mask(tgt_in.shape[1]) & padding_mask(tgt_in, sizes.pad_id)  # [batch, 1, tgt_len, tgt_len]
    masks, saved_layers = (tgt_mask, padding_mask(src, sizes.pad_id)), []
    for layer in range(sizes.n_layers):
        x, saved = decoder_layer(x, memory, parameters, f"decoder.layers.{layer}", sizes.n_heads, *masks)
        saved_layers.append(saved)
    logits, saved_head = linear(x, parameters[sizes.head])
    return logits, (saved_embedding, saved_layers, saved_head)


def decode_backward(g_logits: Array, saved: Saved, gradients: Parameters, sizes: Sizes) -> Array:
    """Write the gradients of the head, the decoder and the target table; return g_memory, summed over the layers."""
    saved_embedding, saved_layers, saved_head = saved
    g_x, g_head, _ = linear_backward(g_logits, saved_head)
    _add(gradients, sizes.head, g_head)
    shares = []
    for layer, saved_layer in reversed(list(enumerate(saved_layers))):
        g_x, share = decoder_layer_backward(g_x, saved_layer, gradients, f"decoder.layers.{layer}")
        shares.append(share)
    _add(gradients, sizes.tgt_table, embed_backward(g_x, saved_embedding))
    return np.sum(shares, axis=0)


def _add(gradients: Parameters, name: str, g: Array) -> None:
    """Add g: a table that is used in several places gets the sum of their gradients."""
    gradients[name] = gradients[name] + g if name in gradients else g


def forward(parameters: Parameters, sizes: Sizes, src: Ids, tgt_in: Ids) -> tuple[Array, Saved]:
    """Return logits [batch, tgt_len, tgt_vocab_size] for src [batch, src_len] and tgt_in [batch, tgt_len]."""
    memory, saved_encoder = encode(parameters, sizes, src)
    logits, saved_decoder = decode(parameters, sizes, tgt_in, memory, src)
    return logits, (saved_encoder, saved_decoder)


def backward(g_logits: Array, saved: Saved, sizes: Sizes) -> Parameters:
    """Return the gradient of every parameter, by its name."""
    saved_encoder, saved_decoder = saved
    gradients: Parameters = {}
    g_memory = decode_backward(g_logits, saved_decoder, gradients, sizes)
    encode_backward(g_memory, saved_encoder, gradients)
    return gradients


def loss_and_gradients(
    parameters: Parameters, sizes: Sizes, src: Ids, tgt: Ids, label_smoothing: float = 0.0
) -> tuple[float, Parameters]:
    """Return the mean loss per real label of src [batch, src_len], tgt [batch, tgt_len + 1], and all gradients.

    tgt goes from bos to eos: the decoder reads all but its last token, and the labels are all but its first.
    """
    logits, saved = forward(parameters, sizes, src, tgt[:, :-1])
    loss, saved_loss = cross_entropy(logits, tgt[:, 1:], pad_id=sizes.pad_id, label_smoothing=label_smoothing)
    return loss, backward(cross_entropy_backward(saved_loss), saved, sizes)


def greedy(parameters: Parameters, sizes: Sizes, src: Ids, max_new_tokens: int) -> Ids:
    """Return ids [batch, 1 + up to max_new_tokens]: bos, then the likeliest token each time; after eos, padding.

    Raises:
        ValueError: a parameter is NaN or infinite; argmax would take NaN for the likeliest.
    """
    for name, array in parameters.items():
        if not np.isfinite(array).all():
            raise ValueError(f"parameters must be finite, got {array[~np.isfinite(array)][0]} in {name}")
    memory, _ = encode(parameters, sizes, src)
    tokens, ended = np.full((len(src), 1), sizes.bos_id), np.zeros(len(src), dtype=bool)
    for _ in range(max_new_tokens):
        logits, _ = decode(parameters, sizes, tokens, memory, src)
        chosen = np.where(ended, sizes.pad_id, logits[:, -1].argmax(axis=-1))
        tokens = np.concatenate((tokens, chosen[:, None]), axis=1)
        ended |= chosen == sizes.eos_id
        if ended.all():
            break
    return tokens
