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
        Case("2 keys", (torch.tensor([1.0, 2.0]), torch.eye(2), torch.tensor([[10.0, 20.0], [30.0, 50.0]]))),
        Case("3 keys, one much longer", (torch.tensor([1.0, 0.2]), long_key, torch.tensor([[1.0], [2.0], [4.0]]))),
        Case("5 keys", tuple(normal(1, (3,), (5, 3), (5, 7)))),
        Case("11 keys, d_k = d_v", tuple(normal(2, (5,), (11, 5), (11, 5)))),
        Case("one key", tuple(normal(3, (3,), (1, 3), (1, 2)))),
        Case("all scores negative", (torch.ones(3), -1 - normal(4, (7, 3))[0].abs(), normal(5, (7, 2))[0])),
    ]


def _blend_of_all(query, keys, values):
    return torch.softmax(keys @ query, 0) @ values


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
            "no query",
            _lookup_by(lambda q, k: k[:, 0]),
            "The query has no effect: you took the key with the largest first component.",
        ),
        Mistake(
            "longest",
            _lookup_by(lambda q, k: k.norm(dim=-1)),
            "The query has no effect: you took the longest key.",
        ),
        Mistake(
            "one product",
            lambda q, k, v: v[(k * q).argmax()],
            "You took the largest single product; add up the products of each key first.",
        ),
        Mistake(
            "over keys",
            lambda q, k, v: v[(k * q).sum(0).argmax()],
            "You added up over the keys; a dot product adds up over the components, the last axis.",
        ),
        Mistake(
            "blend",
            _blend_of_all,
            "You blended all values; this lookup returns the value of the best key alone.",
        ),
        Mistake(
            "score",
            lambda q, k, v: (k @ q).max(),
            "You returned the largest score; return the value that belongs to that key.",
        ),
    ),
)


# 01.2 The softmax ----------------------------------------------------------------------------------------------------


def softmax(scores):
    """Return the weights of scores over the last axis: positive, with sum 1. A score of -inf gets weight 0.

    scores: [..., n_keys], below 20. Returns the same shape.
    """
    return torch.nn.functional.softmax(scores, dim=-1)


def _softmax_cases():
    masked = normal(6, (5, 7))[0]
    masked[0, 2:] = masked[3, :4] = -math.inf
    return [
        Case("4 keys", (torch.tensor([3.0, 1.0, 0.0, -1.0]),)),
        Case("3 queries, 3 keys", tuple(normal(7, (3, 3)))),
        Case("5 queries, 2 keys", tuple(normal(8, (5, 2)))),
        Case("a batch of 2", tuple(normal(9, (2, 3, 5)))),
        Case("a batch of 2 with 3 more axes", tuple(2 * part for part in normal(10, (2, 3, 5, 7)))),
        Case("one key", tuple(normal(11, (3, 1)))),
        Case("scores around 10 and −10", (torch.tensor([[10.0, 8.0, 9.0], [-10.0, -11.0, -9.0]]),)),
        Case("some scores are −∞", (masked,)),
    ]


def _share(make, total=lambda e: e.sum(-1, keepdim=True)):
    return lambda scores: (e := make(scores)) / total(e)


