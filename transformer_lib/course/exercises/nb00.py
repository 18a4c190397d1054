"""The exercises of notebook 00: start here."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

# 00.1 The mean of the rows -------------------------------------------------------------------------------------------


def mean_of_rows(x):
    """Return the mean of all rows of x: one vector that stands for the whole sentence.

    x: [seq_len, d_model], one row a token. Returns [d_model].
    """
    return x.sum(dim=0) / x.shape[0]


def _row_cases():
    shapes = [(2, 3), (3, 3), (5, 7), (7, 2), (11, 5)]
    return [Case(f"{n} rows of {d}", tuple(normal(seed, (n, d)))) for seed, (n, d) in enumerate(shapes)]


EXERCISE_1 = Exercise(
    "00.1",
    "The mean of the rows",
    3,
    1,
    mean_of_rows,
    _row_cases,
    (
        Mistake(
            "each row",
            lambda x: x.mean(dim=1),
            "You averaged along each row, one number a token; average over the rows, axis 0.",
        ),
        Mistake("all", lambda x: x.mean(), "You averaged all entries into one number; keep the axis d_model."),
        Mistake("sum", lambda x: x.sum(dim=0), "You added the rows; divide by how many there are."),
        Mistake(
            "width",
            lambda x: x.sum(dim=0) / x.shape[1],
            "You divided by the length of a row; divide by the number of rows, x.shape[0].",
        ),
        Mistake(
            "kept",
            lambda x: x.mean(dim=0, keepdim=True),
            "You kept the row axis with length 1: the result is a vector [d_model].",
        ),
        Mistake("largest", lambda x: x.amax(dim=0), "You took the largest entry of each column, not the mean."),
    ),
)


# 00.2 The shape of a product -----------------------------------------------------------------------------------------


def product_shape(first, second):
    """Return the shape of the product `a @ b`, given the shapes of a and b.

    first: the shape of a, (*batch, n, k); second: the shape of b, (*batch, k, m), with the same batch axes.
    Both are lists of integers; return a list.
    """
    return [*first[:-1], second[-1]]


def _shape_cases():
    return [
        Case("a matrix and a matrix", ([2, 3], [3, 5])),
        Case("square", ([7, 7], [7, 7])),
        Case("scores: 5 queries, 7 keys", ([5, 3], [3, 7])),
        Case("a batch", ([11, 5, 3], [11, 3, 7])),
        Case("a batch with heads", ([2, 13, 5, 3], [2, 13, 3, 7])),
    ]


EXERCISE_2 = Exercise(
    "00.2",
    "The shape of a product",
    4,
    1,
    product_shape,
    _shape_cases,
    (
        Mistake("first", lambda a, b: list(a), "You returned the first shape; its last axis is summed away."),
        Mistake("second", lambda a, b: list(b), "You returned the second shape; its last axis but one is summed away."),
        Mistake(
            "inner",
            lambda a, b: [*a[:-2], a[-1], b[-2]],
            "You kept the two axes in the middle; these are summed over, and the outer two remain.",
        ),
        Mistake(
            "swapped",
            lambda a, b: [*a[:-2], b[-1], a[-2]],
            "You swapped rows and columns: rows come from the first matrix, columns from the second.",
        ),
        Mistake(
            "no batch",
            lambda a, b: [a[-2], b[-1]],
            "Right for two matrices, but the batch axes in front stay in the result.",
        ),
        Mistake(
            "all axes",
            lambda a, b: [*a[:-1], *b[:-2], b[-1]],
            "Right for two matrices, but batch axes are matched, not repeated: each occurs once.",
        ),
        Mistake("not summed", lambda a, b: [*a, b[-1]], "You kept the shared axis k; the product sums over it."),
    ),
)


# 00.3 Softmax of each row --------------------------------------------------------------------------------------------


def softmax_rows(scores):
    """Return the softmax of each row: exponentials, divided by their sum over the row.

    scores: [q_len, k_len]. Returns weights [q_len, k_len]; each row sums to one.
    """
    return torch.softmax(scores, dim=1)


def _score_cases():
    shapes = [(2, 3), (3, 3), (5, 7), (7, 2)]
    cases = [Case(f"{n} queries, {m} keys", tuple(normal(20 + n, (n, m)))) for n, m in shapes]
    return [*cases, Case("all scores alike", (torch.zeros(3, 5),))]


EXERCISE_3 = Exercise(
    "00.3",
    "Softmax of each row",
    5,
    1,
    softmax_rows,
    _score_cases,
    (
        Mistake(
            "columns",
            lambda s: torch.softmax(s, dim=0),
            "Your columns sum to one; each row must: sum over the last axis.",
        ),
        Mistake(
            "all",
            lambda s: torch.softmax(s.flatten(), 0).view_as(s),
            "All your weights together sum to one; every row must do so by itself.",
        ),
        Mistake("no sum", torch.exp, "You took the exponentials; divide each by the sum of its row."),
        Mistake(
            "no exponential",
            lambda s: s / s.sum(dim=1, keepdim=True),
            "You divided the scores by their sum without taking exponentials first.",
        ),
        Mistake(
            "mean",
            lambda s: s.exp() / s.exp().mean(dim=1, keepdim=True),
            "You divided by the mean of the exponentials; divide by their sum.",
        ),
        Mistake(
            "negative",
            lambda s: torch.softmax(-s, dim=1),
            "Your largest score gets the smallest weight: the exponent has the wrong sign.",
        ),
        Mistake(
            "log",
            lambda s: torch.log_softmax(s, dim=1),
            "You returned the logarithm of the weights; take the exponential.",
        ),
    ),
)


# 00.4 From columns to rows -------------------------------------------------------------------------------------------


def rows_from_columns(w_col, x):
    """Return the product that a text with tokens as columns writes Y = W X, with tokens as rows.

    w_col: [d_out, d_in], as that text prints it; x: [seq_len, d_in], one row a token. Returns [seq_len, d_out].
    """
    return torch.einsum("oi,ti->to", w_col, x)


def _column_cases():
    shapes = [(2, 3, 5), (3, 3, 3), (7, 5, 2), (5, 2, 11)]
    return [Case(f"{n} tokens, {i} numbers in, {o} out", tuple(normal(30 + n, (o, i), (n, i)))) for n, i, o in shapes]


def _reshaped_input(w, x):
    return (w @ x.reshape(x.shape[1], x.shape[0])).T


EXERCISE_4 = Exercise(
    "00.4",
    "From columns to rows",
    6,
    2,
    rows_from_columns,
    _column_cases,
    (
        Mistake("columns", lambda w, x: w @ x.T, "Your result has tokens as columns; transpose it."),
        Mistake(
            "not transposed",
            lambda w, x: x @ w,
            "The matrix is written for columns: with tokens as rows it must be transposed.",
        ),
        Mistake(
            "result reshaped",
            lambda w, x: (w @ x.T).reshape(x.shape[0], w.shape[0]),
            "You reshaped the result; reshape keeps the order of the numbers in memory. Transpose it.",
        ),
        Mistake(
            "weights reshaped",
            lambda w, x: x @ w.reshape(w.shape[1], w.shape[0]),
            "You reshaped the matrix; reshape keeps the order of the numbers in memory. Transpose it.",
        ),
        Mistake(
            "input reshaped",
            _reshaped_input,
            "You reshaped the tokens into columns, which mixes them; transpose them.",
        ),
        Mistake(
            "wrong side",
            lambda w, x: w @ x,
            "You multiplied W by tokens that are rows; its d_in must meet the axis d_in of x.",
        ),
    ),
)


# 00.5 A weighted mean ------------------------------------------------------------------------------------------------


def weighted_mean(weights, x):
    """Return the mean of the rows of x, each counted with its weight.

    weights: [seq_len], positive, with any sum; x: [seq_len, d_model]. Returns [d_model].
    """
    return torch.einsum("t,td->d", weights / weights.sum(), x)


def _mean_cases():
    cases = []
    for seed, (n, d) in enumerate([(2, 3), (3, 3), (5, 7), (7, 2)]):
        x, raw = normal(40 + seed, (n, d), (n,))
        cases.append(Case(f"{n} rows of {d}", (raw.abs() + 0.1, x)))
    return [*cases, Case("one row", (torch.tensor([0.3]), normal(50, (1, 5))[0]))]


EXERCISE_5 = Exercise(
    "00.5",
    "A weighted mean",
    6,
    2,
    weighted_mean,
    _mean_cases,
    (
        Mistake("sum", lambda w, x: w @ x, "You took the weighted sum; divide by the sum of the weights."),
        Mistake(
            "count",
            lambda w, x: w @ x / x.shape[0],
            "You divided by the number of rows; divide by the sum of the weights.",
        ),
        Mistake("plain", lambda w, x: x.mean(dim=0), "You did not use the weights: this is the plain mean."),
        Mistake(
            "softmax",
            lambda w, x: torch.softmax(w, dim=0) @ x,
            "You took a softmax of the weights; they are positive already, so dividing by the sum is enough.",
        ),
        Mistake("squares", lambda w, x: w**2 @ x / (w**2).sum(), "You used each weight twice; its square counts."),
        Mistake(
            "matrix",
            lambda w, x: x * (w / w.sum())[:, None],
            "You scaled each row by its share; now add the rows up.",
        ),
        Mistake("all", lambda w, x: (w / w.sum() @ x).sum(), "You added up everything; keep the axis d_model."),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
