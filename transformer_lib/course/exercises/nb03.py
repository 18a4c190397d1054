"""The exercises of notebook 03: queries, keys, values."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal

# 03.1 Three projections ----------------------------------------------------------------------------------------------


def project(X, W_Q, W_K, W_V):
    """Return (Q, K, V): the queries, keys and values of the tokens in the rows of X.

    X: [..., seq_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v].
    Q, K: [..., seq_len, d_k]; V: [..., seq_len, d_v].
    """
    return tuple(torch.einsum("...nm,md->...nd", X, W) for W in (W_Q, W_K, W_V))


def _project_cases():
    return [
        Case("2 tokens, d_model 2, d_k 3, d_v 5", tuple(normal(31, (2, 2), (2, 3), (2, 3), (2, 5)))),
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
    _project_cases,
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
            "values from W_K",
            lambda X, Q, K, V: (X @ Q, X @ K, X @ K),
            "Your values are made with W_K; they have a matrix of their own, W_V.",
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


# 03.2 When nobody may read one token ----------------------------------------------------------------------------------


def output_without(weights, value, j):
    """Return the output of every query when no query may read key j, from the weights with it.

    weights: [..., q_len, k_len], each row a softmax; value: [..., k_len, d_v]; j: a number from 0 to k_len - 1.
    Returns [..., q_len, d_v]. The other keys' weights keep their ratios.
    """
    others = [key for key in range(value.shape[-2]) if key != j]
    left = weights[..., others]
    return torch.einsum("...ij,...jd->...id", left / left.sum(-1, keepdim=True), value[..., others, :])


def _without_cases():
    def case(label, seed, q_len, k_len, d_v, j, *batch):
        scores, value = normal(seed, (*batch, q_len, k_len), (*batch, k_len, d_v))
        return Case(label, (torch.softmax(scores, -1), value, j))

    return [
        case("2 queries, 3 keys", 41, 2, 3, 2, 1),
        case("3 queries, 5 keys, without the first", 42, 3, 5, 2, 0),
        case("5 tokens of width 5", 43, 5, 5, 5, 3),
        case("a batch of 2", 44, 3, 7, 11, 6, 2),
        case("a batch of 3 with 2 heads", 45, 5, 3, 7, 1, 3, 2),
    ]


def _cut(weights, j):
    """Return the weights with column j set to 0."""
    kept = weights.clone()
    kept[..., j] = 0.0
    return kept


def _spread(weights, value, j):
    freed = weights[..., j, None] / (weights.shape[-1] - 1)
    return _cut(weights + freed, j) @ value


def _by_row(weights, value, j):
    kept = weights.clone()
    kept[..., min(j, weights.shape[-2] - 1), :] = 0.0
    return kept @ value


def _one_sum(weights, value, j):
    kept = _cut(weights, j)
    return kept / kept.sum() @ value


def _over_queries(weights, value, j):
    kept = _cut(weights, j)
    return kept / kept.sum(-2, keepdim=True) @ value


def _one_by_one(weights, value, j, drop_query=True):
    """Drop key j, and with it row j of the queries or of the output."""
    kept = [key for key in range(value.shape[-2]) if key != j]
    queries = [query for query in range(weights.shape[-2]) if query != j] if drop_query else slice(None)
    left = weights[..., queries, :][..., kept]
    return left / left.sum(-1, keepdim=True) @ value[..., kept, :]


def _no_keepdim(weights, value, j):
    kept = _cut(weights, j)
    return kept / kept.sum(-1) @ value


def _no_keepdim_of_output(weights, value, j):
    return (weights @ value - weights[..., j, None] * value[..., j, None, :]) / (1 - weights[..., j])


EXERCISE_2 = Exercise(
    "03.2",
    "When nobody may read one token",
    10,
    2,
    output_without,
    _without_cases,
    (
        Mistake(
            "too small",
            lambda w, v, j: _cut(w, j) @ v,
            "Key j is gone, but what is left of a row sums to less than one: divide by that sum.",
        ),
        Mistake(
            "softmax again",
            lambda w, v, j: torch.softmax(_cut(w, j), -1) @ v,
            "A softmax of weights changes their ratios, and gives key j a weight again: exp(0) = 1. Divide by the sum.",
        ),
        Mistake(
            "softmax without j",
            lambda w, v, j: torch.softmax(w.index_fill(-1, torch.tensor([j]), -math.inf), -1) @ v,
            "Key j gets nothing, but a softmax of weights changes the ratios of the others: divide by their sum.",
        ),
        Mistake(
            "equal shares",
            _spread,
            "You gave every other key an equal part of the freed weight; then ratios change. Divide by the row's sum.",
        ),
        Mistake(
            "row",
            _by_row,
            "You removed a query (a row). Key j is column j: nobody may read it, and every query still reads.",
        ),
        Mistake("unchanged", lambda w, v, j: w @ v, "That is the output with key j."),
        Mistake(
            "only j",
            lambda w, v, j: w[..., j, None] * v[..., j, None, :],
            "That is what key j contributes; take it away instead.",
        ),
        Mistake(
            "one sum",
            _one_sum,
            "You divided by the sum of all weights; every row has a sum of its own (dim=-1, keepdim=True).",
        ),
        Mistake(
            "without its query",
            _one_by_one,
            "You took token j's query away too. It may still ask; only its key goes, so every query keeps a row.",
        ),
        Mistake("no keepdim", _no_keepdim, "Each row needs a divisor of its own: sum with dim=-1, keepdim=True."),
        Mistake(
            "no keepdim of the output",
            _no_keepdim_of_output,
            "Each row needs a divisor of its own: keep the axis, (1 - weights[..., j, None]).",
        ),
        Mistake(
            "weights",
            lambda w, v, j: _cut(w, j) / _cut(w, j).sum(-1, keepdim=True),
            "These are the new weights; the output is their product with the values.",
        ),
        Mistake(
            "over queries",
            _over_queries,
            "You divided by sums over the queries (axis -2); each query's weights sum to one over the keys (axis -1).",
        ),
        Mistake(
            "divided by the weight",
            lambda w, v, j: _cut(w, j) @ v / w[..., j, None],
            "You divided by the weight that is gone, a_ij; divide by what is left, 1 − a_ij.",
        ),
        Mistake(
            "multiplied",
            lambda w, v, j: _cut(w, j) @ v * (1 - w[..., j, None]),
            "You multiplied by what is left of each row, 1 − a_ij; divide by it.",
        ),
    ),
)


# 03.3 Point at the next symbol ---------------------------------------------------------------------------------------


def point_at_next(n, share):
    """Return W_Q with which each of n symbols gives the weight `share` to the next; after the last comes the first.

    n: a whole number of at least 2. share: between 1 / n and 1. Returns [n, n], for W_K = I and d_k = n.
    Symbol s has the unit vector number s; all scores but those with the next symbol are 0.
    """
    score = math.log(share) + math.log(n - 1) - math.log1p(-share)
    W_Q = torch.zeros(n, n)
    for s in range(n):
        W_Q[s, (s + 1) % n] = score * n**0.5
    return W_Q


def _pointing_cases():
    return [
        Case("3 symbols, share .5", (3, 0.5)),
        Case("8 symbols, share .9", (8, 0.9)),
        Case("5 symbols, share .99", (5, 0.99)),
        Case("11 symbols, share .25", (11, 0.25)),
        Case("4 symbols, share .8", (4, 0.8)),
    ]


def _pointing(score, root=lambda n: n**0.5, shift=1):
    """Return W_Q from another score (n, share), factor (n) or place of the symbol that is read."""
    return lambda n, share: root(n) * score(n, share) * torch.eye(n).roll(shift, dims=1)


def _wanted(n, share):
    return math.log(share * (n - 1) / (1 - share))


def _same_weights(n, share):
    others = math.log((1 - share) / (n - 1))
    return math.sqrt(n) * (others + (math.log(share) - others) * torch.eye(n).roll(1, dims=1))


def _all_shares(n, share):
    others = (1 - share) / (n - 1)
    return others + (share - others) * torch.eye(n).roll(1, dims=1)


def _twice(name, score, shift=1):
    """Return the mistake of another score or place that forgets the root as well."""
    return Mistake(f"{name}, no root", _pointing(score, lambda n: 1.0, shift), f"{TWICE[name]} {NO_ROOT}")


NO_ROOT = "And the head divides the scores by √d_k = √n, so multiply by √n."
TWICE = {
    "two keys": "With n keys the softmax is e^c / (e^c + n − 1): solve that for c, not the case of two keys.",
    "n others": "Besides the successor there are n − 1 keys, not n.",
    "logarithm of the share": "The softmax divides e^c by e^c + n − 1: c is not ln(share) alone.",
    "no logarithm": "You wrote e^c into the matrix; take its logarithm.",
    "previous": "Your symbols point at the one before: the entry of row s belongs in column s + 1.",
    "itself": "Your symbols point at themselves: the entry of row s belongs in column s + 1.",
}


def _no_wrap(n, share):
    return math.sqrt(n) * _wanted(n, share) * torch.diag(torch.ones(n - 1), 1)


EXERCISE_3 = Exercise(
    "03.3",
    "Point at the next symbol",
    10,
    2,
    point_at_next,
    _pointing_cases,
    (
        Mistake(
            "previous",
            _pointing(_wanted, shift=-1),
            "Your symbols point at the one before. Row s is the query of symbol s: its entry is in column s + 1.",
        ),
        Mistake(
            "itself",
            _pointing(_wanted, shift=0),
            "Your symbols point at themselves: the entry of row s belongs in column s + 1.",
        ),
        Mistake("no wrap", _no_wrap, "The last symbol points at nobody; it should point at symbol 0."),
        Mistake(
            "no root",
            _pointing(_wanted, root=lambda n: 1.0),
            "The score will be divided by √d_k = √n, and then your symbols point too weakly: multiply by √n.",
        ),
        Mistake(
            "root below",
            _pointing(_wanted, root=lambda n: n**-0.5),
            "You divided by √n. The head does that already, so multiply by √n beforehand.",
        ),
        Mistake(
            "n instead of root",
            _pointing(_wanted, root=lambda n: n),
            "You multiplied by n; the head divides by the root of d_k = n.",
        ),
        Mistake(
            "two keys",
            _pointing(lambda n, share: math.log(share / (1 - share))),
            "That would be right with two keys. There are n − 1 others with score 0, so e^c / (e^c + n − 1) = share.",
        ),
        Mistake(
            "n others",
            _pointing(lambda n, share: math.log(share * n / (1 - share))),
            "You counted n other keys; besides the successor there are n − 1.",
        ),
        Mistake(
            "n − 2 others",
            _pointing(lambda n, share: math.log(share * max(n - 2, 1) / (1 - share))),
            "You left out the symbol itself; it is read too, with score 0, so there are n − 1 others.",
        ),
        Mistake(
            "logarithm of the share",
            _pointing(lambda n, share: math.log(share)),
            "ln(share) is not the score: the softmax divides e^c by e^c + n − 1. Solve for c.",
        ),
        Mistake(
            "no logarithm",
            _pointing(lambda n, share: share * (n - 1) / (1 - share)),
            "That is e^c; the score is its logarithm.",
        ),
        Mistake(
            "the share",
            _pointing(lambda n, share: share, root=lambda n: 1.0),
            "You wrote the weight into the matrix; the entry is a score, which the root and the softmax turn into it.",
        ),
        Mistake(
            "the share, with the root",
            _pointing(lambda n, share: share),
            "You wrote √n times the weight into the matrix; the entry is a score, of which the softmax makes a weight.",
        ),
        Mistake(
            "all the shares",
            _all_shares,
            "You wrote the weights into the matrix; its entries are scores, of which the softmax makes the weights.",
        ),
        Mistake(
            "the right weights",
            _same_weights,
            "These scores give the right weights: a softmax ignores a number added to a whole row. But the others are "
            "to be 0, so subtract theirs from every entry.",
        ),
        _twice("two keys", lambda n, share: math.log(share / (1 - share))),
        _twice("n others", lambda n, share: math.log(share * n / (1 - share))),
        _twice("logarithm of the share", lambda n, share: math.log(share)),
        _twice("no logarithm", lambda n, share: share * (n - 1) / (1 - share)),
        _twice("previous", _wanted, shift=-1),
        _twice("itself", _wanted, shift=0),
        Mistake(
            "inverse",
            _pointing(lambda n, share: -_wanted(n, share)),
            "The sign is flipped: a share above 1 / n needs a positive score.",
        ),
    ),
)


# 03.4 Other matrices, the same scores --------------------------------------------------------------------------------


def same_scores(W_Q, W_K, B):
    """Return (W_Q B, the matrix to use instead of W_K), so that all dot products of queries and keys stay the same.

    W_Q, W_K: [d_model, d_k]; B: [d_k, d_k], invertible. Both results: [d_model, d_k].
    """
    return W_Q @ B, torch.linalg.solve(B, W_K.T).T


def _same_cases():
    def case(label, seed, d_model, d_k):
        W_Q, W_K, B = normal(seed, (d_model, d_k), (d_model, d_k), (d_k, d_k), dtype=torch.float64)
        return Case(label, (W_Q, W_K, B + 2 * torch.eye(d_k, dtype=torch.float64)))

    W_Q, W_K = normal(44, (5, 2), (5, 2), dtype=torch.float64)
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
    return [
        case("d_model 5, d_k 3", 45, 5, 3),
        case("d_model = d_k = 7", 46, 7, 7),
        Case("B is a rotation", (W_Q, W_K, turn)),
        Case("B doubles one axis", (W_Q, W_K, torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)))),
        case("d_k larger than d_model", 47, 3, 11),
    ]


EXERCISE_4 = Exercise(
    "03.4",
    "Other matrices, the same scores",
    15,
    3,
    same_scores,
    _same_cases,
    (
        Mistake(
            "same B",
            lambda Q, K, B: (Q @ B, K @ B),
            "Both were multiplied by B; then W_QK becomes W_Q B Bᵀ W_Kᵀ. Right only where B is a rotation.",
        ),
        Mistake(
            "inverse",
            lambda Q, K, B: (Q @ B, K @ torch.linalg.inv(B)),
            "The inverse stands untransposed: W_QK becomes W_Q B B⁻ᵀ W_Kᵀ, since W_K enters transposed.",
        ),
        Mistake(
            "transpose",
            lambda Q, K, B: (Q @ B, K @ B.T),
            "You transposed B without inverting it: W_QK becomes W_Q B B W_Kᵀ.",
        ),
        Mistake(
            "key unchanged",
            lambda Q, K, B: (Q @ B, K),
            "W_K must undo what B does to the queries; you left it as it was.",
        ),
        Mistake(
            "query unchanged",
            lambda Q, K, B: (Q, K),
            "These are the matrices that you were given; the first result must be W_Q B.",
        ),
        Mistake(
            "entrywise",
            lambda Q, K, B: (Q @ B, K @ (1 / B).T),
            "1 / B inverts every entry by itself; the inverse of a matrix is torch.linalg.inv(B).",
        ),
        Mistake(
            "entrywise, untransposed",
            lambda Q, K, B: (Q @ B, K @ (1 / B)),
            "1 / B inverts every entry by itself; the inverse of a matrix is torch.linalg.inv(B). And W_K enters "
            "transposed.",
        ),
        Mistake(
            "order",
            lambda Q, K, B: (K @ torch.linalg.inv(B).T, Q @ B),
            "Both matrices are right, in the other order: W_Q B comes first.",
        ),
        Mistake(
            "inverse on the queries",
            lambda Q, K, B: (Q @ torch.linalg.inv(B), K @ B.T),
            "The scores are the same, but the queries got B⁻¹: the first result must be W_Q B.",
        ),
        Mistake(
            "other way",
            lambda Q, K, B: (Q @ torch.linalg.inv(B).T, K @ B),
            "The scores are the same, but B was put on the keys: the first result must be W_Q B.",
        ),
    ),
    returns=("new W_Q", "new W_K"),
)


# 03.5 What is kept and what is computed ------------------------------------------------------------------------------


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


EXERCISE_5 = Exercise(
    "03.5",
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
            "Parameters are right; one of the two activations of width d_v, V or the output, is missing.",
        ),
        Mistake(
            "one grid",
            _sizes(activations=lambda m, k, v, b, n: b * (n * (2 * k + 2 * v) + n * n)),
            "Parameters are right; scores and weights are two grids of seq_len × seq_len; you counted one.",
        ),
        Mistake(
            "tokens too",
            _sizes(activations=lambda m, k, v, b, n: b * n * (m + 2 * k + 2 * v + 2 * n)),
            "Parameters are right; you counted X as well, which is given and not computed by the head.",
        ),
        Mistake(
            "no grid",
            _sizes(activations=lambda m, k, v, b, n: b * n * (2 * k + 2 * v)),
            "Parameters are right; the scores and the weights are missing, a grid of seq_len × seq_len each.",
        ),
        Mistake(
            "projections only",
            _sizes(activations=lambda m, k, v, b, n: b * n * (2 * k + v)),
            "Parameters are right; you counted Q, K and V. Scores, weights and the output are computed too.",
        ),
        Mistake(
            "grids once",
            _sizes(activations=lambda m, k, v, b, n: b * n * (2 * k + 2 * v) + 2 * n * n),
            "Parameters are right; each sentence of the batch has two grids of its own.",
        ),
        Mistake(
            "one matrix for Q and K",
            _sizes(parameters=lambda m, k, v, b, n: m * (k + v)),
            "Activations are right; W_Q and W_K are two matrices, and both are kept.",
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


EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
