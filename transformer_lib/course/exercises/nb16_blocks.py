"""Exercises of notebook 16, continued: attention block by block."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def merge_blocks(first, second):
    """Return what is known of one query after two blocks of keys: (largest, total, blend).

    first, second: each (largest, total, blend) of one block with scores s_j and values v_j [d_v]:
    largest = max s_j, a number; total = sum of exp(s_j − largest), a number; blend = sum of exp(s_j − largest) · v_j
    [d_v], not yet divided by total. Scores may be as large as ±1000.
    """
    (m, s, o), (m2, s2, o2) = first, second
    largest = torch.maximum(m, m2)
    return (
        largest,
        s * (m - largest).exp() + s2 * (m2 - largest).exp(),
        (o * (m - largest).exp() + o2 * (m2 - largest).exp()),
    )


def blockwise_attention(query, key_blocks, value_blocks):
    """Return softmax(query keyᵀ / √d_k) value without ever holding the scores of more than one block.

    query: [q_len, d_k]. key_blocks: a list of [block, d_k], value_blocks: a list of [block, d_v], the keys and values
    in pieces, whose lengths may differ. Returns [q_len, d_v]. Scores may be in the thousands.
    """
    return torch.softmax(query @ torch.cat(key_blocks).T / query.shape[1] ** 0.5, -1) @ torch.cat(value_blocks)


def _summary(scores, values):
    largest = scores.max()
    grown = (scores - largest).exp()
    return largest, grown.sum(), grown @ values


def _merge_cases():
    def case(label, seed, lengths, d_v, scale=1.0, shift=0.0):
        parts = []
        for i, length in enumerate(lengths):
            scores, values = normal(seed + 10 * i, (length,), (length, d_v), dtype=torch.float64)
            parts.append(_summary(scale * scores + shift * (1 - 2 * i), values))
        return Case(label, tuple(parts))

    def by_hand(*parts):
        return Case(
            "one key each, scores 0 and 1",
            tuple(tuple(torch.tensor(x, dtype=torch.float64) for x in part) for part in parts),
        )

    return [
        by_hand((0.0, 1.0, [2.0]), (1.0, 1.0, [3.0])),
        case("blocks of 3 and 5 keys", 1601, (3, 5), 2),
        case("blocks of 7 and 2 keys, large scores", 1602, (7, 2), 3, scale=30.0),
        case("scores near 1000 and −1000", 1603, (2, 3), 5, shift=1000.0),
        case("scores near −1000 and 1000", 1604, (5, 2), 7, shift=-1000.0),
    ]


def _merge(largest=torch.maximum, total=None, blend=None):
    """The merge with one part exchanged: functions of (first, second, right result)."""

    def function(first, second):
        right = merge_blocks(first, second)
        result = [largest(first[0], second[0]), right[1], right[2]]
        if total:
            result[1] = total(first, second, right)
        if blend:
            result[2] = blend(first, second, right)
        return tuple(result)

    return function


def _exponentials(first, second):
    grown = [part[0].exp() for part in (first, second)]
    largest = torch.maximum(first[0], second[0])
    scale = 1 / largest.exp()
    return (
        largest,
        (first[1] * grown[0] + second[1] * grown[1]) * scale,
        (first[2] * grown[0] + second[2] * grown[1]) * scale,
    )


def _block_cases():
    def case(label, seed, q_len, lengths, d_k, d_v, scale=1.0):
        query, key, value = normal(seed, (q_len, d_k), (sum(lengths), d_k), (sum(lengths), d_v), dtype=torch.float64)
        return Case(label, (scale * query, list(key.split(lengths)), list(value.split(lengths))))

    return [
        case("2 queries, blocks of 1 and 2 keys", 1611, 2, [1, 2], 2, 2),
        case("3 queries, blocks of 5, 5 and 3 keys", 1612, 3, [5, 5, 3], 7, 2),
        case("a single block", 1613, 5, [7], 3, 11),
        case("scores in the thousands", 1614, 3, [2, 5, 3], 5, 7, scale=3000.0),
        case("blocks of one key", 1615, 7, [1] * 11, 2, 3),
    ]


def _blocks(query, key_blocks, scale=None):
    return [query @ key.T * (query.shape[1] ** -0.5 if scale is None else scale(query)) for key in key_blocks]


def _mean_of_blocks(query, key_blocks, value_blocks):
    each = [scores.softmax(-1) @ v for scores, v in zip(_blocks(query, key_blocks), value_blocks, strict=True)]
    return torch.stack(each).mean(0)


def _sum_of_blocks(query, key_blocks, value_blocks):
    return len(key_blocks) * _mean_of_blocks(query, key_blocks, value_blocks)


def _running(query, key_blocks, value_blocks, *, total=True, blend=True, scale=None, axis=-1, divide=True):
    """The running sums; `total` and `blend` say which of the two are rescaled when the largest score grows."""
    largest = torch.full((len(query), 1), -torch.inf, dtype=query.dtype)
    s, o = 0.0, 0.0
    for scores, value in zip(_blocks(query, key_blocks, scale), value_blocks, strict=True):
        new = torch.maximum(largest, scores.amax(axis, keepdim=True) if axis == -1 else scores.max())
        grown, shrink = (scores - new).exp(), (largest - new).exp()
        s = s * (shrink if total else 1.0) + grown.sum(-1, keepdim=True)
        o = o * (shrink if blend else 1.0) + grown @ value
        largest = new
    return o / s if divide else o


def _without_largest(query, key_blocks, value_blocks):
    grown = [scores.exp() for scores in _blocks(query, key_blocks)]
    blend = sum(g @ v for g, v in zip(grown, value_blocks, strict=True))
    return blend / sum(g.sum(-1, keepdim=True) for g in grown)


def _own_largest(query, key_blocks, value_blocks):
    """Each block shifted by its own largest score, and the sums added as they are."""
    grown = [(scores - scores.amax(-1, keepdim=True)).exp() for scores in _blocks(query, key_blocks)]
    blend = sum(g @ v for g, v in zip(grown, value_blocks, strict=True))
    return blend / sum(g.sum(-1, keepdim=True) for g in grown)


EXERCISES = (
    Exercise(
        "16.3",
        "Join two blocks",
        12,
        2,
        merge_blocks,
        _merge_cases,
        (
            Mistake(
                "sums added",
                _merge(total=lambda a, b, r: a[1] + b[1], blend=lambda a, b, r: a[2] + b[2]),
                "You added the sums as they are, but each is measured from its own largest score. Rescale both "
                "to the common one first.",
            ),
            Mistake(
                "total not rescaled",
                _merge(total=lambda a, b, r: a[1] + b[1]),
                "The blend is right; the total must be rescaled in the same way.",
            ),
            Mistake(
                "blend not rescaled",
                _merge(blend=lambda a, b, r: a[2] + b[2]),
                "The total is right; the blend must be rescaled in the same way.",
            ),
            Mistake(
                "divided",
                _merge(blend=lambda a, b, r: r[2] / r[1]),
                "You divided the blend by the total; that comes once, at the very end.",
            ),
            Mistake(
                "second only",
                lambda a, b: (
                    torch.maximum(a[0], b[0]),
                    a[1] * (a[0] - torch.maximum(a[0], b[0])).exp() + b[1],
                    a[2] * (a[0] - torch.maximum(a[0], b[0])).exp() + b[2],
                ),
                "You rescaled the first block only; right if the second has the larger scores, but either may.",
            ),
            Mistake(
                "upside down",
                lambda a, b: (
                    torch.maximum(a[0], b[0]),
                    *(
                        a[i] * (torch.maximum(a[0], b[0]) - a[0]).exp()
                        + b[i] * (torch.maximum(a[0], b[0]) - b[0]).exp()
                        for i in (1, 2)
                    ),
                ),
                "Your factors are larger than 1: it is exp(old largest − new largest), at most 1.",
            ),
            Mistake(
                "overflow",
                _exponentials,
                "exp of a score of 1000 is infinite. Use differences from the new largest score, which are never "
                "positive.",
            ),
            Mistake(
                "sum of the largest",
                lambda a, b: (a[0] + b[0], *merge_blocks(a, b)[1:]),
                "The largest score of both blocks is the larger of the two, not their sum.",
            ),
        ),
        returns=("largest", "total", "blend"),
    ),
    Exercise(
        "16.4",
        "Attention, block by block",
        20,
        3,
        blockwise_attention,
        _block_cases,
        (
            Mistake(
                "mean of blocks",
                _mean_of_blocks,
                "You averaged the outputs of the blocks; a block counts by its share of the exponentials.",
            ),
            Mistake(
                "sum of blocks",
                _sum_of_blocks,
                "You added the outputs of the blocks, each with weights that sum to one of their own.",
            ),
            Mistake(
                "own largest",
                _own_largest,
                "Each block's sums are measured from its own largest score; rescale before you add.",
            ),
            Mistake(
                "total not rescaled",
                lambda *a: _running(*a, total=False),
                "You rescale the blend but not the total when the largest score grows.",
            ),
            Mistake(
                "blend not rescaled",
                lambda *a: _running(*a, blend=False),
                "You rescale the total but not the blend when the largest score grows.",
            ),
            Mistake("not divided", lambda *a: _running(*a, divide=False), "The blend was never divided by the total."),
            Mistake(
                "no largest", _without_largest, "exp of large scores overflows: subtract the running largest score."
            ),
            Mistake(
                "no scaling", lambda *a: _running(*a, scale=lambda query: 1.0), "You did not divide the scores by √d_k."
            ),
            Mistake(
                "last block lost", lambda q, k, v: _running(q, k[:-1] or k, v[:-1] or v), "The last block is missing."
            ),
        ),
        gradients=("query",),
    ),
)
