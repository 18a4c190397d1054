"""The exercises of notebook 19: one stack under three masks, hidden words, and a port."""

from __future__ import annotations

import torch

from .model import Case, Exercise, integers, normal
from .slips import slips

INF = float("inf")


# 19.1 The prefix mask ------------------------------------------------------------------------------------------------


def prefix_mask(lengths, seq_len):
    """Return the prefix masks of a batch: booleans [batch, 1, seq_len, seq_len], True = query i may see key j.

    lengths: [batch], whole numbers from 0 to seq_len. A key may be seen if it is not later than the query, or among the
    first lengths[b] of its row.
    """
    places = torch.arange(seq_len)
    rows = [(places <= places[:, None]).logical_or(places < int(length)) for length in lengths]
    return torch.stack(rows)[:, None]


def _prefix_cases():
    def case(label, lengths, seq_len):
        return Case(label, (torch.tensor(lengths), seq_len))

    return [
        case("4 tokens, a prefix of 2", [2], 4),
        case("3 rows, prefixes of 2, 5 and 3 in 7 tokens", [2, 5, 3], 7),
        case("no prefix, a prefix of one, and all of 5 tokens", [0, 1, 5], 5),
        case("two rows, 3 tokens", [3, 2], 3),
        case("as many rows as tokens", [4, 0, 2, 3], 4),
        case("5 rows with a prefix of 3 each", [3, 3, 3, 3, 3], 6),
    ]


EXERCISE_1 = Exercise(
    "19.1", "The prefix mask", 8, 1, prefix_mask, _prefix_cases,
    slips(
        "lengths, seq_len", """
            places = torch.arange(seq_len)
            causal = places <= places[:, None]
            inside = places < lengths[:, None, None, None]
            return causal | inside
        """,
        ("one length for all", "lengths[", "lengths[:1].expand(len(lengths))[",
         "Every sentence got the prefix of the first one; lengths has one number per sentence."),
        ("one too long", "places < lengths", "places <= lengths",
         "The prefix is one token too long: positions count from 0, so position lengths[b] is outside it."),
        ("a wider triangle", "causal | inside",
         "places <= places[:, None] + (lengths - 1).clamp(min=0)[:, None, None, None]",
         "You moved the diagonal up, so tokens after the prefix see later ones, too; only the first lengths[b] keys "
         "are added."),
        ("queries for keys", "causal | inside", "(causal | inside).mT",
         "Queries and keys are swapped: rows ask, so the mask's last axis is that of the keys."),
        ("prefix rows see all", "inside = places", "inside = places[:, None]",
         "Tokens of the prefix may see everything in your mask; it is the keys of the prefix that all may see."),
        ("and", "causal | inside", "causal & inside",
         "A key needs only one of the two reasons, being earlier or being in the prefix: join them by |, not &."),
        ("inverted", "causal | inside", "~(causal | inside)", "The mask is the wrong way round: True means may see."),
    ),
)  # fmt: skip


# 19.2 The logits of one stack ----------------------------------------------------------------------------------------


def stack_logits(ids, prefix_lengths, embed, stack, head, pad_id):
    """Return the logits [batch, seq_len, vocab_size] of a single stack whose parts are given as functions.

    ids: [batch, seq_len]; prefix_lengths: [batch], how many tokens of each row all may see each other.
    embed(ids): vectors with positions; stack(x, mask), with a boolean mask [batch, 1, seq_len, seq_len], True = may
    attend, that hides later tokens behind the prefix, and padding everywhere; head(x): logits.
    """
    real = torch.stack([row != pad_id for row in ids])[:, None, None]
    return head(stack(embed(ids), prefix_mask(prefix_lengths, ids.shape[1]).logical_and(real)))


def _attended(x, mask, matrix):
    """Return one head with a residual path, or raise ValueError for a mask that does not fit x [batch, n, d]."""
    n = x.shape[1]
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise ValueError(f"the mask must be a boolean tensor, got {getattr(mask, 'dtype', type(mask).__name__)}")
    fits = mask.dim() in (2, 4) and mask.shape[-1] == n and mask.shape[-2] in (1, n)
    if not fits or (mask.dim() == 4 and (mask.shape[0] not in (1, len(x)) or mask.shape[1] != 1)):
        raise ValueError(f"the mask must have the shape [{len(x)}, 1, {n}, {n}], got {list(mask.shape)}")
    scores = (x @ matrix @ x.mT)[:, None]
    weights = torch.nan_to_num(torch.where(mask, scores, torch.tensor(-INF)).softmax(-1))
    return torch.tanh(x + weights[:, 0] @ x)


