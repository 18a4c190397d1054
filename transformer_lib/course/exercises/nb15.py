"""Exercises of notebook 15: reading weights in words, silencing a head, and the size of what is added."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal


def top_weights(weights, tokens, k):
    """Return for each query the k tokens that it reads most, largest weight first, as a list of lists of strings.

    weights: [q_len, k_len], one head. tokens: k_len strings, the keys. k: at most k_len.
    """
    answers = []
    for row in weights.tolist():
        order = sorted(range(len(row)), key=lambda j: -row[j])
        answers.append([tokens[j] for j in order[:k]])
    return answers


def without_head(heads, W_O, silent):
    """Return the output of multi-head attention when one head contributes nothing, [q_len, d_model].

    heads: [n_heads, q_len, d_v], what each head makes of the values; W_O: [n_heads · d_v, d_model], the rows of
    head 0 first; silent: number of the head, from 0.
    """
    n_heads, q_len, d_v = heads.shape
    output = torch.zeros(q_len, W_O.shape[1], dtype=W_O.dtype)
    for h in range(n_heads):
        if h != silent:
            output = output + heads[h] @ W_O[h * d_v : (h + 1) * d_v]
    return output


def row_entropy(weights):
    """Return the entropy of each row in nats, [n_heads, q_len]; a weight of 0 adds nothing.

    weights: [n_heads, q_len, k_len], each row sums to one. 0 where one key has everything, ln k_len where all share.
    """
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -torch.einsum("hqk,hqk->hq", weights, torch.log(safe))


def _weights(seed, *shape, sharp=2.0):
    return torch.softmax(sharp * normal(seed, shape)[0], dim=-1)


def _top_cases():
    def case(label, seed, queries, words, k):
        tokens = words.split()
        return Case(label, (_weights(seed, queries, len(tokens)), tokens, k))

    return [
        case("2 queries, 3 tokens, the top 2", 1501, 2, "Show me money", 2),
        case("4 tokens, the top 3", 1502, 4, "Show me the money", 3),
        case("the top 1", 1503, 3, "the man saw the bank", 1),
        case("all of them", 1504, 5, "Not on your life", 4),
        case("more queries than keys", 1505, 7, "a bat sleeps", 2),
    ]


def _head_cases():
    def case(label, seed, n_heads, q_len, d_v, d_model, silent):
        heads, W_O = normal(seed, (n_heads, q_len, d_v), (n_heads * d_v, d_model))
        return Case(label, (heads, W_O, silent))

    return [
        case("2 heads of width 2, the first silent", 1511, 2, 3, 2, 5, 0),
        case("3 heads, the last silent", 1512, 3, 5, 2, 7, 2),
        case("3 heads, the middle one silent", 1513, 3, 2, 5, 7, 1),
        case("only one head", 1514, 1, 3, 5, 2, 0),
        case("as many heads as queries", 1515, 5, 5, 3, 11, 3),
    ]


def _entropy_cases():
    hard = torch.zeros(2, 3, 5)
    hard[0, :, 1], hard[1, :, 2:4] = 1.0, 0.5
    return [
        Case("2 heads, 2 queries, 3 keys", (_weights(1521, 2, 2, 3),)),
        Case("rows with zeros", (hard,)),
        Case("all keys alike", (torch.full((3, 2, 7), 1 / 7),)),
        Case("5 heads", (_weights(1522, 5, 3, 7, sharp=4.0),)),
        Case("as many queries as keys", (_weights(1523, 2, 5, 5),)),
    ]


def _top(order=lambda w: w.argsort(dim=-1, descending=True), k_of=lambda k, n: k):
    def function(weights, tokens, k):
        return [[tokens[j] for j in row[: k_of(k, len(tokens))]] for row in order(weights).tolist()]

    return function


def _column_top(weights, tokens, k):
    order = weights.T.argsort(dim=-1, descending=True)  # [k_len, q_len]
    return [[tokens[j % len(tokens)] for j in row[:k]] for row in order.tolist()]


def _top_with_numbers(weights, tokens, k):
    found = weights.topk(k, dim=-1)
    return [
        [(tokens[j], value) for j, value in zip(js, values, strict=True)]
        for js, values in zip(found.indices.tolist(), found.values.tolist(), strict=True)
    ]


def _top_indices(weights, tokens, k):
    return weights.topk(k, dim=-1).indices.tolist()


def _first_queries(weights, tokens, k):
    return top_weights(weights, tokens, k)[:k]


def _with_factors(factors):
    """Multi-head output with a factor for each head."""

    def function(heads, W_O, silent):
        n_heads, _, d_v = heads.shape
        scaled = heads * factors(n_heads, silent).to(heads)[:, None, None]
        return scaled.transpose(0, 1).flatten(1) @ W_O

    return function


def _rows_reshaped(heads, W_O, silent):
    kept = heads.clone()
    kept[silent] = 0
    return kept.reshape(heads.shape[1], -1) @ W_O


def _columns_silenced(heads, W_O, silent):
    """The silent head's place found with columns interleaved: every n-th column."""
    flat = heads.transpose(0, 1).flatten(1).clone()
    flat[:, silent :: heads.shape[0]] = 0
    return flat @ W_O


