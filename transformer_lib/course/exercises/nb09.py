"""The exercises of notebook 09: residuals, norms, feed-forward."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

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


EXERCISE_1 = Exercise(
    "09.1", "Feed-forward", 5, 1, feed_forward, _ffn_cases,
    slips(
        "x, W_1, b_1, W_2, b_2", "return torch.relu(x @ W_1 + b_1) @ W_2 + b_2",
        ("no ReLU", "torch.relu", "", "The maximum with 0 is missing; without it the two maps are one affine map."),
        ("ReLU at the end", "torch.relu(x @ W_1 + b_1) @ W_2 + b_2", "torch.relu((x @ W_1 + b_1) @ W_2 + b_2)",
         "The maximum with 0 is at the end; it belongs between the two maps."),
        ("minimum", "torch.relu(x @ W_1 + b_1)", "(x @ W_1 + b_1).clamp(max=0)",
         "You kept the negative numbers: clamp(max=0) is the minimum with 0. Take clamp(min=0)."),
        ("ReLU twice", "torch.relu(x @ W_1 + b_1) @ W_2 + b_2", "torch.relu(torch.relu(x @ W_1 + b_1) @ W_2 + b_2)",
         "There is a second maximum with 0, after the second map; the output may be negative."),
        ("bias after", "torch.relu(x @ W_1 + b_1)", "(torch.relu(x @ W_1) + b_1)",
         "b_1 is added after the maximum; it shifts where each hidden unit switches on."),
        ("residual", "return ", "return x + ",
         "You added x: that is the residual connection, which belongs to the block, not to this layer."),
        ("Python's max", "torch.relu(", "max(0, ",
         "Python's `max` and `if` ask a whole tensor for one yes or no; "
         "torch.relu and .clamp(min=0) take each entry by itself."),
    ),
    gradients=("x", "W_1", "b_1", "W_2", "b_2"), part="feed_forward",
)  # fmt: skip


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


EXERCISE_2 = Exercise(
    "09.2", "Any table at all", 14, 2, table_network, _table_cases,
    slips(
        "table, n_answers", """
            n = len(table)
            W_1, b_1 = torch.zeros(2 * n, n * n), -torch.ones(n * n)
            W_2, b_2 = torch.zeros(n * n, n_answers), torch.zeros(n_answers)
            for a in range(n):
                for b in range(n):
                    unit = a * n + b
                    W_1[a, unit] = W_1[n + b, unit] = 1
                    W_2[unit, table[a, b]] = 1
            return W_1, b_1, W_2, b_2
        """,
        ("no bias", "-torch.ones(n * n)", "torch.zeros(n * n)",
         "b_1 is 0: then a unit already responds to half of its pair. With −1, only both halves together exceed 0."),
        ("bias of 1", "-torch", "torch", "b_1 is +1; it is added, so the threshold needs −1."),
        ("columns first", "a * n + b", "b * n + a",
         "Your units are numbered b · n + a; a · n + b is asked for, so that W_2 has the table row by row."),
        ("b without n", "W_1[n + b", "W_1[b",
         "Column a · n + b of W_1 has its second 1 in row b; the second half of x begins at n, so it is row n + b."),
        ("numbers for answers", "[unit, table[a, b]] = 1", "[unit] = table[a, b]",
         "W_2 holds the answers as numbers; each of its rows should be the one-hot vector of the answer."),
        ("matrices turned", "return W_1, b_1, W_2, b_2", "return W_1.T, b_1, W_2.T, b_2",
         "W_1 and W_2 are transposed: x is a row and comes first, x W_1."),
    ),
    returns=("W_1", "b_1", "W_2", "b_2"),
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "09.3", "LayerNorm", 8, 1, layer_norm, _norm_cases,
    slips(
        "x, gain, bias, eps", """
            variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
            normed = (x - mean) / (variance + eps).sqrt()
            return gain * normed + bias
        """,
        ("sample variance", "correction=0", "correction=1",
         "The variance is divided by d − 1; LayerNorm divides by d: torch's var and std need correction=0."),
        ("eps outside", "(variance + eps).sqrt()", "(variance.sqrt() + eps)",
         "eps is outside the root; it is added to the variance, under the root."),
        ("no eps", " + eps", "", "eps is missing: where a row is constant you divide 0 by 0."),
        ("sample deviation", "(variance + eps).sqrt()", "(x.std(-1, keepdim=True) + eps)",
         "Two slips: torch's std divides by d − 1 unless told correction=0, and eps belongs under the root."),
        ("another eps", "+ eps", "+ 1e-5", "That is right for eps = 1e-5; use the eps that is given."),
        ("dim=0", "-1", "0",
         "You normalised over the first axis; LayerNorm takes each token over its features, the last axis."),
        ("dim=1", "-1", "1",
         "You normalised over axis 1, which is the last one only for a matrix; "
         "the features are the last axis, dim=-1."),
        ("everything", "-1", "tuple(range(x.dim()))",
         "You took one mean and one variance of the whole tensor; each token has its own."),
        ("gain on the bias", "gain * normed + bias", "gain * (normed + bias)",
         "The gain multiplied the bias too: y = gain · x̂ + bias."),
        ("constant statistics", "var_mean(x", "var_mean(x.detach()",
         "Mean and variance move with x too: a gradient must flow through them, so detach neither."),
    ),
    gradients=("x", "gain", "bias"), part="layer_norm",
)  # fmt: skip


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


EXERCISE_4 = Exercise(
    "09.4", "Around a sub-layer", 8, 2, residual_sublayer, _residual_cases,
    slips(
        "x, sublayer, norm, norm_first", """
            if norm_first:
                return x + sublayer(norm(x))
            return norm(x + sublayer(x))
        """,
        ("swapped", "if norm", "if not norm", "Post-norm and pre-norm are swapped: norm_first=True is pre-norm."),
        ("always post", "x + sublayer(norm(x))", "norm(x + sublayer(x))",
         "Post-norm is right; with norm_first you still normalise the sum. Pre-norm is x + f(norm(x))."),
        ("always pre", "norm(x + sublayer(x))", "x + sublayer(norm(x))",
         "Pre-norm is right; without norm_first the norm must take the sum: norm(x + f(x))."),
        ("adds the normed", "x + sublayer(norm(x))", "norm(x) + sublayer(norm(x))",
         "In pre-norm you added norm(x); the residual carries x itself, not normalised."),
        ("norm of the branch", "norm(x + sublayer(x))", "x + norm(sublayer(x))",
         "In post-norm you normalised the sub-layer's output, then added x; the norm takes the sum."),
        ("norm after pre", "x + sublayer(norm(x))", "x + norm(sublayer(x))",
         "In pre-norm you normalised what comes out of the sub-layer; the norm takes what goes in."),
    )
    + (
        Mistake("no residual", lambda x, f, norm, first: f(norm(x)) if first else norm(f(x)),
                "x is not added: that is the sub-layer without its residual connection."),
    ),
    gradients=("x",),
)  # fmt: skip


# 09.5 Paths through residuals ----------------------------------------------------------------------------------------


def paths_of_length(jacobians, length):
    """Return the sum of all paths that pass through exactly `length` of the n residual sub-layers.

    jacobians: [n, d, d], J_1 first; the column convention holds, so a later sub-layer is further to the left.
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


