"""Exercises of notebook 07: the look-ahead mask, the padding mask, masked weights, packed sentences."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import weights_sum

INF = float("inf")


def causal_mask(seq_len):
    """Return the look-ahead mask: booleans [seq_len, seq_len], True = query i (row) may see key j (column).

    Each token may see itself and the tokens before it. seq_len: an int.
    """
    return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)])


def padding_mask(ids, pad_id):
    """Return which keys are real tokens, as booleans that broadcast to [batch, n_heads, q_len, k_len].

    ids: [batch, k_len] integers; pad_id: the id that fills up short sentences. Returns [batch, 1, 1, k_len].
    """
    return torch.tensor([[[[token != pad_id for token in row]]] for row in ids.tolist()])


def masked_weights(scores, mask):
    """Return the softmax over the last axis of the scores, with weight exactly 0 where the mask is False.

    scores: [..., q_len, k_len], scaled already; mask: booleans that broadcast to it, True = may attend.
    A row that may attend to nothing gets zeros, and no NaN in the gradient.
    """
    allowed = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, may in zip(scores.reshape(allowed.shape), allowed, strict=True):
        weights = torch.zeros_like(row)
        rows.append(weights.masked_scatter(may, torch.softmax(row[may], dim=0)) if may.any() else weights)
    return torch.stack(rows).reshape(scores.shape)


def packed_mask(segments):
    """Return the look-ahead mask for rows that hold several sentences one after the other.

    segments: [batch, seq_len] integers: the number of the sentence that each token belongs to, 0 = padding.
    Returns booleans [batch, 1, seq_len, seq_len]: a token sees itself and the earlier tokens of its own sentence;
    padding sees nothing and is seen by nobody.
    """
    return torch.tensor(
        [
            [[[j <= i and row[j] == row[i] != 0 for j in range(len(row))] for i in range(len(row))]]
            for row in segments.tolist()
        ]
    )


def _length_cases():
    return [
        Case("2 tokens", (2,)),
        Case("one token", (1,)),
        Case("3 tokens", (3,)),
        Case("5 tokens", (5,)),
        Case("11 tokens", (11,)),
    ]


def _id_cases():
    ids = torch.tensor([[5, 7, 3, 0, 0], [4, 6, 8, 9, 3], [2, 0, 0, 0, 0]])
    return [
        Case("one sentence of 2", (torch.tensor([[5, 0]]), 0)),
        Case("3 sentences of up to 5", (ids, 0)),
        Case("the padding id is 3", (torch.tensor([[5, 1, 3], [1, 0, 2]]), 3)),
        Case("no padding", (torch.tensor([[4, 5, 6, 7, 8, 9, 1]] * 2), 0)),
        Case("padding in front", (torch.tensor([[11, 11, 4], [11, 2, 13], [1, 2, 5], [7, 8, 9], [11, 3, 12]]), 11)),
    ]


def _score_cases():
    seen = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    nothing = seen.clone()
    nothing[1] = False
    padding = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.bool)[:, None, None, :]
    huge = torch.tensor([[1.0, 1000.0, 2.0], [0.0, 500.0, -1000.0]])
    return [
        Case("2 tokens, look-ahead mask", (*normal(70, (2, 2)), causal_mask(2))),
        Case("3 queries, 5 keys", (*normal(71, (3, 5)), seen)),
        Case("a batch with heads and a padding mask", (*normal(72, (2, 3, 7, 5)), padding)),
        Case("a query that may attend to nothing", (*normal(73, (3, 5)), nothing)),
        Case("hidden scores of 1000 and 500", (huge, torch.tensor([[True, False, True]]))),
        Case("nothing is hidden", (*normal(74, (5, 3)), torch.ones(5, 3, dtype=torch.bool))),
    ]


def _segment_cases():
    return [
        Case("2 sentences of 1 token", (torch.tensor([[1, 2]]),)),
        Case("sentences of 2 and 3 tokens", (torch.tensor([[1, 1, 2, 2, 2]]),)),
        Case(
            "3 rows of 7, with padding",
            (torch.tensor([[1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 2, 2, 3], [1, 1, 1, 1, 0, 0, 0]]),),
        ),
        Case("sentences numbered backwards", (torch.tensor([[5, 5, 3, 3, 2], [3, 1, 1, 1, 0]]),)),
        Case("one sentence", (torch.tensor([[1] * 5] * 2),)),
    ]


def _triangle(n, shift=0):
    return torch.ones(n, n).tril(shift).bool()


def _real(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


def _filled(fill, inverted=False, axis=-1):
    """Softmax of the scores with another number in the hidden places, or other places hidden, or another axis."""
    return lambda s, m: s.masked_fill(m if inverted else ~m, fill).softmax(axis)


def _added(mask):
    """0 where attention is allowed, −∞ elsewhere: the mask as a matrix to be added."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF)


