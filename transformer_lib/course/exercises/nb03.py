"""The exercises of notebook 03: queries, keys, values."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, normal
from .slips import slips

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
    "03.1", "Three projections", 5, 1, project, _project_cases,
    slips(
        "X, W_Q, W_K, W_V", "return tuple(X @ W for W in (W_Q, W_K, W_V))",
        ("swapped", "W_Q, W_K", "W_K, W_Q", "Query and key are swapped: W_Q makes the queries, the first result."),
        ("order", "W_K, W_V", "W_V, W_K", "Key and value are swapped: the results come as (Q, K, V)."),
        ("one matrix", "W_K", "W_Q", "Your keys are made with W_Q; they have a matrix of their own, W_K."),
        ("transposed", "X @ W for", "X @ W.T for",
         "You transposed the matrices; W is [d_model, width] already, so X @ W."),
        ("matrix first", "X @ W for", "W @ X for",
         "You put the matrix on the left, as for tokens in columns; tokens are rows, so X @ W."),
    ),
    gradients=("X", "W_Q", "W_K", "W_V"), returns=("Q", "K", "V"), part="project",
)  # fmt: skip


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


EXERCISE_2 = Exercise(
    "03.2", "When nobody may read one token", 10, 2, output_without, _without_cases,
    slips(
        "weights, value, j", """
            kept = weights.clone()
            kept[..., j] = 0.0
            return kept / kept.sum(-1, keepdim=True) @ value
        """,
        ("too small", " / kept.sum(-1, keepdim=True)", "",
         "Key j is gone, but what is left of a row sums to less than one: divide by that sum."),
        ("softmax again", "kept / kept.sum(-1, keepdim=True)", "kept.softmax(-1)",
         "A softmax of weights changes their ratios, and gives key j a weight again: exp(0) = 1. Divide by the sum."),
        ("softmax without j", "0.0\nreturn kept / kept.sum(-1, keepdim=True)", "-math.inf\nreturn kept.softmax(-1)",
         "Key j gets nothing, but a softmax of weights changes the ratios of the others: divide by their sum."),
        ("row", "[..., j]", "[..., j, :]",
         "Row j holds the weights of a query. Key j is column j: no query may read it, and every query keeps its row."),
        ("one sum", "-1, keepdim=True", "",
         "You divided by the sum of all weights; every row has a sum of its own (dim=-1, keepdim=True)."),
        ("no keepdim", ", keepdim=True", "", "Each row needs a divisor of its own: sum with dim=-1, keepdim=True."),
        ("weights", " @ value", "", "These are the new weights; the output is their product with the values."),
        ("without its query", "weights", "weights[..., [i for i in range(weights.shape[-2]) if i != j], :]",
         "You took token j's query away too. It may still ask; only its key goes, so every query keeps a row."),
    ),
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "03.3", "Point at the next symbol", 10, 2, point_at_next, _pointing_cases,
    slips(
        "n, share", """
            score = math.log(share * (n - 1) / (1 - share))
            return n**0.5 * score * torch.eye(n).roll(1, dims=1)
        """,
        ("previous", "roll(1", "roll(-1",
         "Your symbols point at the one before. Row s is the query of symbol s: its entry is in column s + 1."),
        ("itself", ".roll(1, dims=1)", "",
         "Your symbols point at themselves: the entry of row s belongs in column s + 1."),
        ("no wrap", "torch.eye(n).roll(1, dims=1)", "torch.ones(n - 1).diag(1)",
         "The last symbol points at nothing; it should point at symbol 0."),
        ("no root", "n**0.5 * ", "",
         "The score will be divided by √d_k = √n, and then your symbols point too weakly: multiply by √n."),
        ("root below", "n**0.5", "n**-0.5",
         "You divided by √n. The head does that already, so multiply by √n beforehand."),
        ("two keys", " * (n - 1)", "",
         "That would be right with two keys. There are n − 1 others with score 0, so e^c / (e^c + n − 1) = share."),
        ("n others", "(n - 1)", "n", "You counted n other keys; besides the successor there are n − 1."),
        ("logarithm of the share", " * (n - 1) / (1 - share)", "",
         "ln(share) is not the score: the softmax divides e^c by e^c + n − 1. Solve for c."),
        ("the share", "n**0.5 * score", "share",
         "You wrote the weight into the matrix; the entry is a score, which the root and the softmax turn into a "
         "weight."),
        ("the right weights", "score * torch.eye(n).roll(1, dims=1)",
         "torch.where(torch.eye(n).roll(1, dims=1) > 0, share, (1 - share) / (n - 1)).log()",
         "These scores give the right weights: a softmax ignores a number added to a whole row. But the other scores "
         "must be 0, so subtract theirs from every entry."),
    ),
)  # fmt: skip


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
    "03.4", "Other matrices, the same scores", 15, 3, same_scores, _same_cases,
    slips(
        "W_Q, W_K, B", "return W_Q @ B, W_K @ torch.linalg.inv(B).T",
        ("same B", "torch.linalg.inv(B).T", "B",
         "Both were multiplied by B; then W_QK becomes W_Q B Bᵀ W_Kᵀ. Right only where B is a rotation."),
        ("inverse", ".T", "",
         "The inverse is not transposed: W_QK becomes W_Q B B⁻ᵀ W_Kᵀ, since W_K enters transposed."),
        ("transpose", "torch.linalg.inv(B)", "B", "You transposed B without inverting it: W_QK becomes W_Q B B W_Kᵀ."),
        ("key unchanged", " @ torch.linalg.inv(B).T", "",
         "W_K must undo what B does to the queries; you left it as it was."),
        ("entrywise", "torch.linalg.inv(B)", "(1 / B)",
         "1 / B inverts every entry by itself; the inverse of a matrix is torch.linalg.inv(B)."),
        ("other way", "W_Q @ B, W_K @ torch.linalg.inv(B).T", "W_Q @ torch.linalg.inv(B).T, W_K @ B",
         "The scores are the same, but B was put on the keys: the first result must be W_Q B."),
    ),
    returns=("new W_Q", "new W_K"),
)  # fmt: skip


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


EXERCISE_5 = Exercise(
    "03.5", "What is kept and what is computed", 10, 2, head_sizes, _size_cases,
    slips(
        "d_model, d_k, d_v, batch, seq_len", """
            parameters = d_model * (2 * d_k + d_v)
            activations = batch * (seq_len * (2 * d_k + 2 * d_v) + 2 * seq_len**2)
            return parameters, activations
        """,
        ("no batch", "batch * ", "", "Parameters are right; activations exist once for every sentence of the batch."),
        ("parameters by batch", "d_model * ", "batch * d_model * ",
         "You counted the matrices once per sentence; the whole batch shares them."),
        ("no output", "2 * d_v", "d_v",
         "Parameters are right; one of the two activations of width d_v, V or the output, is missing."),
        ("one grid", "2 * seq_len**2", "seq_len**2",
         "Parameters are right; scores and weights are two grids of seq_len × seq_len; you counted one."),
        ("tokens too", "2 * d_k + 2 * d_v", "d_model + 2 * d_k + 2 * d_v",
         "Parameters are right; you counted X as well, which is given and not computed by the head."),
        ("projections only", "2 * d_v) + 2 * seq_len**2", "d_v)",
         "Parameters are right; you counted Q, K and V. Scores, weights and the output are computed too."),
        ("grids once", "(seq_len * (2 * d_k + 2 * d_v) + 2 * seq_len**2)",
         "seq_len * (2 * d_k + 2 * d_v) + 2 * seq_len**2",
         "Parameters are right; each sentence of the batch has two grids of its own."),
        ("d_v is d_k", "(2 * d_k + d_v)", "3 * d_k", "W_V has d_v columns, which need not be d_k."),
        ("W_O", "(2 * d_k + d_v)", "(2 * d_k + 2 * d_v)",
         "Activations are right; W_O is not counted here: the parameters are W_Q, W_K and W_V."),
        ("biases", "d_model * ", "(d_model + 1) * ",
         "Activations are right; there are no biases here: the parameters are W_Q, W_K and W_V."),
    ),
    returns=("parameters", "activations"),
)  # fmt: skip


EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
