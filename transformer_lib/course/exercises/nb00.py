"""The exercises of notebook 00: start here."""

from __future__ import annotations

import torch

from .model import Case, Exercise, integers, normal
from .slips import slips

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
    "00.1", "The mean of the rows", 3, 1, mean_of_rows, _row_cases,
    slips(
        "x", "return x.mean(dim=0)",
        ("each row", "dim=0", "dim=1",
         "You averaged along each row, one number a token; average over the rows, axis 0."),
        ("all", "dim=0", "", "You averaged all entries into one number; keep the axis d_model."),
        ("sum", "mean", "sum", "You added the rows; divide by how many there are."),
        ("width", "mean(dim=0)", "sum(dim=0) / x.shape[1]",
         "You divided by the length of a row; divide by the number of rows, x.shape[0]."),
        ("four", "mean(dim=0)", "sum(dim=0) / 4",
         "You divided by 4, the number of rows in our example; take it from the tensor: x.shape[0]."),
        ("kept", "dim=0", "dim=0, keepdim=True",
         "You kept the row axis with length 1: the result is a vector [d_model]."),
    ),
)  # fmt: skip


# 00.2 A weighted mean ------------------------------------------------------------------------------------------------


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


EXERCISE_2 = Exercise(
    "00.2", "A weighted mean", 5, 2, weighted_mean, _mean_cases,
    slips(
        "weights, x", """
            shares = weights / weights.sum()
            return (shares[:, None] * x).sum(dim=0)
        """,
        ("sum", " / weights.sum()", "", "You took the weighted sum; divide by the sum of the weights."),
        ("count", "weights.sum()", "len(x)", "You divided by the number of rows; divide by the sum of the weights."),
        ("plain", "weights / weights.sum()", "torch.full_like(weights, 1 / len(x))",
         "You did not use the weights: this is the plain mean."),
        ("softmax", "weights / weights.sum()", "weights.softmax(dim=0)",
         "You took a softmax of the weights; they are positive already, so dividing by the sum is enough."),
        ("matrix", "(shares[:, None] * x).sum(dim=0)", "shares[:, None] * x",
         "You scaled each row by its share; now add the rows up."),
        ("all", "dim=0", "", "You added up everything; keep the axis d_model."),
    ),
)  # fmt: skip

# 00.3 One more connection --------------------------------------------------------------------------------------------


def itself_and_one_more(n, query, key):
    """Return the mask in which every word may attend to itself, and word `query` to word `key` besides.

    n: how many words. query, key: positions from 0. Returns a boolean tensor [n, n], True = may attend.
    """
    return torch.tensor([[i == j or (i, j) == (query, key) for j in range(n)] for i in range(n)])


def _mask_cases():
    sizes = [(3, 0, 2), (5, 3, 1), (7, 6, 0), (11, 4, 10), (5, 2, 2), (2, 1, 0)]
    return [Case(f"{n} words, query {query}, key {key}", (n, query, key)) for n, query, key in sizes]


EXERCISE_3 = Exercise(
    "00.3", "One more connection", 4, 2, itself_and_one_more, _mask_cases,
    slips(
        "n, query, key", """
            mask = torch.eye(n, dtype=torch.bool)
            mask[query, key] = True
            return mask
        """,
        ("transposed", "query, key", "key, query",
         "You let the key attend to the query: rows ask, so the entry is mask[query, key]."),
        ("both ways", "mask[query, key]", "mask[query, key] = mask[key, query]",
         "You opened both directions; only the query may attend to the key, not the other way."),
        ("inverted", "return mask", "return ~mask", "Your mask is inverted: True means may attend."),
        ("one only", "eye(n,", "zeros(n, n,", "Only the one connection is open; every word may attend to itself, too."),
        ("one cut", "eye(n, dtype=torch.bool)\nmask[query, key] = True",
         "ones(n, n, dtype=torch.bool)\nmask[query, key] = False",
         "You permitted everything but this connection; permit nothing but the diagonal and this connection."),
        ("row", "[query, key]", "[query]",
         "You opened the whole row of the query; open the one entry mask[query, key]."),
        ("counted from 1", "query, key", "query - 1, key - 1",
         "You subtracted 1 from the positions; they count from 0, as in Python."),
    ),
)  # fmt: skip


