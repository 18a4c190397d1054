"""The exercises of notebook 00: start here."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal

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
            "four",
            lambda x: x.sum(dim=0) / 4,
            "You divided by 4, the number of rows in our example; take it from the tensor: x.shape[0].",
        ),
        Mistake(
            "kept",
            lambda x: x.mean(dim=0, keepdim=True),
            "You kept the row axis with length 1: the result is a vector [d_model].",
        ),
        Mistake("largest", lambda x: x.amax(dim=0), "You took the largest entry of each column, not the mean."),
    ),
)


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
    "00.2",
    "A weighted mean",
    5,
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
        Mistake(
            "largest", lambda w, x: w @ x / w.max(), "You divided by the largest weight; divide by the sum of them all."
        ),
        Mistake(
            "mean weight", lambda w, x: w @ x / w.mean(), "You divided by the mean of the weights; divide by their sum."
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

# 00.3 One more connection --------------------------------------------------------------------------------------------


def itself_and_one_more(n, query, key):
    """Return the mask in which every word may attend to itself, and word `query` to word `key` besides.

    n: how many words. query, key: positions from 0. Returns a boolean tensor [n, n], True = may attend.
    """
    return torch.tensor([[i == j or (i, j) == (query, key) for j in range(n)] for i in range(n)])


def _mask_cases():
    sizes = [(3, 0, 2), (5, 3, 1), (7, 6, 0), (11, 4, 10), (5, 2, 2), (2, 1, 0)]
    return [Case(f"{n} words, query {query}, key {key}", (n, query, key)) for n, query, key in sizes]


def _set(mask, query, key, value=True):
    mask = mask.clone()
    mask[query, key] = value
    return mask


def _eye(n):
    return torch.eye(n, dtype=torch.bool)


EXERCISE_3 = Exercise(
    "00.3",
    "One more connection",
    4,
    2,
    itself_and_one_more,
    _mask_cases,
    (
        Mistake(
            "transposed",
            lambda n, query, key: _set(_eye(n), key, query),
            "You let the key attend to the query: rows ask, so the entry is mask[query, key].",
        ),
        Mistake(
            "both ways",
            lambda n, query, key: _set(_set(_eye(n), query, key), key, query),
            "You opened both directions; only the query may attend to the key, not the other way.",
        ),
        Mistake(
            "inverted",
            lambda n, query, key: ~_set(_eye(n), query, key),
            "Your mask is inverted: True stands for may attend.",
        ),
        Mistake(
            "diagonal only", lambda n, query, key: _eye(n), "Only the diagonal is open; open mask[query, key] too."
        ),
        Mistake(
            "one only",
            lambda n, query, key: _set(torch.zeros(n, n, dtype=torch.bool), query, key),
            "Only the one connection is open; every word may attend to itself, too.",
        ),
        Mistake(
            "one cut",
            lambda n, query, key: _set(torch.ones(n, n, dtype=torch.bool), query, key, False),
            "You permitted everything but this connection; permit nothing but the diagonal and this connection.",
        ),
        Mistake(
            "row",
            lambda n, query, key: _eye(n) | (torch.arange(n) == query)[:, None],
            "You opened the whole row of the query; open the one entry mask[query, key].",
        ),
        Mistake(
            "column",
            lambda n, query, key: _eye(n) | (torch.arange(n) == key),
            "You opened the whole column of the key; open the one entry mask[query, key].",
        ),
        Mistake(
            "instead of itself",
            lambda n, query, key: _set(_eye(n) & (torch.arange(n) != query)[:, None], query, key),
            "The query no longer attends to itself; it attends to itself and to the key.",
        ),
        Mistake(
            "all",
            lambda n, query, key: torch.ones(n, n, dtype=torch.bool),
            "Everything is permitted; permit the diagonal and the one connection.",
        ),
        Mistake(
            "counted from 1",
            lambda n, query, key: _set(_eye(n), query - 1, key - 1),
            "You subtracted 1 from the positions; they count from 0, as in Python.",
        ),
    ),
)


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


def _search(pairs=lambda i, j: i != j, start=_eye, value=True, fresh=True, choose=max, result=lambda pair, count: pair):
    """Return the search with one step replaced."""

    def function(count_right, n):
        mask, counts = start(n), {}
        for i in range(n):
            for j in range(n):
                if pairs(i, j):
                    mask = start(n) if fresh else mask
                    mask[i, j] = value
                    counts[i, j] = count_right(mask)
        pair = choose(counts, key=counts.get)
        return result(pair, counts[pair])

    return function


def _without_the_last(count_right, n):
    return _search(pairs=lambda i, j: i != j and max(i, j) < n - 1)(count_right, n)


def _one_mask_a_row(count_right, n):
    counts = {}
    for i in range(n):
        mask = _eye(n)
        for j in range(n):
            if i != j:
                mask[i, j] = True
                counts[i, j] = count_right(mask)
    return max(counts, key=counts.get)


def _first_gain(count_right, n):
    alone = count_right(_eye(n))
    for i in range(n):
        for j in range(n):
            if i != j and count_right(itself_and_one_more(n, i, j)) > alone:
                return i, j
    return None


def _only_a_gain(count_right, n):
    best, pair = count_right(_eye(n)), None
    for i in range(n):
        for j in range(n):
            count = count_right(itself_and_one_more(n, i, j))
            if i != j and count > best:
                best, pair = count, (i, j)
    return pair


EXERCISE_4 = Exercise(
    "00.4",
    "Which connection is enough?",
    7,
    3,
    best_connection,
    _connection_cases,
    (
        Mistake(
            "swapped",
            _search(result=lambda pair, count: pair[::-1]),
            "Query and key are exchanged, in your pair or in your mask; the query, which is the row, comes first.",
        ),
        Mistake(
            "not reset",
            _search(fresh=False),
            "You opened one connection after the other in the same mask; begin each trial with a fresh one.",
        ),
        Mistake(
            "without the diagonal",
            _search(start=lambda n: torch.zeros(n, n, dtype=torch.bool)),
            "Your masks permit nothing but the one connection; every word may attend to itself, too.",
        ),
        Mistake(
            "one cut",
            _search(start=lambda n: torch.ones(n, n, dtype=torch.bool), value=False, choose=min),
            "You cut one connection out of all; here one is added where each word sees only itself.",
        ),
        Mistake(
            "worst", _search(choose=min), "You returned the connection with the fewest right senses; take the most."
        ),
        Mistake(
            "count", _search(result=lambda pair, count: count), "You returned the count; return the pair it belongs to."
        ),
        Mistake(
            "upper half",
            _search(pairs=lambda i, j: i < j),
            "You tried only keys that come after their query; a word may also attend to earlier ones.",
        ),
        Mistake(
            "lower half",
            _search(pairs=lambda i, j: i > j),
            "You tried only keys that come before their query; a word may also attend to later ones.",
        ),
        Mistake(
            "from 1",
            _search(pairs=lambda i, j: i != j and i * j > 0),
            "You left out position 0; positions count from 0.",
        ),
        Mistake(
            "without the last",
            _without_the_last,
            "You left out the last position; range(n) ends before n by itself.",
        ),
        Mistake(
            "largest key",
            lambda count_right, n: (n - 1, n - 2),
            "You took the largest pair of numbers; take the pair with the largest count: max(counts, key=counts.get).",
        ),
        Mistake(
            "first pair",
            lambda count_right, n: (0, 1),
            "You returned the first pair, (0, 1): go on to the end of the loop, and keep the best.",
        ),
        Mistake(
            "one mask a row",
            _one_mask_a_row,
            "You began with a fresh mask once for each query; begin with a fresh one for each connection.",
        ),
        Mistake(
            "with itself",
            _search(pairs=lambda i, j: True),
            "You also tried a word with itself, which opens nothing new; try pairs of different words.",
        ),
        Mistake(
            "first gain",
            _first_gain,
            "You stopped at the first connection that helps; go through all of them and keep the best.",
        ),
        Mistake(
            "only a gain",
            _only_a_gain,
            "You kept a connection only if it beats none at all; return the best one even if it is worse.",
        ),
    ),
    returns=("query", "key"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
