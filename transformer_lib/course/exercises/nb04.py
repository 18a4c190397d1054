"""Exercises of notebook 04: scaled scores, a stable softmax, and attention with a mask."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import masked_key_leak, weights_sum

INF = float("inf")


def scaled_scores(query, key):
    """Return the dot product of every query with every key, divided by √d_k.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]. Returns [..., q_len, k_len].
    """
    return torch.einsum("...id,...jd->...ij", query, key) * query.shape[-1] ** -0.5


def stable_softmax(scores):
    """Return the softmax over the last axis, also for scores in the thousands; a score of -inf gets weight 0.

    scores: [..., k_len], with at least one finite entry in each row. Returns the same shape.
    """
    return torch.nn.functional.softmax(scores, dim=-1)


def masked_attention(query, key, value, mask):
    """Return (output, weights) of scaled dot-product attention under a mask.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]; value: [..., k_len, d_v];
    mask: booleans that broadcast to [..., q_len, k_len]; True = this query may attend to this key.
    output: [..., q_len, d_v]; weights: [..., q_len, k_len].
    A row that may attend to nothing gets weights and output of zero, and no NaN in any gradient.
    """
    scores = scaled_scores(query, key)
    allowed = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, may in zip(scores.reshape(allowed.shape), allowed, strict=True):
        weights = torch.zeros_like(row)
        rows.append(weights.masked_scatter(may, torch.softmax(row[may], dim=0)) if may.any() else weights)
    weights = torch.stack(rows).reshape(scores.shape)
    return weights @ value, weights


def _score_cases():
    return [
        Case("2 queries, 2 keys, d_k = 2", tuple(normal(1, (2, 2), (2, 2)))),
        Case("3 queries, 5 keys, d_k = 7", tuple(normal(2, (3, 7), (5, 7)))),
        Case("5 queries, 5 keys, d_k = 5", tuple(normal(3, (5, 5), (5, 5)))),
        Case("a batch of 2", tuple(normal(4, (2, 3, 5), (2, 7, 5)))),
        Case("a batch of 3 with 2 heads", tuple(normal(5, (3, 2, 5, 11), (3, 2, 7, 11)))),
        Case("one query, one key", tuple(normal(6, (1, 3), (1, 3)))),
    ]


def _softmax_cases():
    (square,), (batch,) = normal(7, (3, 3)), normal(8, (2, 3, 5))
    masked = normal(9, (5, 7))[0]
    masked[0, 2:] = masked[3, :4] = -INF
    return [
        Case("one row", (torch.tensor([2.0, 1.0, 0.0]),)),
        Case("3 by 3", (square,)),
        Case("a batch of 2", (batch,)),
        Case("scores in the thousands", (torch.tensor([[1000.0, 1001.0, 1002.0], [999.0, 1000.0, 1000.5]]),)),
        Case("rows of very different size", (torch.tensor([[1000.0, 1001.0], [-1000.0, -1002.0], [0.0, 3.0]]),)),
        Case("very negative scores", (torch.tensor([[-2000.0, -2001.0, -2003.0]]),)),
        Case("some scores are -inf", (masked,)),
    ]


def _triangle(size):
    return torch.tensor([[column <= row for column in range(size)] for row in range(size)])


def _attention_cases():
    q, k, v = normal(10, (3, 2), (5, 2), (5, 7))
    seen = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    nothing = seen.clone()
    nothing[1] = False
    padding = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.bool)[:, None, None, :]
    return [
        Case("2 tokens, causal mask", (*normal(11, (2, 2), (2, 2), (2, 2)), _triangle(2))),
        Case("3 queries, 5 keys", (q, k, v, seen)),
        Case("5 tokens, causal mask", (*normal(12, (5, 5), (5, 5), (5, 5)), _triangle(5))),
        Case("nothing is masked", (q, k, v, torch.ones(3, 5, dtype=torch.bool))),
        Case(
            "a batch with heads and a padding mask", (*normal(13, (2, 3, 7, 11), (2, 3, 5, 11), (2, 3, 5, 2)), padding)
        ),
        Case("a query that may attend to nothing", (q, k, v, nothing)),
    ]


def _attend(weigh):
    """Attention whose weights come from `weigh(scaled scores, mask)`."""

    def function(query, key, value, mask):
        weights = weigh(scaled_scores(query, key), mask)
        return weights @ value, weights

    return function


def _masked(scores, mask, fill=-INF):
    return scores.masked_fill(~mask, fill)


def _infinite(mask):
    """0 where attention is allowed, -inf elsewhere: a mask to be added."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF)


def _softmax_of(scores):
    """Softmax over the keys with zeros, and no NaN, where everything is -inf."""
    alone = (scores == -INF).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(alone, 0.0), -1).masked_fill(alone, 0.0)


def _rescaled(factor):
    """Attention in which the scores are scaled otherwise: `factor(d_k)` times too large."""

    def function(query, key, value, mask):
        weights = _softmax_of(_masked(scaled_scores(query, key) * factor(query.shape[-1]), mask))
        return weights @ value, weights

    return function


def _exp_share(shift):
    return lambda s: (e := torch.exp(s - shift(s))) / e.sum(-1, keepdim=True)


