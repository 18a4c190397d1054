"""Exercises of notebook 09: LayerNorm, forward and backward."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def layer_norm(x, gain, bias, eps):
    """Normalise each token over its features, then stretch by the gain and shift by the bias.

    x: [..., d_model]; gain, bias: [d_model]; eps is added to the (population) variance, under the root.
    Returns [..., d_model].
    """
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        mean = row.sum() / len(row)
        variance = ((row - mean) ** 2).sum() / len(row)
        rows.append(gain * (row - mean) / (variance + eps) ** 0.5 + bias)
    return torch.stack(rows).reshape(x.shape)


def layer_norm_backward(x, gain, grad_output, eps):
    """Return (grad_x, grad_gain, grad_bias) of LayerNorm for the gradient grad_output by its output, without autograd.

    x, grad_output: [..., d_model]; gain: [d_model]. grad_x has the shape of x, the others that of the gain.
    """
    x, gain = x.detach().clone().requires_grad_(), gain.detach().clone().requires_grad_()
    bias = torch.zeros_like(gain).requires_grad_()
    output = torch.nn.functional.layer_norm(x, gain.shape, gain, bias, eps)
    return torch.autograd.grad(output, (x, gain, bias), grad_output)


def _norm_case(label, seed, shape, eps=1e-5, scale=1.0):
    x, gain, bias = normal(seed, shape, shape[-1:], shape[-1:], dtype=torch.float64)
    return Case(label, (2 + scale * x, 1 + gain / 3, bias, eps))


def _norm_cases():
    worked = torch.tensor([[0.0, 2.0, 2.0, 8.0]], dtype=torch.float64)
    one, zero = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    return [
        Case("the row 0 2 2 8", (worked, one, zero, 1e-5)),
        _norm_case("3 tokens, d_model 5", 91, (3, 5)),
        _norm_case("a batch of 2 with 3 tokens, d_model 7", 92, (2, 3, 7)),
        _norm_case("as many tokens as features", 93, (5, 5)),
        _norm_case("rows of size 0.01, where eps counts", 94, (3, 7), 1e-2, 0.01),
        Case("a constant row", (torch.full((1, 4), 3.0, dtype=torch.float64), 2 * one, one, 1e-5)),
        _norm_case("no tokens before: one row [d_model]", 95, (11,)),
    ]


def _backward_case(label, seed, shape, eps=1e-5, scale=1.0):
    x, gain, grad = normal(seed, shape, shape[-1:], shape, dtype=torch.float64)
    return Case(label, (2 + scale * x, 1 + gain / 3, grad, eps))


def _backward_cases():
    return [
        _backward_case("one row of 3", 101, (1, 3)),
        _backward_case("3 tokens, d_model 5", 102, (3, 5)),
        _backward_case("a batch of 2 with 3 tokens, d_model 7", 103, (2, 3, 7)),
        _backward_case("as many tokens as features", 104, (5, 5)),
        _backward_case("rows of size 0.1, where eps counts", 105, (3, 7), 1e-2, 0.1),
    ]


def _norm(axes=(-1,), correction=0, power=0.5, inside=True, centre=True, eps=True, gain=True, bias=True):
    """LayerNorm, each slip a switch."""

    def function(x, gamma, beta, epsilon):
        epsilon = epsilon if eps else 0.0
        mean = x.mean(dim=axes, keepdim=True)
        variance = x.var(dim=axes, keepdim=True, correction=correction)
        size = (variance + epsilon) ** power if inside else variance**power + epsilon
        y = (x - mean if centre else x) / size
        return (y * gamma if gain else y) + (beta if bias else 0)

    return function


def _all_axes(x, gain, bias, eps):
    return _norm(axes=tuple(range(x.dim())))(x, gain, bias, eps)


def _over_tokens(x, gain, bias, eps):
    return _norm(axes=(-2,) if x.dim() > 1 else (-1,))(x, gain, bias, eps)


def _unit(x, size):
    return (x - x.mean(dim=-1, keepdim=True)) / size


def _centred(x, size):
    return x - x.mean(dim=-1, keepdim=True)


def _raw(x, size):
    return x


def _backward(
    centred=True,
    projected=True,
    divided=True,
    gained=True,
    power=0.5,
    summed=True,
    over=torch.mean,
    in_term=_unit,
    in_gain=_unit,
):
    """The gradients of LayerNorm, each slip a switch; in_term and in_gain say what is taken for x̂ there."""

    def function(x, gain, grad, eps):
        size = (x.var(dim=-1, keepdim=True, correction=0) + eps) ** 0.5
        g = grad * gain if gained else grad
        grad_x = g - over(g, dim=-1, keepdim=True) if centred else g
        if projected:
            unit = in_term(x, size)
            grad_x = grad_x - unit * over(g * unit, dim=-1, keepdim=True)
        if divided:
            grad_x = grad_x / size ** (power / 0.5)
        tokens = tuple(range(x.dim() - 1))
        by_gain = grad * in_gain(x, size)
        return (grad_x, by_gain.sum(dim=tokens), grad.sum(dim=tokens)) if summed else (grad_x, by_gain, grad)

    return function


def _gain_outside(x, gain, grad, eps):
    """The gain multiplied in at the end instead of at the beginning."""
    grad_x, grad_gain, grad_bias = layer_norm_backward(x, torch.ones_like(gain), grad, eps)
    return gain * grad_x, grad_gain, grad_bias


EXERCISES = (
    Exercise(
        "09.1",
        "LayerNorm",
        10,
        1,
        layer_norm,
        _norm_cases,
        (
            Mistake(
                "sample variance",
                _norm(correction=1),
                "The variance is divided by d − 1; LayerNorm divides by d: torch's var and std need correction=0.",
            ),
            Mistake("no root", _norm(power=1.0), "You divided by the variance; divide by its root."),
            Mistake(
                "eps outside",
                _norm(inside=False),
                "eps stands outside the root; it is added to the variance, under the root.",
            ),
            Mistake("no eps", _norm(eps=False), "eps is missing: where a row is constant you divide 0 by 0."),
            Mistake("not centred", _norm(centre=False), "The mean is not subtracted."),
            Mistake(
                "over tokens",
                _over_tokens,
                "You normalised each feature over the tokens; LayerNorm takes each token over its features.",
            ),
            Mistake(
                "dim=-2",
                _norm(axes=(-2,)),
                "You normalised each feature over the tokens, dim=-2; LayerNorm takes each token over its "
                "features, dim=-1.",
            ),
            Mistake(
                "dim=0",
                _norm(axes=(0,)),
                "You normalised over the first axis; LayerNorm takes each token over its features, the last axis.",
            ),
            Mistake(
                "dim=1",
                _norm(axes=(1,)),
                "You normalised over axis 1, which is the last one only for a matrix; the features are the last "
                "axis, dim=-1.",
            ),
            Mistake(
                "everything",
                _all_axes,
                "You took one mean and one variance of the whole tensor; each token has its own.",
            ),
            Mistake("no gain", _norm(gain=False), "The gain is missing."),
            Mistake("no bias", _norm(bias=False), "The bias is missing."),
            Mistake(
                "gain on the bias",
                lambda x, gain, bias, eps: layer_norm(x, gain, gain * bias, eps),
                "The gain multiplied the bias too: y = gain · x̂ + bias.",
            ),
        ),
        gradients=("gain", "bias"),
    ),
    Exercise(
        "09.2",
        "LayerNorm backwards",
        25,
        3,
        layer_norm_backward,
        _backward_cases,
        (
            Mistake(
                "gain forgotten",
                _backward(gained=False),
                "The gain is missing in grad_x: what reaches x̂ is gain · grad_output.",
            ),
            Mistake(
                "gain at the end",
                _gain_outside,
                "The gain is multiplied in at the end; it acts on x̂, so grad_output meets it before the means.",
            ),
            Mistake("not centred", _backward(centred=False), "The term of the mean, −1/d in the Jacobian, is missing."),
            Mistake(
                "not projected",
                _backward(projected=False),
                "The term of the variance, −x̂_c x̂_j/d in the Jacobian, is missing.",
            ),
            Mistake(
                "only divided",
                _backward(centred=False, projected=False),
                "You only divided by √(σ² + ε); μ and σ move with x too: both terms, −1/d and −x̂_c x̂_j/d, are missing.",
            ),
            Mistake(
                "sums",
                _backward(over=torch.sum),
                "You took sums over the features; both terms carry 1/d, so they are means.",
            ),
            Mistake("not divided", _backward(divided=False), "grad_x is not divided by √(σ² + ε)."),
            Mistake("divided twice", _backward(power=1.0), "grad_x is divided by σ² + ε; by its root it should be."),
            Mistake(
                "not summed",
                _backward(summed=False),
                "grad_gain and grad_bias must be summed over the tokens: all tokens share one gain and one bias.",
            ),
            Mistake(
                "raw x", _backward(in_gain=_raw), "grad_gain must use the normalised x̂, not x: the gain multiplies x̂."
            ),
            Mistake(
                "centred x for the gain",
                _backward(in_gain=_centred),
                "grad_gain must use the normalised x̂; you used x − μ, which is not divided yet.",
            ),
            Mistake(
                "centred x in the term",
                _backward(in_term=_centred),
                "The term −x̂_c x̂_j/d in grad_x needs the normalised x̂ twice; you used x − μ, which is not divided yet.",
            ),
            Mistake(
                "centred x everywhere",
                _backward(in_term=_centred, in_gain=_centred),
                "Your x̂ is x − μ, which is not divided yet: both grad_x and grad_gain need it divided by √(σ² + ε).",
            ),
        ),
        returns=("grad_x", "grad_gain", "grad_bias"),
    ),
)
