"""Exercises of notebook 03: the three projections, one head, and the matrix behind the scores."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def project(X, W_Q, W_K, W_V):
    """Return (Q, K, V): the queries, keys and values of the tokens in the rows of X.

    X: [..., seq_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v].
    Q, K: [..., seq_len, d_k]; V: [..., seq_len, d_v].
    """
    return tuple(torch.einsum("...nm,md->...nd", X, W) for W in (W_Q, W_K, W_V))


def one_head_attention(X, W_Q, W_K, W_V):
    """Return the output of one head of self-attention, with scores divided by √d_k.

    X: [..., seq_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]. Returns [..., seq_len, d_v].
    """
    query, key, value = project(X, W_Q, W_K, W_V)
    scores = torch.einsum("...id,...jd->...ij", query, key) / W_K.shape[1] ** 0.5
    return torch.einsum("...ij,...jd->...id", torch.softmax(scores, dim=-1), value)


def score_matrix(W_Q, W_K):
    """Return the matrix M for which the dot product of query i and key j is x_i M x_jᵀ, for rows x_i, x_j.

    W_Q, W_K: [d_model, d_k]. Returns [d_model, d_model]; the division by √d_k is not part of it.
    """
    return torch.einsum("ad,bd->ab", W_Q, W_K)


def _head_cases():
    return [
        Case("2 tokens, d_model = d_k = d_v = 2", tuple(normal(31, (2, 2), (2, 2), (2, 2), (2, 2)))),
        Case("5 tokens, d_model 7, d_k 3, d_v 2", tuple(normal(32, (5, 7), (7, 3), (7, 3), (7, 2)))),
        Case("5 tokens, d_model = d_k = d_v = 5", tuple(normal(33, (5, 5), (5, 5), (5, 5), (5, 5)))),
        Case("a batch of 2", tuple(normal(34, (2, 3, 5), (5, 7), (5, 7), (5, 11)))),
        Case("one token", tuple(normal(35, (1, 3), (3, 2), (3, 2), (3, 5)))),
        Case("a batch of 3 with tokens of width 11", tuple(normal(36, (3, 7, 11), (11, 5), (11, 5), (11, 2)))),
    ]


def _matrix_cases():
    return [
        Case("d_model = d_k = 2", tuple(normal(37, (2, 2), (2, 2)))),
        Case("d_model 5, d_k 3", tuple(normal(38, (5, 3), (5, 3)))),
        Case("d_model = d_k = 7", tuple(normal(39, (7, 7), (7, 7)))),
        Case("d_model 11, d_k 1", tuple(normal(40, (11, 1), (11, 1)))),
        Case("d_k larger than d_model", tuple(normal(41, (3, 13), (3, 13)))),
    ]


def _attend(roles=(0, 1, 2), scale=None, axis=-1):
    """A head that takes its query, key and value from these of the three projections."""

    def function(X, W_Q, W_K, W_V):
        query, key, value = ((X @ W_Q, X @ W_K, X @ W_V)[role] for role in roles)
        size = W_Q.shape[1] ** 0.5 if scale is None else scale(X, W_Q)
        return torch.softmax(query @ key.mT / size, dim=axis) @ value

    return function


def _sum_of_tokens(X, W_Q, W_K, W_V):
    return torch.softmax((X @ W_Q) @ (X @ W_K).mT / W_Q.shape[1] ** 0.5, dim=-1) @ X


EXERCISES = (
    Exercise(
        "03.1",
        "Three projections",
        5,
        1,
        project,
        _head_cases,
        (
            Mistake(
                "swapped",
                lambda X, Q, K, V: (X @ K, X @ Q, X @ V),
                "Query and key are swapped: W_Q makes the queries, the first result.",
            ),
            Mistake(
                "order",
                lambda X, Q, K, V: (X @ Q, X @ V, X @ K),
                "Key and value are swapped: the results come as (Q, K, V).",
            ),
            Mistake(
                "one matrix",
                lambda X, Q, K, V: (X @ Q, X @ Q, X @ V),
                "Your keys are made with W_Q; they have a matrix of their own, W_K.",
            ),
            Mistake(
                "columns",
                lambda X, Q, K, V: ((X @ Q).mT, (X @ K).mT, (X @ V).mT),
                "Your tokens came out as columns. Tokens are rows: X @ W keeps them so.",
            ),
            Mistake(
                "chain",
                lambda X, Q, K, V: (X @ Q, X @ Q @ K if Q.shape[0] == Q.shape[1] else X @ K, X @ V),
                "You made the keys out of the queries; each projection starts from X.",
            ),
            Mistake(
                "scaled",
                lambda X, Q, K, V: (X @ Q / Q.shape[1] ** 0.5, X @ K, X @ V),
                "The division by √d_k belongs to the scores; here only projections are asked for.",
            ),
            Mistake(
                "transposed",
                lambda X, Q, K, V: (X @ Q.T, X @ K.T, X @ V.T),
                "You transposed the matrices; W is [d_model, width] already, so X @ W.",
            ),
            Mistake(
                "matrix first",
                lambda X, Q, K, V: (Q @ X, K @ X, V @ X),
                "The matrix stands on the left, as for tokens in columns; tokens are rows, so X @ W.",
            ),
            Mistake(
                "bias",
                lambda X, Q, K, V: (X @ Q + 1, X @ K + 1, X @ V + 1),
                "Something is added to the product; these projections have no bias.",
            ),
        ),
        gradients=("X", "W_Q", "W_K", "W_V"),
        returns=("Q", "K", "V"),
    ),
    Exercise(
        "03.2",
        "One head",
        10,
        1,
        one_head_attention,
        _head_cases,
        (
            Mistake("unscaled", _attend(scale=lambda X, W: 1.0), "The scores are not divided by √d_k."),
            Mistake(
                "root of d_model",
                _attend(scale=lambda X, W: X.shape[-1] ** 0.5),
                "You divided by √d_model; d_k is the width of a query, W_Q.shape[1].",
            ),
            Mistake("no root", _attend(scale=lambda X, W: W.shape[1]), "You divided by d_k; the root is missing."),
            Mistake(
                "axis",
                _attend(axis=-2),
                "The softmax runs over the queries; each query's weights must sum to one over the keys (axis -1).",
            ),
            Mistake(
                "axis 1",
                _attend(axis=1),
                "Right for one sentence; with a batch in front the keys are no longer axis 1: use dim=-1.",
            ),
            Mistake(
                "turned",
                _attend(roles=(1, 0, 2)),
                "Keys ask and queries answer: row i of the scores belongs to query i.",
            ),
            Mistake("tied", _attend(roles=(0, 0, 2)), "You compared queries with queries: the keys are X W_K."),
            Mistake(
                "embeddings",
                _sum_of_tokens,
                "You added up the rows of X. The weights apply to the values, the rows of X W_V.",
            ),
            Mistake(
                "mean",
                lambda X, Q, K, V: (X @ V).mean(-2, keepdim=True).expand((X @ V).shape),
                "Every token gets the plain mean of the values: the weights do not come from the scores.",
            ),
        ),
        gradients=("X", "W_Q", "W_K", "W_V"),
    ),
    Exercise(
        "03.3",
        "The matrix behind the scores",
        3,
        1,
        score_matrix,
        _matrix_cases,
        (
            Mistake(
                "turned", lambda Q, K: K @ Q.T, "That is the transpose of M: it gives the score of query j with key i."
            ),
            Mistake(
                "no transpose",
                lambda Q, K: Q @ K,
                "The transpose is missing: (x_j W_K)ᵀ = W_Kᵀ x_jᵀ, so W_K enters transposed.",
            ),
            Mistake(
                "inner",
                lambda Q, K: Q.T @ K,
                "You summed over d_model and got [d_k, d_k]; M meets tokens on both sides: [d_model, d_model].",
            ),
            Mistake("scaled", lambda Q, K: Q @ K.T / Q.shape[1] ** 0.5, "M is asked for without the division by √d_k."),
            Mistake(
                "symmetric",
                lambda Q, K: (Q @ K.T + K @ Q.T) / 2,
                "You made M symmetric; query i with key j and query j with key i are two different scores.",
            ),
            Mistake("queries only", lambda Q, K: Q @ Q.T, "The right factor must come from W_K."),
            Mistake("keys only", lambda Q, K: K @ K.T, "The left factor must come from W_Q."),
            Mistake("elementwise", lambda Q, K: Q * K, "You multiplied entry by entry; M is a matrix product."),
        ),
        gradients=("W_Q", "W_K"),
    ),
)
