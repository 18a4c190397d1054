"""The exercises of notebook 16: cost, speed and scale."""

from __future__ import annotations

import torch

from ..lab import counting
from .model import Case, Demand, Exercise, normal
from .slips import slips

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


EXERCISE_1 = Exercise(
    "16.1", "Multiply-adds of a decoder layer", 8, 1, decoder_layer_multiply_adds, _layer_cases,
    slips(
        "tgt_len, src_len, d_model, d_ff", """
            own_rows, cross_rows = 4 * tgt_len, 2 * tgt_len + 2 * src_len
            pairs = 2 * tgt_len**2 + 2 * tgt_len * src_len
            network = 2 * tgt_len * d_model * d_ff
            return (own_rows + cross_rows) * d_model**2 + pairs * d_model + network
        """,
        ("no cross-attention", "2 * tgt_len + 2 * src_len\npairs = 2 * tgt_len**2 + 2 * tgt_len * src_len",
         "0\npairs = 2 * tgt_len**2",
         "That is an encoder layer; the cross-attention is missing, projections and pairs."),
        ("all from the target", "+ 2 * src_len", "+ 2 * tgt_len",
         "You projected tgt_len rows four times in the cross-attention; its keys and values are made from "
         "the src_len rows of memory."),
        ("no blends", "2 * tgt_len**2 + 2 * tgt_len * src_len", "tgt_len**2 + tgt_len * src_len",
         "The pairs are used twice, in the scores and in the blend of the values."),
        ("half of the pairs", "2 * tgt_len**2", "tgt_len * (tgt_len + 1)",
         "You left out the pairs that the causal mask hides; here they are computed first, and hidden afterwards."),
        ("one matrix", "2 * tgt_len * d_model", "tgt_len * d_model",
         "The feed-forward network has two matrices, d_model × d_ff and back."),
        ("no output projections", "4 * tgt_len, 2 * tgt_len", "3 * tgt_len, tgt_len",
         "Two projections of tgt_len rows are missing. Each of the two attentions has a W_Q and a W_O, which act on "
         "tgt_len rows."),
        ("twice", "(own_rows + cross_rows) * d_model**2 + pairs * d_model + network",
         "2 * ((own_rows + cross_rows) * d_model**2 + pairs * d_model + network)",
         "You counted multiplications and additions separately: a multiply-add is one."),
    ),
)  # fmt: skip


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
    "16.2", "Where the pairs take over", 8, 2, crossover_length, _crossover_cases,
    slips(
        "d_model, d_attention, d_ff", """
            rest = 4 * d_model * d_attention + 2 * d_model * d_ff  # per token
            return rest // (2 * d_attention) + 1
        """,
        ("equal", " + 1", "", "One too small: the pairs must take more than the rest, not as much."),
        ("rounded up", "rest // (2 * d_attention) + 1", "math.ceil(rest / (2 * d_attention))",
         "Right where the two sides are equal between two whole lengths; where they are equal at a whole length, go "
         "one further."),
        ("same width", "rest // (2 * d_attention) + 1", "2 * d_model + d_ff + 1",
         "That is right for d_attention = d_model only. The pairs take 2n² · d_attention, the projections "
         "4n · d_model · d_attention, and the feed-forward network 2n · d_model · d_ff, whatever the heads."),
        ("scores alone", "(2 * d_attention)", "d_attention",
         "The pairs take 2n² · d_attention, for scores and blend. (Is one of the two missing, or a division by 2?)"),
        ("square projections", "4 * d_model * d_attention", "4 * d_model**2",
         "A projection is not a square matrix here: it has d_model · d_attention numbers."),
    ),
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "16.3", "Join two blocks", 10, 2, merge_blocks, _merge_cases,
    slips(
        "first, second", """
            (m, s, o), (m_2, s_2, o_2) = first, second
            largest = torch.maximum(m, m_2)
            factor, factor_2 = (m - largest).exp(), (m_2 - largest).exp()
            total = s * factor + s_2 * factor_2
            blend = o * factor + o_2 * factor_2
            return largest, total, blend
        """,
        ("sums added", "s * factor + s_2 * factor_2\nblend = o * factor + o_2 * factor_2", "s + s_2\nblend = o + o_2",
         "You added the sums as they are, but each is measured from its own largest score. Rescale both "
         "to the common one first."),
        ("total not rescaled", "s * factor + s_2 * factor_2", "s + s_2",
         "The blend is right; the total must be rescaled in the same way."),
        ("divided", "total, blend", "total, blend / total",
         "You divided the blend by the total; that comes once, at the very end."),
        ("second only", "(m_2 - largest).exp()", "1.0",
         "You rescaled the first block only; right if the second has the larger scores, but either may."),
        ("upside down", "(m - largest).exp(), (m_2 - largest).exp()", "(largest - m).exp(), (largest - m_2).exp()",
         "Your factors are larger than 1: it is exp(old largest − new largest), at most 1."),
        ("overflow", "(m - largest).exp(), (m_2 - largest).exp()",
         "m.exp() / largest.exp(), m_2.exp() / largest.exp()",
         "exp of a score of 1000 is infinite. Use differences from the new largest score, which are never positive."),
        ("factors swapped", "factor, factor_2 =", "factor_2, factor =",
         "The factors are right, but swapped: a block takes exp(own largest − common largest)."),
        ("measured from the first", "torch.maximum(m, m_2)", "m",
         "You measured both blocks from the first one's largest score; larger ones in the second may overflow."),
    ),
    returns=("largest", "total", "blend"),
)  # fmt: skip


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