EXERCISE_2 = Exercise(
    "01.2",
    "The softmax",
    8,
    1,
    softmax,
    _softmax_cases,
    (
        Mistake(
            "no sum",
            lambda s: s.exp(),
            "You took the exponential but did not divide by the sum: the weights do not add up to one.",
        ),
        Mistake(
            "linear",
            _share(lambda s: s),
            "You divided the scores by their sum without the exponential; weights may come out negative.",
        ),
        Mistake(
            "absolute",
            _share(lambda s: s.abs()),
            "You made the scores positive by dropping their sign, so that −3 counts as much as 3; use the exponential.",
        ),
        Mistake(
            "cut off",
            _share(lambda s: s.clamp(min=0)),
            "You set negative scores to 0, so that they get no weight; the exponential makes every score positive.",
        ),
        Mistake(
            "squares",
            _share(lambda s: s**2),
            "You made the scores positive by squaring them, so that −3 counts as much as 3; use the exponential.",
        ),
        Mistake(
            "exponential of the sum",
            lambda s: s.exp() / s.sum(-1, keepdim=True).exp(),
            "You divided by the exponential of the sum; divide by the sum of the exponentials.",
        ),
        Mistake(
            "one number",
            lambda s: math.exp(s),
            "math.exp takes a single number; scores.exp() takes all of them at once.",
        ),
        Mistake(
            "in place",
            lambda s: (e := s.exp()).div_(e.sum(-1, keepdim=True)),
            "Right values, but e /= … overwrites the exponentials, which the gradient still needs: write e = e / ….",
        ),
        Mistake("minus", _share(lambda s: (-s).exp()), "The sign is flipped: the worst match gets the largest weight."),
        Mistake(
            "base 2",
            _share(lambda s: 2.0**s),
            "You took powers of 2; the softmax takes powers of e, torch.exp.",
        ),
        Mistake(
            "sigmoid",
            lambda s: s.exp() / (1 + s.exp()),
            "You divided each exponential by 1 plus itself, which looks at one score alone; divide by the sum of all.",
        ),
        Mistake(
            "largest",
            _share(lambda s: s.exp(), lambda e: e.amax(-1, keepdim=True)),
            "You divided by the largest exponential; divide by the sum of all.",
        ),
        Mistake(
            "mean of all",
            _share(lambda s: s.exp(), lambda e: e.mean(-1, keepdim=True)),
            "You divided by the mean of the exponentials, so each row adds up to the number of keys: take their sum.",
        ),
        Mistake(
            "whole",
            _share(lambda s: s.exp(), lambda e: e.sum()),
            "You divided by the sum over all rows; each row needs a sum of its own, over the last axis.",
        ),
        Mistake(
            "first axis",
            _share(lambda s: s.exp(), lambda e: e.sum(0, keepdim=True)),
            "You summed over the first axis, which is the queries or the batch where there is one; keys are the last.",
        ),
        Mistake(
            "queries",
            _share(lambda s: s.exp(), lambda e: e.sum(0 if e.dim() == 1 else -2, keepdim=True)),
            "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
        ),
        Mistake(
            "second axis",
            _share(lambda s: s.exp(), lambda e: e.sum(1, keepdim=True)),
            "You summed over axis 1, which is the last one only for a single matrix; take axis -1.",
        ),
        Mistake(
            "axis 1, no keepdim",
            _share(lambda s: s.exp(), lambda e: e.sum(1)),
            "The sum of a row must divide that row: take axis -1, which is the last one always, with keepdim=True.",
        ),
        Mistake(
            "no keepdim",
            _share(lambda s: s.exp(), lambda e: e.sum(-1)),
            "The sum of a row must divide that row: without keepdim=True it is lined up with the columns.",
        ),
        Mistake(
            "log",
            lambda s: torch.log_softmax(s, -1),
            "You returned the logarithm of the weights; take the exponential.",
        ),
        Mistake(
            "winner",
            lambda s: torch.nn.functional.one_hot(s.argmax(-1), s.shape[-1]).to(s.dtype),
            "You gave the best key everything; a softmax leaves a share for each of them.",
        ),
        Mistake(
            "infinite replaced",
            lambda s: torch.softmax(s.masked_fill(s == -math.inf, 0.0), -1),
            "You replaced −∞ by 0, but exp(0) = 1: a score of −∞ must get weight exp(−∞) = 0.",
        ),
        Mistake(
            "mean off first",
            _share(lambda s: (s - s.mean(-1, keepdim=True)).exp()),
            "Right for finite scores; but what you subtract is −∞ in a row that has −∞, and −∞ − (−∞) is not a number. "
            "Nothing has to be subtracted here.",
        ),
    ),
    gradients=("scores",),
    probes=(weights_sum(),),
    part="softmax",
)


# 01.3 Many queries at once -------------------------------------------------------------------------------------------


def soft_lookup(queries, keys, values, temperature):
    """Answer each query by a soft lookup: the softmax over the keys of query · key / temperature, times the values.

    queries: [n_queries, d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]; temperature: a positive number.
    Returns [n_queries, d_v].
    """
    rows = [torch.softmax(torch.mv(keys, query) / temperature, dim=0) for query in queries]
    return torch.stack([sum(w * value for w, value in zip(row, values, strict=True)) for row in rows])