EXERCISE_5 = Exercise(
    "09.5", "Paths through residual connections", 20, 3, paths_of_length, _path_cases,
    slips(
        "jacobians, length", """
            total = torch.zeros_like(jacobians[0])
            for chosen in itertools.combinations(jacobians, length):
                path = torch.eye(jacobians.shape[-1]).to(jacobians)
                for J in chosen:
                    path = J @ path
                total = total + path
            return total
        """,
        ("order", "J @ path", "path @ J",
         "The factors are in the opposite order: a later sub-layer is further to the left."),
        ("the first ones", "itertools.combinations(jacobians, length)", "[jacobians[:length]]",
         "That is one path, through the first sub-layers; any choice of `length` of them is a path."),
        ("neighbours, several identities", "itertools.combinations(jacobians, length)",
         "[jacobians[i : i + length] for i in range(len(jacobians) - length + 1)]",
         "You took only runs of sub-layers that follow each other, and for length 0 one at each place; "
         "a path may skip those in between, and only one path takes none."),
        ("all", "itertools.combinations(jacobians, length)",
         "(some for k in range(len(jacobians) + 1) for some in itertools.combinations(jacobians, k))",
         "That is the sum over all 2^n paths, (I + J_n) … (I + J_1); only those of one length are asked for."),
        ("up to", "itertools.combinations(jacobians, length)",
         "(some for k in range(length + 1) for some in itertools.combinations(jacobians, k))",
         "Shorter paths are in the sum too; exactly `length` sub-layers are asked for."),
        ("nothing for length 0", "return total", "return total * (length > 0)",
         "The path that passes none of the sub-layers is the identity, not zero."),
        ("elementwise", "J @ path", "J * path",
         "You multiplied entry by entry; Jacobians are chained by matrix products."),
        itertools=itertools,
    ),
)  # fmt: skip


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


EXERCISE_6 = Exercise(
    "09.6", "LayerNorm backwards", 25, 3, layer_norm_backward, _backward_cases,
    slips(
        "x, gain, grad_output, eps", """
            variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
            root = (variance + eps).sqrt()
            normed = (x - mean) / root
            tokens = tuple(range(x.dim() - 1))
            g = grad_output * gain
            along = normed * (g * normed).mean(-1, keepdim=True)
            grad_x = (g - g.mean(-1, keepdim=True) - along) / root
            return grad_x, (grad_output * normed).sum(tokens), grad_output.sum(tokens)
        """,
        ("gain forgotten", " * gain", "", "The gain is missing in grad_x: what reaches x̂ is gain · grad_output."),
        ("gain at the end", " * gain\nalong = normed * (g * normed).mean(-1, keepdim=True)\ngrad_x = ",
         "\nalong = normed * (g * normed).mean(-1, keepdim=True)\ngrad_x = gain * ",
         "The gain is multiplied in at the end; it acts on x̂, so grad_output meets it before the means."),
        ("not centred", " - g.mean(-1, keepdim=True)", "", "The term of the mean, −1/d in the Jacobian, is missing."),
        ("not projected", " - along", "", "The term of the variance, −x̂_c x̂_j/d in the Jacobian, is missing."),
        ("only divided", " - g.mean(-1, keepdim=True) - along", "",
         "You only divided by √(σ² + ε); μ and σ move with x too: both terms, −1/d and −x̂_c x̂_j/d, are missing."),
        ("sums", "mean(-1, keepdim=True)\ngrad_x = (g - g.mean", "sum(-1, keepdim=True)\ngrad_x = (g - g.sum",
         "You took sums over the features; both terms carry 1/d, so they are means."),
        ("not summed", "(grad_output * normed).sum(tokens), grad_output.sum(tokens)",
         "grad_output * normed, grad_output",
         "grad_gain and grad_bias must be summed over the tokens: all tokens share one gain and one bias."),
        ("raw x", "grad_output * normed", "grad_output * x",
         "grad_gain must use the normalised x̂, not x: the gain multiplies x̂."),
        ("sample variance", "correction=0", "correction=1",
         "Your variance divides by d − 1; LayerNorm divides by d: torch's var and std need correction=0."),
    ),
    returns=("grad_x", "grad_gain", "grad_bias"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