_ROWS = 7  # of the case on which the memory is measured
_BLOCK = 13
_BLOCKS = 17


def _long_case():
    query, *blocks = normal(1617, (_ROWS, 3), *[(_BLOCK, 3)] * _BLOCKS, *[(_BLOCK, 2)] * _BLOCKS, dtype=torch.float64)
    label = f"{_ROWS} queries, {_BLOCKS} blocks of {_BLOCK} keys; one block has {_ROWS * _BLOCK:,} scores"
    return Case(label, (query, blocks[:_BLOCKS], blocks[_BLOCKS:]))


def _numbers_held(function, *args):
    """Return how many numbers are held at one time, and how many the largest tensor has."""
    return [measure(function, *args) // args[0].itemsize for measure in (counting.most_held, counting.largest_tensor)]


def _too_much(numbers):
    """Say what is wrong if all scores are held, in one tensor or in several; smaller blocks and sums are left alone."""
    most, largest = numbers
    whole = _ROWS * _BLOCK * _BLOCKS
    if largest >= whole:
        return f"you built the whole grid: a tensor of {largest:,} numbers, and all the scores are {whole:,}."
    if most >= whole:
        return (
            f"you kept the scores of all blocks: at one time your tensors held {most:,} numbers, and all the scores "
            f"are {whole:,}. Forget a block before you read the next."
        )
    return None


EXERCISE_4 = Exercise(
    "16.4", "Attention, block by block", 15, 3, blockwise_attention, _block_cases,
    slips(
        "query, key_blocks, value_blocks", """
            largest = torch.full((len(query), 1), -torch.inf, dtype=query.dtype)
            total, blend = 0.0, 0.0
            for keys, values in zip(key_blocks, value_blocks):
                scores = query @ keys.T / query.shape[1] ** 0.5
                new = torch.maximum(largest, scores.amax(-1, keepdim=True))
                terms, shrink = (scores - new).exp(), (largest - new).exp()
                total = total * shrink + terms.sum(-1, keepdim=True)
                blend = blend * shrink + terms @ values
                largest = new
            return blend / total
        """,
        ("total not rescaled", "total * shrink", "total",
         "You rescale the blend but not the total when the largest score grows."),
        ("no largest", "(scores - new).exp(), (largest - new).exp()", "scores.exp(), 1.0",
         "exp of large scores overflows: subtract the running largest score."),
        ("no scaling", " / query.shape[1] ** 0.5", "", "You did not divide the scores by √d_k."),
        ("starts at 0", "-torch.inf", "0.0",
         "Your largest score begins at a finite number. Where all scores lie far below it every exp is 0, and 0/0 "
         "is NaN: begin at −∞."),
        ("blend and total not rescaled", "(largest - new).exp()", "1.0",
         "When the largest score grows, what was summed so far must be rescaled: the total and the blend."),
        ("old largest kept", "    largest = new\n", "",
         "Only the last block is left in your sums. (Are they set up before the loop, and is the largest score "
         "updated at the end of each step?)"),
        ("forgets the larger one", "torch.maximum(largest, scores.amax(-1, keepdim=True))",
         "scores.amax(-1, keepdim=True)",
         "You took the largest score of the new block alone. If an earlier block had a larger one, the factor "
         "exceeds 1 and can overflow; take the larger of the two."),
        ("first block alone", "\nreturn", "\n    return",
         "Only the first block is used. (Is the return inside the loop?)"),
        ("one largest for all queries", "scores.amax(-1, keepdim=True)", "scores.max()",
         "Each query needs a largest score of its own: where another query's scores are far larger, every exp of "
         "this one is 0, and 0/0 is NaN."),
    )
    + slips(
        "query, key_blocks, value_blocks", """
            outputs, totals = [], []
            for keys, values in zip(key_blocks, value_blocks):
                scores = query @ keys.T / query.shape[1] ** 0.5
                outputs.append(scores.softmax(-1) @ values)
                totals.append(scores.logsumexp(-1, keepdim=True))
            shares = torch.stack(totals).softmax(0)
            return (shares * torch.stack(outputs)).sum(0)
        """,
        ("mean of blocks", "(shares * torch.stack(outputs)).sum(0)", "torch.stack(outputs).mean(0)",
         "You averaged the outputs of the blocks; a block counts by its share of the exponentials."),
        ("own largest", "scores.logsumexp(", "(scores - scores.amax(-1, keepdim=True)).logsumexp(",
         "Each block's sums are measured from its own largest score; rescale before you add."),
    ),
    gradients=("query", "key_blocks", "value_blocks"),
    demands=(Demand(_long_case, _numbers_held, _too_much, "and no grid was built"),),
)  # fmt: skip


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
    "16.5", "One gradient from uneven parts", 10, 2, joined_gradient, _gradient_cases,
    slips(
        "gradients, counts", """
            shares = counts / counts.sum()
            return (shares[:, None] * gradients).sum(0)
        """,
        ("mean", "(shares[:, None] * gradients).sum(0)", "gradients.mean(0)",
         "A plain mean counts every part alike, so a token in a short part weighs more: weight by tokens."),
        ("sum", "(shares[:, None] * gradients).sum(0)", "gradients.sum(0)",
         "You added the gradients of means; weight each by its tokens and divide by all tokens."),
        ("not divided", " / counts.sum()", "",
         "That is the gradient of the summed loss; divide by the number of all tokens."),
        ("inverse", "counts / counts.sum()", "1 / counts.clamp(min=1)",
         "You divided each gradient by its count; it is a mean already. Undo that mean: multiply."),
        ("sum over all tokens", "(shares[:, None] * gradients).sum(0)", "gradients.sum(0) / counts.sum()",
         "You divided by all tokens but did not multiply each gradient by its own: a mean times its count is a sum."),
        ("counts on the parameters", "[:, None]", "",
         "Your counts went along the parameters; they belong to the rows, counts[:, None]."),
    ),
    rtol=1e-5,  # shares of counts are float32 unless one asks for more
)  # fmt: skip


