"""Exercises of notebook 03, continued: counting, equal scores from other matrices, tokens as columns."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def head_sizes(d_model, d_k, d_v, batch, seq_len):
    """Return (parameters, activations): how many numbers one head of self-attention keeps, and how many it computes.

    Parameters: W_Q, W_K and W_V, without biases. Activations: Q, K, V, the scores, the weights and the output,
    for a batch of sentences with seq_len tokens each.
    """
    shapes = [(d_model, d_k), (d_model, d_k), (d_model, d_v)]
    parameters = sum(rows * columns for rows, columns in shapes)
    per_sentence = [(seq_len, d_k)] * 2 + [(seq_len, d_v)] * 2 + [(seq_len, seq_len)] * 2
    return parameters, batch * sum(rows * columns for rows, columns in per_sentence)


def same_scores(W_Q, W_K, R):
    """Return (W_Q R, the matrix to use instead of W_K), so that all dot products of queries and keys stay the same.

    W_Q, W_K: [d_model, d_k]; R: [d_k, d_k], invertible. Both results: [d_model, d_k].
    """
    return W_Q @ R, torch.linalg.solve(R, W_K.T).T


def column_head(X, W_Q, W_K, W_V):
    """Return what one head adds to tokens that are the columns of X.

    X: [n, N], N tokens; W_Q, W_K: [d, n]; W_V: [n, n]. Returns ΔX [n, N].
    The scores are divided by √d; the weights of each query sum to one over the keys.
    """
    rows = X.T
    scores = (rows @ W_Q.T) @ (rows @ W_K.T).T / W_Q.shape[0] ** 0.5
    return (torch.softmax(scores, dim=1) @ rows @ W_V.T).T


def _size_cases():
    return [
        Case("d_model 4, d_k 3, d_v 2, one sentence of 5", (4, 3, 2, 1, 5)),
        Case("a batch of 7", (11, 5, 3, 7, 13)),
        Case("one token", (13, 2, 7, 1, 1)),
        Case("a long sentence", (17, 5, 5, 3, 101)),
        Case("the base model's head", (512, 64, 64, 2, 37)),
    ]


def _same_cases():
    def case(label, seed, d_model, d_k):
        W_Q, W_K, R = normal(seed, (d_model, d_k), (d_model, d_k), (d_k, d_k), dtype=torch.float64)
        return Case(label, (W_Q, W_K, R + 2 * torch.eye(d_k, dtype=torch.float64)))

    W_Q, W_K = normal(44, (5, 2), (5, 2), dtype=torch.float64)
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
    return [
        case("d_model 5, d_k 3", 45, 5, 3),
        case("d_model = d_k = 7", 46, 7, 7),
        Case("R is a rotation", (W_Q, W_K, turn)),
        Case("R doubles one axis", (W_Q, W_K, torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)))),
        case("d_k larger than d_model", 47, 3, 11),
    ]


def _column_cases():
    return [
        Case("2 tokens, n = d = 2", tuple(normal(48, (2, 2), (2, 2), (2, 2), (2, 2)))),
        Case("3 tokens, n = 5, d = 2", tuple(normal(49, (5, 3), (2, 5), (2, 5), (5, 5)))),
        Case("7 tokens, n = 7, d = 7", tuple(normal(50, (7, 7), (7, 7), (7, 7), (7, 7)))),
        Case("11 tokens, n = 3, d = 5", tuple(normal(51, (3, 11), (5, 3), (5, 3), (3, 3)))),
        Case("one token", tuple(normal(52, (5, 1), (3, 5), (3, 5), (5, 5)))),
    ]


def _columns(axis=0, turned=False, scale=True, residual=False, weights_first=False, value=None):
    """ΔX by columns, each slip a switch."""

    def function(X, W_Q, W_K, W_V):
        query, key = W_Q @ X, W_K @ X
        grid = query.T @ key if turned else key.T @ query
        weights = torch.softmax(grid / (W_Q.shape[0] ** 0.5 if scale else 1.0), dim=axis)
        carried = X if value == "tokens" else W_V @ X
        change = (weights @ carried.T).T if weights_first else carried @ weights
        return X + change if residual else change

    return function


def _sizes(parameters=None, activations=None):
    """The right counts with one of them replaced by a formula of (d_model, d_k, d_v, batch, seq_len)."""

    def function(*sizes):
        right = head_sizes(*sizes)
        return parameters(*sizes) if parameters else right[0], activations(*sizes) if activations else right[1]

    return function


EXERCISES = (
    Exercise(
        "03.4",
        "What is kept and what is computed",
        10,
        2,
        head_sizes,
        _size_cases,
        (
            Mistake(
                "no batch",
                _sizes(activations=lambda m, k, v, b, n: n * (2 * k + 2 * v) + 2 * n * n),
                "Parameters are right; activations exist once for every sentence of the batch.",
            ),
            Mistake(
                "parameters by batch",
                _sizes(parameters=lambda m, k, v, b, n: b * m * (2 * k + v)),
                "You counted the matrices once per sentence; the whole batch shares them.",
            ),
            Mistake(
                "parameters by length",
                _sizes(parameters=lambda m, k, v, b, n: n * (2 * k + v)),
                "You counted Q, K and V as parameters; parameters are W_Q, W_K and W_V, which have no token axis.",
            ),
            Mistake(
                "no output",
                _sizes(activations=lambda m, k, v, b, n: b * (n * (2 * k + v) + 2 * n * n)),
                "Parameters are right; among the activations the output, [seq_len, d_v], is missing.",
            ),
            Mistake(
                "one grid",
                _sizes(activations=lambda m, k, v, b, n: b * (n * (2 * k + 2 * v) + n * n)),
                "Parameters are right; scores and weights are two grids of seq_len × seq_len; you counted one.",
            ),
            Mistake(
                "one row of scores",
                _sizes(activations=lambda m, k, v, b, n: b * (n * (2 * k + 2 * v) + 2 * n)),
                "Parameters are right; the scores have one entry for each pair of tokens, not for each token.",
            ),
            Mistake(
                "d_v is d_k",
                _sizes(parameters=lambda m, k, v, b, n: 3 * m * k),
                "W_V has d_v columns, which need not be d_k.",
            ),
            Mistake(
                "swapped", lambda *sizes: head_sizes(*sizes)[::-1], "The two counts are swapped: parameters come first."
            ),
        ),
        returns=("parameters", "activations"),
    ),
    Exercise(
        "03.5",
        "Other matrices, the same scores",
        15,
        3,
        same_scores,
        _same_cases,
        (
            Mistake(
                "same R",
                lambda Q, K, R: (Q @ R, K @ R),
                "Both were multiplied by R; then M becomes W_Q R Rᵀ W_Kᵀ. Right only where R is a rotation.",
            ),
            Mistake(
                "inverse",
                lambda Q, K, R: (Q @ R, K @ torch.linalg.inv(R)),
                "The inverse stands untransposed: M becomes W_Q R R⁻ᵀ W_Kᵀ, since W_K enters transposed.",
            ),
            Mistake(
                "transpose",
                lambda Q, K, R: (Q @ R, K @ R.T),
                "You transposed R without inverting it: M becomes W_Q R R W_Kᵀ.",
            ),
            Mistake(
                "key unchanged",
                lambda Q, K, R: (Q @ R, K),
                "W_K must undo what R does to the queries; you left it as it was.",
            ),
            Mistake(
                "query unchanged",
                lambda Q, K, R: (Q, K),
                "These are the matrices that you were given; the first result must be W_Q R.",
            ),
            Mistake(
                "other way",
                lambda Q, K, R: (Q @ torch.linalg.inv(R).T, K @ R),
                "The scores are the same, but R was put on the keys: the first result must be W_Q R.",
            ),
        ),
        returns=("new W_Q", "new W_K"),
    ),
    Exercise(
        "03.6",
        "A head with tokens as columns",
        12,
        3,
        column_head,
        _column_cases,
        (
            Mistake(
                "axis",
                _columns(axis=1),
                "The softmax runs over the queries. In the grid (W_K X)ᵀ (W_Q X) keys run down: use dim=0.",
            ),
            Mistake(
                "wrong grid",
                _columns(turned=True),
                "Your grid is (W_Q X)ᵀ (W_K X), queries × keys, with the softmax down its columns. "
                "Use (W_K X)ᵀ (W_Q X).",
            ),
            Mistake(
                "A V",
                _columns(weights_first=True),
                "You multiplied the values with the weights transposed: with columns the output is V A.",
            ),
            Mistake("unscaled", _columns(scale=False), "The scores are not divided by √d."),
            Mistake("residual", _columns(residual=True), "You added X; the head returns ΔX alone."),
            Mistake("tokens", _columns(value="tokens"), "You blended the tokens: the values are W_V X."),
            Mistake(
                "row form",
                lambda X, Q, K, V: column_head(X, Q, K, V).T,
                "Your tokens came out as rows; the result is [n, N], one column per token.",
            ),
        ),
        gradients=("X", "W_Q", "W_K", "W_V"),
    ),
)
