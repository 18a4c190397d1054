"""Exercises of notebook 12, continued: the parameters of a layer."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake


def encoder_layer_parameters(d_model, d_ff, attention_bias):
    """Return the number of parameters of one encoder layer.

    Attention has W_Q, W_K, W_V and W_O, each d_model x d_model, and with attention_bias a bias for each;
    the feed-forward network has two matrices and two biases; two LayerNorms have a gain and a bias each.
    """
    layer = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
    total = sum(parameter.numel() for parameter in layer.parameters())
    biases = layer.self_attn.in_proj_bias.numel() + layer.self_attn.out_proj.bias.numel()
    return total if attention_bias else total - biases


def _parameter_cases():
    sizes = [("small", 3, 5), ("d_ff = 4 d_model", 7, 28), ("the paper's base model", 512, 2048), ("narrow", 11, 2)]
    return [
        Case(f"{label}, {'with' if bias else 'without'} attention biases", (d_model, d_ff, bias))
        for label, d_model, d_ff in sizes
        for bias in (False, True)
    ]


def _layer(d, f, bias, *, square=4, attention_biases=None, ff_biases=True, norms=4):
    attention = square * d * d + (4 * d if attention_biases is None else attention_biases) * bool(bias)
    return attention + 2 * d * f + (d + f) * ff_biases + norms * d


EXERCISES = (
    Exercise(
        "12.1",
        "Count the parameters of a layer",
        8,
        1,
        encoder_layer_parameters,
        _parameter_cases,
        (
            Mistake(
                "no W_O",
                lambda d, f, b: _layer(d, f, b, square=3, attention_biases=3 * d),
                "You counted three attention matrices; the output projection W_O is the fourth.",
            ),
            Mistake(
                "no norms",
                lambda d, f, b: _layer(d, f, b, norms=0),
                "The two LayerNorms are missing: a gain and a bias of d_model numbers each.",
            ),
            Mistake(
                "half norms",
                lambda d, f, b: _layer(d, f, b, norms=2),
                "You counted 2 d_model for the norms; there are two LayerNorms, each with a gain and a bias.",
            ),
            Mistake(
                "no feed-forward biases",
                lambda d, f, b: _layer(d, f, b, ff_biases=False),
                "The biases of the feed-forward network are missing: d_ff for the first, d_model for the second.",
            ),
            Mistake("never biases", lambda d, f, b: _layer(d, f, False), "You did not count the attention's biases."),
            Mistake(
                "always biases",
                lambda d, f, b: _layer(d, f, True),
                "You counted the attention's biases also when attention_bias is False.",
            ),
            Mistake(
                "one bias",
                lambda d, f, b: _layer(d, f, b, attention_biases=d),
                "Each of the four projections has a bias of its own, d_model numbers each; you counted one.",
            ),
            Mistake(
                "three biases",
                lambda d, f, b: _layer(d, f, b, attention_biases=3 * d),
                "You counted three biases; W_O has one too.",
            ),
            Mistake(
                "all biases by the flag",
                lambda d, f, b: _layer(d, f, b, ff_biases=b),
                "attention_bias is about the attention alone; the feed-forward network keeps its biases.",
            ),
            Mistake("turned flag", lambda d, f, b: _layer(d, f, not b), "attention_bias is taken the wrong way round."),
            Mistake(
                "decoder layer",
                lambda d, f, b: _layer(d, f, b, square=8, attention_biases=8 * d, norms=6),
                "That is a decoder layer; an encoder layer has one attention and two norms.",
            ),
            Mistake(
                "12 d squared",
                lambda d, f, b: _layer(d, 4 * d, b),
                "You took d_ff = 4 d_model, as in the paper; use the d_ff that is given.",
            ),
            Mistake(
                "one matrix",
                lambda d, f, b: _layer(d, f, b) - d * f,
                "The feed-forward network has two matrices: d_model x d_ff and d_ff x d_model.",
            ),
        ),
    ),
)
