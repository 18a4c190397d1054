"""The exercises of notebook 09: residuals, norms, feed-forward."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 09.1 Feed-forward ---------------------------------------------------------------------------------------------------


def feed_forward(x, W_1, b_1, W_2, b_2):
    """Return max(0, x W_1 + b_1) W_2 + b_2, for every token on its own.

    x: [..., d_model]; W_1: [d_model, d_ff]; b_1: [d_ff]; W_2: [d_ff, d_model]; b_2: [d_model]. Returns [..., d_model].
    """
    hidden = torch.einsum("...i,ij->...j", x, W_1) + b_1
    return torch.einsum("...j,ji->...i", torch.where(hidden > 0, hidden, 0), W_2) + b_2


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


def _ffn(activate=torch.relu, before=True, last=False, b_1=True, b_2=True):
    """Return the feed-forward layer, each slip a switch."""

    def function(x, W_1, bias_1, W_2, bias_2):
        hidden = x @ W_1 + (bias_1 if b_1 and before else 0)
        hidden = activate(hidden) + (0 if before else bias_1)
        output = hidden @ W_2 + (bias_2 if b_2 else 0)
        return torch.relu(output) if last else output

    return function


EXERCISE_1 = Exercise(
    "09.1",
    "Feed-forward",
    5,
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
            "no biases",
            _ffn(b_1=False, b_2=False),
            "Both biases are missing: b_1 before the maximum, b_2 at the end.",
        ),
        Mistake(
            "ReLU on the token",
            lambda x, W_1, b_1, W_2, b_2: (torch.relu(x) @ W_1 + b_1) @ W_2 + b_2,
            "The maximum with 0 acts on the token; it acts on the hidden units, between the two maps.",
        ),
        Mistake(
            "minimum",
            _ffn(activate=lambda h: h.clamp(max=0)),
            "You kept the negative numbers: clamp(max=0) is the minimum with 0. Take clamp(min=0).",
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
        Mistake(
            "Python's max",
            lambda x, W_1, b_1, W_2, b_2: max(0, x @ W_1 + b_1) @ W_2 + b_2,
            "Python's `max` and `if` ask a whole tensor for one yes or no; torch.relu and .clamp(min=0) take each entry"
            " by itself.",
        ),
    ),
    gradients=("x", "W_1", "b_1", "W_2", "b_2"),
    part="feed_forward",
)


# 09.2 Any table at all ------------------------------------------------------------------------------------------------


def table_network(table, n_answers):
    """Return the weights of a feed-forward network that turns a pair (a, b) into the one-hot vector of table[a, b].

    table: [n, n], integers from 0 to n_answers − 1. A token x is the one-hot vector of a beside that of b, [2n]. There
    is a hidden unit for each pair, unit a · n + b, with a bias of −1; b_2 is 0, and the matrices hold only zeros and
    ones. Returns (W_1 [2n, n · n], b_1 [n · n], W_2 [n · n, n_answers], b_2 [n_answers]), floats.
    """
    n = len(table)
    W_1, W_2 = torch.zeros(2 * n, n * n), torch.zeros(n * n, n_answers)
    for a, b in itertools.product(range(n), repeat=2):
        unit = a * n + b
        W_1[a, unit] = W_1[n + b, unit] = 1
        W_2[unit, table[a, b]] = 1
    return W_1, torch.full((n * n,), -1.0), W_2, torch.zeros(n_answers)


def _table_cases():
    sizes = ((2, 2), (3, 5), (5, 3), (5, 5), (7, 11))
    cases = [Case("exclusive or", (torch.tensor([[0, 1], [1, 0]]), 2))]
    cases += [
        Case(f"a random table, n = {n}, {answers} answers", (integers(130 + seed, (n, n), 0, answers), answers))
        for seed, (n, answers) in enumerate(sizes)
    ]
    return [*cases, Case("the last answer never asked for", (integers(140, (3, 3), 0, 4), 5))]


def _table_slip(first=None, bias=None, second=None, last=None):
    """Return the right weights with some of them replaced; each argument is a function of (table, n_answers)."""

    def function(table, n_answers):
        weights = table_network(table, n_answers)
        slips = (first, bias, second, last)
        return tuple(
            right if slip is None else slip(table, n_answers) for slip, right in zip(slips, weights, strict=True)
        )

    return function


def _one_hot_rows(numbers, n_answers):
    return torch.nn.functional.one_hot(numbers, n_answers).to(torch.get_default_dtype())


def _second_half_missed(table, n_answers):
    n = len(table)
    W_1 = torch.zeros(2 * n, n * n)
    W_1[:n] = torch.eye(n).repeat_interleave(n, dim=1) + torch.eye(n).repeat(1, n)
    return W_1.clamp(max=1)


def _columns_first(table, n_answers):
    W_1, b_1, W_2, b_2 = table_network(table.T, n_answers)
    n = len(table)
    return torch.cat([W_1[n:], W_1[:n]]), b_1, W_2, b_2


EXERCISE_2 = Exercise(
    "09.2",
    "Any table at all",
    14,
    2,
    table_network,
    _table_cases,
    (
        Mistake(
            "no bias",
            _table_slip(bias=lambda table, n: torch.zeros(table.numel())),
            "b_1 is 0: then a unit answers to half of its pair already. With −1, only both halves together exceed 0.",
        ),
        Mistake(
            "bias of -2",
            _table_slip(bias=lambda table, n: torch.full((table.numel(),), -2.0)),
            "b_1 is −2: a unit sees at most 2, so nothing is ever above 0. Take −1.",
        ),
        Mistake(
            "bias of 1",
            _table_slip(bias=lambda table, n: torch.ones(table.numel())),
            "b_1 is +1; it is added, so the threshold needs −1.",
        ),
        Mistake(
            "transposed answers",
            _table_slip(second=lambda table, n: _one_hot_rows(table.T.flatten(), n)),
            "W_2 holds the answers in the order of table.T: unit a · n + b is the one for table[a, b].",
        ),
        Mistake(
            "columns first",
            _columns_first,
            "Your units are numbered b · n + a; a · n + b is asked for, so that W_2 has the table row by row.",
        ),
        Mistake(
            "halves swapped",
            _table_slip(first=lambda table, n: table_network(table, n)[0].roll(len(table), dims=0)),
            "The halves of W_1 are swapped: a stands in the first n entries of x, b in the others.",
        ),
        Mistake(
            "the other half",
            _table_slip(first=lambda table, n: table_network(table, n)[0] * (1 - _upper(table))),
            "W_1 has ones for b alone; a unit must see both halves of its pair.",
        ),
        Mistake(
            "b without n",
            _table_slip(first=_second_half_missed),
            "Column a · n + b of W_1 has its second 1 in row b; the second half of x begins at n, so it is row n + b.",
        ),
        Mistake(
            "the next answer",
            _table_slip(second=lambda table, n: _one_hot_rows(table.flatten(), n).roll(1, dims=1)),
            "The answers in W_2 are shifted by one; answer 0 belongs to the first column.",
        ),
        Mistake(
            "one half",
            _table_slip(first=lambda table, n: table_network(table, n)[0] * _upper(table)),
            "W_1 has ones for a alone; a unit must see both halves of its pair.",
        ),
        Mistake(
            "numbers for answers",
            _table_slip(second=lambda table, n: table.flatten()[:, None] * torch.ones(1, n)),
            "W_2 holds the answers as numbers; each of its rows should be the one-hot vector of the answer.",
        ),
        Mistake(
            "matrices turned",
            lambda table, n: tuple(part.T if part.dim() == 2 else part for part in table_network(table, n)),
            "W_1 and W_2 are transposed: x is a row and stands on the left, x W_1.",
        ),
    ),
    returns=("W_1", "b_1", "W_2", "b_2"),
)


def _upper(table):
    """Return a column of n ones and n zeros."""
    return (torch.arange(2 * len(table)) < len(table)).float()[:, None]


# 09.3 LayerNorm ------------------------------------------------------------------------------------------------------


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


def _normalised(x, axes, eps):
    """Return x with mean 0 and variance 1 over these axes, as LayerNorm has it over the last."""
    centred = x - x.mean(dim=axes, keepdim=True)
    return centred / (centred.pow(2).mean(dim=axes, keepdim=True) + eps).sqrt()


def _sample_variance(x, gain, bias, eps):
    variance = x.var(dim=-1, keepdim=True, correction=1)
    return gain * (x - x.mean(dim=-1, keepdim=True)) / (variance + eps).sqrt() + bias


def _no_root(x, gain, bias, eps):
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gain * (x - x.mean(dim=-1, keepdim=True)) / (variance + eps) + bias


def _eps_outside(x, gain, bias, eps):
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gain * (x - x.mean(dim=-1, keepdim=True)) / (variance.sqrt() + eps) + bias


def _no_eps(x, gain, bias, eps):
    return gain * _normalised(x, -1, 0.0) + bias


def _not_centred(x, gain, bias, eps):
    return gain * x / (x.var(dim=-1, keepdim=True, correction=0) + eps).sqrt() + bias


def _over_tokens(x, gain, bias, eps):
    return gain * _normalised(x, -2 if x.dim() > 1 else -1, eps) + bias


def _over_axis(axis):
    return lambda x, gain, bias, eps: gain * _normalised(x, axis, eps) + bias


def _over_everything(x, gain, bias, eps):
    return gain * _normalised(x, tuple(range(x.dim())), eps) + bias


def _sum_of_squares(x, eps):
    return ((x - _row_mean(x)).square().sum(dim=-1, keepdim=True) + eps).sqrt()


def _constant_statistics(x, gain, bias, eps):
    return gain * (x - _row_mean(x.detach())) / _parts(x.detach(), eps)[0] + bias


EXERCISE_3 = Exercise(
    "09.3",
    "LayerNorm",
    8,
    1,
    layer_norm,
    _norm_cases,
    (
        Mistake(
            "sample variance",
            _sample_variance,
            "The variance is divided by d − 1; LayerNorm divides by d: torch's var and std need correction=0.",
        ),
        Mistake("no root", _no_root, "You divided by the variance; divide by its root."),
        Mistake(
            "eps outside",
            _eps_outside,
            "eps stands outside the root; it is added to the variance, under the root.",
        ),
        Mistake("no eps", _no_eps, "eps is missing: where a row is constant you divide 0 by 0."),
        Mistake(
            "sample deviation",
            lambda x, gain, bias, eps: gain * (x - _row_mean(x)) / (x.std(dim=-1, keepdim=True) + eps) + bias,
            "Two slips: torch's std divides by d − 1 unless told correction=0, and eps belongs under the root.",
        ),
        Mistake(
            "another eps",
            lambda x, gain, bias, eps: layer_norm(x, gain, bias, 1e-5),
            "That is right for eps = 1e-5; use the eps that is given.",
        ),
        Mistake(
            "root mean square",
            lambda x, gain, bias, eps: gain * x / (_row_mean(x * x) + eps).sqrt() + bias,
            "The mean is never subtracted, neither from x nor in the variance: that is RMSNorm, a later relative.",
        ),
        Mistake("not centred", _not_centred, "The mean is not subtracted."),
        Mistake(
            "over tokens",
            _over_tokens,
            "You normalised each feature over the tokens; LayerNorm takes each token over its features.",
        ),
        Mistake(
            "dim=-2",
            _over_axis(-2),
            "You normalised each feature over the tokens, dim=-2; LayerNorm takes each token over its "
            "features, dim=-1.",
        ),
        Mistake(
            "dim=0",
            _over_axis(0),
            "You normalised over the first axis; LayerNorm takes each token over its features, the last axis.",
        ),
        Mistake(
            "dim=1",
            _over_axis(1),
            "You normalised over axis 1, which is the last one only for a matrix; the features are the last "
            "axis, dim=-1.",
        ),
        Mistake(
            "everything",
            _over_everything,
            "You took one mean and one variance of the whole tensor; each token has its own.",
        ),
        Mistake(
            "neither gain nor bias",
            lambda x, gain, bias, eps: _normalised(x, -1, eps),
            "That is x̂, the first half: gain and bias are still missing.",
        ),
        Mistake(
            "sum of squares",
            lambda x, gain, bias, eps: gain * (x - _row_mean(x)) / _sum_of_squares(x, eps) + bias,
            "You divided by the root of the sum of the squared distances; the variance is their mean.",
        ),
        Mistake(
            "squares of x",
            lambda x, gain, bias, eps: gain * (x - _row_mean(x)) / (_row_mean(x * x) + eps).sqrt() + bias,
            "You divided by the root of the mean of x²; the variance takes squares of x − μ.",
        ),
        Mistake(
            "gain and bias swapped",
            lambda x, gain, bias, eps: layer_norm(x, bias, gain, eps),
            "Gain and bias are swapped: the gain multiplies, the bias is added.",
        ),
        Mistake("no gain", lambda x, gain, bias, eps: _normalised(x, -1, eps) + bias, "The gain is missing."),
        Mistake("no bias", lambda x, gain, bias, eps: gain * _normalised(x, -1, eps), "The bias is missing."),
        Mistake(
            "gain on the bias",
            lambda x, gain, bias, eps: layer_norm(x, gain, gain * bias, eps),
            "The gain multiplied the bias too: y = gain · x̂ + bias.",
        ),
        Mistake(
            "constant statistics",
            _constant_statistics,
            "Mean and variance move with x too: a gradient must flow through them, so detach neither.",
        ),
        Mistake(
            "constant mean",
            lambda x, gain, bias, eps: gain * (x - _row_mean(x.detach())) / _parts(x, eps)[0] + bias,
            "The mean moves with x too: a gradient must flow through it, so do not detach it.",
        ),
        Mistake(
            "constant variance",
            lambda x, gain, bias, eps: gain * (x - _row_mean(x)) / _parts(x.detach(), eps)[0] + bias,
            "The variance moves with x too: a gradient must flow through it, so do not detach it.",
        ),
    ),
    gradients=("x", "gain", "bias"),
    part="layer_norm",
)


# 09.4 Around a sub-layer ---------------------------------------------------------------------------------------------


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


def _functions(seed, d_model):
    """Return a sub-layer that is not linear and a norm with a gain of its own."""
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


def _wrapped(pre=None, post=None):
    """Return the right wrapper with the pre-norm or the post-norm form replaced."""

    def function(x, sublayer, norm, norm_first):
        wrong = pre if norm_first else post
        return wrong(x, sublayer, norm) if wrong else residual_sublayer(x, sublayer, norm, norm_first)

    return function


def _swapped(x, sublayer, norm, norm_first):
    return residual_sublayer(x, sublayer, norm, not norm_first)


def _both_norms(x, sublayer, norm, norm_first):
    return norm(x + sublayer(norm(x)))


EXERCISE_4 = Exercise(
    "09.4",
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
        Mistake(
            "branch in both",
            lambda x, f, n, first: x + n(f(x)),
            "You normalised what comes out of the sub-layer in both; post-norm takes the sum, pre-norm what goes in.",
        ),
        Mistake(
            "sub-layer twice",
            _wrapped(pre=lambda x, f, n: x + f(n(x + f(x)))),
            "In pre-norm the sub-layer ran twice; it runs once, on norm(x).",
        ),
        Mistake(
            "no norm",
            lambda x, f, n, first: x + f(x),
            "The norm is missing: it takes the sum (post-norm), or what goes into the sub-layer (pre-norm).",
        ),
        Mistake(
            "post without the sum",
            _wrapped(post=lambda x, f, n: n(x) + f(x)),
            "In post-norm you normalised x and then added f(x); the norm takes the sum x + f(x).",
        ),
        Mistake(
            "pre with f of x",
            _wrapped(pre=lambda x, f, n: n(x) + f(x)),
            "In pre-norm the roles are swapped: the sub-layer gets norm(x), and x itself is added.",
        ),
        Mistake(
            "pre without x",
            _wrapped(pre=lambda x, f, n: f(n(x))),
            "Post-norm is right; in pre-norm x is not added.",
        ),
        Mistake(
            "post without x",
            _wrapped(post=lambda x, f, n: n(f(x))),
            "Pre-norm is right; in post-norm x is not added before the norm.",
        ),
        Mistake(
            "pre normalised again",
            _wrapped(pre=lambda x, f, n: n(x + f(n(x)))),
            "Post-norm is right; in pre-norm you normalised the sum once more.",
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
)


# 09.5 Paths through residuals ----------------------------------------------------------------------------------------


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


def _pass_over(jacobians, length, order=1, repeat=False, power=None):
    """Return the sum over paths, each slip a switch."""
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
    """Count only runs of consecutive sub-layers."""
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


def _chained(jacobians):
    """Return J_n … J_1, the identity for none."""
    product = torch.eye(jacobians.shape[-1], dtype=jacobians.dtype)
    for J in jacobians:
        product = J @ product
    return product


def _with_repetition(jacobians, length):
    choices = itertools.combinations_with_replacement(range(len(jacobians)), length)
    return sum(_chained(jacobians[list(choice)]) for choice in choices)


EXERCISE_5 = Exercise(
    "09.5",
    "Paths through residual connections",
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
            "neighbours, several identities",
            lambda J, k: _neighbours(J, k) * (1 if k else len(J) + 1),
            "You took only runs of sub-layers that follow each other, and for length 0 one at each place; a path may "
            "pass by those in between, and there is one that takes none.",
        ),
        Mistake(
            "all",
            _all_paths,
            "That is the sum over all 2^n paths, (I + J_n) … (I + J_1); only those of one length are asked for.",
        ),
        Mistake("up to", _up_to, "Shorter paths are in the sum too; exactly `length` sub-layers are asked for."),
        Mistake(
            "with repetition",
            _with_repetition,
            "A sub-layer occurs more than once in a path of yours; a path passes each at most once.",
        ),
        Mistake(
            "the last ones",
            lambda J, k: _chained(J[len(J) - k :]),
            "That is one path, through the last sub-layers; any choice of `length` of them is a path.",
        ),
        Mistake(
            "nothing for length 0",
            lambda J, k: paths_of_length(J, k) * (k > 0),
            "The path that passes none of the sub-layers is the identity, not zero.",
        ),
        Mistake("mean", _mean, "That is the mean over the paths; gradients of paths add up."),
        Mistake(
            "elementwise", _elementwise, "You multiplied entry by entry; Jacobians are chained by matrix products."
        ),
    ),
)


# 09.6 LayerNorm backwards --------------------------------------------------------------------------------------------


def layer_norm_backward(x, gain, grad_output, eps):
    """Return (grad_x, grad_gain, grad_bias) of LayerNorm for grad_output, the gradient with respect to its output.

    x, grad_output: [..., d_model]; gain: [d_model]. grad_x has the shape of x, the others that of the gain.
    """
    x, gain = x.detach().clone().requires_grad_(), gain.detach().clone().requires_grad_()
    bias = torch.zeros_like(gain).requires_grad_()
    output = torch.nn.functional.layer_norm(x, gain.shape, gain, bias, eps)
    return torch.autograd.grad(output, (x, gain, bias), grad_output)


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


def _parts(x, eps):
    """Return √(σ² + ε), x̂, and the axes of the tokens."""
    size = (x.var(dim=-1, keepdim=True, correction=0) + eps).sqrt()
    return size, (x - x.mean(dim=-1, keepdim=True)) / size, tuple(range(x.dim() - 1))


def _row_mean(x):
    return x.mean(dim=-1, keepdim=True)


def _with_grad_x(grad_x):
    """Return the right gradients of gain and bias beside a wrong grad_x, which is a function of g, x̂ and √(σ² + ε)."""

    def function(x, gain, grad, eps):
        size, unit, tokens = _parts(x, eps)
        return grad_x(grad * gain, unit, size), (grad * unit).sum(dim=tokens), grad.sum(dim=tokens)

    return function


def _gain_forgotten(x, gain, grad, eps):
    size, unit, tokens = _parts(x, eps)
    grad_x = (grad - _row_mean(grad) - unit * _row_mean(grad * unit)) / size
    return grad_x, (grad * unit).sum(dim=tokens), grad.sum(dim=tokens)


def _gain_outside(x, gain, grad, eps):
    """Multiply the gain in at the end instead of at the beginning."""
    grad_x, grad_gain, grad_bias = layer_norm_backward(x, torch.ones_like(gain), grad, eps)
    return gain * grad_x, grad_gain, grad_bias


def _summed_over_features(g, unit, size):
    return (g - g.sum(dim=-1, keepdim=True) - unit * (g * unit).sum(dim=-1, keepdim=True)) / size


def _centred_in_the_term(g, unit, size):
    centred = unit * size
    return (g - _row_mean(g) - centred * _row_mean(g * centred)) / size


def _not_summed(x, gain, grad, eps):
    _, unit, _ = _parts(x, eps)
    return layer_norm_backward(x, gain, grad, eps)[0], grad * unit, grad


def _raw_x_for_the_gain(x, gain, grad, eps):
    grad_x, _, grad_bias = layer_norm_backward(x, gain, grad, eps)
    return grad_x, (grad * x).sum(dim=tuple(range(x.dim() - 1))), grad_bias


def _centred_x_for_the_gain(x, gain, grad, eps):
    grad_x, _, grad_bias = layer_norm_backward(x, gain, grad, eps)
    return grad_x, (grad * (x - _row_mean(x))).sum(dim=tuple(range(x.dim() - 1))), grad_bias


def _centred_everywhere(x, gain, grad, eps):
    grad_x, _, _ = _with_grad_x(_centred_in_the_term)(x, gain, grad, eps)
    _, grad_gain, grad_bias = _centred_x_for_the_gain(x, gain, grad, eps)
    return grad_x, grad_gain, grad_bias


def _sample_variance_backwards(x, gain, grad, eps):
    size = (x.var(dim=-1, keepdim=True, correction=1) + eps).sqrt()
    g, unit, tokens = grad * gain, (x - _row_mean(x)) / size, tuple(range(x.dim() - 1))
    grad_x = (g - _row_mean(g) - unit * _row_mean(g * unit)) / size
    return grad_x, (grad * unit).sum(dim=tokens), grad.sum(dim=tokens)


def _gain_in_the_others(x, gain, grad, eps):
    grad_x, grad_gain, grad_bias = layer_norm_backward(x, gain, grad, eps)
    return grad_x, gain * grad_gain, gain * grad_bias


def _mean_over_tokens(x, gain, grad, eps):
    grad_x, grad_gain, grad_bias = layer_norm_backward(x, gain, grad, eps)
    tokens = grad[..., 0].numel()
    return grad_x, grad_gain / tokens, grad_bias / tokens


def _eps_outside_backwards(x, gain, grad, eps):
    size = x.std(dim=-1, keepdim=True, correction=0) + eps
    g, unit, tokens = grad * gain, (x - _row_mean(x)) / size, tuple(range(x.dim() - 1))
    grad_x = (g - _row_mean(g) - unit * _row_mean(g * unit)) / size
    return grad_x, (grad * unit).sum(dim=tokens), grad.sum(dim=tokens)


EXERCISE_6 = Exercise(
    "09.6",
    "LayerNorm backwards",
    25,
    3,
    layer_norm_backward,
    _backward_cases,
    (
        Mistake(
            "gain forgotten",
            _gain_forgotten,
            "The gain is missing in grad_x: what reaches x̂ is gain · grad_output.",
        ),
        Mistake(
            "gain at the end",
            _gain_outside,
            "The gain is multiplied in at the end; it acts on x̂, so grad_output meets it before the means.",
        ),
        Mistake(
            "not centred",
            _with_grad_x(lambda g, unit, size: (g - unit * _row_mean(g * unit)) / size),
            "The term of the mean, −1/d in the Jacobian, is missing.",
        ),
        Mistake(
            "not projected",
            _with_grad_x(lambda g, unit, size: (g - _row_mean(g)) / size),
            "The term of the variance, −x̂_c x̂_j/d in the Jacobian, is missing.",
        ),
        Mistake(
            "only divided",
            _with_grad_x(lambda g, unit, size: g / size),
            "You only divided by √(σ² + ε); μ and σ move with x too: both terms, −1/d and −x̂_c x̂_j/d, are missing.",
        ),
        Mistake(
            "sums",
            _with_grad_x(_summed_over_features),
            "You took sums over the features; both terms carry 1/d, so they are means.",
        ),
        Mistake(
            "not divided",
            _with_grad_x(lambda g, unit, size: g - _row_mean(g) - unit * _row_mean(g * unit)),
            "grad_x is not divided by √(σ² + ε).",
        ),
        Mistake(
            "divided twice",
            _with_grad_x(lambda g, unit, size: (g - _row_mean(g) - unit * _row_mean(g * unit)) / size**2),
            "grad_x is divided by σ² + ε; by its root it should be.",
        ),
        Mistake(
            "not summed",
            _not_summed,
            "grad_gain and grad_bias must be summed over the tokens: all tokens share one gain and one bias.",
        ),
        Mistake("raw x", _raw_x_for_the_gain, "grad_gain must use the normalised x̂, not x: the gain multiplies x̂."),
        Mistake(
            "centred x for the gain",
            _centred_x_for_the_gain,
            "grad_gain must use the normalised x̂; you used x − μ, which is not divided yet.",
        ),
        Mistake(
            "centred x in the term",
            _with_grad_x(_centred_in_the_term),
            "The term −x̂_c x̂_j/d in grad_x needs the normalised x̂ twice; you used x − μ, which is not divided yet.",
        ),
        Mistake(
            "centred x everywhere",
            _centred_everywhere,
            "Your x̂ is x − μ, which is not divided yet: both grad_x and grad_gain need it divided by √(σ² + ε).",
        ),
        Mistake(
            "plus signs",
            _with_grad_x(lambda g, unit, size: (g + _row_mean(g) + unit * _row_mean(g * unit)) / size),
            "Both terms carry a minus: the mean and the part along x̂ are taken off.",
        ),
        Mistake(
            "only the first divided",
            _with_grad_x(lambda g, unit, size: g / size - _row_mean(g) - unit * _row_mean(g * unit)),
            "Only the first term of grad_x is divided by √(σ² + ε); all three are.",
        ),
        Mistake(
            "gain in the others",
            _gain_in_the_others,
            "grad_gain and grad_bias use grad_output as it is; the gain enters only grad_x.",
        ),
        Mistake(
            "others swapped",
            lambda x, gain, grad, eps: tuple(layer_norm_backward(x, gain, grad, eps)[i] for i in (0, 2, 1)),
            "grad_gain and grad_bias are swapped: gain comes first.",
        ),
        Mistake(
            "mean over tokens",
            _mean_over_tokens,
            "grad_gain and grad_bias are sums over the tokens; you took means.",
        ),
        Mistake(
            "no eps backwards",
            lambda x, gain, grad, eps: layer_norm_backward(x, gain, grad, 0.0),
            "eps is missing: the forward pass divided by √(σ² + ε).",
        ),
        Mistake(
            "another eps backwards",
            lambda x, gain, grad, eps: layer_norm_backward(x, gain, grad, 1e-5),
            "That is right for eps = 1e-5; use the eps that is given.",
        ),
        Mistake(
            "eps outside backwards",
            _eps_outside_backwards,
            "eps stands outside the root; the forward pass divided by √(σ² + ε).",
        ),
        Mistake(
            "sample variance",
            _sample_variance_backwards,
            "Your variance divides by d − 1; LayerNorm divides by d: torch's var and std need correction=0.",
        ),
    ),
    returns=("grad_x", "grad_gain", "grad_bias"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
