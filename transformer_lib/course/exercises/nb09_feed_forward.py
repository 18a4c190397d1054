"""Exercises of notebook 09, continued: the feed-forward layer, and its parameters."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def feed_forward(x, W_1, b_1, W_2, b_2):
    """Return max(0, x W_1 + b_1) W_2 + b_2, for every token on its own.

    x: [..., d_model]; W_1: [d_model, d_ff]; b_1: [d_ff]; W_2: [d_ff, d_model]; b_2: [d_model]. Returns [..., d_model].
    """
    hidden = torch.einsum("...i,ij->...j", x, W_1) + b_1
    return torch.einsum("...j,ji->...i", torch.where(hidden > 0, hidden, 0), W_2) + b_2


def feed_forward_parameters(d_model, d_ff, bias):
    """Return the number of parameters of a feed-forward layer: two linear maps, d_model to d_ff and back.

    bias: True if both maps have a bias.
    """
    weights = d_model * d_ff + d_ff * d_model
    return weights + d_ff + d_model if bias else weights


def _ffn_case(label, seed, shape, d_ff):
    d_model = shape[-1]
    return Case(label, tuple(normal(seed, shape, (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,))))


def _ffn_cases():
    return [
        _ffn_case("one token, d_model 2, d_ff 3", 111, (1, 2), 3),
        _ffn_case("5 tokens, d_model 3, d_ff 11", 112, (5, 3), 11),
        _ffn_case("a batch of 2 with 3 tokens, d_model 5, d_ff 7", 113, (2, 3, 5), 7),
        _ffn_case("d_ff = d_model", 114, (3, 7), 7),
        _ffn_case("d_ff smaller than d_model", 115, (2, 7, 5), 2),
    ]


def _count_cases():
    return [
        Case("d_model 2, d_ff 3, with biases", (2, 3, True)),
        Case("d_model 2, d_ff 3, without", (2, 3, False)),
        Case("d_model 7, d_ff 11, with biases", (7, 11, True)),
        Case("d_ff smaller than d_model", (13, 5, True)),
        Case("the base model", (512, 2048, True)),
    ]


def _ffn(activate=torch.relu, before=True, last=False, b_1=True, b_2=True):
    """The feed-forward layer, each slip a switch."""

    def function(x, W_1, bias_1, W_2, bias_2):
        hidden = x @ W_1 + (bias_1 if b_1 and before else 0)
        hidden = activate(hidden) + (0 if before else bias_1)
        output = hidden @ W_2 + (bias_2 if b_2 else 0)
        return torch.relu(output) if last else output

    return function


EXERCISES = (
    Exercise(
        "09.3",
        "Feed-forward",
        6,
        1,
        feed_forward,
        _ffn_cases,
        (
            Mistake(
                "no ReLU",
                _ffn(activate=lambda h: h),
                "The maximum with 0 is missing; without it the two maps are one affine map.",
            ),
            Mistake(
                "ReLU at the end",
                _ffn(activate=lambda h: h, last=True),
                "The maximum with 0 stands at the end; it stands between the two maps.",
            ),
            Mistake(
                "ReLU twice",
                _ffn(last=True),
                "There is a second maximum with 0, after the second map; the output may be negative.",
            ),
            Mistake(
                "bias after",
                _ffn(before=False),
                "b_1 is added after the maximum; it shifts where each hidden unit switches on.",
            ),
            Mistake("no b_1", _ffn(b_1=False), "b_1 is missing."),
            Mistake("no b_2", _ffn(b_2=False), "b_2 is missing."),
            Mistake(
                "residual",
                lambda x, *rest: x + feed_forward(x, *rest),
                "You added x: that is the residual connection, which belongs to the block, not to this layer.",
            ),
            Mistake("absolute", _ffn(activate=torch.abs), "You took absolute values; negative numbers become 0."),
        ),
        gradients=("x", "W_1", "b_1", "W_2", "b_2"),
    ),
    Exercise(
        "09.4",
        "Parameters of a feed-forward layer",
        5,
        1,
        feed_forward_parameters,
        _count_cases,
        (
            Mistake(
                "one map",
                lambda d, f, bias: d * f + (d + f if bias else 0),
                "That is one matrix; there are two, d_model × d_ff and d_ff × d_model.",
            ),
            Mistake("no biases", lambda d, f, bias: 2 * d * f, "The biases are missing when bias is True."),
            Mistake(
                "always biases", lambda d, f, bias: 2 * d * f + d + f, "You counted biases although bias is False."
            ),
            Mistake(
                "d_model twice",
                lambda d, f, bias: 2 * d * f + (2 * d if bias else 0),
                "The first bias has d_ff entries, one per hidden unit; the second d_model.",
            ),
            Mistake(
                "d_ff twice",
                lambda d, f, bias: 2 * d * f + (2 * f if bias else 0),
                "The second bias has d_model entries, one per output; the first d_ff.",
            ),
            Mistake(
                "always four",
                lambda d, f, bias: 8 * d * d + (5 * d if bias else 0),
                "You took d_ff = 4 · d_model; d_ff is given.",
            ),
            Mistake(
                "a factor",
                lambda d, f, bias: 2 * d * d * f + (d + d * f if bias else 0),
                "You multiplied d_ff by d_model once more: d_ff is the hidden width itself, no factor.",
            ),
        ),
    ),
)
