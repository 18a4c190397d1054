"""The whole Transformer by hand, in NumPy alone: every forward function with its backward beside it.

Read `parts` first (arrays in, arrays out), then `blocks` (layers, which find their parameters by name), `model` (the
encoder-decoder) and `training` (Adam and the learning rate); `replaced` puts other functions in their place. The model
is that of `tl.Transformer` with its defaults, post-norm, ReLU and sinusoidal positions, without dropout; parameters are
a dictionary with the names of its `state_dict()`, where tied weights have one entry, under `src_embedding.weight`.
Nothing here imports PyTorch.

>>> import numpy as np
>>> from transformer_lib import by_hand
>>> sizes = by_hand.Sizes(src_vocab_size=11, tgt_vocab_size=13, d_model=8, n_heads=2, n_layers=1, d_ff=16)
>>> parameters = by_hand.new_parameters(sizes, seed=0)
>>> src, tgt = np.array([[5, 4, 3]]), np.array([[1, 3, 4, 5, 2]])
>>> losses = by_hand.train(parameters, sizes, [(src, tgt)] * 100, rate=lambda step: 0.01)
>>> by_hand.greedy(parameters, sizes, src, max_new_tokens=5)
array([[1, 3, 4, 5, 2]])
"""

from __future__ import annotations

from .blocks import (
    Parameters,
    add_and_norm,
    add_and_norm_backward,
    decoder_layer,
    decoder_layer_backward,
    encoder_layer,
    encoder_layer_backward,
    feed_forward,
    feed_forward_backward,
    merge_heads,
    multi_head,
    multi_head_backward,
    project,
    project_backward,
    split_heads,
)
from .model import (
    Sizes,
    backward,
    causal_mask,
    decode,
    decode_backward,
    encode,
    encode_backward,
    forward,
    greedy,
    loss_and_gradients,
    new_parameters,
    padding_mask,
)
from .parts import (
    Array,
    Ids,
    Mask,
    Saved,
    attention,
    attention_backward,
    cross_entropy,
    cross_entropy_backward,
    embed,
    embed_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    relu,
    relu_backward,
    softmax,
    softmax_backward,
)
from .replacing import replaced
from .training import Adam, adam_step, clip, cosine_rate, train

__all__ = [
    "Adam",
    "Array",
    "Ids",
    "Mask",
    "Parameters",
    "Saved",
    "Sizes",
    "adam_step",
    "add_and_norm",
    "add_and_norm_backward",
    "attention",
    "attention_backward",
    "backward",
    "causal_mask",
    "clip",
    "cosine_rate",
    "cross_entropy",
    "cross_entropy_backward",
    "decode",
    "decode_backward",
    "decoder_layer",
    "decoder_layer_backward",
    "embed",
    "embed_backward",
    "encode",
    "encode_backward",
    "encoder_layer",
    "encoder_layer_backward",
    "feed_forward",
    "feed_forward_backward",
    "forward",
    "greedy",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "loss_and_gradients",
    "merge_heads",
    "multi_head",
    "multi_head_backward",
    "new_parameters",
    "padding_mask",
    "project",
    "project_backward",
    "relu",
    "relu_backward",
    "replaced",
    "softmax",
    "softmax_backward",
    "split_heads",
    "train",
]