EXERCISES = (
    Exercise(
        "04.1",
        "Scaled scores",
        8,
        1,
        scaled_scores,
        _score_cases,
        (
            Mistake("d_k", lambda q, k: q @ k.mT / q.shape[-1], "You divided by d_k; the formula divides by √d_k."),
            Mistake("unscaled", lambda q, k: q @ k.mT, "The scores are not scaled: divide by √d_k."),
            Mistake("times", lambda q, k: q @ k.mT * q.shape[-1] ** 0.5, "You multiplied by √d_k; divide by it."),
            Mistake(
                "k_len",
                lambda q, k: q @ k.mT / k.shape[-2] ** 0.5,
                "You divided by the root of the number of keys; d_k is the length of one key (the last axis).",
            ),
            Mistake(
                "no transpose",
                lambda q, k: q @ k / q.shape[-1] ** 0.5,
                "You multiplied by the keys without transposing them; a dot product sums over d_k.",
            ),
            Mistake(
                "all axes",
                lambda q, k: q @ k.permute(*reversed(range(k.dim()))) / q.shape[-1] ** 0.5,
                "Right without a batch, but .T turns all axes around: swap only the last two, key.transpose(-2, -1).",
            ),
            Mistake(
                "swapped",
                lambda q, k: k @ q.mT / q.shape[-1] ** 0.5,
                "The result has the right values transposed: queries are rows, keys are columns.",
            ),
        ),
        gradients=("query", "key"),
    ),
    Exercise(
        "04.2",
        "A softmax that does not overflow",
        12,
        2,
        stable_softmax,
        _softmax_cases,
        (
            Mistake(
                "naive",
                _exp_share(lambda s: 0.0),
                "exp overflows for large scores, and inf / inf is NaN: subtract each row's largest score first.",
            ),
            Mistake(
                "mean",
                _exp_share(lambda s: s.mean(-1, keepdim=True)),
                "You subtracted the mean of each row; only subtracting the largest score keeps exp at most 1 "
                "(and the mean of a row with -inf is -inf).",
            ),
            Mistake(
                "global max",
                _exp_share(lambda s: s.max()),
                "You subtracted the largest score of all rows; in a row far below it every exp underflows to 0, "
                "and 0 / 0 is NaN. Take the largest score of each row.",
            ),
            Mistake(
                "axis",
                lambda s: torch.softmax(s, 0 if s.dim() == 1 else -2),
                "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
            ),
            Mistake(
                "first axis",
                lambda s: torch.softmax(s, 0),
                "You took the softmax over the first axis, the batch where there is one; keys are the last.",
            ),
            Mistake(
                "all",
                lambda s: torch.softmax(s.flatten(), 0).view_as(s),
                "You took one softmax over all entries; every row needs its own.",
            ),
            Mistake(
                "no sum",
                lambda s: torch.exp(s - s.amax(-1, keepdim=True)),
                "You did not divide by the sum of each row.",
            ),
            Mistake(
                "no inf",
                lambda s: torch.softmax(s.masked_fill(s == -INF, 0.0), -1),
                "You replaced -inf by 0, but exp(0) = 1: a score of -inf must get weight exp(-inf) = 0.",
            ),
            Mistake(
                "log",
                lambda s: torch.log_softmax(s, -1),
                "You returned the logarithm of the weights; take the exponential.",
            ),
        ),
        probes=(weights_sum(),),
    ),
    Exercise(
        "04.3",
        "Attention under a mask",
        20,
        3,
        masked_attention,
        _attention_cases,
        (
            Mistake(
                "inverted",
                _attend(lambda s, m: _softmax_of(_masked(s, ~m))),
                "The mask is used the wrong way round: True means that the query may attend.",
            ),
            Mistake("no mask", _attend(lambda s, m: torch.softmax(s, -1)), "You did not use the mask."),
            Mistake(
                "after",
                _attend(lambda s, m: torch.softmax(s, -1) * m),
                "You masked after the softmax, so rows no longer sum to one: set the scores to -inf before it.",
            ),
            Mistake(
                "zero",
                _attend(lambda s, m: torch.softmax(s * m, -1)),
                "You set masked scores to 0, but exp(0) = 1, so masked keys still get weight: use -inf.",
            ),
            Mistake(
                "added",
                _attend(lambda s, m: torch.softmax(s + m, -1)),
                "You added the booleans to the scores, 1 where attention is allowed: use -inf elsewhere.",
            ),
            Mistake(
                "nan",
                _attend(lambda s, m: torch.softmax(_masked(s, m), -1)),
                "Right where there is something to attend to; but a row that may attend to nothing becomes NaN. "
                "Its weights must be zero.",
            ),
            Mistake(
                "finite",
                _attend(lambda s, m: torch.softmax(_masked(s, m, -1e9), -1)),
                "Right where there is something to attend to; but with a large negative number in place of -inf, "
                "a row that may attend to nothing spreads its weight over all keys. Its weights must be zero.",
            ),
            Mistake(
                "nan gradient",
                _attend(lambda s, m: torch.softmax(s + _infinite(m), -1).nan_to_num(0.0)),
                "Right values, but the gradient is NaN for a row that may attend to nothing: NaN replaced after "
                "the softmax stays in its backward pass. Fill masked scores (masked_fill), do not add -inf.",
            ),
            Mistake(
                "0 times inf",
                _attend(lambda s, m: torch.softmax(s + ~m * -INF, -1)),
                "0 times −∞ is NaN, so scores that may be seen became NaN too: use masked_fill or torch.where.",
            ),
            Mistake("d_k", _rescaled(lambda d: d**-0.5), "You divided by d_k; the formula divides by √d_k."),
            Mistake("unscaled", _rescaled(lambda d: d**0.5), "The scores are not scaled: divide by √d_k."),
            Mistake(
                "axis",
                _attend(lambda s, m: _softmax_of(_masked(s, m).mT).mT),
                "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
            ),
            Mistake(
                "order",
                lambda *args: masked_attention(*args)[::-1],
                "You returned (weights, output); the order is (output, weights).",
            ),
        ),
        gradients=("query", "key", "value"),
        returns=("output", "weights"),
        probes=(weights_sum(1), masked_key_leak),
    ),
)
