"""The exercises of notebook 02: similarity without weights."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal

# 02.1 Compare everything with everything ------------------------------------------------------------------------------


def similarity(query, key):
    """Return the dot product of every query with every key.

    query: [..., q_len, d]; key: [..., k_len, d]; the axes in front broadcast. Returns [..., q_len, k_len].
    """
    return torch.einsum("...id,...jd->...ij", query, key)


def _similarity_cases():
    return [
        Case("2 queries, 3 keys of width 5", tuple(normal(201, (2, 5), (3, 5)))),
        Case("7 queries, 7 keys of width 7", tuple(normal(202, (7, 7), (7, 7)))),
        Case("a batch of 2", tuple(normal(203, (2, 3, 5), (2, 7, 5)))),
        Case("a batch of 5 with 3 heads", tuple(normal(204, (5, 3, 2, 11), (5, 3, 7, 11)))),
        Case("the same keys for the whole batch", tuple(normal(205, (3, 5, 7), (11, 7)))),
        Case("one set of queries for 3 sets of keys", tuple(normal(206, (1, 2, 5), (3, 3, 5)))),
        Case("one query, one key", tuple(normal(207, (1, 3), (1, 3)))),
    ]


def _unit(X, axis=-1):
    return X / torch.linalg.vector_norm(X, dim=axis, keepdim=True)


def _all_axes(x):
    return x.permute(*reversed(range(x.dim())))


EXERCISE_1 = Exercise(
    "02.1",
    "Compare everything with everything",
    5,
    1,
    similarity,
    _similarity_cases,
    (
        Mistake(
            "all axes",
            lambda query, key: query @ _all_axes(key),
            "Right for one sentence; with axes in front swap the last two only: key.transpose(-2, -1).",
        ),
        Mistake(
            "swapped",
            lambda query, key: key @ query.mT,
            "You compared the right pairs, but here keys are rows; queries must be rows, and keys columns.",
        ),
        Mistake(
            "no transpose",
            lambda query, key: query @ key,
            "You multiplied by the keys as they stand; a dot product sums over d, so each key must become a column.",
        ),
        Mistake(
            "queries alone",
            lambda query, key: query @ query.mT,
            "You compared the queries with each other; the keys do not enter.",
        ),
        Mistake(
            "keys alone",
            lambda query, key: key @ key.mT,
            "You compared the keys with each other; the queries do not enter.",
        ),
        Mistake(
            "features",
            lambda query, key: query.mT @ key,
            "You compared features with features, [d, d]. Tokens are rows: the second factor is the one to transpose.",
        ),
        Mistake(
            "own pairs",
            lambda query, key: (query * key).sum(-1),
            "You compared each query with one key only, the one in the same row; every pair is asked for.",
        ),
        Mistake(
            "scaled",
            lambda query, key: query @ key.mT / query.shape[-1] ** 0.5,
            "You divided by √d; these scores are plain dot products.",
        ),
        Mistake(
            "cosine",
            lambda query, key: _unit(query) @ _unit(key).mT,
            "Those are cosines: you divided by the lengths. The dot product keeps them.",
        ),
        Mistake(
            "library",
            lambda query, key: torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1),
            "You divided by √d and took the softmax as well, as the library does; only the dot products are asked for.",
        ),
        Mistake(
            "context",
            lambda query, key: torch.softmax(query @ key.mT, dim=-1) @ key,
            "Those are context vectors: the scores, before softmax and average, are asked for.",
        ),
        Mistake(
            "softmax",
            lambda query, key: torch.softmax(query @ key.mT, dim=-1),
            "You took the softmax as well; the scores alone are asked for.",
        ),
        Mistake(
            "distance",
            lambda query, key: torch.cdist(query, key),
            "Those are distances, small for similar tokens; a dot product is large for them.",
        ),
        Mistake(
            "minus distance",
            lambda query, key: -torch.cdist(query, key),
            "Those are distances with a minus sign; a dot product is another measure, in which length counts.",
        ),
    ),
    gradients=("query", "key"),
    part="similarity",
)


def _dots(X):
    return similarity(X, X)


# 02.2 Directions only ------------------------------------------------------------------------------------------------


def cosine_weights(X, temperature):
    """Return weights that depend on directions only: the softmax of cosine(x_i, x_j) / temperature.

    X: [..., seq_len, d_model], no row is zero; temperature: a positive number. Returns [..., seq_len, seq_len].
    """
    lengths = torch.linalg.vector_norm(X, dim=-1)
    cosines = _dots(X) / (lengths[..., :, None] * lengths[..., None, :])
    return torch.softmax(cosines / temperature, dim=-1)


def _cosine_cases():
    shapes = [
        ("2 tokens of width 3", (2, 3), 1.0),
        ("5 tokens of width 7, cold", (5, 7), 0.1),
        ("7 tokens of width 2, warm", (7, 2), 3.0),
        ("a batch of 3", (3, 5, 2), 0.5),
        ("a square of 5, colder", (5, 5), 0.02),
    ]
    cases = [Case(label, (*normal(211 + i, shape), T)) for i, (label, shape, T) in enumerate(shapes)]
    (tokens,) = normal(219, (3, 11))
    return [*cases, Case("one token a hundred times as long", (tokens * torch.tensor([[1.0], [100.0], [1.0]]), 0.5))]


def _cosine(X, temperature, axis=-1):
    return torch.softmax(_dots(_unit(X)) / temperature, dim=axis)


EXERCISE_2 = Exercise(
    "02.2",
    "Directions only",
    7,
    2,
    cosine_weights,
    _cosine_cases,
    (
        Mistake(
            "dot product",
            lambda X, T: torch.softmax(_dots(X) / T, dim=-1),
            "Your scores still grow with the lengths: divide each by the lengths of both tokens.",
        ),
        Mistake(
            "one length",
            lambda X, T: torch.softmax(_unit(X) @ X.mT / T, dim=-1),
            "You divided by the length of the first token only; the second one's still counts.",
        ),
        Mistake(
            "other length",
            lambda X, T: torch.softmax(X @ _unit(X).mT / T, dim=-1),
            "You divided by the length of the second token only; the first one's still counts.",
        ),
        Mistake(
            "whole matrix",
            lambda X, T: torch.softmax(_dots(X / X.norm()) / T, dim=-1),
            "You divided by the length of all numbers together; every token has a length of its own.",
        ),
        Mistake(
            "sum of sizes",
            lambda X, T: torch.softmax(_dots(X / X.abs().sum(-1, keepdim=True)) / T, dim=-1),
            "You divided by the sum of the absolute values; the length is the root of the sum of squares.",
        ),
        Mistake(
            "all axes",
            lambda X, T: torch.softmax(_unit(X) @ _all_axes(_unit(X)) / T, dim=-1),
            "Right for one sentence; with axes in front swap the last two only: X.transpose(-2, -1).",
        ),
        Mistake(
            "axis 1 of the lengths",
            lambda X, T: torch.softmax(_dots(_unit(X, 1)) / T, dim=-1),
            "Right for one sentence; with a batch in front the features are no longer axis 1: normalise along dim=-1.",
        ),
        Mistake(
            "temperature twice",
            lambda X, T: torch.softmax(_dots(_unit(X) / T), dim=-1),
            "You divided both factors by the temperature, so that the scores were divided by its square.",
        ),
        Mistake(
            "softmax over axis 1",
            lambda X, T: _cosine(X, T, axis=1),
            "Right for one sentence; with a batch in front the keys are no longer axis 1: softmax over dim=-1.",
        ),
        Mistake(
            "softmax over axis 0",
            lambda X, T: _cosine(X, T, axis=0),
            "Your softmax runs over axis 0; the weights of one query, a row, must sum to one: dim=-1.",
        ),
        Mistake(
            "squared",
            lambda X, T: torch.softmax(_dots(X / X.square().sum(-1, keepdim=True)) / T, dim=-1),
            "You divided by the squared lengths: the root is missing.",
        ),
        Mistake(
            "feature lengths",
            lambda X, T: torch.softmax(_dots(_unit(X, -2)) / T, dim=-1),
            "You normalised the columns of X; a token is a row.",
        ),
        Mistake(
            "first axis",
            lambda X, T: torch.softmax(_dots(_unit(X, 0)) / T, dim=-1),
            "You normalised along axis 0; the length of a token is taken along its features, dim=-1.",
        ),
        Mistake(
            "after",
            lambda X, T: _cosine(X, 1.0) / T,
            "You divided by the temperature after the softmax; divide the cosines before it.",
        ),
        Mistake(
            "times",
            lambda X, T: _cosine(X, 1 / T),
            "You multiplied by the temperature; a low one must sharpen the weights.",
        ),
        Mistake("no temperature", lambda X, T: _cosine(X, 1.0), "The temperature has no effect on your weights."),
        Mistake("axis", lambda X, T: _cosine(X, T, axis=-2), "Each row of the weights must sum to one."),
        Mistake(
            "cosines",
            lambda X, T: _dots(_unit(X)) / T,
            "Those are scores; the softmax over each row is missing.",
        ),
    ),
    gradients=("X",),
)


# 02.3 From weights back to scores ------------------------------------------------------------------------------------


def scores_from_weights(A):
    """Return the symmetric scores [n, n], with entry [0, 0] = 0, of which each row of A is the softmax.

    A: [n, n], all entries positive.
    """
    # π A = π; then π_i A_ij is symmetric and in proportion to exp(S_ij)
    size = len(A)
    system = torch.cat([(A.T - torch.eye(size, dtype=A.dtype))[:-1], torch.ones(1, size, dtype=A.dtype)])
    shares = torch.linalg.solve(system, torch.eye(size, dtype=A.dtype)[-1])
    scores = (shares[:, None] * A).log()
    return scores - scores[0, 0]


def _weights_cases():
    def case(label, seed, shape, scale):
        (X,) = normal(seed, shape, dtype=torch.float64)
        return Case(label, (torch.softmax(scale * X @ X.T, dim=-1),))

    (scores,) = normal(255, (5, 5), dtype=torch.float64)
    return [
        case("2 tokens of width 3", 251, (2, 3), 1.0),
        case("3 tokens of width 7", 252, (3, 7), 0.7),
        case("5 tokens of width 2", 253, (5, 2), 1.0),
        case("7 tokens of width 11", 254, (7, 11), 0.5),
        Case("symmetric scores that are no dot products", (torch.softmax(scores + scores.T, dim=-1),)),
        case("one token", 256, (1, 3), 1.0),
    ]


def _logs(A, row=0.0, column=0.0):
    """Return ln A with a multiple of ln(r_i / r_0) added to row i, and one to column i."""
    total = (A[0] / A[:, 0]).log()
    return A.log() + row * total[:, None] + column * total[None, :]


def _from_corner(scores):
    return scores - scores[0, 0]


EXERCISE_3 = Exercise(
    "02.3",
    "From weights back to scores",
    10,
    2,
    scores_from_weights,
    _weights_cases,
    (
        Mistake(
            "logarithm",
            lambda A: _from_corner(A.log()),
            "The logarithm of a weight is the score minus ln r_i, another number in each row: that is still missing.",
        ),
        Mistake(
            "bare logarithm",
            lambda A: A.log(),
            "The logarithm undoes the exponential, but not the division by the sum of the row; and S[0, 0] is not 0.",
        ),
        Mistake(
            "symmetrised",
            lambda A: _from_corner((A.log() + A.log().T) / 2),
            "You made ln A symmetric by averaging it with its transpose. That spreads the missing ln r_i over row and "
            "column, and does not remove it.",
        ),
        Mistake(
            "upside down",
            lambda A: _from_corner(_logs(A, row=-1.0)),
            "The ratio is upside down: by equation 1, r_i / r_0 is A[0, i] / A[i, 0].",
        ),
        Mistake(
            "column",
            lambda A: _from_corner(_logs(A, column=1.0)),
            "You added ln r_j to column j; what was divided by r_i is row i.",
        ),
        Mistake(
            "both",
            lambda A: _from_corner(_logs(A, row=1.0, column=1.0)),
            "You added ln r to rows and columns; each weight was divided once, by the sum of its row.",
        ),
        Mistake(
            "constant",
            lambda A: _logs(A, row=1.0),
            "Right up to a constant: subtract the entry [0, 0] from all.",
        ),
        Mistake(
            "entry",
            lambda A: (
                _logs(A, row=1.0) * (1 - torch.nn.functional.pad(torch.ones(1, 1), (0, len(A) - 1, 0, len(A) - 1)))
            ),
            "You set one entry to 0; the same number must be subtracted from all of them.",
        ),
        Mistake(
            "averaged weights",
            lambda A: _from_corner(((A + A.T) / 2).log()),
            "You averaged A with its transpose. The weights of a pair do differ: by equation 1, r_i A_ij = r_j A_ji.",
        ),
        Mistake(
            "ratio added",
            lambda A: _from_corner(A.log() + (A[0] / A[:, 0])[:, None]),
            "You added the ratio r_i / r_0 to the logarithms; add its logarithm.",
        ),
        Mistake(
            "first column",
            lambda A: (A / A[:, :1]).log(),
            "You subtracted from each row its own first entry; only S[0, 0] is 0, not the whole first column.",
        ),
        Mistake(
            "diagonal",
            lambda A: (A / A.diagonal()[:, None]).log(),
            "You subtracted from each row its own diagonal entry; only S[0, 0] is 0, not the whole diagonal.",
        ),
        Mistake(
            "first row",
            lambda A: (A / A[:1]).log(),
            "You subtracted the first row of ln A from all rows; only the number S[0, 0] is to be subtracted.",
        ),
        Mistake(
            "ratios",
            lambda A: (A / A.T).log(),
            "Those are the logarithms of A_ij / A_ji, which are ln r_j − ln r_i: the scores have cancelled.",
        ),
        Mistake(
            "exponentials",
            lambda A: _logs(A, row=1.0).exp() / A[0, 0],
            "Those are the exponentials of the scores: take their logarithm.",
        ),
    ),
)


# 02.4 Two tokens, round after round -----------------------------------------------------------------------------------


def distance_after(distance, rounds):
    """Return how far apart two tokens of equal length are after averaging each other for some rounds, a number.

    distance: between them at first, from 0 to 60; rounds: how often, from 0 on. Every round computes new weights.
    """
    x = torch.tensor([[0.5 * distance, 1.0], [-0.5 * distance, 1.0]], dtype=torch.float64)
    for _ in range(rounds):
        x = torch.softmax(x @ x.T, dim=-1) @ x
    return torch.linalg.vector_norm(x[0] - x[1]).item()


def _distance_cases():
    found = [(1.0, 1), (2.0, 1), (2.0, 3), (3.0, 7), (1.0, 2), (4.0, 20), (2.5, 0), (60.0, 5)]
    return [Case(f"{start:g} apart, {rounds} round{'s' * (rounds != 1)}", (start, rounds)) for start, rounds in found]


def _again(factor):
    """Return the distance after rounds that multiply it by `factor(distance)`."""

    def function(distance, rounds):
        for _ in range(rounds):
            distance = distance * factor(distance)
        return distance

    return function


def _both_move(distance, gap):
    """1 - 2p for a weight p on the other token that belongs to this gap between the scores."""
    return math.tanh(gap(distance) / 2)


def _unequal(distance, rounds):
    """The distance of two tokens that stand at 0 and at `distance`, on a line."""
    x = torch.tensor([[0.0], [float(distance)]], dtype=torch.float64)
    for _ in range(rounds):
        x = torch.softmax(x @ x.T, dim=-1) @ x
    return abs(x[1] - x[0]).item()


EXERCISE_4 = Exercise(
    "02.4",
    "Two tokens, round after round",
    15,
    3,
    distance_after,
    _distance_cases,
    (
        Mistake(
            "first weights",
            lambda D, n: D * math.tanh(D * D / 4) ** n,
            "You kept the weights of the first round; the tokens come closer, and every round computes new ones.",
        ),
        Mistake(
            "one round",
            lambda D, n: distance_after(D, min(n, 1)),
            "You computed one round, whatever their number: each round starts from the distance after the last one.",
        ),
        Mistake(
            "always one round",
            lambda D, n: D * math.tanh(D * D / 4),
            "You computed one round, whatever their number, and even where there is none.",
        ),
        Mistake("one too many", lambda D, n: distance_after(D, n + 1), "You computed one round too many."),
        Mistake("one too few", lambda D, n: distance_after(D, max(n - 1, 0)), "You computed one round too few."),
        Mistake(
            "overflow",
            _again(lambda D: 1 - 2 / (1 + math.exp(D * D / 2))),
            "Right until e^(D²/2) overflows: multiply above and below by e^(−D²/2), or use tanh.",
        ),
        Mistake(
            "unequal lengths",
            _unequal,
            "Your two tokens do not have the same length: put them at ±D/2.",
        ),
        Mistake(
            "factor",
            lambda D, n: distance_after(D, n) / D,
            "That is the factor by which the distance has shrunk; multiply the distance by it.",
        ),
        Mistake(
            "square",
            lambda D, n: distance_after(D, n) ** 2,
            "That is the square of the distance.",
        ),
        Mistake(
            "library",
            _again(lambda D: math.tanh(D * D / 4 / 2**0.5)),
            "Your scores are divided by √2, as by the library for two features; here they are plain dot products.",
        ),
        Mistake(
            "one moves",
            _again(lambda D: 1 - 1 / (1 + math.exp(min(D * D / 2, 700.0)))),
            "You multiplied by 1 − p, as if one of the two stood still. Both move a share p: the factor is 1 − 2p.",
        ),
        Mistake(
            "squared gap",
            _again(lambda D: _both_move(D, lambda D: D * D)),
            "You used tanh(D²/2). The difference u of the two scores is half of the squared distance, since "
            "|x − y|² = 2 (x·x − x·y), and the factor is tanh(u/2): half of that again.",
        ),
        Mistake(
            "quarter gap",
            _again(lambda D: _both_move(D, lambda D: D * D / 4)),
            "1 − 2/(1 + e^u) is tanh(u/2), and u is D²/2: the factor is tanh(D²/4).",
        ),
        Mistake(
            "no square",
            _again(lambda D: _both_move(D, lambda D: D / 2)),
            "You put the distance in place of its square: scores are products of two vectors.",
        ),
        Mistake(
            "other weight",
            _again(lambda D: 1 / (1 + math.exp(min(D * D / 2, 700.0)))),
            "You multiplied by the weight on the other token; with p near 0 the distance should hardly change.",
        ),
        Mistake(
            "swapped weights",
            _again(lambda D: -math.tanh(D * D / 4)),
            "You gave the larger weight to the other token; each scores itself higher than the other.",
        ),
    ),
    rtol=1e-3,
)


# 02.5 Scores to order ------------------------------------------------------------------------------------------------


def scores_to_order(X, S):
    """Return the matrix W for which x_i W x_jᵀ is the wanted score S[i, j], for all tokens i, j.

    X: [n, n], invertible, tokens are rows; S: [n, n]. Returns W [n, n].
    """
    return torch.linalg.solve(X, torch.linalg.solve(X, S.T).T)


def _order_cases():
    def case(label, seed, size):
        X, S = normal(seed, (size, size), (size, size), dtype=torch.float64)
        return Case(label, (X + 2 * torch.eye(size, dtype=torch.float64), S))

    ring = 4 * torch.eye(5, dtype=torch.float64).roll(1, dims=1)  # token i wants i + 1
    (tokens,) = normal(244, (5, 5), dtype=torch.float64)
    return [
        case("2 tokens", 241, 2),
        case("3 tokens", 242, 3),
        case("7 tokens", 243, 7),
        Case("each of 5 tokens looks for the next", (tokens + 2 * torch.eye(5, dtype=torch.float64), ring)),
    ]


EXERCISE_5 = Exercise(
    "02.5",
    "Scores to order",
    8,
    2,
    scores_to_order,
    _order_cases,
    (
        Mistake(
            "inverse once",
            lambda X, S: torch.linalg.inv(X) @ S,
            "X W would be S: the tokens stand on both sides of W.",
        ),
        Mistake(
            "right only",
            lambda X, S: S @ torch.linalg.inv(X).T,
            "W Xᵀ would be S: the first X is still to be cancelled, from the left.",
        ),
        Mistake(
            "other transpose",
            lambda X, S: torch.linalg.inv(X).T @ S @ torch.linalg.inv(X),
            "The transpose is on the wrong side: the first factor is X, the last one Xᵀ.",
        ),
        Mistake(
            "twice from the left",
            lambda X, S: torch.linalg.solve(X, torch.linalg.solve(X, S)),
            "You cancelled X twice from the left; the second one stands on the right, as Xᵀ.",
        ),
        Mistake(
            "both at once",
            lambda X, S: torch.linalg.inv(X @ X.T) @ S,
            "You cancelled X Xᵀ from the left, but W stands between the two.",
        ),
        Mistake(
            "reciprocals",
            lambda X, S: (1 / X) @ S @ (1 / X).T,
            "You took the reciprocal of each number; the inverse of a matrix is torch.linalg.inv(X).",
        ),
        Mistake(
            "no transpose",
            lambda X, S: torch.linalg.inv(X) @ S @ torch.linalg.inv(X),
            "On the right stands Xᵀ: its inverse is the transpose of X⁻¹.",
        ),
        Mistake(
            "product",
            lambda X, S: X.T @ S @ X,
            "X W Xᵀ = S is undone by inverses; transposes undo it only where X is a rotation.",
        ),
        Mistake(
            "turned",
            lambda X, S: torch.linalg.inv(X) @ S.T @ torch.linalg.inv(X).T,
            "You got the scores of token j with token i: S came in transposed.",
        ),
        Mistake("forward", lambda X, S: X @ S @ X.T, "That multiplies by X; you have to undo that."),
        Mistake("wanted", lambda X, S: S, "S itself works only where the tokens are unit vectors, X = I."),
    ),
)


# 02.6 Where repeated averaging ends ----------------------------------------------------------------------------------


def settled_shares(X):
    """Return the shares [seq_len] with which all tokens enter the common limit of A X, A A X, A A A X, …

    X: [seq_len, d_model]; A = softmax(X Xᵀ), over rows, computed once and kept.
    """
    weights = torch.softmax(X @ X.T, dim=-1)
    size = len(X)
    # π A = π and Σ π = 1, as one linear system: the last equation replaces one that follows from the others.
    system = torch.cat([(weights.T - torch.eye(size, dtype=X.dtype))[:-1], torch.ones(1, size, dtype=X.dtype)])
    return torch.linalg.solve(system, torch.eye(size, dtype=X.dtype)[-1])


def _limit_cases():
    def case(label, seed, shape, scale):
        (X,) = normal(seed, shape, dtype=torch.float64)
        return Case(label, (scale * X,))

    return [
        case("2 tokens of width 3", 231, (2, 3), 0.7),
        case("5 tokens of width 2", 232, (5, 2), 0.5),
        case("7 tokens of width 7", 233, (7, 7), 0.3),
        case("3 tokens of width 11", 234, (3, 11), 0.4),
        Case("one token", (torch.tensor([[0.3, 0.5]], dtype=torch.float64),)),
        case("5 tokens of width 8, which mix slowly", 235, (5, 8), 1.2),
    ]


def _totals(X):
    return torch.exp(X @ X.T).sum(-1)


def _stopped_early(call, case, result):
    """Name a row of a power of A, which is on the way to the limit and not there."""
    if not isinstance(result, torch.Tensor) or result.shape != (len(case.args[0]),):
        return None
    weights = torch.softmax(case.args[0] @ case.args[0].T, dim=-1)
    for power in (1, 2, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 100_000):
        rows = torch.linalg.matrix_power(weights, power)
        if (rows - result).abs().amax(dim=-1).min() < 1e-9:
            return (
                f"That is a row of A to the power {power}. The limit is the right place to look, but some sentences "
                "need millions of rounds and more. Which shares does one round leave as they are?"
            )
    return None


EXERCISE_6 = Exercise(
    "02.6",
    "Where repeated averaging ends",
    15,
    3,
    settled_shares,
    _limit_cases,
    (
        Mistake(
            "equal",
            lambda X: torch.full((len(X),), 1 / len(X), dtype=X.dtype),
            "Equal shares are the limit only if all rows of exp(X Xᵀ) have the same sum.",
        ),
        Mistake("totals", _totals, "Those are the sums of the rows of exp(X Xᵀ); as shares they must sum to one."),
        Mistake(
            "diagonal",
            lambda X: (w := torch.softmax(X @ X.T, -1).diagonal()) / w.sum(),
            "You took the weight that each token gives itself.",
        ),
        Mistake(
            "columns",
            lambda X: torch.softmax(X @ X.T, -1).mean(0),
            "Those are the shares after one step, averaged over tokens; the limit is something else.",
        ),
        Mistake(
            "softmax of lengths",
            lambda X: torch.softmax(X.square().sum(-1), 0),
            "You used a token's score with itself; its scores with all the others count too.",
        ),
        Mistake(
            "reciprocal",
            lambda X: (1 / _totals(X)) / (1 / _totals(X)).sum(),
            "The other way round: a token with a larger sum has the larger share.",
        ),
        Mistake(
            "logarithm",
            lambda X: torch.softmax((X @ X.T).sum(-1), 0),
            "You summed the scores and then took exponentials; the exponentials come first.",
        ),
    ),
    rtol=1e-5,
    probes=(_stopped_early,),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
