"""Exercises of notebook 10: one encoder layer, the stack of them, and its parameters."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .model import Case, Exercise, Mistake, normal


def encoder_layer(x, attention, feed_forward, norm_1, norm_2):
    """Return x after one post-norm encoder layer, the paper's.

    x: [batch, seq_len, d_model]; the other four are functions of one tensor of that shape and return one:
    the two sub-layers, and the norms that follow the first and the second residual sum.
    Returns [batch, seq_len, d_model].
    """
    after_attention = norm_1(torch.stack([x, attention(x)]).sum(dim=0))
    return norm_2(torch.stack([after_attention, feed_forward(after_attention)]).sum(dim=0))


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


def _mixing(seed, d_model):
    """A sub-layer that lets tokens exchange something: a blend over the sentence, then a matrix."""
    matrix = normal(seed, (d_model, d_model))[0] / d_model**0.5

    def attention(x):
        weights = torch.softmax(x @ x.mT / d_model**0.5, dim=-1)
        return weights @ x @ matrix.to(x)

    return attention


def _by_row(seed, d_model):
    """A sub-layer that works on each token alone."""
    matrix = normal(seed, (d_model, d_model))[0] / d_model**0.5
    return lambda x: torch.relu(x @ matrix.to(x)) + 0.5


def _norm(gain):
    """A layer norm with a gain, so that the two norms can be told apart."""
    return lambda x: gain * torch.layer_norm(x, x.shape[-1:]) + 0.1


@dataclass(frozen=True)
class _Layer:
    """A layer with weights of its own; two with the same seed are equal."""

    seed: int
    d_model: int

    def __call__(self, x):
        return x + _by_row(self.seed, self.d_model)(x) * (1 + 0.1 * self.seed)


def _layer_case(label, seed, *shape):
    d_model = shape[-1]
    parts = (_mixing(seed + 1, d_model), _by_row(seed + 2, d_model), _norm(0.7), _norm(1.3))
    return Case(label, (normal(seed, shape)[0], *parts))


def _layer_cases():
    return [
        _layer_case("1 sentence of 2 tokens, d_model 3", 100, 1, 2, 3),
        _layer_case("2 sentences of 5 tokens, d_model 7", 104, 2, 5, 7),
        _layer_case("one token", 108, 3, 1, 5),
        _layer_case("a long sentence", 112, 1, 11, 3),
        _layer_case("3 sentences of 7 tokens, d_model 13", 116, 3, 7, 13),
    ]


def _stack_case(label, seed, n_layers, final_norm, *shape):
    layers = [_Layer(seed + i, shape[-1]) for i in range(1, n_layers + 1)]
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


def _post_norm(x, first, second, norm_1, norm_2):
    middle = norm_1(x + first(x))
    return norm_2(middle + second(middle))


def _no_residual(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(feed_forward(norm_1(attention(x))))


def _pre_norm(x, attention, feed_forward, norm_1, norm_2):
    middle = x + attention(norm_1(x))
    return middle + feed_forward(norm_2(middle))


def _one_residual(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(x + feed_forward(norm_1(attention(x))))


def _residual_from_x(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(x + feed_forward(norm_1(x + attention(x))))


def _side_by_side(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(norm_1(x + attention(x)) + feed_forward(x))


def _norm_before_sum(x, attention, feed_forward, norm_1, norm_2):
    middle = x + norm_1(attention(x))
    return middle + norm_2(feed_forward(middle))


def _last_norm_missing(x, attention, feed_forward, norm_1, norm_2):
    middle = norm_1(x + attention(x))
    return middle + feed_forward(middle)


def _first_norm_missing(x, attention, feed_forward, norm_1, norm_2):
    middle = x + attention(x)
    return norm_2(middle + feed_forward(middle))


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
        "10.1", "One encoder layer", 10, 2, encoder_layer, _layer_cases,
        (
            Mistake("pre-norm", _pre_norm,
                    "That is the pre-norm layer: the norm stands before the sub-layer. Here it follows the sum."),
            Mistake("no residuals", _no_residual, "The residual sums are missing: each sub-layer's input is added."),
            Mistake("one residual", _one_residual, "x is not added to what the attention returns."),
            Mistake("from x", _residual_from_x,
                    "The second sum adds x; it must add what the feed-forward network was given, the first norm's "
                    "output."),
            Mistake("side by side", _side_by_side,
                    "The feed-forward network read x; it reads what the first norm returned."),
            Mistake("norm before sum", _norm_before_sum, "You normalised the sub-layer's output; normalise the sum."),
            Mistake("no last norm", _last_norm_missing, "The norm after the second sum is missing."),
            Mistake("no first norm", _first_norm_missing, "The norm after the first sum is missing."),
            Mistake("swapped sub-layers", lambda x, a, f, n, m: _post_norm(x, f, a, n, m),
                    "The feed-forward network comes first; attention must."),
            Mistake("swapped norms", lambda x, a, f, n, m: _post_norm(x, a, f, m, n),
                    "The two norms are swapped; each has a gain of its own."),
        ),
        gradients=("x",),
    ),
    Exercise(
        "10.2", "The stack", 6, 1, encoder_stack, _stack_cases,
        (
            Mistake("last layer only", lambda x, layers, n: _finish(layers[-1](x), n),
                    "Only the last layer's work is in the result: each layer must get what the one before returned."),
            Mistake("all from x", lambda x, layers, n: _finish(sum(layer(x) for layer in layers), n),
                    "You gave x to every layer and added the results; each layer feeds the next."),
            Mistake("first layer again", lambda x, layers, n: _finish(_apply(x, layers[:1] * len(layers)), n),
                    "The first layer was used every time; each layer has its own weights."),
            Mistake("backwards", lambda x, layers, n: _finish(_apply(x, layers[::-1]), n),
                    "The layers ran in the opposite order."),
            Mistake("one too few", lambda x, layers, n: _finish(_apply(x, layers[:-1]), n),
                    "The last layer was left out."),
            Mistake("no final norm", lambda x, layers, n: _apply(x, layers), "The final norm is missing."),
            Mistake("norm after each", _norm_each, "The final norm comes once, after the last layer."),
            Mistake("norm first", lambda x, layers, n: _apply(_finish(x, n), layers),
                    "The final norm came first; it closes the stack."),
            Mistake("extra residual", lambda x, layers, n: _finish(x + _apply(x, layers), n),
                    "You added x once more around the whole stack; the residual sums are inside the layers."),
        ),
        gradients=("x",),
    ),
    Exercise(
        "10.3", "What an encoder costs", 10, 2, encoder_parameters, _count_cases,
        (
            Mistake("times heads", _count(lambda m, h, f: _right(m, h, f) + 4 * m * m * (h - 1)),
                    "You counted the four matrices once per head; the heads share their columns, so d_model² each "
                    "(notebook 08)."),
            Mistake("one head's width", _count(lambda m, h, f: _right(m, h, f) - 4 * m * m + 4 * m * (m // h)),
                    "You counted one head's columns only; there are n_heads of that width."),
            Mistake("three matrices", _count(lambda m, h, f: _right(m, h, f) - m * m),
                    "Attention has four matrices; W_O is missing."),
            Mistake("attention biases", _count(lambda m, h, f: _right(m, h, f) + 4 * m),
                    "You gave the attention biases; here it has none."),
            Mistake("no feed-forward biases", _count(lambda m, h, f: _right(m, h, f) - f - m),
                    "The feed-forward network's two biases are missing: d_ff and d_model numbers."),
            Mistake("one matrix", _count(lambda m, h, f: _right(m, h, f) - m * f),
                    "The feed-forward network has two matrices, d_model × d_ff and d_ff × d_model."),
            Mistake("one norm", _count(lambda m, h, f: _right(m, h, f) - 2 * m),
                    "Each layer has two norms, one for each sub-layer."),
            Mistake("gains only", _count(lambda m, h, f: _right(m, h, f) - 2 * m, lambda m: m),
                    "A norm has a gain and a bias, d_model numbers each."),
            Mistake("shared", lambda m, h, f, n, first: encoder_parameters(m, h, f, 1, first),
                    "You counted one layer; every layer has weights of its own."),
            Mistake("no final norm", lambda m, h, f, n, first: encoder_parameters(m, h, f, n, False),
                    "With norm_first the stack ends with one more norm."),
            Mistake("always a final norm", lambda m, h, f, n, first: encoder_parameters(m, h, f, n, True),
                    "Only a pre-norm stack has a final norm."),
        ),
    ),
)