def _query_silenced(heads, W_O, silent):
    flat = heads.transpose(0, 1).flatten(1).clone()
    flat[silent % len(flat)] = 0
    return flat @ W_O


def _one(n, silent):
    return torch.arange(n) == silent


def _entropy(log=torch.log, sign=-1.0, axis=-1, mean=False, scale=lambda w: 1.0):
    def function(weights):
        safe = torch.where(weights > 0, weights, torch.ones_like(weights))
        summed = (weights * log(safe)).mean(dim=axis) if mean else (weights * log(safe)).sum(dim=axis)
        return sign * summed / scale(weights)

    return function


EXERCISES = (
    Exercise(
        "15.1",
        "The words that a head reads most",
        8,
        1,
        top_weights,
        _top_cases,
        (
            Mistake("smallest", _top(lambda w: w.argsort(dim=-1)), "These are the smallest weights; sort downwards."),
            Mistake(
                "one too many",
                _top(k_of=lambda k, n: min(k + 1, n) if k < n else k - 1),
                "The number of tokens in a row is not k.",
            ),
            Mistake(
                "columns",
                _column_top,
                "You sorted columns: a row of the weights belongs to one query, and its entries to the keys.",
            ),
            Mistake("indices", _top_indices, "These are places; look them up in tokens."),
            Mistake("with weights", _top_with_numbers, "Return the tokens alone, without their weights."),
            Mistake("first queries", _first_queries, "There is one list for each query, not for the first k queries."),
            Mistake(
                "source order",
                lambda w, tokens, k: [[tokens[j] for j in sorted(row)] for row in w.topk(k, dim=-1).indices.tolist()],
                "The right tokens, but in the order of the sentence: the largest weight comes first.",
            ),
        ),
    ),
    Exercise(
        "15.3",
        "Silence a head",
        10,
        1,
        without_head,
        _head_cases,
        (
            Mistake(
                "nothing silenced",
                _with_factors(lambda n, s: torch.ones(n)),
                "All heads still speak; that is the ordinary output.",
            ),
            Mistake("only that head", _with_factors(_one), "You kept the one head that should be silent."),
            Mistake(
                "counts from 1",
                _with_factors(lambda n, s: ~_one(n, s - 1 if s else n)),
                "Another head is silent: silent counts from 0.",
            ),
            Mistake(
                "rescaled",
                _with_factors(lambda n, s: (~_one(n, s)) * (n / max(n - 1, 1))),
                "You made the other heads larger to make up for it; they stay as they are.",
            ),
            Mistake(
                "reshaped",
                _rows_reshaped,
                "The heads are mixed up: make it [q_len, n_heads, d_v] before you join them.",
            ),
            Mistake(
                "interleaved",
                _columns_silenced,
                "The columns of a head stand together: head h has columns h · d_v to (h + 1) · d_v − 1.",
            ),
            Mistake("a query", _query_silenced, "A query was silenced; the first axis of heads is the head."),
        ),
    ),
    Exercise(
        "15.4",
        "Sharp or spread: the entropy of a row",
        8,
        1,
        row_entropy,
        _entropy_cases,
        (
            Mistake(
                "zeros",
                lambda w: -(w * w.log()).sum(dim=-1),
                "0 · ln 0 gives NaN in floating point: a weight of 0 adds 0 to the sum.",
            ),
            Mistake("sign", _entropy(sign=1.0), "The sign: an entropy is not negative."),
            Mistake("bits", _entropy(log=torch.log2), "These are bits; the natural logarithm gives nats."),
            Mistake("axis", _entropy(axis=-2), "The sum runs over the keys, the last axis; you summed over queries."),
            Mistake("mean", _entropy(mean=True), "That is a mean over the keys; an entropy is the sum."),
            Mistake(
                "normalised",
                _entropy(scale=lambda w: math.log(w.shape[-1])),
                "You divided by ln k_len; leave the entropy in nats.",
            ),
            Mistake(
                "over the heads",
                lambda w: _entropy()(w).mean(dim=0),
                "You averaged over the heads; there is one number for each head and query.",
            ),
        ),
    ),
)