def _renormalised(scores, mask):
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


def _packed(shift=0, same=torch.eq, real=lambda s: (s != 0)[:, None, :], causal=None):
    """The packed mask with one condition exchanged for another."""

    def function(segments):
        n = segments.shape[1]
        order = _triangle(n, shift) if causal is None else causal(n)
        visible = same(segments[:, :, None], segments[:, None, :]) & order
        return (visible & real(segments))[:, None]

    return function


EXERCISES = (
    Exercise(
        "07.1",
        "The look-ahead mask",
        5,
        1,
        causal_mask,
        _length_cases,
        (
            Mistake(
                "strict",
                lambda n: _triangle(n, -1),
                "A token may see itself: the diagonal is True. Yours leaves the first row with nothing to see.",
            ),
            Mistake(
                "turned",
                lambda n: _triangle(n).T,
                "Row i sees key i and all later ones: the mask is turned. Queries are rows, keys are columns.",
            ),
            Mistake(
                "inverted", lambda n: ~_triangle(n), "You marked what is hidden. In this course True = may attend."
            ),
            Mistake(
                "one ahead",
                lambda n: _triangle(n, 1),
                "Each token sees one token too many, the next one: exactly the one that it shall predict.",
            ),
            Mistake(
                "everything",
                lambda n: torch.ones(n, n, dtype=torch.bool),
                "Every token sees every other: nothing is masked.",
            ),
            Mistake(
                "numbers",
                lambda n: torch.ones(n, n).tril(),
                "Right places, but as numbers 0 and 1: return booleans, for example with .bool().",
            ),
            Mistake(
                "to be added",
                lambda n: _added(_triangle(n)),
                "That is the matrix B of 0 and −∞ to be added to scores; return booleans.",
            ),
            Mistake(
                "four axes",
                lambda n: _triangle(n)[None, None],
                "Right, with the axes for batch and heads in front; here [seq_len, seq_len] is asked for.",
            ),
        ),
    ),
    Exercise(
        "07.2",
        "The padding mask",
        5,
        1,
        padding_mask,
        _id_cases,
        (
            Mistake(
                "inverted",
                lambda ids, pad: ~_real(ids, pad),
                "You marked the padding. In this course True = may attend.",
            ),
            Mistake(
                "flat",
                lambda ids, pad: ids != pad,
                "Right entries, but [batch, k_len] would be read as [q_len, k_len]: add two axes in the middle.",
            ),
            Mistake(
                "queries",
                lambda ids, pad: (ids != pad)[:, None, :, None],
                "Your mask hides rows, the queries at padding. Padding must be hidden as a key: the last axis.",
            ),
            Mistake("always 0", lambda ids, pad: _real(ids, 0), "You compared with 0; the id to hide is pad_id."),
            Mistake(
                "larger",
                lambda ids, pad: (ids > pad)[:, None, None, :],
                "You hide every id up to pad_id; only pad_id itself is padding.",
            ),
            Mistake(
                "no heads",
                lambda ids, pad: (ids != pad)[:, None, :],
                "One axis is missing: [batch, 1, k_len] would put the batch in the place of the heads.",
            ),
            Mistake(
                "batch third",
                lambda ids, pad: (ids != pad)[None, None],
                "The new axes stand in front, so the batch is in the place of the queries: [:, None, None, :].",
            ),
            Mistake(
                "numbers", lambda ids, pad: _real(ids, pad).float(), "Right entries, but as numbers: return booleans."
            ),
        ),
    ),
    Exercise(
        "07.3",
        "Weights under a mask",
        12,
        2,
        masked_weights,
        _score_cases,
        (
            Mistake(
                "zeroed",
                lambda s, m: s.softmax(-1) * m,
                "You set weights to zero after the softmax; the rest then sums to less than one. "
                "Mask the scores, before it.",
            ),
            Mistake(
                "renormalised",
                _renormalised,
                "You masked the weights and divided by what is left. Where the hidden keys had all the weight "
                "that is 0/0: mask the scores, before the softmax.",
            ),
            Mistake(
                "renormalised with care",
                lambda s, m: (w := s.softmax(-1) * m) / w.sum(-1, keepdim=True).clamp(min=1e-30),
                "You removed the hidden weights after the softmax and shared out the rest. Where a hidden score is "
                "far larger, nothing is left: mask the scores, before the softmax.",
            ),
            Mistake(
                "NaN",
                _filled(-INF),
                "A row of nothing but −∞ gives NaN: a query that may attend to nothing must get zeros.",
            ),
            Mistake(
                "NaN replaced",
                lambda s, m: (s + _added(m)).softmax(-1).nan_to_num(0.0),
                "The values are right, but adding −∞ and replacing NaN afterwards leaves NaN in the gradients: "
                "keep such a row finite through the softmax and set it to zero afterwards.",
            ),
            Mistake("inverted", _filled(-INF, inverted=True), "You hid what may be seen: True = may attend."),
            Mistake(
                "-1e9",
                _filled(-1e9),
                "With −1e9 a query that may attend to nothing spreads its weight over all hidden keys; "
                "it must get zeros.",
            ),
            Mistake(
                "-10",
                _filled(-10.0),
                "A score of −10 still gets some weight; hidden keys must get exactly 0, so use −∞.",
            ),
            Mistake("score 0", _filled(0.0), "A score of 0 is not a weight of 0, since exp(0) = 1: use −∞."),
            Mistake(
                "axis",
                _filled(-INF, axis=-2),
                "The softmax runs over the queries; weights sum to one over the keys, the last axis.",
            ),
        ),
        gradients=("scores",),
        probes=(weights_sum(),),
    ),
    Exercise(
        "07.4",
        "Several sentences in one row",
        12,
        2,
        packed_mask,
        _segment_cases,
        (
            Mistake(
                "no order",
                _packed(causal=lambda n: torch.ones(n, n, dtype=torch.bool)),
                "Sentences are kept apart, but each token sees the later ones of its own sentence.",
            ),
            Mistake(
                "no sentences",
                _packed(same=lambda q, k: (q != 0) & (k != 0)),
                "Later tokens are hidden, but a sentence reads the sentences before it.",
            ),
            Mistake(
                "at least",
                _packed(same=torch.ge),
                "You compared with ≥, so a token sees every sentence with a smaller number; use ==.",
            ),
            Mistake(
                "padding",
                _packed(real=lambda s: torch.ones_like(s, dtype=torch.bool)[:, None, :]),
                "Padding has number 0 and sees padding; it must see nothing.",
            ),
            Mistake("strict", _packed(shift=-1), "A token may see itself: j ≤ i."),
            Mistake(
                "turned",
                _packed(causal=lambda n: _triangle(n).T),
                "Each token sees the later ones of its sentence: queries are rows, so keep j ≤ i.",
            ),
            Mistake("inverted", lambda s: ~_packed()(s), "You marked what is hidden: True = may attend."),
            Mistake(
                "no heads",
                lambda s: _packed()(s)[:, 0],
                "The axis of the heads is missing: [batch, 1, seq_len, seq_len].",
            ),
        ),
    ),
)
