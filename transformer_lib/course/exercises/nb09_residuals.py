"""Exercises of notebook 09, continued: the residual sub-layer, and the paths of a gradient through several."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Exercise, Mistake, normal


def residual_sublayer(x, sublayer, norm, norm_first):
    """Wrap a sub-layer: add x to what it makes, and normalise.

    x: [..., d_model]; sublayer, norm: functions from [..., d_model] to the same shape. norm_first False: post-norm, the
    norm takes the sum; True: pre-norm, the norm takes what goes into the sub-layer. Returns [..., d_model].
    """
    steps = (norm, sublayer) if norm_first else (sublayer,)
    branch = x
    for step in steps:
        branch = step(branch)
    return torch.add(x, branch) if norm_first else norm(torch.add(x, branch))


def paths_of_length(jacobians, length):
    """Return the sum of all paths that pass through exactly `length` of the n residual sub-layers.

    jacobians: [n, d, d], J_1 first; the column convention holds, so the sub-layer that comes later stands further left.
    A path that takes the sub-layers 1 and 3 is J_3 J_1. length: 0 to n. Returns [d, d].
    """
    total = torch.zeros_like(jacobians[0])
    for taken in itertools.combinations(range(len(jacobians)), length):
        path = torch.eye(jacobians.shape[-1]).to(jacobians)
        for i in taken:
            path = jacobians[i] @ path
        total = total + path
    return total


def _functions(seed, d_model):
    """A sub-layer that is not linear and a norm with a gain of its own."""
    weight, gain = normal(seed, (d_model, d_model), (d_model,))

    def sublayer(x):
        return torch.tanh(x @ weight) + 0.5

    def norm(x):
        return torch.nn.functional.layer_norm(x, gain.shape, 1 + gain / 3)

    return sublayer, norm


def _residual_cases():
    def case(label, seed, shape, norm_first):
        return Case(label, (normal(seed, shape)[0], *_functions(seed + 50, shape[-1]), norm_first))

    return [
        case("post-norm, 3 tokens, d_model 5", 121, (3, 5), False),
        case("pre-norm, 3 tokens, d_model 5", 122, (3, 5), True),
        case("post-norm, a batch of 2 with 3 tokens, d_model 7", 123, (2, 3, 7), False),
        case("pre-norm, a batch of 2 with 5 tokens, d_model 3", 124, (2, 5, 3), True),
        case("post-norm, one token", 125, (1, 11), False),
    ]


def _path_cases():
    def case(label, seed, n, d, length):
        return Case(label, (normal(seed, (n, d, d), dtype=torch.float64)[0], length))

    return [
        case("2 sub-layers, paths of length 2", 131, 2, 3, 2),
        case("3 sub-layers, paths of length 1", 132, 3, 2, 1),
        case("3 sub-layers, the path that takes none", 133, 3, 5, 0),
        case("5 sub-layers, paths of length 2", 134, 5, 3, 2),
        case("5 sub-layers, paths of length 3", 135, 5, 2, 3),
        case("5 sub-layers, the path that takes all", 136, 5, 7, 5),
        case("as many sub-layers as features", 137, 3, 3, 2),
    ]


def _wrapped(pre=None, post=None):
    """The right wrapper with the pre-norm or the post-norm form replaced."""

    def function(x, sublayer, norm, norm_first):
        wrong = pre if norm_first else post
        return wrong(x, sublayer, norm) if wrong else residual_sublayer(x, sublayer, norm, norm_first)

    return function


def _swapped(x, sublayer, norm, norm_first):
    return residual_sublayer(x, sublayer, norm, not norm_first)


def _both_norms(x, sublayer, norm, norm_first):
    return norm(x + sublayer(norm(x)))


def _pass_over(jacobians, length, order=1, repeat=False, power=None):
    """The sum over paths, each slip a switch."""
    numbers = range(len(jacobians))
    choose = itertools.permutations if repeat else itertools.combinations
    total = torch.zeros_like(jacobians[0])
    for taken in choose(numbers, length) if power is None else [numbers[:length]]:
        path = torch.eye(jacobians.shape[-1]).to(jacobians)
        for i in taken:
            path = jacobians[i] @ path if order == 1 else path @ jacobians[i]
        total = total + path
    return total


def _all_paths(jacobians, length):
    return sum(paths_of_length(jacobians, k) for k in range(len(jacobians) + 1))


def _up_to(jacobians, length):
    return sum(paths_of_length(jacobians, k) for k in range(length + 1))


def _neighbours(jacobians, length):
    """Only runs of sub-layers that follow each other."""
    starts = range(len(jacobians) - length + 1)
    if length == 0:
        return paths_of_length(jacobians, 0)
    return sum(paths_of_length(jacobians[i : i + length], length) for i in starts)


def _elementwise(jacobians, length):
    if length == 0:
        return paths_of_length(jacobians, 0)
    return sum(jacobians[list(taken)].prod(dim=0) for taken in itertools.combinations(range(len(jacobians)), length))


def _mean(jacobians, length):
    count = len(list(itertools.combinations(range(len(jacobians)), length)))
    return paths_of_length(jacobians, length) / count


EXERCISES = (
    Exercise(
        "09.5",
        "Paths through residuals",
        20,
        3,
        paths_of_length,
        _path_cases,
        (
            Mistake(
                "order",
                lambda J, k: _pass_over(J, k, order=-1),
                "The factors stand in the opposite order: a later sub-layer stands further left.",
            ),
            Mistake(
                "every order",
                lambda J, k: _pass_over(J, k, repeat=True),
                "You took the chosen sub-layers in every order; a path meets them in one order only.",
            ),
            Mistake(
                "the first ones",
                lambda J, k: _pass_over(J, k, power=True),
                "That is one path, through the first sub-layers; any choice of `length` of them is a path.",
            ),
            Mistake(
                "neighbours",
                _neighbours,
                "You took only sub-layers that follow each other; a path may skip those in between.",
            ),
            Mistake(
                "all",
                _all_paths,
                "That is the sum over all 2^n paths, (I + J_n) … (I + J_1); only those of one length are asked for.",
            ),
            Mistake("up to", _up_to, "Shorter paths are in the sum too; exactly `length` sub-layers are asked for."),
            Mistake("mean", _mean, "That is the mean over the paths; gradients of paths add up."),
            Mistake(
                "elementwise", _elementwise, "You multiplied entry by entry; Jacobians are chained by matrix products."
            ),
        ),
    ),
    Exercise(
        "09.6",
        "Around a sub-layer",
        8,
        2,
        residual_sublayer,
        _residual_cases,
        (
            Mistake("swapped", _swapped, "Post-norm and pre-norm are swapped: norm_first=True is pre-norm."),
            Mistake(
                "always post",
                _wrapped(pre=lambda x, f, n: n(x + f(x))),
                "Post-norm is right; with norm_first you still normalise the sum. Pre-norm is x + f(norm(x)).",
            ),
            Mistake(
                "always pre",
                _wrapped(post=lambda x, f, n: x + f(n(x))),
                "Pre-norm is right; without norm_first the norm must take the sum: norm(x + f(x)).",
            ),
            Mistake("both", _both_norms, "You normalised before and after; one of the two is asked for."),
            Mistake(
                "no residual",
                lambda x, f, n, first: f(n(x)) if first else n(f(x)),
                "x is not added: that is the sub-layer without its residual connection.",
            ),
            Mistake(
                "adds the normed",
                _wrapped(pre=lambda x, f, n: n(x) + f(n(x))),
                "In pre-norm you added norm(x); the residual carries x itself, not normalised.",
            ),
            Mistake(
                "norm of the branch",
                _wrapped(post=lambda x, f, n: x + n(f(x))),
                "In post-norm you normalised the sub-layer's output, then added x; the norm takes the sum.",
            ),
            Mistake(
                "norm after pre",
                _wrapped(pre=lambda x, f, n: x + n(f(x))),
                "In pre-norm you normalised what comes out of the sub-layer; the norm takes what goes in.",
            ),
        ),
        gradients=("x",),
    ),
)