def _soft_lookup_cases():
    small = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    return [
        Case("2 queries, 2 keys, d = 2", (small, torch.tensor([[1.0, 1.0], [0.0, 1.0]]), small + 1, 2.0)),
        Case("3 queries, 5 keys", (*normal(12, (3, 2), (5, 2), (5, 7)), 0.5)),
        Case("7 queries, 3 keys", (*normal(13, (7, 5), (3, 5), (3, 2)), 3.0)),
        Case("5 queries, 5 keys, d = 5", (*normal(14, (5, 5), (5, 5), (5, 5)), 0.7)),
        Case("one query, one key", (*normal(15, (1, 3), (1, 3), (1, 2)), 1.5)),
        Case("temperature 1", (*normal(16, (3, 7), (11, 7), (11, 2)), 1.0)),
        Case("a low temperature", (*normal(17, (3, 5), (7, 5), (7, 2)), 0.2)),
    ]


def _blend(weights):
    return lambda q, k, v, t: weights(q, k, t) @ v


EXERCISE_3 = Exercise(
    "01.3",
    "Many queries at once",
    10,
    2,
    soft_lookup,
    _soft_lookup_cases,
    (
        Mistake(
            "axis",
            _blend(lambda q, k, t: torch.softmax(q @ k.T / t, 0)),
            "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
        ),
        Mistake(
            "all",
            _blend(lambda q, k, t: torch.softmax((q @ k.T / t).flatten(), 0).view(len(q), len(k))),
            "You took one softmax over the whole matrix; each query (row) needs its own.",
        ),
        Mistake(
            "no transpose",
            _blend(lambda q, k, t: torch.softmax(q @ k / t, -1)),
            "You multiplied queries by keys without transposing the keys: query · key sums over d_k.",
        ),
        Mistake(
            "temperature times",
            _blend(lambda q, k, t: torch.softmax(q @ k.T * t, -1)),
            "You multiplied the scores by the temperature; divide, so that a high one makes them alike.",
        ),
        Mistake(
            "no temperature",
            _blend(lambda q, k, t: torch.softmax(q @ k.T, -1)),
            "The temperature has no effect on your weights: divide the scores by it.",
        ),
        Mistake(
            "after",
            _blend(lambda q, k, t: torch.softmax(q @ k.T, -1) / t),
            "You divided by the temperature after the softmax; divide the scores before it.",
        ),
        Mistake(
            "root of the temperature",
            _blend(lambda q, k, t: torch.softmax(q @ k.T / t**0.5, -1)),
            "You divided by the root of the temperature; divide by the temperature itself.",
        ),
        Mistake(
            "minus",
            _blend(lambda q, k, t: torch.softmax(-(q @ k.T) / t, -1)),
            "The sign of the scores is flipped: your largest weight goes to the worst match.",
        ),
        Mistake(
            "scaled",
            _blend(lambda q, k, t: torch.softmax(q @ k.T / t / k.shape[-1] ** 0.5, -1)),
            "You divided the scores by √d_k as well; this lookup has only the temperature (notebook 04 adds the root).",
        ),
        Mistake(
            "transposed",
            lambda q, k, v, t: (torch.softmax(q @ k.T / t, -1) @ v).T,
            "The result has the right values transposed: one row for each query, please.",
        ),
        Mistake(
            "keys blended",
            lambda q, k, v, t: torch.softmax(q @ k.T / t, -1) @ k,
            "You blended the keys; the weights apply to the values.",
        ),
        Mistake(
            "hard",
            lambda q, k, v, t: v[(q @ k.T).argmax(-1)],
            "You returned the best value for each query; blend all values by their weights.",
        ),
        Mistake(
            "plain mean",
            lambda q, k, v, t: v.mean(0).expand(len(q), -1),
            "Every value counts the same in your result: weigh the values by the softmax of the scores.",
        ),
        Mistake(
            "first",
            lambda q, k, v, t: soft_lookup(q[:1], k, v, t).expand(len(q), -1),
            "Every query got the weights of the first one: each row needs its own.",
        ),
        Mistake(
            "no softmax",
            _blend(lambda q, k, t: q @ k.T / t),
            "You used the scores themselves as weights; take the softmax of each row first.",
        ),
        Mistake(
            "no division",
            _blend(lambda q, k, t: torch.exp(q @ k.T / t)),
            "Your weights do not add up to one: divide the exponentials of each row by their sum.",
        ),
        Mistake(
            "no keepdim in the blend",
            _blend(lambda q, k, t: (e := torch.exp(q @ k.T / t)) / e.sum(-1)),
            "The sum of a row must divide that row: without keepdim=True it is lined up with the columns.",
        ),
        Mistake(
            "keys ask",
            _blend(lambda q, k, t: torch.softmax(k @ q.T / t, -1)),
            "Your scores are keys @ queries.T, where a row belongs to a key; each query needs a row: queries @ keys.T.",
        ),
        Mistake(
            "weights only",
            lambda q, k, v, t: torch.softmax(q @ k.T / t, -1),
            "You returned the weights; return the values, blended by them.",
        ),
        Mistake(
            "softmax of the keys",
            lambda q, k, v, t: q @ torch.softmax(k.T / t, -1) @ v,
            "You took the softmax of the keys alone: put the whole product in brackets before you take it.",
        ),
        Mistake(
            "temperature twice",
            _blend(lambda q, k, t: torch.softmax(q @ k.T / t**2, -1)),
            "You divided by the temperature twice.",
        ),
        Mistake(
            "root of d_k alone",
            _blend(lambda q, k, t: torch.softmax(q @ k.T / k.shape[-1] ** 0.5, -1)),
            "You divided by √d_k (the library's function does); this lookup divides by the temperature.",
        ),
        Mistake(
            "distances",
            _blend(lambda q, k, t: torch.softmax(-torch.cdist(q, k) / t, -1)),
            "You compared by distance; here the score is the dot product.",
        ),
        Mistake(
            "cosines",
            _blend(lambda q, k, t: torch.softmax(torch.cosine_similarity(q[:, None], k[None], dim=-1) / t, -1)),
            "You divided by the lengths (cosine); the plain dot product is asked for.",
        ),
    ),
    gradients=("queries", "keys", "values"),
)


