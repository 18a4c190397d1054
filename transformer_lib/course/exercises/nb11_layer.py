"""Exercises of notebook 11, continued: a decoder layer from its parts."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norm):
    """Return x after the three sub-layers of a post-norm decoder layer, each with its residual and its norm.

    x: [batch, tgt_len, d_model]; memory: [batch, src_len, d_model]. The others are functions:
    self_attention(x), masked already; cross_attention(x, memory); feed_forward(x); norm(x).
    """
    after_self = norm(torch.add(x, self_attention(x)))
    after_cross = norm(torch.add(after_self, cross_attention(after_self, memory)))
    return norm(torch.add(after_cross, feed_forward(after_cross)))


def _parts(seed, d_model):
    """Three sub-layers and a norm, all simple, differentiable and different from each other."""
    first, second, third = (W / d_model**0.5 for W in normal(seed, *[(d_model, d_model)] * 3))

    def self_attention(x):
        steps = torch.arange(1, x.shape[1] + 1).to(x)[:, None]
        return (x @ first).cumsum(dim=1) / steps  # equal weights on itself and the tokens before

    def cross_attention(x, memory):
        return torch.softmax(x @ second @ memory.mT, dim=-1) @ memory

    def feed_forward(x):
        return torch.relu(x) @ third

    def norm(x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:])

    return self_attention, cross_attention, feed_forward, norm


def _layer_cases():
    def case(label, seed, batch, tgt_len, src_len, d_model):
        shapes = (batch, tgt_len, d_model), (batch, src_len, d_model)
        return Case(label, (*normal(seed, *shapes), *_parts(seed + 1, d_model)))

    return [
        case("2 target tokens, 3 memory rows", 120, 1, 2, 3, 4),
        case("3 sentences, 5 by 7", 122, 3, 5, 7, 11),
        case("one target token", 124, 2, 1, 3, 5),
        case("as many target tokens as memory rows", 126, 2, 5, 5, 7),
        case("more target tokens than memory rows", 128, 1, 7, 2, 5),
    ]


def _layer(first=None, second=None, third=None, order="scf"):
    """The decoder layer with one sub-layer's step exchanged, or their order."""

    def function(x, memory, self_attention, cross_attention, feed_forward, norm):
        steps = {
            "s": first or (lambda x, m, f, norm: norm(x + f(x))),
            "c": second or (lambda x, m, f, norm: norm(x + f(x, m))),
            "f": third or (lambda x, m, f, norm: norm(x + f(x))),
        }
        parts = {"s": self_attention, "c": cross_attention, "f": feed_forward}
        for name in order:
            x = steps[name](x, memory, parts[name], norm)
        return x

    return function


def _pre_norm(x, memory, self_attention, cross_attention, feed_forward, norm):
    x = x + self_attention(norm(x))
    x = x + cross_attention(norm(x), memory)
    return x + feed_forward(norm(x))


def _parallel(x, memory, self_attention, cross_attention, feed_forward, norm):
    x = norm(x + self_attention(x) + cross_attention(x, memory))
    return norm(x + feed_forward(x))


def _cross_reads_x(x, memory, self_attention, cross_attention, feed_forward, norm):
    y = norm(x + self_attention(x))
    y = norm(y + cross_attention(x, memory))
    return norm(y + feed_forward(y))


def _one_residual(x, memory, self_attention, cross_attention, feed_forward, norm):
    y = norm(x + self_attention(x))
    y = norm(x + cross_attention(y, memory))
    return norm(x + feed_forward(y))


EXERCISES = (
    Exercise(
        "11.2",
        "A decoder layer from its parts",
        10,
        1,
        decoder_layer,
        _layer_cases,
        (
            Mistake(
                "pre-norm",
                _pre_norm,
                "You normalised before each sub-layer (pre-norm); asked for is the norm after each addition.",
            ),
            Mistake(
                "cross first",
                _layer(order="csf"),
                "The cross-attention came first; the target reads itself before it reads the source.",
            ),
            Mistake(
                "no residual around cross-attention",
                _layer(second=lambda x, m, f, norm: norm(f(x, m))),
                "The residual around the cross-attention is missing: add what went in.",
            ),
            Mistake(
                "no norm after cross-attention",
                _layer(second=lambda x, m, f, norm: x + f(x, m)),
                "The norm after the cross-attention is missing; there are three, one per sub-layer.",
            ),
            Mistake(
                "no norm at the end",
                _layer(third=lambda x, m, f, norm: x + f(x)),
                "The norm after the feed-forward network is missing.",
            ),
            Mistake("no cross-attention", _layer(order="sf"), "That is an encoder layer: nothing reads memory."),
            Mistake(
                "in parallel",
                _parallel,
                "Both attentions got the same x; the cross-attention gets what comes out of the first norm.",
            ),
            Mistake(
                "cross reads x",
                _cross_reads_x,
                "The cross-attention got the layer's input x; it gets what the first norm returned.",
            ),
            Mistake(
                "one norm",
                _layer(first=lambda x, m, f, norm: x + f(x), second=lambda x, m, f, norm: x + f(x, m)),
                "There is one norm, at the end; each of the three sub-layers is followed by one.",
            ),
            Mistake(
                "one residual",
                _one_residual,
                "You added the layer's input x each time; each residual adds the input of its own sub-layer.",
            ),
            Mistake(
                "memory asks",
                _layer(second=lambda x, m, f, norm: norm(x + f(m, x).mean(1, keepdim=True))),
                "memory asked and x was read; call cross_attention(x, memory).",
            ),
        ),
        gradients=("x", "memory"),
    ),
)
