"""The exercises of notebook 03: queries, keys, values."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

# 03.1 Three projections ----------------------------------------------------------------------------------------------


def project(X, W_Q, W_K, W_V):
    """Return (Q, K, V): the queries, keys and values of the tokens in the rows of X.

    X: [..., seq_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v].
    Q, K: [..., seq_len, d_k]; V: [..., seq_len, d_v].
    """
    return tuple(torch.einsum("...nm,md->...nd", X, W) for W in (W_Q, W_K, W_V))


def _head_cases():
    return [
        Case("2 tokens, d_model = d_k = d_v = 2", tuple(normal(31, (2, 2), (2, 2), (2, 2), (2, 2)))),
        Case("5 tokens, d_model 7, d_k 3, d_v 2", tuple(normal(32, (5, 7), (7, 3), (7, 3), (7, 2)))),
        Case("5 tokens, d_model = d_k = d_v = 5", tuple(normal(33, (5, 5), (5, 5), (5, 5), (5, 5)))),
        Case("a batch of 2", tuple(normal(34, (2, 3, 5), (5, 7), (5, 7), (5, 11)))),
        Case("one token", tuple(normal(35, (1, 3), (3, 2), (3, 2), (3, 5)))),
        Case("a batch of 3 with tokens of width 11", tuple(normal(36, (3, 7, 11), (11, 5), (11, 5), (11, 2)))),
    ]


EXERCISE_1 = Exercise(
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
    part="project",
)


# 03.2 One head -------------------------------------------------------------------------------------------------------


def one_head_attention(X, W_Q, W_K, W_V):
    """Return the output of one head of self-attention, with scores divided by √d_k.

    X: [..., seq_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]. Returns [..., seq_len, d_v].
    """
    query, key, value = project(X, W_Q, W_K, W_V)
    scores = torch.einsum("...id,...jd->...ij", query, key) / W_K.shape[1] ** 0.5
    return torch.einsum("...ij,...jd->...id", torch.softmax(scores, dim=-1), value)


def _attend(roles=(0, 1, 2), scale=None, axis=-1):
    """Return a head that takes its query, key and value from these of the three projections."""

    def function(X, W_Q, W_K, W_V):
        query, key, value = ((X @ W_Q, X @ W_K, X @ W_V)[role] for role in roles)
        size = W_Q.shape[1] ** 0.5 if scale is None else scale(X, W_Q)
        return torch.softmax(query @ key.mT / size, dim=axis) @ value

    return function


def _sum_of_tokens(X, W_Q, W_K, W_V):
    return torch.softmax((X @ W_Q) @ (X @ W_K).mT / W_Q.shape[1] ** 0.5, dim=-1) @ X


EXERCISE_2 = Exercise(
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
        Mistake(
            "no softmax",
            lambda X, Q, K, V: (X @ Q) @ (X @ K).mT / Q.shape[1] ** 0.5 @ (X @ V),
            "You used the scores themselves as weights; take their softmax over the keys.",
        ),
        Mistake(
            "scaled afterwards",
            lambda X, Q, K, V: torch.softmax((X @ Q) @ (X @ K).mT, dim=-1) / Q.shape[1] ** 0.5 @ (X @ V),
            "You divided by √d_k after the softmax; divide the scores, before it.",
        ),
    ),
    gradients=("X", "W_Q", "W_K", "W_V"),
)


# 03.3 The matrix behind the scores -----------------------------------------------------------------------------------


def score_matrix(W_Q, W_K):
    """Return the matrix M for which the dot product of query i and key j is x_i M x_jᵀ, for rows x_i, x_j.

    W_Q, W_K: [d_model, d_k]. Returns [d_model, d_model]; the division by √d_k is not part of it.
    """
    return torch.einsum("ad,bd->ab", W_Q, W_K)


def _matrix_cases():
    return [
        Case("d_model = d_k = 2", tuple(normal(37, (2, 2), (2, 2)))),
        Case("d_model 5, d_k 3", tuple(normal(38, (5, 3), (5, 3)))),
        Case("d_model = d_k = 7", tuple(normal(39, (7, 7), (7, 7)))),
        Case("d_model 11, d_k 1", tuple(normal(40, (11, 1), (11, 1)))),
        Case("d_k larger than d_model", tuple(normal(41, (3, 13), (3, 13)))),
    ]


EXERCISE_3 = Exercise(
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
)


# 03.4 What is kept and what is computed ------------------------------------------------------------------------------


def head_sizes(d_model, d_k, d_v, batch, seq_len):
    """Return (parameters, activations): how many numbers one head of self-attention keeps, and how many it computes.

    Parameters: W_Q, W_K and W_V, without biases. Activations: Q, K, V, the scores, the weights and the output,
    for a batch of sentences with seq_len tokens each.
    """
    shapes = [(d_model, d_k), (d_model, d_k), (d_model, d_v)]
    parameters = sum(rows * columns for rows, columns in shapes)
    per_sentence = [(seq_len, d_k)] * 2 + [(seq_len, d_v)] * 2 + [(seq_len, seq_len)] * 2
    return parameters, batch * sum(rows * columns for rows, columns in per_sentence)


def _size_cases():
    return [
        Case("d_model 4, d_k 3, d_v 2, one sentence of 5", (4, 3, 2, 1, 5)),
        Case("a batch of 7", (11, 5, 3, 7, 13)),
        Case("one token", (13, 2, 7, 1, 1)),
        Case("a long sentence", (17, 5, 5, 3, 101)),
        Case("the base model's head", (512, 64, 64, 2, 37)),
    ]


def _sizes(parameters=None, activations=None):
    """Return the right counts with one of them replaced by a formula of (d_model, d_k, d_v, batch, seq_len)."""

    def function(*sizes):
        right = head_sizes(*sizes)
        return parameters(*sizes) if parameters else right[0], activations(*sizes) if activations else right[1]

    return function


EXERCISE_4 = Exercise(
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
        Mistake(
            "W_O",
            _sizes(parameters=lambda m, k, v, b, n: m * (2 * k + 2 * v)),
            "Activations are right; W_O is not counted here: the parameters are W_Q, W_K and W_V.",
        ),
        Mistake(
            "biases",
            _sizes(parameters=lambda m, k, v, b, n: (m + 1) * (2 * k + v)),
            "Activations are right; there are no biases here: the parameters are W_Q, W_K and W_V.",
        ),
    ),
    returns=("parameters", "activations"),
)


# 03.5 Other matrices, the same scores --------------------------------------------------------------------------------


def same_scores(W_Q, W_K, R):
    """Return (W_Q R, the matrix to use instead of W_K), so that all dot products of queries and keys stay the same.

    W_Q, W_K: [d_model, d_k]; R: [d_k, d_k], invertible. Both results: [d_model, d_k].
    """
    return W_Q @ R, torch.linalg.solve(R, W_K.T).T


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


EXERCISE_5 = Exercise(
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
)


# 03.6 A head with tokens as columns ----------------------------------------------------------------------------------


def column_head(X, W_Q, W_K, W_V):
    """Return what one head adds to tokens that are the columns of X.

    X: [n, N], N tokens; W_Q, W_K: [d, n]; W_V: [n, n]. Returns ΔX [n, N].
    The scores are divided by √d; the weights of each query sum to one over the keys.
    """
    rows = X.T
    scores = (rows @ W_Q.T) @ (rows @ W_K.T).T / W_Q.shape[0] ** 0.5
    return (torch.softmax(scores, dim=1) @ rows @ W_V.T).T


def _column_cases():
    return [
        Case("2 tokens, n = d = 2", tuple(normal(48, (2, 2), (2, 2), (2, 2), (2, 2)))),
        Case("3 tokens, n = 5, d = 2", tuple(normal(49, (5, 3), (2, 5), (2, 5), (5, 5)))),
        Case("7 tokens, n = 7, d = 7", tuple(normal(50, (7, 7), (7, 7), (7, 7), (7, 7)))),
        Case("11 tokens, n = 3, d = 5", tuple(normal(51, (3, 11), (5, 3), (5, 3), (3, 3)))),
        Case("one token", tuple(normal(52, (5, 1), (3, 5), (3, 5), (5, 5)))),
    ]


def _columns(axis=0, turned=False, scale=True, residual=False, weights_first=False, value=None):
    """Return ΔX by columns, each slip a switch."""

    def function(X, W_Q, W_K, W_V):
        query, key = W_Q @ X, W_K @ X
        grid = query.T @ key if turned else key.T @ query
        weights = torch.softmax(grid / (W_Q.shape[0] ** 0.5 if scale else 1.0), dim=axis)
        carried = X if value == "tokens" else W_V @ X
        change = (weights @ carried.T).T if weights_first else carried @ weights
        return X + change if residual else change

    return function


EXERCISE_6 = Exercise(
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
            "Your grid is (W_Q X)ᵀ (W_K X), queries × keys, with the softmax down its columns. Use (W_K X)ᵀ (W_Q X).",
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
        Mistake(
            "root of n",
            lambda X, Q, K, V: V @ X @ torch.softmax((K @ X).T @ (Q @ X) / len(X) ** 0.5, dim=0),
            "You divided by √n, the width of a token; d is the width of a query, W_Q.shape[0].",
        ),
        Mistake(
            "no softmax",
            lambda X, Q, K, V: V @ X @ ((K @ X).T @ (Q @ X)) / len(Q) ** 0.5,
            "You used the scores themselves as weights; take their softmax over the keys.",
        ),
    ),
    gradients=("X", "W_Q", "W_K", "W_V"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