# 01.4 Let the prices learn -------------------------------------------------------------------------------------------


def step_of_values(weights, values, targets, rate):
    """Return the values after one step of gradient descent on the mean squared error of the prices weights @ values.

    weights: [n_queries, n_keys]; values: [n_keys]; targets: [n_queries], the right prices; rate: the learning rate.
    Returns [n_keys].
    """
    leaf = values.detach().clone().requires_grad_()
    with torch.enable_grad():
        loss = sum((row @ leaf - answer) ** 2 for row, answer in zip(weights, targets, strict=True)) / len(targets)
        (gradient,) = torch.autograd.grad(loss, leaf)
    return values - rate * gradient


def _step_cases():
    def exact(*rows):
        return tuple(torch.tensor(row, dtype=torch.float64) for row in rows)

    def case(label, seed, n_queries, n_keys, rate):
        shapes = (n_queries, n_keys), (n_keys,), (n_queries,)
        scores, values, targets = normal(seed, *shapes, dtype=torch.float64)
        return Case(label, (torch.softmax(2 * scores, -1), values, targets, rate))

    by_hand = exact([[0.75, 0.25], [0.5, 0.5]], [4.0, 8.0], [3.0, 10.0])
    nobody = exact([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]], [2.0, 1.0, 9.0], [3.0, 3.0])
    return [
        Case("2 questions, 2 entries", (*by_hand, 0.5)),
        case("3 questions, 5 entries", 18, 3, 5, 0.1),
        case("7 questions, 3 entries", 19, 7, 3, 0.3),
        case("5 questions, 5 entries", 20, 5, 5, 0.2),
        case("one question", 21, 1, 5, 0.5),
        case("a learning rate above 1", 22, 3, 2, 1.5),
        Case("an entry that nobody looks at", (*nobody, 0.1)),
    ]


def _step(gradient):
    return lambda w, v, y, rate: v - rate * gradient(w, v, w @ v - y)


def _value_after_value(w, v, y, rate):
    v = v.clone()
    for j in range(len(v)):
        v[j] -= rate * 2 * (w[:, j] @ (w @ v - y)) / len(y)
    return v


def _no_leaf(w, v, y, rate):
    loss = ((w @ v - y) ** 2).mean()
    loss.backward()
    return v - rate * v.grad


def _one_after_the_other(w, v, y, rate):
    for row, answer in zip(w, y, strict=True):
        v = v - rate * 2 * (row @ v - answer) * row
    return v


