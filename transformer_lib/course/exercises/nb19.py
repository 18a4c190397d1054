"""The exercises of notebook 19: one stack under three masks, hidden words, and a port."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal

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


def _prefix(inside=lambda key, length: key < length, causal=lambda query, key: key <= query, join=torch.logical_or):
    """Return the masks, each slip a switch; `inside` gets keys and lengths, `causal` queries and keys."""

    def function(lengths, seq_len):
        places = torch.arange(seq_len)
        return join(causal(places[:, None], places), inside(places, lengths[:, None, None, None]))

    return function


def _square_prefix(lengths, seq_len):
    places, lengths = torch.arange(seq_len), lengths[:, None, None, None]
    return (places <= places[:, None]) & ~((places < lengths) ^ (places[:, None] < lengths)) | (
        (places < lengths) & (places[:, None] < lengths)
    )


EXERCISE_1 = Exercise(
    "19.1",
    "The prefix mask",
    8,
    1,
    prefix_mask,
    _prefix_cases,
    (
        Mistake(
            "one length for all",
            lambda lengths, n: _prefix()(lengths[:1].expand(len(lengths)), n),
            "Every sentence got the prefix of the first one; lengths has one number per sentence.",
        ),
        Mistake(
            "the longest for all",
            lambda lengths, n: _prefix()(lengths.max().expand(len(lengths)), n),
            "Every sentence got the longest prefix; lengths has one number per sentence.",
        ),
        Mistake(
            "one too long",
            _prefix(inside=lambda key, length: key <= length),
            "The prefix is one token too long: positions count from 0, so position lengths[b] is behind it.",
        ),
        Mistake(
            "one too short",
            _prefix(inside=lambda key, length: key < length - 1),
            "The prefix is one token too short: its last position is lengths[b] - 1.",
        ),
        Mistake(
            "upper triangle",
            _prefix(causal=lambda query, key: key >= query),
            "Your causal part is upside down: a token sees itself and earlier ones, the lower triangle.",
        ),
        Mistake(
            "a wider triangle",
            lambda lengths, n: torch.stack(
                [torch.ones(n, n, dtype=torch.bool).tril(max(int(length) - 1, 0))[None] for length in lengths]
            ),
            "You moved the diagonal up, so tokens behind the prefix see later ones, too; only the first "
            "lengths[b] keys are added.",
        ),
        Mistake(
            "queries for keys",
            lambda lengths, n: _prefix()(lengths, n).mT,
            "Queries and keys are swapped: rows ask, so the mask's last axis is that of the keys.",
        ),
        Mistake(
            "prefix rows see all",
            lambda lengths, n: (
                _prefix(causal=lambda q, k: k <= q, inside=lambda k, length: k < 0)(lengths, n)
                | (torch.arange(n)[:, None] < lengths[:, None, None, None])
            ),
            "Tokens of the prefix may see everything in your mask; it is the keys of the prefix that all may see.",
        ),
        Mistake(
            "only the prefix",
            _prefix(join=lambda causal, inside: inside.expand(-1, -1, causal.shape[0], -1)),
            "Only the prefix can be seen; behind it a token may also see itself and what is before it.",
        ),
        Mistake(
            "and",
            _prefix(join=torch.logical_and),
            "A key needs only one of the two reasons, being earlier or being in the prefix: join them by |, not &.",
        ),
        Mistake(
            "causal alone",
            _prefix(join=lambda causal, inside: causal.expand(len(inside), 1, -1, -1)),
            "That is the causal mask alone; the tokens of a prefix see each other, also those that are later.",
        ),
        Mistake(
            "everything",
            _prefix(join=lambda causal, inside: torch.ones_like(causal | inside)),
            "Everything may be seen; behind the prefix a token must not see later ones.",
        ),
        Mistake(
            "not itself",
            _prefix(causal=lambda q, k: k < q),
            "A token behind the prefix does not see itself: compare with <=.",
        ),
        Mistake(
            "prefix apart",
            _square_prefix,
            "Tokens behind the prefix do not see the prefix; every later token may see it.",
        ),
        Mistake(
            "inverted",
            lambda lengths, n: ~_prefix()(lengths, n),
            "The mask is the wrong way round: True means may see.",
        ),
    ),
)


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


def _stacked(mask, order=lambda embed, stack, head, ids, mask: head(stack(embed(ids), mask))):
    def function(ids, prefix_lengths, embed, stack, head, pad_id):
        return order(embed, stack, head, ids, mask(ids, prefix_lengths, pad_id))

    return function


def _real(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


def _right(ids, lengths, pad_id):
    return prefix_mask(lengths, ids.shape[1]) & _real(ids, pad_id)


def _causal(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()


EXERCISE_2 = Exercise(
    "19.2",
    "The logits of one stack",
    12,
    2,
    stack_logits,
    _stack_cases,
    (
        Mistake(
            "no padding mask",
            _stacked(lambda ids, lengths, pad_id: prefix_mask(lengths, ids.shape[1])),
            "Padding is seen where a prefix reaches beyond the sentence: join your mask with the padding mask by &.",
        ),
        Mistake(
            "padding of id 0",
            _stacked(lambda ids, lengths, pad_id: _right(ids, lengths, 0)),
            "You took 0 for the padding; its id is pad_id.",
        ),
        Mistake(
            "or",
            _stacked(lambda ids, lengths, pad_id: prefix_mask(lengths, ids.shape[1]) | _real(ids, pad_id)),
            "A key has to pass both masks, the prefix mask and the padding mask: join them by &, not |.",
        ),
        Mistake(
            "padding shown alone",
            _stacked(lambda ids, lengths, pad_id: prefix_mask(lengths, ids.shape[1]) & ~_real(ids, pad_id)),
            "Only padding can be seen: the padding mask is True at real tokens.",
        ),
        Mistake(
            "causal for all",
            _stacked(lambda ids, lengths, pad_id: _causal(ids) & _real(ids, pad_id)),
            "Your mask is causal everywhere; the tokens of a prefix may see each other.",
        ),
        Mistake(
            "full for all",
            _stacked(lambda ids, lengths, pad_id: _real(ids, pad_id).expand(-1, -1, ids.shape[1], -1)),
            "Later tokens are seen behind the prefix, too; your mask hides only padding.",
        ),
        Mistake(
            "the first prefix for all",
            _stacked(lambda ids, lengths, pad_id: _right(ids, lengths[:1].expand(len(ids)), pad_id)),
            "Every sentence got the prefix of the first one; prefix_lengths has one number per sentence.",
        ),
        Mistake(
            "transposed",
            _stacked(lambda ids, lengths, pad_id: prefix_mask(lengths, ids.shape[1]).mT & _real(ids, pad_id)),
            "Queries and keys are swapped in your prefix mask: its last axis is that of the keys.",
        ),
        Mistake(
            "padding as queries",
            _stacked(lambda ids, lengths, pad_id: prefix_mask(lengths, ids.shape[1]) & _real(ids, pad_id).mT),
            "You hid the rows of padding; it is as keys, on the last axis, that padding must not be seen.",
        ),
        Mistake(
            "one prefix too long",
            _stacked(lambda ids, lengths, pad_id: _right(ids, lengths + 1, pad_id)),
            "Your prefixes are one token too long: positions count from 0.",
        ),
        Mistake(
            "inverted",
            _stacked(lambda ids, lengths, pad_id: ~_right(ids, lengths, pad_id)),
            "The mask is the wrong way round: True means may see.",
        ),
        Mistake(
            "without the stack",
            _stacked(_right, order=lambda embed, stack, head, ids, mask: head(embed(ids))),
            "The stack is left out: it stands between embed and head.",
        ),
        Mistake(
            "twice through the stack",
            _stacked(_right, order=lambda embed, stack, head, ids, mask: head(stack(stack(embed(ids), mask), mask))),
            "The rows go through the stack twice; it has all its layers inside.",
        ),
        Mistake(
            "the last row alone",
            _stacked(_right, order=lambda embed, stack, head, ids, mask: head(stack(embed(ids), mask))[:, -1:]),
            "Only the last position has logits; return those of every position.",
        ),
        Mistake(
            "without the head",
            _stacked(_right, order=lambda embed, stack, head, ids, mask: stack(embed(ids), mask)),
            "You returned the rows of the stack; head makes logits of them.",
        ),
        Mistake(
            "probabilities",
            _stacked(_right, order=lambda embed, stack, head, ids, mask: head(stack(embed(ids), mask)).softmax(-1)),
            "You returned probabilities; logits are asked for, before the softmax.",
        ),
    ),
    part="stack_logits",
)


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


def _hidden(
    words=lambda ids: ids > 2, where=lambda drawn, rate: drawn < rate, token=3, labels=lambda ids, hidden: ids * hidden
):
    """Return both results, each slip a switch."""

    def function(ids, rate, drawn):
        hidden = where(drawn, rate) & words(ids)
        return ids.masked_fill(hidden, token), labels(ids, hidden)

    return function


EXERCISE_3 = Exercise(
    "19.3",
    "Hide words",
    8,
    2,
    hide_words,
    _hiding_cases,
    (
        Mistake(
            "labels everywhere",
            _hidden(labels=lambda ids, hidden: ids),
            "Every token has a label, so the model is mostly rewarded for copying; only hidden words have one.",
        ),
        Mistake(
            "words everywhere as labels",
            _hidden(labels=lambda ids, hidden: ids * (ids > 2)),
            "Every word has a label, so the model is mostly rewarded for copying; only hidden words have one.",
        ),
        Mistake(
            "labels of the others",
            _hidden(labels=lambda ids, hidden: ids * ~hidden),
            "The labels are those of the words that can be seen; it is the hidden ones that are asked for.",
        ),
        Mistake(
            "hides everything",
            _hidden(words=lambda ids: ids > -1),
            "You hid <pad>, <bos> or <eos>, too; only ids above 2 are words.",
        ),
        Mistake(
            "hides all but padding",
            _hidden(words=lambda ids: ids > 0),
            "You hid <bos> or <eos>, too; only ids above 2 are words.",
        ),
        Mistake(
            "all hidden in seen",
            lambda ids, rate, drawn: (ids.masked_fill(drawn < rate, 3), _hidden()(ids, rate, drawn)[1]),
            "The labels are right, but in seen <pad>, <bos> or <eos> became <unk>, too; only words do.",
        ),
        Mistake("hides eos", _hidden(words=lambda ids: ids > 1), "You hid <eos>, too; only ids above 2 are words."),
        Mistake(
            "pad for hidden",
            _hidden(token=0),
            "A hidden word became <pad>, id 0, which the attention never sees; it becomes <unk>, id 3.",
        ),
        Mistake(
            "nothing hidden",
            lambda ids, rate, drawn: (ids, _hidden()(ids, rate, drawn)[1]),
            "The labels are right, but seen still shows the words that are asked for.",
        ),
        Mistake(
            "not above",
            _hidden(where=lambda drawn, rate: drawn <= rate),
            "You hid a word whose number equals the rate; only those below it are hidden.",
        ),
        Mistake(
            "the others hidden",
            _hidden(where=lambda drawn, rate: drawn >= rate),
            "You hid the words whose number is not below the rate; those below it are to be hidden.",
        ),
        Mistake(
            "the same for every row",
            lambda ids, rate, drawn: _hidden()(ids, rate, drawn[:1].expand_as(drawn)),
            "Every row was hidden by the numbers of the first; each token has a number of its own.",
        ),
        Mistake(
            "hidden among the labels",
            _hidden(labels=lambda ids, hidden: 3 * hidden),
            "The labels have <unk> where a word is hidden; they must have the word itself. (If you changed ids in "
            "place, make a new tensor instead.)",
        ),
        Mistake(
            "-100",
            _hidden(labels=lambda ids, hidden: ids.masked_fill(~hidden, -100)),
            "Where nothing is hidden the labels are -100, PyTorch's own mark; our loss leaves out <pad>, id 0.",
        ),
        Mistake(
            "booleans",
            _hidden(labels=lambda ids, hidden: hidden.long()),
            "The labels say only where a word is hidden; they must say which.",
        ),
        Mistake(
            "shifted",
            _hidden(labels=lambda ids, hidden: (ids * hidden).roll(-1, dims=1)),
            "The labels are shifted by one, as for the next word; here each stands where its word was hidden.",
        ),
        Mistake(
            "swapped",
            lambda ids, rate, drawn: _hidden()(ids, rate, drawn)[::-1],
            "The two results are swapped: seen comes first.",
        ),
    ),
    returns=("seen", "labels"),
)


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


def _ported(
    cut=lambda tensor: tensor.chunk(3, dim=-1), order=(0, 1, 2), turned=(True, True, True, True), bias_order=None
):
    """Return a port, each slip a switch; `turned` says which of the four matrices are transposed."""

    def function(c_attn, c_attn_bias, c_proj):
        pieces, biases = cut(c_attn), cut(c_attn_bias)
        matrices = [*(pieces[at] for at in order), c_proj]
        matrices = [matrix.T if turn else matrix for matrix, turn in zip(matrices, turned, strict=True)]
        return (*matrices, *(biases[at] for at in bias_order or order))

    return function


def _dealt(tensor):
    return [tensor[..., first::3] for first in range(3)]


def _cut_by_rows(c_attn, c_attn_bias, c_proj):
    rows = [piece.reshape(-1, len(c_attn)) for piece in c_attn.flatten().chunk(3)]
    return (*(piece.T for piece in rows), c_proj.T, *c_attn_bias.chunk(3))


EXERCISE_4 = Exercise(
    "19.4",
    "Port an attention",
    12,
    2,
    gpt2_attention,
    _checkpoint_cases,
    (
        Mistake(
            "nothing transposed",
            _ported(turned=(False,) * 4),
            "No matrix is transposed; GPT-2 stores [in, out], and nn.Linear [out, in].",
        ),
        Mistake(
            "w_o not transposed",
            _ported(turned=(True, True, True, False)),
            "w_o is not transposed. It is square, so it fits either way, but GPT-2 stores c_proj as [in, out], too.",
        ),
        Mistake(
            "only w_o transposed",
            _ported(turned=(False, False, False, True)),
            "w_q, w_k and w_v are not transposed; each piece of c_attn is square, and [in, out].",
        ),
        Mistake(
            "keys and values swapped",
            _ported(order=(0, 2, 1)),
            "Keys and values are swapped: queries, keys, values stand in this order.",
        ),
        Mistake(
            "queries and keys swapped",
            _ported(order=(1, 0, 2)),
            "Queries and keys are swapped: queries, keys, values stand in this order.",
        ),
        Mistake(
            "queries and keys swapped, but not their biases",
            _ported(order=(1, 0, 2), bias_order=(0, 1, 2)),
            "You took the keys for the queries; the first third of the columns makes the queries.",
        ),
        Mistake(
            "biases of queries and keys swapped",
            _ported(bias_order=(1, 0, 2)),
            "The biases of queries and keys are swapped: the first third belongs to the queries.",
        ),
        Mistake(
            "keys and values swapped, but not their biases",
            _ported(order=(0, 2, 1), bias_order=(0, 1, 2)),
            "w_k and w_v are swapped, while their biases are right: queries, keys, values stand in this order.",
        ),
        Mistake(
            "dealt in turn",
            _ported(cut=_dealt),
            "You dealt the columns out in turn, first to the queries, then to the keys; the first third of them all "
            "makes the queries.",
        ),
        Mistake(
            "cut by heads",
            lambda c_attn, c_attn_bias, c_proj: (
                *(piece.T for piece in _dealt(c_attn)),
                c_proj.T,
                *c_attn_bias.chunk(3),
            ),
            "You dealt the columns of c_attn out in turn, though the biases are right; the first third of the columns "
            "makes the queries.",
        ),
        Mistake(
            "cut by rows",
            _cut_by_rows,
            "The numbers of c_attn were cut in the order in which they lie in memory, row by row; each piece is a "
            "third of the columns: cut along the last axis.",
        ),
        Mistake(
            "cut along the first axis",
            lambda c_attn, c_attn_bias, c_proj: (*(p.T for p in c_attn.chunk(3)), c_proj.T, *c_attn_bias.chunk(3)),
            "You cut c_attn along the wrong axis: the pieces are thirds of its columns (dim=-1), or of the rows of its "
            "transpose.",
        ),
        Mistake(
            "cut along the first axis, not transposed",
            lambda c_attn, c_attn_bias, c_proj: (*c_attn.chunk(3), c_proj.T, *c_attn_bias.chunk(3)),
            "You cut c_attn into thirds of its rows, and did not transpose them; the pieces are thirds of its columns.",
        ),
        Mistake(
            "values, keys, queries",
            _ported(order=(2, 1, 0)),
            "The order is reversed: queries, keys, values.",
        ),
        Mistake(
            "biases dealt in turn",
            lambda c_attn, c_attn_bias, c_proj: (*_ported()(c_attn, c_attn_bias, c_proj)[:4], *_dealt(c_attn_bias)),
            "The matrices are right, but you dealt the biases out in turn; cut them into thirds, too.",
        ),
        Mistake(
            "matrix, bias, matrix, bias",
            lambda c_attn, c_attn_bias, c_proj: (
                *(one for pair in zip(c_attn.T.chunk(3), c_attn_bias.chunk(3), strict=True) for one in pair),
                c_proj.T,
            ),
            "Right pieces in another order: first the four matrices, then the three biases.",
        ),
        Mistake(
            "biases reversed",
            _ported(bias_order=(2, 1, 0)),
            "The biases stand in the wrong order: queries, keys, values.",
        ),
        Mistake(
            "wrapped in one",
            lambda c_attn, c_attn_bias, c_proj: (
                *(c_attn[:, : len(c_attn)].T for _ in range(3)),
                c_proj.T,
                *c_attn_bias.chunk(3),
            ),
            "w_q, w_k and w_v are one and the same third of c_attn; each has its own.",
        ),
    ),
    returns=("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v"),
)


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


def _blocks(images, size):
    """[n, height, width] -> [n, rows of patches, size, patches of a row, size]."""
    n, height, width = images.shape
    return images.reshape(n, height // size, size, width // size, size)


EXERCISE_5 = Exercise(
    "19.5",
    "Cut into patches",
    8,
    2,
    patches,
    _patch_cases,
    (
        Mistake(
            "strips",
            lambda images, size: images.reshape(len(images), -1, size * size),
            "Each of your patches is a strip of pixels that follow each other in one line, not a square: the axes "
            "need a transpose before they are joined.",
        ),
        Mistake(
            "column by column",
            lambda images, size: _blocks(images, size).permute(0, 3, 1, 2, 4).flatten(1, 2).flatten(2),
            "Your patches go column by column; they go row by row from the top left.",
        ),
        Mistake(
            "pixels column by column",
            lambda images, size: _blocks(images, size).permute(0, 1, 3, 4, 2).flatten(1, 2).flatten(2),
            "The pixels of a patch go column by column; they go row by row.",
        ),
        Mistake(
            "every size-th pixel",
            lambda images, size: (
                images.reshape(len(images), size, images.shape[1] // size, size, images.shape[2] // size)
                .permute(0, 2, 4, 1, 3)
                .flatten(1, 2)
                .flatten(2)
            ),
            "Your patches take pixels from all over the image; a patch is a square of neighbours.",
        ),
        Mistake(
            "transposed image",
            lambda images, size: patches(images.mT, size),
            "The image is transposed: its rows are the second axis, its columns the third.",
        ),
        Mistake(
            "a square for each",
            lambda images, size: _blocks(images, size).transpose(2, 3).flatten(1, 2),
            "Each patch is still a square [size, size]; join its rows to one vector.",
        ),
        Mistake(
            "rows of patches apart",
            lambda images, size: _blocks(images, size).transpose(2, 3).flatten(3),
            "The patches still stand in rows and columns; join these two axes to one.",
        ),
        Mistake(
            "overlapping",
            lambda images, size: images.unfold(1, size, 1).unfold(2, size, 1).flatten(1, 2).flatten(2),
            "Your patches overlap; the next one begins where the last one ends.",
        ),
    ),
    gradients=("images",),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
