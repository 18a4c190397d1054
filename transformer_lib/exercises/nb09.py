"""Exercises of notebook 09: LayerNorm forward and backward, and the feed-forward layer."""

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


def _backward(centred=True, projected=True, divided=True, gained=True, power=0.5, summed=True, raw=False):
    """The gradients of LayerNorm, each slip a switch."""

    def function(x, gain, grad, eps):
        size = (x.var(dim=-1, keepdim=True, correction=0) + eps) ** 0.5
        unit = (x - x.mean(dim=-1, keepdim=True)) / size
        g = grad * gain if gained else grad
        grad_x = g - g.mean(dim=-1, keepdim=True) if centred else g
        if projected:
            grad_x = grad_x - unit * (g * unit).mean(dim=-1, keepdim=True)
        if divided:
            grad_x = grad_x / size ** (power / 0.5)
        tokens = tuple(range(x.dim() - 1)) if summed else ()
        by_gain = grad * x if raw else grad * unit
        return (grad_x, by_gain.sum(dim=tokens), grad.sum(dim=tokens)) if summed else (grad_x, by_gain, grad)

    return function


def _gain_outside(x, gain, grad, eps):
    """The gain multiplied in at the end instead of at the beginning."""
    grad_x, grad_gain, grad_bias = layer_norm_backward(x, torch.ones_like(gain), grad, eps)
    return gain * grad_x, grad_gain, grad_bias


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
        "09.1", "LayerNorm", 10, 1, layer_norm, _norm_cases,
        (
            Mistake("sample variance", _norm(correction=1),
                    "The variance is divided by d − 1; LayerNorm divides by d: torch's var and std need correction=0."),
            Mistake("no root", _norm(power=1.0), "You divided by the variance; divide by its root."),
            Mistake("eps outside", _norm(inside=False),
                    "eps stands outside the root; it is added to the variance, under the root."),
            Mistake("no eps", _norm(eps=False), "eps is missing: where a row is constant you divide 0 by 0."),
            Mistake("not centred", _norm(centre=False), "The mean is not subtracted."),
            Mistake("over tokens", _over_tokens,
                    "You normalised each feature over the tokens; LayerNorm takes each token over its features."),
            Mistake("everything", _all_axes,
                    "You took one mean and one variance of the whole tensor; each token has its own."),
            Mistake("no gain", _norm(gain=False), "The gain is missing."),
            Mistake("no bias", _norm(bias=False), "The bias is missing."),
        ),
        gradients=("gain", "bias"),
    ),
    Exercise(
        "09.2", "LayerNorm backwards", 25, 3, layer_norm_backward, _backward_cases,
        (
            Mistake("gain forgotten", _backward(gained=False),
                    "The gain is missing in grad_x: what reaches x̂ is gain · grad_output."),
            Mistake("gain at the end", _gain_outside,
                    "The gain is multiplied in at the end; it acts on x̂, so grad_output meets it before the means."),
            Mistake("not centred", _backward(centred=False), "The term of the mean, −1/d in the Jacobian, is missing."),
            Mistake("not projected", _backward(projected=False),
                    "The term of the variance, −x̂_c x̂_j/d in the Jacobian, is missing."),
            Mistake("not divided", _backward(divided=False), "grad_x is not divided by √(σ² + ε)."),
            Mistake("divided twice", _backward(power=1.0), "grad_x is divided by σ² + ε; by its root it should be."),
            Mistake("not summed", _backward(summed=False),
                    "grad_gain and grad_bias must be summed over the tokens: all tokens share one gain and one bias."),
            Mistake("raw x", _backward(raw=True),
                    "grad_gain must use the normalised x̂, not x: the gain multiplies x̂."),
        ),
        returns=("grad_x", "grad_gain", "grad_bias"),
    ),
    Exercise(
        "09.3", "Feed-forward", 6, 1, feed_forward, _ffn_cases,
        (
            Mistake("no ReLU", _ffn(activate=lambda h: h),
                    "The maximum with 0 is missing; without it the two maps are one affine map."),
            Mistake("ReLU at the end", _ffn(activate=lambda h: h, last=True),
                    "The maximum with 0 stands at the end; it stands between the two maps."),
            Mistake("ReLU twice", _ffn(last=True),
                    "There is a second maximum with 0, after the second map; the output may be negative."),
            Mistake("bias after", _ffn(before=False),
                    "b_1 is added after the maximum; it shifts where each hidden unit switches on."),
            Mistake("no b_1", _ffn(b_1=False), "b_1 is missing."),
            Mistake("no b_2", _ffn(b_2=False), "b_2 is missing."),
            Mistake("residual", lambda x, *rest: x + feed_forward(x, *rest),
                    "You added x: that is the residual connection, which belongs to the block, not to this layer."),
            Mistake("absolute", _ffn(activate=torch.abs), "You took absolute values; negative numbers become 0."),
        ),
        gradients=("x", "W_1", "b_1", "W_2", "b_2"),
    ),
    Exercise(
        "09.4", "Parameters of a feed-forward layer", 5, 1, feed_forward_parameters, _count_cases,
        (
            Mistake("one map", lambda d, f, bias: d * f + (d + f if bias else 0),
                    "That is one matrix; there are two, d_model × d_ff and d_ff × d_model."),
            Mistake("no biases", lambda d, f, bias: 2 * d * f, "The biases are missing when bias is True."),
            Mistake("always biases", lambda d, f, bias: 2 * d * f + d + f,
                    "You counted biases although bias is False."),
            Mistake("d_model twice", lambda d, f, bias: 2 * d * f + (2 * d if bias else 0),
                    "The first bias has d_ff entries, one per hidden unit; the second d_model."),
            Mistake("d_ff twice", lambda d, f, bias: 2 * d * f + (2 * f if bias else 0),
                    "The second bias has d_model entries, one per output; the first d_ff."),
            Mistake("always four", lambda d, f, bias: 8 * d * d + (5 * d if bias else 0),
                    "You took d_ff = 4 · d_model; d_ff is given."),
            Mistake("a factor", lambda d, f, bias: 2 * d * d * f + (d + d * f if bias else 0),
                    "You multiplied d_ff by d_model once more: d_ff is the hidden width itself, no factor."),
        ),
    ),
)