def _stack_case(label, seed, lengths, prefixes, pad_id=0, vocab_size=11, d_model=5):
    """Return a case with sentences of these lengths, padded behind, and pretend parts with random weights."""
    longest = max(lengths)
    ids = integers(seed, (len(lengths), longest), 1, vocab_size - 1)
    ids[ids == pad_id] = vocab_size - 1
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = pad_id
    table, places, first, second, last = normal(
        seed + 1,
        (vocab_size, d_model),
        (longest, d_model),
        (d_model, d_model),
        (d_model, d_model),
        (d_model, vocab_size),
    )

    def embed(given):
        return table[given] + places[: given.shape[1]]

    def stack(x, mask):
        return _attended(_attended(x, mask, first), mask, second)

    real = (ids != pad_id)[..., None]

    def head(x):
        logits = x @ last
        return logits * real if logits.shape[:2] == ids.shape else logits  # what padding says is nobody's concern

    return Case(label, (ids, torch.tensor(prefixes), embed, stack, head, pad_id))


def _stack_cases():
    return [
        _stack_case("one sentence of 4 tokens, a prefix of 2", 1920, [4], [2]),
        _stack_case("3 sentences with padding, prefixes of 2, 3 and 4", 1922, [7, 5, 6], [2, 3, 4]),
        _stack_case("a causal model, padded", 1924, [5, 3], [0, 0]),
        _stack_case("full masks: prefixes longer than the sentences", 1926, [6, 3, 4], [6, 6, 6]),
        _stack_case("a pad_id of 3", 1928, [5, 2, 4], [3, 4, 1], pad_id=3),
        _stack_case("a prefix that reaches into the padding", 1930, [5, 2], [1, 4]),
    ]


EXERCISE_2 = Exercise(
    "19.2", "The logits of one stack", 12, 2, stack_logits, _stack_cases,
    slips(
        "ids, prefix_lengths, embed, stack, head, pad_id", """
            real = (ids != pad_id)[:, None, None, :]
            mask = prefix_mask(prefix_lengths, ids.shape[1]) & real
            return head(stack(embed(ids), mask))
        """,
        ("no padding mask", " & real", "",
         "Padding is seen where a prefix reaches beyond the sentence: join your mask with the padding mask by &."),
        ("padding of id 0", "ids != pad_id", "ids != 0", "You took 0 for the padding; its id is pad_id."),
        ("or", "& real", "| real",
         "A key has to pass both masks, the prefix mask and the padding mask: join them by &, not |."),
        ("causal for all", "prefix_mask(prefix_lengths, ids.shape[1])",
         "torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()",
         "Your mask is causal everywhere; the tokens of a prefix may see each other."),
        ("full for all", "prefix_mask(prefix_lengths, ids.shape[1]) & real", "real.expand(-1, -1, ids.shape[1], -1)",
         "Tokens after the prefix see later ones, too; your mask hides only padding."),
        ("padding as queries", "& real", "& real.mT",
         "You hid the rows of padding; it is as keys, on the last axis, that padding must not be seen."),
        prefix_mask=prefix_mask,
    ),
    part="stack_logits",
)  # fmt: skip


# 19.3 Hide words -----------------------------------------------------------------------------------------------------


def hide_words(ids, rate, drawn):
    """Return (seen, labels), both [batch, seq_len], for a model that fills gaps; ids stay as they are.

    ids: [batch, seq_len]; drawn: a number between 0 and 1 for each. A word, which is an id above 2, is hidden where
    drawn is below rate: there seen has the id 3, and labels the word. Everywhere else seen has the id of ids, and
    labels 0.
    """
    hidden = torch.logical_and(drawn.lt(rate), ids.gt(2))
    return torch.where(hidden, 3, ids), torch.where(hidden, ids, 0)