# 16.6 Choose the blocks ----------------------------------------------------------------------------------------------


def choose_blocks(fast, d, tile):
    """Return (query_rows, key_rows), the sizes of the blocks, for a fast memory that holds `fast` numbers.

    A block of queries is in fast memory with its blend, both [query_rows, d], and for it all keys and values pass by:
    a block of both at a time, each [key_rows, d], with a block of scores [query_rows, key_rows]. All five are held at
    once. Sizes are multiples of `tile`, and at least one tile of each fits. The text is much longer than any block.
    Choose the sizes for which the fewest numbers come from slow memory.
    """
    fits = [
        (rows, keys)
        for rows in range(tile, fast // (2 * d) + 1, tile)
        for keys in range(tile, fast // (2 * d) + 1, tile)
        if 2 * rows * d + 2 * keys * d + rows * keys <= fast
    ]
    return max(fits)  # the most query rows; there is one tile of keys then, since a second would displace queries


def _memory_cases():
    return [
        Case("room for 40 numbers, rows of 2, tiles of 1", (40, 2, 1)),
        Case("exactly one tile of each", (2 * 5 * 3 + 2 * 5 * 3 + 9, 5, 3)),
        Case("room for 1,009 numbers, rows of 7, tiles of 2", (1009, 7, 2)),
        Case("wide rows", (4999, 211, 3)),
        Case("narrow rows", (3001, 1, 5)),
        Case("192 KiB, heads of 64, tiles of 16", (49_152, 64, 16)),
    ]


EXERCISE_6 = Exercise(
    "16.6", "Choose the blocks", 9, 2, choose_blocks, _memory_cases,
    slips(
        "fast, d, tile", """
            query_rows = (fast - 2 * tile * d) // (2 * d + tile) // tile * tile
            return query_rows, tile
        """,
        ("keys first", "return query_rows, tile", "return tile, query_rows",
         "You gave the room to the keys. Who comes from slow memory again and again, and how often? That depends on "
         "how many queries are there at a time."),
        ("no blend", "(2 * d + tile)", "(d + tile)",
         "That takes more than fits: each query needs room for its blend, too, so 2d numbers."),
        ("no values", "2 * tile * d", "tile * d",
         "That takes more than fits: with each key comes its value, so 2d numbers."),
        ("no scores", "(2 * d + tile)", "(2 * d)",
         "That takes more than fits: the scores, query_rows × key_rows, are in fast memory as well."),
        ("queries alone", "(fast - 2 * tile * d) // (2 * d + tile)", "fast // (2 * d)",
         "Queries and blends alone fill the fast memory: leave room for a tile of keys, of values and their scores."),
        ("no tiles", " // tile * tile", "", "Both sizes must be multiples of tile."),
        ("one key", "(fast - 2 * tile * d) // (2 * d + tile) // tile * tile\nreturn query_rows, tile",
         "(fast - 2 * d) // (2 * d + 1) // tile * tile\nreturn query_rows, 1",
         "The block of keys must be a multiple of tile, too."),
        ("rounded up", "// tile * tile", "// tile * tile + tile",
         "One tile of queries too many: that does not fit any more."),
    )
    + slips(
        "fast, d, tile", """
            sizes = range(tile, fast, tile)
            return max((n, tile) for n in sizes if 2 * n * d + 2 * tile * d + n * tile <= fast)
        """,
        ("square", "(n, tile) for n in sizes if 2 * n * d + 2 * tile * d + n * tile",
         "(n, n) for n in sizes if 4 * n * d + n * n",
         "Square blocks fit, but there are better ones. For each block of queries all keys and values come from slow "
         "memory once more, so ask which of the two sizes saves trips."),
    ),
    returns=("query_rows", "key_rows"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
