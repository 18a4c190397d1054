"""The exercises of notebook 16: cost, speed and scale."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

# 16.1 Multiply-adds of a decoder layer -------------------------------------------------------------------------------


def decoder_layer_multiply_adds(tgt_len, src_len, d_model, d_ff):
    """Return the multiply-adds of all matrix products of a decoder layer, for one sentence, as an int.

    Masked self-attention over tgt_len tokens, cross-attention from these to src_len rows of memory, feed-forward.
    All heads together are d_model wide. What the mask forbids is computed all the same.
    """
    own_projections = 4 * tgt_len * d_model * d_model
    own_pairs = 2 * tgt_len * tgt_len * d_model
    cross_projections = 2 * tgt_len * d_model * d_model + 2 * src_len * d_model * d_model
    cross_pairs = 2 * tgt_len * src_len * d_model
    return own_projections + own_pairs + cross_projections + cross_pairs + 2 * tgt_len * d_model * d_ff


def _layer_cases():
    return [
        Case("2 target tokens, 3 source rows, d_model 2, d_ff 5", (2, 3, 2, 5)),
        Case("as many target tokens as source rows", (7, 7, 5, 11)),
        Case("a long source", (5, 1009, 3, 7)),
        Case("a long target", (1013, 2, 11, 3)),
        Case("one target token", (1, 13, 17, 5)),
        Case("the base model", (31, 37, 512, 2048)),
    ]


def _layer(
    own=4,
    pairs=2,
    cross=lambda t, s, m: 2 * t * m * m + 2 * s * m * m,
    mixed=2,
    ff=2,
    own_pairs=lambda t, s, m: t * t * m,
):
    def function(t, s, m, f):
        return own * t * m * m + pairs * own_pairs(t, s, m) + cross(t, s, m) + mixed * t * s * m + ff * t * m * f

    return function


EXERCISE_1 = Exercise(
    "16.1",
    "Multiply-adds of a decoder layer",
    8,
    1,
    decoder_layer_multiply_adds,
    _layer_cases,
    (
        Mistake(
            "no cross-attention",
            _layer(cross=lambda t, s, m: 0, mixed=0),
            "That is an encoder layer; the cross-attention is missing, projections and pairs.",
        ),
        Mistake(
            "no cross projections",
            _layer(cross=lambda t, s, m: 0),
            "The cross-attention has four projections of its own.",
        ),
        Mistake(
            "all from the target",
            _layer(cross=lambda t, s, m: 4 * t * m * m),
            "You projected tgt_len rows four times in the cross-attention; its keys and values are made from "
            "the src_len rows of memory.",
        ),
        Mistake(
            "all from the source",
            _layer(cross=lambda t, s, m: 4 * s * m * m),
            "You projected src_len rows four times in the cross-attention; its queries and its output have "
            "tgt_len rows.",
        ),
        Mistake(
            "square of the source",
            lambda t, s, m, f: _layer(mixed=0)(t, s, m, f) + 2 * s * s * m,
            "The pairs of the cross-attention are tgt_len · src_len: every target token with every row.",
        ),
        Mistake(
            "no blends",
            _layer(pairs=1, mixed=1),
            "The pairs are used twice, in the scores and in the blend of the values.",
        ),
        Mistake(
            "half of the pairs",
            _layer(own_pairs=lambda t, s, m: t * (t + 1) / 2 * m),
            "You left out the pairs behind the causal mask; here they are computed, and then hidden.",
        ),
        Mistake("one matrix", _layer(ff=1), "The feed-forward network has two matrices, d_model × d_ff and back."),
        Mistake(
            "no output projections",
            _layer(own=3, cross=lambda t, s, m: t * m * m + 2 * s * m * m),
            "Two projections of tgt_len rows are missing. Each of the two attentions has a W_Q and a W_O, which act on "
            "tgt_len rows.",
        ),
        Mistake(
            "one projection of the target missing",
            _layer(cross=lambda t, s, m: t * m * m + 2 * s * m * m),
            "One projection of tgt_len rows is missing: the cross-attention has a W_Q and a W_O, too.",
        ),
        Mistake(
            "output projection on the source",
            _layer(cross=lambda t, s, m: t * m * m + 3 * s * m * m),
            "In your count, three projections of the cross-attention act on src_len rows; queries and output have "
            "tgt_len rows.",
        ),
        Mistake(
            "values from the target",
            _layer(cross=lambda t, s, m: 3 * t * m * m + s * m * m),
            "Only one projection acts on src_len rows in your count; keys and values are both made from the memory.",
        ),
        Mistake(
            "own pairs once",
            _layer(pairs=1),
            "The pairs of the self-attention are used twice, in the scores and in the blend.",
        ),
        Mistake(
            "network over the source",
            lambda t, s, m, f: _layer(ff=0)(t, s, m, f) + 2 * s * m * f,
            "Your feed-forward network works on src_len rows; that of a decoder layer works on its tgt_len rows.",
        ),
        Mistake(
            "no cross pairs",
            _layer(mixed=0),
            "The pairs of the cross-attention are missing: tgt_len · src_len, for the scores and for the blend.",
        ),
        Mistake(
            "cross pairs once",
            _layer(mixed=1),
            "The pairs of the cross-attention are used twice, in the scores and in the blend.",
        ),
        Mistake("no network", _layer(ff=0), "The feed-forward network is missing."),
        Mistake(
            "pairs without width",
            lambda t, s, m, f: (6 * t + 2 * s) * m * m + 2 * t * (t + s) + 2 * t * m * f,
            "A pair does not take one multiply-add: its score is a sum over d_model products, and so is its blend.",
        ),
        Mistake(
            "cross-attention over all rows",
            lambda t, s, m, f: (6 * t + 2 * s) * m * m + 2 * (t + s) ** 2 * m + 2 * t * m * f,
            "You paired all rows with all rows. There are two grids: tgt_len · tgt_len and tgt_len · src_len.",
        ),
        Mistake(
            "source through the network",
            lambda t, s, m, f: _layer()(t, s, m, f) + 2 * s * m * f,
            "The feed-forward network of a decoder layer works on its tgt_len rows. The memory gives keys and "
            "values, no more.",
        ),
        Mistake(
            "an encoder layer for the source",
            lambda t, s, m, f: 4 * (t + s) * m * m + 2 * (t * t + s * s) * m + 2 * t * m * f,
            "You gave the memory a self-attention. In the cross-attention the queries are the tgt_len rows, and only "
            "keys and values come from the src_len rows.",
        ),
        Mistake(
            "twice",
            lambda *a: 2 * _layer()(*a),
            "You counted multiplications and additions apart: a multiply-add is one.",
        ),
    ),
)


# 16.2 Where the pairs take over --------------------------------------------------------------------------------------


def crossover_length(d_model, d_attention, d_ff):
    """Return the smallest length at which the pairs of an encoder layer take more multiply-adds than all the rest.

    d_attention: the width of all heads together (n_heads · d_k = n_heads · d_v), which may differ from d_model.
    Returns an int.
    """
    n = 1
    rest = 4 * d_model * d_attention + 2 * d_model * d_ff  # per token
    while 2 * n * d_attention <= rest:
        n += 1
    return n


def _crossover_cases():
    return [
        Case("d_model 2, heads 2, d_ff 3", (2, 2, 3)),
        Case("the base model", (512, 512, 2048)),
        Case("narrow heads", (17, 5, 31)),
        Case("wide heads", (11, 23, 13)),
        Case("d_ff smaller than d_model", (19, 19, 2)),
        Case("a half and more are left over", (3, 4, 5)),
    ]


EXERCISE_2 = Exercise(
    "16.2",
    "Where the pairs take over",
    8,
    2,
    crossover_length,
    _crossover_cases,
    (
        Mistake(
            "equal",
            lambda m, a, f: 2 * m + m * f // a,
            "One too small: the pairs must take more than the rest, not as much.",
        ),
        Mistake(
            "rounded up",
            lambda m, a, f: -(-(2 * m * a + m * f) // a),
            "Right where the two sides are equal between two whole lengths; where they are equal at a whole length, go "
            "one further.",
        ),
        Mistake(
            "projections alone",
            lambda m, a, f: 2 * m + 1,
            "That is where the pairs overtake the projections; the feed-forward network is missing.",
        ),
        Mistake(
            "same width",
            lambda m, a, f: 2 * m + f + 1,
            "That is right for d_attention = d_model only. The pairs take 2n² · d_attention, the projections "
            "4n · d_model · d_attention, and the feed-forward network 2n · d_model · d_ff, whatever the heads.",
        ),
        Mistake(
            "scores alone",
            lambda m, a, f: 2 * (2 * m + m * f / a) // 1 + 1,
            "The pairs take 2n² · d_attention, for scores and blend. (Is one of the two missing, or a division by 2?)",
        ),
        Mistake(
            "one matrix",
            lambda m, a, f: 2 * m + m * f // (2 * a) + 1,
            "The feed-forward network has two matrices of d_model · d_ff.",
        ),
        Mistake(
            "widths of attention",
            lambda m, a, f: 2 * a + f + 1,
            "Two widths are confused: the pairs take 2n² · d_attention, a projection n · d_model · d_attention, the "
            "feed-forward network 2n · d_model · d_ff.",
        ),
        Mistake(
            "same width, equal",
            lambda m, a, f: 2 * m + f,
            "That is where the two sides are equal if d_attention is d_model. Write both sides with d_attention, and "
            "then go one further.",
        ),
        Mistake(
            "divided too early",
            lambda m, a, f: 2 * m + m * (f // a) + 1,
            "You rounded d_ff / d_attention before multiplying by d_model; round once, at the end.",
        ),
        Mistake(
            "square projections",
            lambda m, a, f: (2 * m * m + m * f) // a + 1,
            "A projection is no square matrix here: it has d_model · d_attention numbers.",
        ),
        Mistake(
            "three projections",
            lambda m, a, f: (3 * m * a + 2 * m * f) // (2 * a) + 1,
            "There are four projections: for queries, keys, values, and the output.",
        ),
        Mistake(
            "not whole",
            lambda m, a, f: 2 * m + m * f / a,
            "That is where both sides are equal. Return the first whole number above it.",
        ),
        Mistake(
            "one more",
            lambda m, a, f: 2 * m + m * f / a + 1,
            "You added 1 to where both sides are equal; return the first whole number above it.",
        ),
        Mistake(
            "nearest",
            lambda m, a, f: round(2 * m + m * f / a),
            "You rounded where both sides are equal to the nearest whole number; return the first one above it.",
        ),
        Mistake(
            "rounded to the nearest",
            lambda m, a, f: round(2 * m + m * f / a) + 1,
            "You rounded where both sides are equal, and added 1. Where it was rounded up, that is one too many: round "
            "down first.",
        ),
    ),
)


# 16.3 Join two blocks ------------------------------------------------------------------------------------------------


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
    """Return the merge with one part replaced: functions of (first, second, right result)."""

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


def _measured_from(reference, *, largest=None):
    """Return the merge measured from `reference(m, m2)`; `largest` is what it returns as the largest score."""

    def function(first, second):
        base = reference(first[0], second[0])
        grown = [(part[0] - base).exp() for part in (first, second)]
        sums = [sum(part[i] * by for part, by in zip((first, second), grown, strict=True)) for i in (1, 2)]
        return (base if largest is None else largest(first[0], second[0]), *sums)

    return function


def _factors(first, second):
    largest = torch.maximum(first[0], second[0])
    return largest, (first[0] - largest).exp(), (second[0] - largest).exp()


def _swapped_factors(first, second):
    largest, mine, other = _factors(first, second)
    return largest, first[1] * other + second[1] * mine, first[2] * other + second[2] * mine


def _common_factor(first, second):
    largest, mine, other = _factors(first, second)
    return largest, (first[1] + second[1]) * mine * other, (first[2] + second[2]) * mine * other


def _differences(first, second):
    largest = torch.maximum(first[0], second[0])
    mine, other = first[0] - largest, second[0] - largest
    return largest, first[1] * mine + second[1] * other, first[2] * mine + second[2] * other


def _divided_first(first, second):
    largest, mine, other = _factors(first, second)
    return largest, merge_blocks(first, second)[1], first[2] / first[1] * mine + second[2] / second[1] * other


def _weighted(first, second):
    largest = torch.maximum(first[0], second[0])
    shares = [part[1] * (part[0] - largest).exp() for part in (first, second)]
    return (shares[0] * first[2] + shares[1] * second[2]) / sum(shares)


EXERCISE_3 = Exercise(
    "16.3",
    "Join two blocks",
    10,
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
            "first kept",
            lambda a, b: (
                torch.maximum(a[0], b[0]),
                *(a[i] + b[i] * (b[0] - torch.maximum(a[0], b[0])).exp() for i in (1, 2)),
            ),
            "You rescaled the second block only; right if the first has the larger scores, but either may.",
        ),
        Mistake(
            "upside down",
            lambda a, b: (
                torch.maximum(a[0], b[0]),
                *(
                    a[i] * (torch.maximum(a[0], b[0]) - a[0]).exp() + b[i] * (torch.maximum(a[0], b[0]) - b[0]).exp()
                    for i in (1, 2)
                ),
            ),
            "Your factors are larger than 1: it is exp(old largest − new largest), at most 1.",
        ),
        Mistake(
            "overflow",
            _exponentials,
            "exp of a score of 1000 is infinite. Use differences from the new largest score, which are never positive.",
        ),
        Mistake(
            "sum of the largest",
            lambda a, b: (a[0] + b[0], *merge_blocks(a, b)[1:]),
            "The largest score of both blocks is the larger of the two, not their sum.",
        ),
        Mistake(
            "blends as means",
            lambda a, b: (*merge_blocks(a, b)[:2], _weighted(a, b)),
            "You took each blend for a mean; it is the sum before it is divided by the total. Rescale both and add.",
        ),
        Mistake(
            "each divided first",
            _divided_first,
            "You divided each blend by its own total before adding; only the joined blend is divided, at the very end.",
        ),
        Mistake(
            "factors swapped",
            _swapped_factors,
            "The factors are right, but each is at the other block: a block takes exp(own largest − common largest).",
        ),
        Mistake(
            "one factor for both",
            _common_factor,
            "You shrank both blocks by the same factor. The block with the larger scores keeps its sums as they are.",
        ),
        Mistake(
            "no exponential",
            _differences,
            "You multiplied by a difference of scores; the factor is its exponential.",
        ),
        Mistake(
            "measured from the first",
            _measured_from(lambda m, m2: m),
            "You measured both blocks from the first one's largest score; larger ones in the second may overflow.",
        ),
        Mistake(
            "measured from the second",
            _measured_from(lambda m, m2: m2, largest=torch.maximum),
            "You measured both blocks from the second one's largest score. Take the larger of the two.",
        ),
        Mistake(
            "measured from the smaller",
            _measured_from(torch.minimum),
            "You measured both blocks from the smaller of the two largest scores, which can overflow. Take the larger.",
        ),
    ),
    returns=("largest", "total", "blend"),
)


# 16.4 Attention, block by block --------------------------------------------------------------------------------------


def blockwise_attention(query, key_blocks, value_blocks):
    """Return softmax(query keyᵀ / √d_k) value without ever holding the scores of more than one block.

    query: [q_len, d_k]. key_blocks: a list of [block, d_k], value_blocks: a list of [block, d_v], the keys and values
    in pieces, whose lengths may differ. Returns [q_len, d_v]. Scores may be in the thousands.
    """
    outputs, totals = [], []  # of each block alone: what its softmax gives, and the logarithm of its sum
    for keys, values in zip(key_blocks, value_blocks, strict=True):
        scores = query @ keys.T / query.shape[1] ** 0.5
        outputs.append(torch.softmax(scores, -1) @ values)
        totals.append(torch.logsumexp(scores, -1))
    shares = torch.softmax(torch.stack(totals), 0)  # [n_blocks, q_len]
    return (shares[..., None] * torch.stack(outputs)).sum(0)


def _block_cases():
    def case(label, seed, q_len, lengths, d_k, d_v, scale=1.0):
        query, key, value = normal(seed, (q_len, d_k), (sum(lengths), d_k), (sum(lengths), d_v), dtype=torch.float64)
        return Case(label, (scale * query, list(key.split(lengths)), list(value.split(lengths))))

    keys = torch.tensor([[-200.0], [-200.0078125], [-200.015625]], dtype=torch.float64) * torch.eye(4)[:1]
    values = normal(1616, (3, 2), dtype=torch.float64)[0]
    low = (200 * torch.eye(4, dtype=torch.float64)[:1], [keys[:1], keys[1:]], [values[:1], values[1:]])
    first_larger = torch.ones(1, 1, dtype=torch.float64), [torch.full((1, 1), x).double() for x in (1000.0, 1.0, 0.0)]
    by_hand = [torch.tensor([[number]], dtype=torch.float64) for number in (1.0, 1.0, 3.0, 2.0, 2.0, 4.0, 10.0)]
    return [
        Case("one query, scores 1, 3, 2 and values 2, 4, 10", (by_hand[0], by_hand[1:4], by_hand[4:])),
        case("2 queries, blocks of 1 and 2 keys", 1611, 2, [1, 2], 2, 2),
        case("3 queries, blocks of 5, 5 and 3 keys", 1612, 3, [5, 5, 3], 7, 2),
        case("a single block", 1613, 5, [7], 3, 11),
        case("scores in the thousands", 1614, 3, [2, 5, 3], 5, 7, scale=3000.0),
        case("blocks of one key", 1615, 7, [1] * 11, 2, 3),
        Case("all scores near −20,000", low),
        Case("one query, the larger scores first", (*first_larger, list(values.split(1)))),
    ]


def _blocks(query, key_blocks, scale=None):
    return [query @ key.T * (query.shape[1] ** -0.5 if scale is None else scale(query)) for key in key_blocks]


def _mean_of_blocks(query, key_blocks, value_blocks):
    each = [scores.softmax(-1) @ v for scores, v in zip(_blocks(query, key_blocks), value_blocks, strict=True)]
    return torch.stack(each).mean(0)


def _sum_of_blocks(query, key_blocks, value_blocks):
    return len(key_blocks) * _mean_of_blocks(query, key_blocks, value_blocks)


def _running(
    query, key_blocks, value_blocks, *, total=True, blend=True, scale=None, axis=-1, divide=True, start=-torch.inf
):
    """Return the running sums; `total` and `blend` say which of the two are rescaled when the largest score grows."""
    largest = torch.full((len(query), 1), start, dtype=query.dtype)
    s, o = 0.0, 0.0
    for scores, value in zip(_blocks(query, key_blocks, scale), value_blocks, strict=True):
        new = torch.maximum(largest, scores.amax(axis, keepdim=True) if axis == -1 else scores.max())
        grown, shrink = (scores - new).exp(), (largest - new).exp()
        s = s * (shrink if total else 1.0) + grown.sum(-1, keepdim=True)
        o = o * (shrink if blend else 1.0) + grown @ value
        largest = new
    return o / s if divide else o


def _loop(step, divide=True):
    """Return the loop over blocks with this step, (largest, total, blend, scores, value) -> (largest, total, blend)."""

    def function(query, key_blocks, value_blocks):
        state = torch.full((len(query), 1), -torch.inf, dtype=query.dtype), 0.0, 0.0
        for scores, value in zip(_blocks(query, key_blocks), value_blocks, strict=True):
            state = step(*state, scores, value)
        return state[2] / state[1] if divide else state[2]

    return function


def _new(m, scores):
    """Return the new largest score, the factor for the old sums, and the new exponentials with their sum."""
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    grown = (scores - new).exp()
    return new, (m - new).exp(), grown, grown.sum(-1, keepdim=True)


def _upside_down(m, s, o, scores, value):
    new, shrink, grown, row = _new(m, scores)
    return new, s / shrink + row, o / shrink + grown @ value


def _largest_kept(m, s, o, scores, value):
    _, shrink, grown, row = _new(m, scores)
    return m, s * shrink + row, o * shrink + grown @ value


def _largest_of_the_block(m, s, o, scores, value):
    new = scores.amax(-1, keepdim=True)
    shrink, grown = (m - new).exp(), (scores - new).exp()
    return new, s * shrink + grown.sum(-1, keepdim=True), o * shrink + grown @ value


def _block_by_its_own(m, s, o, scores, value):
    new, shrink, _, _ = _new(m, scores)
    grown = (scores - scores.amax(-1, keepdim=True)).exp()
    return new, s * shrink + grown.sum(-1, keepdim=True), o * shrink + grown @ value


def _all_shrunk(m, s, o, scores, value):
    new, shrink, grown, row = _new(m, scores)
    return new, (s + row) * shrink, (o + grown @ value) * shrink


def _blend_replaced(m, s, o, scores, value):
    new, shrink, grown, row = _new(m, scores)
    return new, s * shrink + row, grown @ value


def _total_of_all_queries(m, s, o, scores, value):
    new, shrink, grown, _ = _new(m, scores)
    return new, s * shrink + grown.sum(), o * shrink + grown @ value


def _divided_each_time(m, s, o, scores, value):
    new, shrink, grown, row = _new(m, scores)
    total = s * shrink + row
    return new, total, (o * shrink + grown @ value) / total


def _without_largest(query, key_blocks, value_blocks):
    grown = [scores.exp() for scores in _blocks(query, key_blocks)]
    blend = sum(g @ v for g, v in zip(grown, value_blocks, strict=True))
    return blend / sum(g.sum(-1, keepdim=True) for g in grown)


def _own_largest(query, key_blocks, value_blocks):
    """Shift each block by its own largest score, and add the sums as they are."""
    grown = [(scores - scores.amax(-1, keepdim=True)).exp() for scores in _blocks(query, key_blocks)]
    blend = sum(g @ v for g, v in zip(grown, value_blocks, strict=True))
    return blend / sum(g.sum(-1, keepdim=True) for g in grown)


EXERCISE_4 = Exercise(
    "16.4",
    "Attention, block by block",
    15,
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
        Mistake("no largest", _without_largest, "exp of large scores overflows: subtract the running largest score."),
        Mistake(
            "no scaling", lambda *a: _running(*a, scale=lambda query: 1.0), "You did not divide the scores by √d_k."
        ),
        Mistake("last block lost", lambda q, k, v: _running(q, k[:-1] or k, v[:-1] or v), "The last block is missing."),
        Mistake(
            "starts at 0",
            lambda *a: _running(*a, start=0.0),
            "Your largest score begins at a finite number. Where all scores lie far below it every exp is 0, and 0/0 "
            "is NaN: begin at −∞.",
        ),
        Mistake(
            "blend and total not rescaled",
            lambda *a: _running(*a, total=False, blend=False),
            "When the largest score grows, what was summed so far must be rescaled: the total and the blend.",
        ),
        Mistake(
            "factor upside down",
            _loop(_upside_down),
            "Every entry is NaN: infinity met 0, or another infinity. (Is your factor exp(old − new), and do the sums "
            "start at 0?)",
        ),
        Mistake(
            "old largest kept",
            _loop(_largest_kept),
            "Only the last block is left in your sums. (Are they set up before the loop, and is the largest score "
            "updated at the end of each step?)",
        ),
        Mistake(
            "forgets the larger one",
            _loop(_largest_of_the_block),
            "You took the largest score of the new block alone. If an earlier block had a larger one, the factor "
            "exceeds 1 and can overflow; take the larger of the two.",
        ),
        Mistake(
            "block by its own largest",
            _loop(_block_by_its_own),
            "The sums so far are rescaled rightly, but the terms of the new block are measured from its own largest "
            "score; measure them from the common one.",
        ),
        Mistake(
            "new terms shrunk too",
            _loop(_all_shrunk),
            "The factor belongs to the old sums alone; the new block's terms are measured from the new largest score "
            "already.",
        ),
        Mistake(
            "blend replaced",
            _loop(_blend_replaced),
            "The blend of each block replaces the one before; add it to the rescaled old one.",
        ),
        Mistake(
            "first block alone",
            lambda q, k, v: blockwise_attention(q, k[:1], v[:1]),
            "Only the first block is used. (Is the return inside the loop?)",
        ),
        Mistake(
            "total over all queries",
            _loop(_total_of_all_queries),
            "You summed the exponentials over all queries; each query has its own total: sum over the last axis.",
        ),
        Mistake(
            "mean by length",
            lambda q, k, v: (
                sum(len(part) * blockwise_attention(q, [part], [own]) for part, own in zip(k, v, strict=True))
                / sum(map(len, k))
            ),
            "You averaged the outputs of the blocks by their lengths; a block counts by its share of the exponentials.",
        ),
        Mistake(
            "divided at each block",
            _loop(_divided_each_time, divide=False),
            "You divided the blend by the total at every block; divide once, after the last.",
        ),
        Mistake(
            "one largest for all queries",
            lambda *a: _running(*a, axis=None),
            "Each query needs a largest score of its own: where another query's scores are far larger, every exp of "
            "this one is 0, and 0/0 is NaN.",
        ),
        Mistake(
            "divided by d_k",
            lambda *a: _running(*a, scale=lambda query: 1 / query.shape[1]),
            "You divided the scores by d_k; divide by its root.",
        ),
        Mistake(
            "root of the queries",
            lambda *a: _running(*a, scale=lambda query: len(query) ** -0.5),
            "You divided by the root of the number of queries; d_k is the width, query.shape[1].",
        ),
        Mistake(
            "detached values",
            lambda q, k, v: blockwise_attention(q, k, [value.detach() for value in v]),
            "The values are right, but the gradient must reach the values too: detach nothing.",
        ),
    ),
    gradients=("query", "key_blocks", "value_blocks"),
)


# 16.5 One gradient from uneven parts ---------------------------------------------------------------------------------


def joined_gradient(gradients, counts):
    """Return the gradient of the mean loss over all tokens, [n_parameters].

    The batch was split into parts. gradients: [n_parts, n_parameters], of each part's own mean loss over its real
    tokens. counts: [n_parts], how many real tokens each part has. A part without any has a gradient of zeros.
    """
    total = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        total = total + gradient * float(count)
    return total / float(counts.sum())


def _counts_on_the_parameters(gradients, counts):
    return (gradients * counts).sum(0) / counts.sum()


def _gradient_cases():
    def case(label, seed, counts, n_parameters, zero=()):
        gradients = normal(seed, (len(counts), n_parameters), dtype=torch.float64)[0]
        gradients[list(zero)] = 0
        return Case(label, (gradients, torch.tensor(counts)))

    return [
        Case(
            "2 parts of 3 tokens and 1",
            (torch.tensor([[2.0, 4.0], [6.0, 0.0]], dtype=torch.float64), torch.tensor([3, 1])),
        ),
        case("3 parts, 5 parameters", 161, [2, 7, 11], 5),
        case("equal parts", 162, [5, 5], 3),
        case("one part", 163, [13], 7),
        case("a part of padding alone", 164, [3, 0, 17], 2, zero=(1,)),
    ]


EXERCISE_5 = Exercise(
    "16.5",
    "One gradient from uneven parts",
    10,
    2,
    joined_gradient,
    _gradient_cases,
    (
        Mistake(
            "mean",
            lambda g, c: g.mean(0),
            "A plain mean counts every part alike, so a token in a short part weighs more: weight by tokens.",
        ),
        Mistake(
            "sum",
            lambda g, c: g.sum(0),
            "You added the gradients of means; weight each by its tokens and divide by all tokens.",
        ),
        Mistake(
            "not divided",
            lambda g, c: (g * c[:, None]).sum(0),
            "That is the gradient of the summed loss; divide by the number of all tokens.",
        ),
        Mistake(
            "divided by the parts",
            lambda g, c: (g * c[:, None]).mean(0),
            "You divided by the number of parts; divide by the number of all tokens.",
        ),
        Mistake(
            "inverse",
            lambda g, c: (g / c.clamp(min=1)[:, None]).sum(0),
            "You divided each gradient by its count; it is a mean already. Undo that mean: multiply.",
        ),
        Mistake(
            "non-empty parts",
            lambda g, c: g.sum(0) / (c > 0).sum(),
            "You left out the parts without tokens, and then counted the others alike. Weight by tokens.",
        ),
        Mistake(
            "largest",
            lambda g, c: (g * c[:, None]).sum(0) / c.max(),
            "You divided by the longest part's tokens; divide by the number of all tokens.",
        ),
        Mistake(
            "sum over all tokens",
            lambda g, c: g.sum(0) / c.sum(),
            "You divided by all tokens but did not multiply each gradient by its own: a mean times its count is a sum.",
        ),
        Mistake(
            "counts on the parameters",
            _counts_on_the_parameters,
            "Your counts went along the parameters; they belong to the rows, counts[:, None].",
        ),
        Mistake(
            "divided by the mean count",
            lambda g, c: (g * c[:, None]).sum(0) / c.double().mean(),
            "You divided by the mean number of tokens of a part; divide by the number of all tokens.",
        ),
        Mistake(
            "divided twice",
            lambda g, c: (g * c[:, None]).sum(0) / c.sum() ** 2,
            "You divided by the number of all tokens twice.",
        ),
        Mistake(
            "softmax of the counts",
            lambda g, c: c.double().softmax(0) @ g,
            "The shares are counts divided by their sum, with no exponential.",
        ),
        Mistake(
            "whole shares",
            lambda g, c: ((c // c.sum())[:, None] * g).sum(0),
            "Your shares were rounded down to whole numbers: use / and not //.",
        ),
        Mistake(
            "longest part alone",
            lambda g, c: g[c.argmax()],
            "You returned the gradient of the longest part; the others count by their tokens too.",
        ),
        Mistake(
            "shares of the others",
            lambda g, c: (1 - c / c.sum()).to(g) @ g,
            "Each part got the share of the other parts.",
        ),
    ),
    rtol=1e-5,  # shares of counts are float32 unless one asks for more
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