def _hiding_case(label, seed, lengths, rate):
    """Return sentences from bos to eos, padded behind; every second number drawn is small, so that much is hidden."""
    longest = max(lengths)
    ids = integers(seed, (len(lengths), longest), 4, 50)
    ids[:, 0] = 1
    for row, length in zip(ids, lengths, strict=True):
        row[length - 1 :] = 0
        row[length - 1] = 2
    drawn = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed + int(ids.sum())))
    drawn[:, ::2] *= 0.5
    return Case(label, (ids, rate, drawn))


def _even_case():
    """Return a sentence of which one number drawn is the rate itself, so that its word is not hidden."""
    ids = torch.tensor([[1, 5, 9, 7, 2]])
    return Case("a number that equals the rate", (ids, 0.5, torch.tensor([[0.1, 0.5, 0.2, 0.9, 0.3]])))


def _hiding_cases():
    return [
        _hiding_case("one sentence of 7 tokens", 1940, [7], 0.5),
        _hiding_case("3 sentences with padding", 1941, [9, 5, 7], 0.3),
        _hiding_case("hide every word", 1942, [6, 4], 1.0),
        _hiding_case("hide none", 1943, [6, 4], 0.0),
        _hiding_case("8 longer sentences", 1944, [23, 17, 21, 19, 23, 11, 13, 16], 0.15),
        _even_case(),
    ]


EXERCISE_3 = Exercise(
    "19.3", "Hide words", 8, 2, hide_words, _hiding_cases,
    slips(
        "ids, rate, drawn", """
            hidden = (drawn < rate) & (ids > 2)
            seen = ids.masked_fill(hidden, 3)
            labels = ids * hidden
            return seen, labels
        """,
        ("labels everywhere", "ids * hidden", "ids",
         "Every token has a label, so the model is mostly rewarded for copying; only hidden words have one."),
        ("hides everything", " & (ids > 2)", "", "You hid <pad>, <bos> or <eos>, too; only ids above 2 are words."),
        ("hides eos", "ids > 2", "ids >= 2", "You hid <eos>, too; only ids above 2 are words."),
        ("nothing hidden", "ids.masked_fill(hidden, 3)", "ids",
         "The labels are right, but seen still shows the words that are asked for."),
        ("not above", "drawn < rate", "drawn <= rate",
         "You hid a word whose number equals the rate; only those below it are hidden."),
        ("hidden among the labels", "ids * hidden", "seen * hidden",
         "The labels have <unk> where a word is hidden; they must have the word itself. (If you changed ids in "
         "place, make a new tensor instead.)"),
        ("-100", "ids * hidden", "ids.masked_fill(~hidden, -100)",
         "Where nothing is hidden the labels are -100, PyTorch's own mark; our loss leaves out <pad>, id 0."),
    ),
    returns=("seen", "labels"),
)  # fmt: skip


# 19.4 Port an attention ----------------------------------------------------------------------------------------------


def gpt2_attention(c_attn, c_attn_bias, c_proj):
    """Return w_q, w_k, w_v, w_o and b_q, b_k, b_v of `tl.MultiHeadAttention` from the tensors of GPT-2.

    c_attn: [d, 3 d], for x @ c_attn, whose columns make all queries, then all keys, then all values;
    c_attn_bias: [3 d]; c_proj: [d, d], for output @ c_proj. The four matrices are to be [out, in], as in nn.Linear;
    the three biases are [d].
    """
    d = c_attn.shape[0]
    thirds = [slice(first, first + d) for first in (0, d, 2 * d)]
    matrices = [c_attn[:, third].transpose(0, 1) for third in thirds]
    return (*matrices, c_proj.transpose(0, 1), *(c_attn_bias[third] for third in thirds))


def _checkpoint_cases():
    def case(label, seed, d):
        return Case(label, tuple(normal(seed, (d, 3 * d), (3 * d,), (d, d))))

    return [
        case("3 features", 1950, 3),
        case("6 features", 1951, 6),
        case("9 features", 1952, 9),
        case("12 features", 1953, 12),
    ]