# 00.4 Which connection is enough? ------------------------------------------------------------------------------------


def best_connection(count_right, n):
    """Return which single connection, added to words that see only themselves, gives the most right senses.

    count_right: a function of a boolean mask [n, n], True = may attend; returns how many senses are right under it.
    n: how many words. Returns the pair (query, key) of integers, of two different words. One is better than all others.
    """
    best, pair = None, None
    for place in range(n * n):
        query, key = divmod(place, n)
        mask = torch.eye(n, dtype=torch.bool)
        mask[query, key] = True
        count = count_right(mask) if query != key else -1
        if best is None or count > best:
            best, pair = count, (query, key)
    return pair


def _translator(seed, n, query, key, alone):
    """Return a pretend translator that counts right senses under a mask [n, n].

    With the diagonal alone it gets `alone` right; with one entry besides fewer than 12, with the entry (query, key)
    12; with more entries some other number; without the whole diagonal another one.
    """
    single, several, lonely = (integers(seed + k, (n, n), 0, 11 + k % 2) for k in range(3))
    single[query, key] = 12

    def count_right(mask):
        if mask.shape != (n, n) or mask.dtype != torch.bool:
            raise ValueError(f"mask must be boolean, [{n}, {n}], got {mask.dtype}, {list(mask.shape)}")
        others = mask & ~torch.eye(n, dtype=torch.bool)
        if not mask.diagonal().all():
            return int(lonely[others].sum()) % 12
        if others.sum() <= 1:
            return int(single[others].sum()) if others.any() else alone
        return int(several[others].sum()) % 12

    return count_right


def _connection_cases():
    asked = [(3, 1, 2, 5), (5, 4, 0, 8), (7, 2, 5, 3), (5, 3, 1, 14)]
    labels = ("3 words", "5 words", "7 words", "no connection helps")
    return [
        Case(label, (_translator(60 + 3 * i, n, query, key, alone), n))
        for i, (label, (n, query, key, alone)) in enumerate(zip(labels, asked, strict=True))
    ]


EXERCISE_4 = Exercise(
    "00.4", "Which connection is enough?", 7, 3, best_connection, _connection_cases,
    slips(
        "count_right, n", """
            alone, counts = torch.eye(n, dtype=torch.bool), {}
            for query, key in [(i, j) for i in range(n) for j in range(n) if i != j]:
                mask = alone.clone()
                mask[query, key] = True
                counts[query, key] = count_right(mask)
            return max(counts, key=counts.get)
        """,
        ("swapped", "counts[query, key]", "counts[key, query]",
         "Query and key are exchanged, in your pair or in your mask; the query, which is the row, comes first."),
        ("not reset", ".clone()", "",
         "You opened one connection after the other in the same mask; begin each trial with a fresh one."),
        ("without the diagonal", "eye(n,", "zeros(n, n,",
         "Your masks permit nothing but the one connection; every word may attend to itself, too."),
        ("count", "max(counts, key=counts.get)", "max(counts.values())",
         "You returned the count; return the pair it belongs to."),
        ("upper half", "i != j", "i < j",
         "You tried only keys that come after their query; a word may also attend to earlier ones."),
        ("largest key", "max(counts, key=counts.get)", "max(counts)",
         "You took the largest pair of numbers; take the pair with the largest count: max(counts, key=counts.get)."),
        ("first pair", "return", "    return",
         "You returned the first pair, (0, 1): go on to the end of the loop, and keep the best."),
        ("with itself", " if i != j", "",
         "You also tried a word with itself, which opens nothing new; try pairs of different words."),
        ("only a gain", "max(counts, key=counts.get)",
         "max((pair for pair in counts if counts[pair] > count_right(alone)), key=counts.get, default=None)",
         "You kept a connection only if it is better than no connection; return the best one even if it is worse."),
    ),
    returns=("query", "key"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