EXERCISE_4 = Exercise(
    "01.4",
    "Let the prices learn",
    12,
    3,
    step_of_values,
    _step_cases,
    (
        Mistake(
            "uphill",
            _step(lambda w, v, e: -2 * w.T @ e / len(e)),
            "You went uphill: the step goes against the gradient, so subtract it. (Or is it answer − price in the "
            "slope, in place of price − answer?)",
        ),
        Mistake(
            "gradient",
            lambda w, v, y, rate: 2 * w.T @ (w @ v - y) / len(y),
            "You returned the gradient; return the values after the step, values − rate · gradient.",
        ),
        Mistake(
            "step alone",
            lambda w, v, y, rate: -rate * 2 * w.T @ (w @ v - y) / len(y),
            "You returned the step alone; add it to the values.",
        ),
        Mistake(
            "no rate",
            lambda w, v, y, rate: v - 2 * w.T @ (w @ v - y) / len(y),
            "You did not use the learning rate: the step is rate times the gradient.",
        ),
        Mistake(
            "no 2",
            _step(lambda w, v, e: w.T @ e / len(e)),
            "The factor 2 is missing: the slope of e² is 2e.",
        ),
        Mistake(
            "sum",
            _step(lambda w, v, e: 2 * w.T @ e),
            "The loss is the mean over the questions, not the sum: divide by their number.",
        ),
        Mistake(
            "no 2, sum",
            _step(lambda w, v, e: w.T @ e),
            "Two factors are missing: the slope of e² is 2e, and the mean divides by the number of questions.",
        ),
        Mistake(
            "over entries",
            _step(lambda w, v, e: 2 * w.T @ e / len(v)),
            "You divided by the number of entries; the loss is the mean over the questions.",
        ),
        Mistake(
            "over all weights",
            _step(lambda w, v, e: 2 * w.T @ e / w.numel()),
            "You divided by the number of all weights; the loss is the mean over the questions alone.",
        ),
        Mistake(
            "product of means",
            _step(lambda w, v, e: 2 * e.mean() * w.mean(0)),
            "You multiplied the mean error by the mean weight. Each error goes with the weights of its own question: "
            "multiply first, then take the mean.",
        ),
        Mistake(
            "loss for slope",
            _step(lambda w, v, e: (e**2).mean()),
            "You subtracted the rate times the loss itself; the step needs the slope of the loss for each value.",
        ),
        Mistake(
            "all alike",
            _step(lambda w, v, e: 2 * e.mean()),
            "You moved every value by the same step. By the chain rule a value's slope has its weight as a factor.",
        ),
        Mistake(
            "not transposed",
            _step(lambda w, v, e: 2 * w @ e / len(e)),
            "You multiplied the errors by the weights without transposing: value j collects over the questions i, so "
            "it is weights.T @ errors.",
        ),
        Mistake(
            "no errors",
            _step(lambda w, v, e: 2 * w.mean(0)),
            "The size of the errors has no effect on your step: the slope of e² is 2e, not 2.",
        ),
        Mistake(
            "absolute errors",
            _step(lambda w, v, e: 2 * w.T @ e.abs() / len(e)),
            "You dropped the sign of the errors: a price that is too low has to rise, one that is too high to fall.",
        ),
        Mistake(
            "squared errors",
            _step(lambda w, v, e: 2 * w.T @ e**2 / len(e)),
            "You used the squared errors in the slope; the slope of e² is 2e.",
        ),
        Mistake(
            "by value",
            _step(lambda w, v, e: 2 * v * (w.T @ e) / len(e)),
            "The slope of the price with respect to a value is its weight; the value itself is no factor of it.",
        ),
        Mistake(
            "winner only",
            _step(lambda w, v, e: 2 * (w * (w == w.amax(-1, keepdim=True))).T @ e / len(e)),
            "You moved only the entry with the largest weight of each question; every entry moves, by its weight.",
        ),
        Mistake(
            "no leaf",
            _no_leaf,
            "No tensor in your loss requires a gradient, so backward() has nothing to record: begin with "
            "v = values.clone().requires_grad_().",
        ),
        Mistake(
            "no square",
            _step(lambda w, v, e: w.mean(0)),
            "The square is missing from your loss: the size of the errors has no effect on your step.",
        ),
        Mistake(
            "value after value",
            _value_after_value,
            "You updated one value after the other, so later slopes were measured where the first had moved already. "
            "Measure all slopes first.",
        ),
        Mistake(
            "one after the other",
            _one_after_the_other,
            "You took a step after each question, so the later errors were measured at values that had moved already. "
            "One step follows the mean of all slopes, measured at the same values.",
        ),
    ),
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
        Mistake(
            "underflow, hidden",
            lambda q, x, y, h: (w := _gaussian(q, x, h)) @ y / (w.sum(1) + 1e-12),
            "A small number in the denominator hides 0 / 0 and gives 0: take the softmax of the exponents.",
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
    if float(got) <= 0:
        return "Your c is not positive: it multiplies the scores, and a negative one favours the worst key."
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