EXERCISE_4 = Exercise(
    "19.4", "Port an attention", 12, 2, gpt2_attention, _checkpoint_cases,
    slips(
        "c_attn, c_attn_bias, c_proj", """
            b_q, b_k, b_v = c_attn_bias.chunk(3)
            w_q, w_k, w_v = (piece.T for piece in c_attn.chunk(3, dim=-1))
            return w_q, w_k, w_v, c_proj.T, b_q, b_k, b_v
        """,
        ("nothing transposed", "(piece.T for piece in c_attn.chunk(3, dim=-1))\nreturn w_q, w_k, w_v, c_proj.T",
         "c_attn.chunk(3, dim=-1)\nreturn w_q, w_k, w_v, c_proj",
         "No matrix is transposed; GPT-2 stores [in, out], and nn.Linear [out, in]."),
        ("w_o not transposed", "c_proj.T", "c_proj",
         "w_o is not transposed. It is square, so it fits either way, but GPT-2 stores c_proj as [in, out], too."),
        ("only w_o transposed", "piece.T", "piece",
         "w_q, w_k and w_v are not transposed; each piece of c_attn is square, and [in, out]."),
        ("dealt in turn", "c_attn_bias.chunk(3)\nw_q, w_k, w_v = (piece.T for piece in c_attn.chunk(3, dim=-1))",
         "(c_attn_bias[i::3] for i in range(3))\nw_q, w_k, w_v = (c_attn[:, i::3].T for i in range(3))",
         "You dealt the columns out in turn, first to the queries, then to the keys; the queries get the whole first "
         "third."),
        ("cut by rows", "c_attn.chunk(3, dim=-1)", "c_attn.reshape(3, len(c_attn), -1)",
         "The numbers of c_attn were cut in the order in which they lie in memory, row by row; each piece is a third "
         "of the columns: cut along the last axis."),
        ("cut along the first axis", ", dim=-1", "",
         "You cut c_attn along the wrong axis: the pieces are thirds of its columns (dim=-1), or of the rows of its "
         "transpose."),
    ),
    returns=("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v"),
)  # fmt: skip


# 19.5 Cut into patches -----------------------------------------------------------------------------------------------


def patches(images, size):
    """Return images [n, height, width] cut into squares: [n, patches, size · size].

    The patches go row by row from the top left, and so do the pixels of each. height and width are multiples of size.
    """
    n, height, width = images.shape
    rows = []
    for top in range(0, height, size):
        for left in range(0, width, size):
            rows.append(images[:, top : top + size, left : left + size].reshape(n, size * size))
    return torch.stack(rows, dim=1)


def _patch_cases():
    def case(label, seed, shape, size):
        return Case(label, (normal(seed, shape)[0], size))

    return [
        case("one image of 4 × 4, patches of 2 × 2", 1970, (1, 4, 4), 2),
        case("3 images of 8 × 8, patches of 2 × 2", 1971, (3, 8, 8), 2),
        case("2 wide images of 6 × 9, patches of 3 × 3", 1972, (2, 6, 9), 3),
        case("an image that is one patch", 1973, (2, 5, 5), 5),
        case("single pixels", 1974, (2, 3, 4), 1),
        case("a column of patches, 8 × 2", 1975, (1, 8, 2), 2),
    ]


EXERCISE_5 = Exercise(
    "19.5", "Cut into patches", 8, 2, patches, _patch_cases,
    slips(
        "images, size", """
            n, height, width = images.shape
            squares = images.reshape(n, height // size, size, width // size, size).transpose(2, 3)
            return squares.reshape(n, -1, size * size)
        """,
        ("strips", ".transpose(2, 3)", "",
         "Each of your patches is a strip of pixels that follow each other in one line, not a square: the axes need "
         "a transpose before they are joined."),
        ("column by column", ".transpose(2, 3)", ".permute(0, 3, 1, 2, 4)",
         "Your patches go column by column; they go row by row from the top left."),
        ("every size-th pixel", "height // size, size, width // size, size).transpose(2, 3)",
         "size, height // size, size, width // size).permute(0, 2, 4, 1, 3)",
         "Your patches take pixels from all over the image; a patch is a square of neighbours."),
        ("a square for each", "squares.reshape(n, -1, size * size)", "squares.flatten(1, 2)",
         "Each patch is still a square [size, size]; join its rows to one vector."),
        ("rows of patches apart", "squares.reshape(n, -1, size * size)", "squares.flatten(3)",
         "The patches are still arranged in rows and columns; join these two axes to one."),
        ("overlapping", "images.reshape(n, height // size, size, width // size, size).transpose(2, 3)",
         "images.unfold(1, size, 1).unfold(2, size, 1)",
         "Your patches overlap; the next one begins where the last one ends."),
    ),
    gradients=("images",),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
