"""The exercises of notebook 01: attention is a lookup."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import weights_sum

# 01.1 Look up the nearest key ----------------------------------------------------------------------------------------


def nearest_key_lookup(query, keys, values):
    """Return the value whose key has the largest dot product with the query.

    query: [d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [d_v].
    """
    scores = [sum(q * k for q, k in zip(query.tolist(), key.tolist(), strict=True)) for key in keys]
    return values[scores.index(max(scores))]


def _lookup_cases():
    long_key = torch.tensor([[0.9, 0.1], [3.0, 3.0], [-4.0, 1.0]])
    return [
        Case("2 keys", (torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.eye(2) * 10)),
        Case("3 keys, one much longer", (torch.tensor([1.0, 0.2]), long_key, torch.tensor([[1.0], [2.0], [4.0]]))),
        Case("5 keys", tuple(normal(1, (3,), (5, 3), (5, 7)))),
        Case("11 keys, d_k = d_v", tuple(normal(2, (5,), (11, 5), (11, 5)))),
        Case("one key", tuple(normal(3, (3,), (1, 3), (1, 2)))),
        Case("all scores negative", (torch.ones(3), -1 - normal(4, (7, 3))[0].abs(), normal(5, (7, 2))[0])),
    ]


def _lookup_by(score):
    return lambda query, keys, values: values[score(query, keys).argmax()]


EXERCISE_1 = Exercise(
    "01.1",
    "Look up the nearest key",
    5,
    1,
    nearest_key_lookup,
    _lookup_cases,
    (
        Mistake(
            "smallest",
            _lookup_by(lambda q, k: -(k @ q)),
            "You took the key with the smallest dot product; the best match has the largest.",
        ),
        Mistake(
            "distance",
            _lookup_by(lambda q, k: -((k - q) ** 2).sum(-1)),
            "You took the key at the smallest distance; here the largest dot product wins, and a long "
            "key can win although it lies further away.",
        ),
        Mistake(
            "cosine",
            _lookup_by(lambda q, k: k @ q / k.norm(dim=-1)),
            "You divided by the length of the keys (cosine); the plain dot product is asked for.",
        ),
        Mistake(
            "absolute",
            _lookup_by(lambda q, k: (k @ q).abs()),
            "You dropped the sign: a large negative dot product means opposed, not similar.",
        ),
        Mistake(
            "key",
            lambda q, k, v: k[(k @ q).argmax()],
            "You returned the best key; a lookup returns the value that belongs to it.",
        ),
        Mistake(
            "index",
            lambda q, k, v: (k @ q).argmax(),
            "You returned the index of the best key; return the value at that index.",
        ),
        Mistake(
            "score",
            lambda q, k, v: (k @ q).max(),
            "You returned the largest score; return the value that belongs to that key.",
        ),
    ),
)


# 01.2 Weights of one query -------------------------------------------------------------------------------------------


def attention_weights(query, keys, temperature):
    """Return the softmax of the dot products of one query with all keys, divided by the temperature.

    query: [d_k]; keys: [n_keys, d_k]; temperature: a positive number. Returns [n_keys].
    """
    return torch.nn.functional.softmax(torch.mv(keys, query) / temperature, dim=0)


def _weight_cases():
    query, keys = normal(6, (3,), (5, 3))
    return [
        Case("2 keys, temperature 2", (torch.tensor([1.0, 2.0]), torch.eye(2), 2.0)),
        Case("5 keys, temperature 0.5", (query, keys, 0.5)),
        Case("11 keys, temperature 3", (*normal(7, (7,), (11, 7)), 3.0)),
        Case("one key", (*normal(8, (3,), (1, 3)), 0.7)),
        Case("two equal keys", (query, torch.stack([keys[0], keys[1], keys[1]]), 1.5)),
        Case("scores in the hundreds", (100 * query, keys, 0.1)),
    ]


EXERCISE_2 = Exercise(
    "01.2",
    "Weights of one query",
    8,
    1,
    attention_weights,
    _weight_cases,
    (
        Mistake(
            "times",
            lambda q, k, t: torch.softmax(k @ q * t, 0),
            "You multiplied the scores by the temperature; divide, so that a high one makes them alike.",
        ),
        Mistake(
            "no temperature",
            lambda q, k, t: torch.softmax(k @ q, 0),
            "The temperature has no effect on your weights: divide the scores by it.",
        ),
        Mistake(
            "after",
            lambda q, k, t: torch.softmax(k @ q, 0) / t,
            "You divided by the temperature after the softmax; divide the scores before it.",
        ),
        Mistake(
            "no sum",
            lambda q, k, t: torch.exp(k @ q / t),
            "You took the exponential but did not divide by the sum: the weights do not add up to one.",
        ),
        Mistake(
            "linear",
            lambda q, k, t: (k @ q / t) / (k @ q / t).sum(),
            "You divided the scores by their sum without the exponential; weights may come out negative.",
        ),
        Mistake(
            "overflow",
            lambda q, k, t: torch.exp(k @ q / t) / torch.exp(k @ q / t).sum(),
            "Right for small scores, but exp of a large score overflows to infinity, and inf / inf is "
            "NaN: subtract the largest score first.",
        ),
        Mistake(
            "minus",
            lambda q, k, t: torch.softmax(-(k @ q) / t, 0),
            "The sign of the scores is flipped: your largest weight goes to the worst match.",
        ),
    ),
    gradients=("query", "keys"),
    probes=(weights_sum(),),
)


# 01.3 Soft lookup of one query ---------------------------------------------------------------------------------------


def soft_lookup(query, keys, values):
    """Return the sum of all values, each times its weight: the softmax over the keys of query · key.

    query: [d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [d_v].
    """
    weights = torch.nn.functional.softmax(torch.mv(keys, query), dim=0)
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


EXERCISE_3 = Exercise(
    "01.3",
    "Soft lookup of one query",
    10,
    1,
    soft_lookup,
    _lookup_cases,
    (
        Mistake(
            "hard",
            _lookup_by(lambda q, k: k @ q),
            "You returned the best value alone; a soft lookup blends all values by their weights.",
        ),
        Mistake("mean", lambda q, k, v: v.mean(0), "You gave every value the same weight: that is mean pooling."),
        Mistake(
            "no sum",
            lambda q, k, v: torch.exp(k @ q) @ v,
            "Your weights do not add up to one: divide the exponentials by their sum.",
        ),
        Mistake(
            "scores",
            lambda q, k, v: (k @ q) @ v,
            "You used the scores themselves as weights; take their softmax first.",
        ),
        Mistake(
            "keys",
            lambda q, k, v: torch.softmax(k @ q, 0) @ k,
            "You blended the keys; the weights come from the keys, but they apply to the values.",
        ),
        Mistake(
            "axis",
            lambda q, k, v: (torch.softmax(k @ q, 0)[:, None] * v).sum(-1),
            "You added up over the features of each value; add up over the keys (axis 0).",
        ),
        Mistake(
            "not added",
            lambda q, k, v: torch.softmax(k @ q, 0)[:, None] * v,
            "You weighted the values but did not add them up.",
        ),
        Mistake(
            "scaled",
            lambda q, k, v: torch.softmax(k @ q / len(q) ** 0.5, 0) @ v,
            "You divided the scores by √d_k; here they stay as they are (temperature 1).",
        ),
    ),
    gradients=("query", "keys", "values"),
)


# 01.4 Soft lookup for many queries -----------------------------------------------------------------------------------


def soft_lookup_batched(queries, keys, values):
    """Do the soft lookup for all queries at once, by matrix products and without a loop.

    queries: [n_queries, d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [n_queries, d_v].
    """
    return torch.stack([soft_lookup(query, keys, values) for query in queries])


def _square_cases():
    small = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    return [
        Case("2 queries, 2 keys, d = 2", (small, torch.tensor([[1.0, 1.0], [0.0, 1.0]]), small + 1)),
        Case("3 queries, 5 keys", tuple(normal(9, (3, 2), (5, 2), (5, 7)))),
        Case("7 queries, 3 keys", tuple(normal(10, (7, 5), (3, 5), (3, 2)))),
        Case("5 queries, 5 keys, d = 5", tuple(normal(11, (5, 5), (5, 5), (5, 5)))),
        Case("one query, one key", tuple(normal(12, (1, 3), (1, 3), (1, 2)))),
        Case("scores in the hundreds", tuple(20 * part for part in normal(13, (3, 5), (7, 5), (7, 2)))),
    ]


EXERCISE_4 = Exercise(
    "01.4",
    "Soft lookup for many queries",
    12,
    2,
    soft_lookup_batched,
    _square_cases,
    (
        Mistake(
            "axis",
            lambda q, k, v: torch.softmax(q @ k.T, 0) @ v,
            "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
        ),
        Mistake(
            "all",
            lambda q, k, v: torch.softmax((q @ k.T).flatten(), 0).view(len(q), len(k)) @ v,
            "You took one softmax over the whole matrix; each query (row) needs its own.",
        ),
        Mistake(
            "no transpose",
            lambda q, k, v: torch.softmax(q @ k, -1) @ v,
            "You multiplied queries by keys without transposing the keys: query · key sums over d_k.",
        ),
        Mistake(
            "scaled",
            lambda q, k, v: torch.softmax(q @ k.T / k.shape[-1] ** 0.5, -1) @ v,
            "You divided the scores by √d_k; this lookup has no such factor yet (notebook 04 adds it).",
        ),
        Mistake(
            "transposed",
            lambda q, k, v: (torch.softmax(q @ k.T, -1) @ v).T,
            "The result has the right values transposed: one row for each query, please.",
        ),
        Mistake(
            "keys",
            lambda q, k, v: torch.softmax(q @ k.T, -1) @ k,
            "You blended the keys; the weights apply to the values.",
        ),
        Mistake(
            "hard",
            lambda q, k, v: v[(q @ k.T).argmax(-1)],
            "You returned the best value for each query; blend all values by their weights.",
        ),
        Mistake(
            "first",
            lambda q, k, v: soft_lookup(q[0], k, v).expand(len(q), -1),
            "Every query got the weights of the first one: each row needs its own.",
        ),
        Mistake(
            "no softmax",
            lambda q, k, v: q @ k.T @ v,
            "You used the scores themselves as weights; take the softmax of each row first.",
        ),
        Mistake(
            "keys ask",
            lambda q, k, v: torch.softmax(k @ q.T, -1) @ v,
            "Your scores are keys @ queries.T, where a row belongs to a key; each query needs a row: queries @ keys.T.",
        ),
        Mistake(
            "sums along the wrong axis",
            lambda q, k, v: (e := (q @ k.T - (q @ k.T).amax(-1, keepdim=True)).exp()) / e.sum(-1) @ v,
            "The sum of a row must divide that row: without keepdim=True it is lined up with the columns.",
        ),
    ),
    gradients=("queries", "keys", "values"),
)


# 01.5 Kernel regression is attention ---------------------------------------------------------------------------------


def kernel_regression(queries, xs, ys, bandwidth):
    """Predict y at each query: a weighted mean of ys, with weights exp(-(query - x)² / (2 bandwidth²)).

    queries: [n_queries]; xs, ys: [n_points]; bandwidth: a positive number. Returns [n_queries].
    The weights of each query are divided by their sum (Nadaraya and Watson, 1964).
    """
    exponents = [-((query - xs).double() ** 2) / (2 * bandwidth**2) for query in queries]
    return torch.stack([torch.softmax(e, dim=0) @ ys.double() for e in exponents]).to(ys.dtype)


def _kernel_cases():
    return [
        Case("2 queries, 3 points", (torch.tensor([0.0, 1.0]), *normal(14, (3,), (3,)), 0.7)),
        Case("5 queries, 11 points", (*normal(15, (5,), (11,), (11,)), 0.5)),
        Case("7 queries, 7 points", (*normal(16, (7,), (7,), (7,)), 1.3)),
        Case("one point", (*normal(17, (3,), (1,), (1,)), 0.9)),
        Case("a wide kernel", (*normal(18, (3,), (5,), (5,)), 40.0)),
        Case(
            "a kernel much narrower than the gaps",
            (torch.tensor([0.3, 0.6]), torch.arange(3.0), torch.tensor([2.0, -1.0, 1.0]), 0.01),
        ),
    ]


def _kernel_of(exponent):
    return lambda q, x, y, h: torch.softmax(exponent(q[:, None] - x[None, :], h), dim=1) @ y


def _gaussian(q, x, h):
    return torch.exp(-((q[:, None] - x[None, :]) ** 2) / (2 * h * h))


EXERCISE_5 = Exercise(
    "01.5",
    "Kernel regression is attention",
    15,
    2,
    kernel_regression,
    _kernel_cases,
    (
        Mistake(
            "no 2",
            _kernel_of(lambda gap, h: -(gap**2) / h**2),
            "The exponent is (query - x)² / (2 bandwidth²): the 2 is missing.",
        ),
        Mistake(
            "no square",
            _kernel_of(lambda gap, h: -(gap**2) / (2 * h)),
            "The bandwidth in the exponent must be squared.",
        ),
        Mistake(
            "no minus",
            _kernel_of(lambda gap, h: gap**2 / (2 * h * h)),
            "The exponent lacks its minus: distant points get the largest weights.",
        ),
        Mistake(
            "absolute",
            _kernel_of(lambda gap, h: -gap.abs() / (2 * h * h)),
            "You used the distance; the Gaussian kernel takes its square.",
        ),
        Mistake(
            "axis",
            lambda q, x, y, h: (w := _gaussian(q, x, h)) / w.sum(0) @ y,
            "You divided by the sum over the queries; each query divides by its sum over the points.",
        ),
        Mistake("no sum", lambda q, x, y, h: _gaussian(q, x, h) @ y, "You did not divide the weights by their sum."),
        Mistake(
            "underflow",
            lambda q, x, y, h: (w := _gaussian(q, x, h)) @ y / w.sum(1),
            "Right for wide kernels, but for a narrow one every exponential underflows to 0, and 0 / 0 is "
            "NaN: take the softmax of the exponents.",
        ),
        Mistake("mean", lambda q, x, y, h: y.mean().expand(len(q)), "You gave every point the same weight."),
        Mistake(
            "multiplied by the square",
            lambda q, x, y, b: torch.softmax(-((q[:, None] - x) ** 2) / 2 * b**2, -1) @ y,
            "Your exponent is multiplied by bandwidth²; divide by it (a / 2 * b**2 needs brackets: a / (2 * b**2)).",
        ),
        Mistake(
            "2 squared too",
            lambda q, x, y, b: torch.softmax(-((q[:, None] - x) ** 2) / (2 * b) ** 2, -1) @ y,
            "You divided by (2 bandwidth)², which is 4 bandwidth²; the formula has 2 bandwidth².",
        ),
    ),
)


# 01.6 How sharp is sharp? --------------------------------------------------------------------------------------------


def scale_for_confidence(scores, p):
    """Return the number c > 0 for which the largest weight of softmax(c * scores) is exactly p.

    scores: [n_keys] with one largest entry; p: a number between 1 / n_keys and 1. Returns a float.
    A relative error of 0.1 % is allowed.
    """
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        largest = torch.softmax(middle * scores.double(), dim=0).max().item()
        low, high = (middle, high) if largest < p else (low, middle)
    return high


def _confidence_cases():
    return [
        Case("2 keys", (torch.tensor([2.0, 1.0]), 0.9)),
        Case("3 keys, equal rivals", (torch.tensor([0.5, 1.0, 0.5]), 0.8)),
        Case("5 keys", (torch.tensor([3.0, 1.0, 0.0, -1.0, 2.5]), 0.95)),
        Case("11 keys", (normal(19, (11,))[0], 0.5)),
        Case("p near 1", (normal(20, (7,))[0], 0.999)),
        Case("negative scores", (torch.tensor([-5.0, -7.0, -6.0]), 0.6)),
        Case("a close rival", (torch.tensor([1.0, 0.99]), 0.99)),
    ]


def _gap(scores):
    top = scores.sort(descending=True).values
    return (top[0] - top[1]).item()


def _weight_reached(call, case, got):
    scores, p = case.args
    reached = torch.softmax(float(got) * scores.double(), 0).max().item()
    more = "a larger c is needed; does your search go far enough?" if reached < p else "a smaller c is needed."
    return f"At your c the largest weight is {reached:.3g} in place of {p:g}: {more}"


EXERCISE_6 = Exercise(
    "01.6",
    "How sharp is sharp?",
    20,
    3,
    scale_for_confidence,
    _confidence_cases,
    (
        Mistake(
            "two keys",
            lambda s, p: math.log(p / (1 - p)) / _gap(s),
            "Right for two keys. With more, the others take weight too: look only at the best two and the "
            "largest weight stays below p.",
        ),
        Mistake(
            "equal rivals",
            lambda s, p: math.log((len(s) - 1) * p / (1 - p)) / _gap(s),
            "Right when all rivals score the same. Rivals further behind take less weight, so a smaller c "
            "is enough: search for it (the largest weight grows with c).",
        ),
        Mistake(
            "inverse",
            lambda s, p: 1 / scale_for_confidence(s, p),
            "You returned the temperature 1 / c; the factor c itself is asked for.",
        ),
        Mistake(
            "no log",
            lambda s, p: p / (1 - p) / _gap(s),
            "You used the odds p / (1 - p); weights are exponentials, so take their logarithm.",
        ),
        Mistake(
            "log p",
            lambda s, p: -math.log(1 - p) / _gap(s),
            "You used log(1 / (1 - p)); a weight is one exponential among several: work with p / (1 - p).",
        ),
        Mistake(
            "weight",
            lambda s, p: torch.softmax(s, 0).max().item(),
            "You returned the largest weight at c = 1; the factor that brings it to p is asked for.",
        ),
    ),
    probes=(_weight_reached,),
    rtol=2e-3,
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
