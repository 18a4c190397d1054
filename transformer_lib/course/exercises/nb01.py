"""Exercises of notebook 01: attention is a lookup."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import weights_sum


def nearest_key_lookup(query, keys, values):
    """Return the value whose key has the largest dot product with the query.

    query: [d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [d_v].
    """
    scores = [sum(q * k for q, k in zip(query.tolist(), key.tolist(), strict=True)) for key in keys]
    return values[scores.index(max(scores))]


def attention_weights(query, keys, temperature):
    """Return the softmax of the dot products of one query with all keys, divided by the temperature.

    query: [d_k]; keys: [n_keys, d_k]; temperature: a positive number. Returns [n_keys].
    """
    return torch.nn.functional.softmax(torch.mv(keys, query) / temperature, dim=0)


def soft_lookup(query, keys, values):
    """Return the sum of all values, each times its weight: the softmax over the keys of query · key.

    query: [d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [d_v].
    """
    weights = torch.nn.functional.softmax(torch.mv(keys, query), dim=0)
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def soft_lookup_batched(queries, keys, values):
    """Do the soft lookup for all queries at once, by matrix products and without a loop.

    queries: [n_queries, d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [n_queries, d_v].
    """
    return torch.stack([soft_lookup(query, keys, values) for query in queries])


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


def _lookup_by(score):
    return lambda query, keys, values: values[score(query, keys).argmax()]


EXERCISES = (
    Exercise(
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
    ),
    Exercise(
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
            Mistake("no temperature", lambda q, k, t: torch.softmax(k @ q, 0), "You did not use the temperature."),
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
    ),
    Exercise(
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
        ),
        gradients=("query", "keys", "values"),
    ),
    Exercise(
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
        ),
        gradients=("queries", "keys", "values"),
    ),
)
