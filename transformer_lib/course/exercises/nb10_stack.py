"""Exercises of notebook 10, continued: the stack of layers, and its parameters."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def encoder_stack(x, layers, final_norm):
    """Return the memory: x after all layers, first to last, and after final_norm if there is one.

    x: [batch, seq_len, d_model]; layers: list of functions; final_norm: a function, or None (post-norm stacks).
    Returns [batch, seq_len, d_model].
    """
    for number in range(len(layers)):
        x = layers[number](x)
    return x if final_norm is None else final_norm(x)


def encoder_parameters(d_model, n_heads, d_ff, n_layers, norm_first):
    """Return the number of parameters of an encoder stack, without embeddings.

    Attention has W_Q, W_K, W_V, W_O without biases; heads have width d_model / n_heads. Feed-forward: two
    matrices, two biases. Each of a layer's two norms has a gain and a bias. A pre-norm stack (norm_first) ends
    with one more norm.
    """
    per_layer = 4 * d_model**2 + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model
    return n_layers * per_layer + (2 * d_model if norm_first else 0)


def _by_row(seed, d_model):
    """A sub-layer that works on each token alone."""
    matrix = normal(seed, (d_model, d_model))[0] / d_model**0.5
    return lambda x: torch.relu(x @ matrix.to(x)) + 0.5


def _norm(gain):
    """A layer norm with a gain, so that the two norms can be told apart."""
    return lambda x: gain * torch.layer_norm(x, x.shape[-1:]) + 0.1


def _layer(seed, d_model):
    row = _by_row(seed, d_model)
    return lambda x: x + row(x) * (1 + 0.1 * seed)


_LAYERS = {(seed, d_model): _layer(seed, d_model) for seed in range(2, 19) for d_model in (3, 5, 7)}


def _stack_case(label, seed, n_layers, final_norm, *shape):
    layers = [_LAYERS[seed + i, shape[-1]] for i in range(1, n_layers + 1)]
    return Case(label, (normal(seed, shape)[0], layers, _norm(1.3) if final_norm else None))


def _stack_cases():
    return [
        _stack_case("2 layers, no final norm", 1, 2, False, 1, 2, 3),
        _stack_case("3 layers and a final norm", 5, 3, True, 2, 5, 7),
        _stack_case("one layer", 9, 1, False, 2, 3, 5),
        _stack_case("one layer and a final norm", 11, 1, True, 3, 2, 5),
        _stack_case("5 layers", 13, 5, False, 2, 7, 3),
    ]


def _count_cases():
    return [
        Case("d_model 4, 2 heads, d_ff 6, one layer", (4, 2, 6, 1, False)),
        Case("a pre-norm stack of 3", (15, 3, 7, 3, True)),
        Case("the base model's encoder", (512, 8, 2048, 6, False)),
        Case("one layer, pre-norm", (11, 1, 5, 1, True)),
        Case("d_ff smaller than d_model", (14, 7, 3, 5, False)),
    ]


def _apply(x, layers):
    for layer in layers:
        x = layer(x)
    return x


def _finish(x, final_norm):
    return x if final_norm is None else final_norm(x)


def _norm_each(x, layers, final_norm):
    for layer in layers:
        x = _finish(layer(x), final_norm)
    return x


def _count(layer, ends=lambda m: 2 * m):
    """A count from a formula of (d_model, n_heads, d_ff) for one layer."""

    def function(d_model, n_heads, d_ff, n_layers, norm_first):
        return n_layers * layer(d_model, n_heads, d_ff) + (ends(d_model) if norm_first else 0)

    return function


def _right(m, h, f):
    return encoder_parameters(m, h, f, 1, False)


EXERCISES = (
    Exercise(
        "10.2",
        "The stack",
        6,
        1,
        encoder_stack,
        _stack_cases,
        (
            Mistake(
                "last layer only",
                lambda x, layers, n: _finish(layers[-1](x), n),
                "Only the last layer's work is in the result: each layer must get what the one before returned.",
            ),
            Mistake(
                "all from x",
                lambda x, layers, n: _finish(sum(layer(x) for layer in layers), n),
                "You gave x to every layer and added the results; each layer feeds the next.",
            ),
            Mistake(
                "first layer again",
                lambda x, layers, n: _finish(_apply(x, layers[:1] * len(layers)), n),
                "The first layer was used every time; each layer has its own weights.",
            ),
            Mistake(
                "backwards",
                lambda x, layers, n: _finish(_apply(x, layers[::-1]), n),
                "The layers ran in the opposite order.",
            ),
            Mistake(
                "one too few", lambda x, layers, n: _finish(_apply(x, layers[:-1]), n), "The last layer was left out."
            ),
            Mistake("no final norm", lambda x, layers, n: _apply(x, layers), "The final norm is missing."),
            Mistake("norm after each", _norm_each, "The final norm comes once, after the last layer."),
            Mistake(
                "norm first",
                lambda x, layers, n: _apply(_finish(x, n), layers),
                "The final norm came first; it closes the stack.",
            ),
            Mistake(
                "extra residual",
                lambda x, layers, n: _finish(x + _apply(x, layers), n),
                "You added x once more around the whole stack; the residual sums are inside the layers.",
            ),
        ),
        gradients=("x",),
    ),
    Exercise(
        "10.3",
        "What an encoder costs",
        10,
        2,
        encoder_parameters,
        _count_cases,
        (
            Mistake(
                "times heads",
                _count(lambda m, h, f: _right(m, h, f) + 4 * m * m * (h - 1)),
                "You counted the four matrices once per head; the heads share their columns, so d_model² each "
                "(notebook 08).",
            ),
            Mistake(
                "one head's width",
                _count(lambda m, h, f: _right(m, h, f) - 4 * m * m + 4 * m * (m // h)),
                "You counted one head's columns only; there are n_heads of that width.",
            ),
            Mistake(
                "three matrices",
                _count(lambda m, h, f: _right(m, h, f) - m * m),
                "Attention has four matrices; W_O is missing.",
            ),
            Mistake(
                "attention biases",
                _count(lambda m, h, f: _right(m, h, f) + 4 * m),
                "You gave the attention biases; here it has none.",
            ),
            Mistake(
                "no feed-forward biases",
                _count(lambda m, h, f: _right(m, h, f) - f - m),
                "The feed-forward network's two biases are missing: d_ff and d_model numbers.",
            ),
            Mistake(
                "one matrix",
                _count(lambda m, h, f: _right(m, h, f) - m * f),
                "The feed-forward network has two matrices, d_model × d_ff and d_ff × d_model.",
            ),
            Mistake(
                "one norm",
                _count(lambda m, h, f: _right(m, h, f) - 2 * m),
                "Each layer has two norms, one for each sub-layer.",
            ),
            Mistake(
                "gains only",
                _count(lambda m, h, f: _right(m, h, f) - 2 * m, lambda m: m),
                "A norm has a gain and a bias, d_model numbers each.",
            ),
            Mistake(
                "shared",
                lambda m, h, f, n, first: encoder_parameters(m, h, f, 1, first),
                "You counted one layer; every layer has weights of its own.",
            ),
            Mistake(
                "no final norm",
                lambda m, h, f, n, first: encoder_parameters(m, h, f, n, False),
                "With norm_first the stack ends with one more norm.",
            ),
            Mistake(
                "always a final norm",
                lambda m, h, f, n, first: encoder_parameters(m, h, f, n, True),
                "Only a pre-norm stack has a final norm.",
            ),
        ),
    ),
)
