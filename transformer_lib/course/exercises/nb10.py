"""Exercises of notebook 10: one encoder layer."""

from __future__ import annotations

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


def _sum_carried_on(x, attention, feed_forward, norm_1, norm_2):
    middle = x + attention(x)
    return norm_2(middle + feed_forward(norm_1(middle)))


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


EXERCISES = (
    Exercise(
        "10.1",
        "One encoder layer",
        10,
        2,
        encoder_layer,
        _layer_cases,
        (
            Mistake(
                "pre-norm",
                _pre_norm,
                "That is the pre-norm layer: the norm stands before the sub-layer. Here it follows the sum.",
            ),
            Mistake("no residuals", _no_residual, "The residual sums are missing: each sub-layer's input is added."),
            Mistake("one residual", _one_residual, "x is not added to what the attention returns."),
            Mistake(
                "from x",
                _residual_from_x,
                "The second sum adds x; it must add what the feed-forward network was given, the first norm's output.",
            ),
            Mistake(
                "no second residual",
                lambda x, a, f, n, m: m(f(n(x + a(x)))),
                "What the feed-forward network was given is not added to its result.",
            ),
            Mistake(
                "sum carried on",
                _sum_carried_on,
                "You added the sum before its norm; the second residual adds what norm_1 returned.",
            ),
            Mistake(
                "side by side", _side_by_side, "The feed-forward network read x; it reads what the first norm returned."
            ),
            Mistake("norm before sum", _norm_before_sum, "You normalised the sub-layer's output; normalise the sum."),
            Mistake("no last norm", _last_norm_missing, "The norm after the second sum is missing."),
            Mistake("no first norm", _first_norm_missing, "The norm after the first sum is missing."),
            Mistake(
                "one norm twice",
                lambda x, a, f, n, m: _post_norm(x, a, f, n, n),
                "norm_1 is used twice; the second sum has a norm of its own, norm_2.",
            ),
            Mistake(
                "swapped sub-layers",
                lambda x, a, f, n, m: _post_norm(x, f, a, n, m),
                "The feed-forward network comes first; attention must.",
            ),
            Mistake(
                "swapped norms",
                lambda x, a, f, n, m: _post_norm(x, a, f, m, n),
                "The two norms are swapped; each has a gain of its own.",
            ),
        ),
        gradients=("x",),
    ),
)
