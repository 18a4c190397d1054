"""The exercises of notebook 19: one stack under three masks, hidden words, and a port."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Endless, Exercise, integers, normal
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
    "19.1", "The prefix mask", 6, 1, prefix_mask, _prefix_cases,
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
    "19.2", "The logits of one stack", 8, 2, stack_logits, _stack_cases,
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


def _unknown_case():
    """Return a sentence with a word that the tokenizer does not know, id 3: a word like any other."""
    ids = torch.tensor([[1, 3, 9, 3, 7, 2]])
    return Case("unknown words, id 3", (ids, 0.5, torch.tensor([[0.1, 0.2, 0.6, 0.7, 0.3, 0.4]])))


def _hiding_cases():
    return [
        _hiding_case("one sentence of 7 tokens", 1940, [7], 0.5),
        _hiding_case("3 sentences with padding", 1941, [9, 5, 7], 0.3),
        _hiding_case("hide every word", 1942, [6, 4], 1.0),
        _hiding_case("hide none", 1943, [6, 4], 0.0),
        _hiding_case("8 longer sentences", 1944, [23, 17, 21, 19, 23, 11, 13, 16], 0.15),
        _even_case(),
        _unknown_case(),
    ]


EXERCISE_3 = Exercise(
    "19.3", "Hide words", 6, 2, hide_words, _hiding_cases,
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
        ("never hides id 3", "ids > 2", "ids > 3",
         "You never hide id 3, the unknown word; only ids 0 to 2 are spared. (Its label is 3, and seen keeps a 3.)"),
        ("above the rate", "drawn < rate", "drawn > rate",
         "You hid the words whose number is above the rate, so at a rate of 0.3 seven in ten; hidden are those below."),
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


# 19.4 Port an attention that nobody described ------------------------------------------------------------------------


def attention(x, w_q, w_k, w_v, w_o, b_q, b_k, b_v):
    """Return the rows [n, d] of one head for x [n, d]; matrices are [out, in], as in nn.Linear."""
    q, k, v = x @ w_q.T + b_q, x @ w_k.T + b_k, x @ w_v.T + b_v
    return (q @ k.T / q.shape[-1] ** 0.5).softmax(dim=-1) @ v @ w_o.T


def port_attention(c_attn, c_attn_bias, c_proj, theirs, ours):
    """Return (w_q, w_k, w_v, w_o, b_q, b_k, b_v), matrices [out, in], with which `ours` computes what `theirs` does.

    c_attn: [d, 3 d], for x @ c_attn; a third of its columns each, in an order that nobody wrote down, makes the
    queries, the keys and the values, and c_attn_bias [3 d] goes with it. c_proj: [d, d], the output projection, stored
    [in, out] or [out, in]. theirs(x): the rows [n, d] that the model computes for x [n, d].
    ours(x, w_q, w_k, w_v, w_o, b_q, b_k, b_v): the same with matrices [out, in].
    """
    d = len(c_proj)
    generator = torch.Generator().manual_seed(19)
    x = torch.randn(7, d, generator=generator).to(c_proj)
    wanted = theirs(x)
    for turned, order in itertools.product((True, False), itertools.permutations(range(3))):
        matrices = [c_attn[:, third * d : (third + 1) * d].T for third in order]
        biases = [c_attn_bias[third * d : (third + 1) * d] for third in order]
        parts = (*matrices, c_proj.T if turned else c_proj, *biases)
        if torch.allclose(ours(x, *parts), wanted, rtol=1e-3, atol=1e-4):
            return parts
    raise ValueError("no arrangement fits")


def _unknown_attention(label, seed, d, order, turned, spread=1.0):
    """Return tensors in which the thirds of c_attn are, from the left, those of `order` (0: queries, 1: keys, …)."""
    matrices = [m * spread for m in normal(seed, (d, d), (d, d), (d, d), (d, d))]
    biases = normal(seed + 1, (d,), (d,), (d,))
    c_attn = torch.cat([matrices[one].T for one in order], dim=1)
    c_attn_bias = torch.cat([biases[one] for one in order])

    def theirs(x):
        return attention(x, *matrices, *biases)

    c_proj = matrices[3].T.contiguous() if turned else matrices[3]
    return Case(label, (c_attn, c_attn_bias, c_proj, theirs, attention))


def _unknown_attentions():
    return [
        _unknown_attention("queries, keys, values; c_proj [in, out], as GPT-2 has it", 1950, 4, (0, 1, 2), True),
        _unknown_attention("keys, queries, values; c_proj [in, out]", 1952, 3, (1, 0, 2), True),
        _unknown_attention("queries, keys, values; c_proj [out, in]", 1954, 5, (0, 1, 2), False),
        _unknown_attention("values, keys, queries; c_proj [out, in]", 1956, 6, (2, 1, 0), False),
        _unknown_attention("values, queries, keys; small weights", 1958, 7, (2, 0, 1), True, spread=0.3),
        _unknown_attention("keys, values, queries; a wider one", 1960, 11, (1, 2, 0), False, spread=0.5),
    ]


_SEARCH = """
    x = torch.randn(5, len(c_proj), generator=torch.Generator().manual_seed(0)).to(c_proj)
    for order in itertools.permutations(range(3)):
        for w_o in (c_proj, c_proj.T):
            matrices, biases = c_attn.chunk(3, dim=-1), c_attn_bias.chunk(3)
            parts = (*(matrices[i].T for i in order), w_o, *(biases[i] for i in order))
            if torch.allclose(ours(x, *parts), theirs(x), rtol=1e-3, atol=1e-4):
                break
        else:
            continue
        break
    return parts
"""

EXERCISE_4 = Exercise(
    "19.4", "Port an attention that nobody described", 12, 3, port_attention, _unknown_attentions,
    slips(
        "c_attn, c_attn_bias, c_proj, theirs, ours", _SEARCH,
        ("a test that cannot fail", "torch.randn(5,", "torch.randn(1,",
         "Your test cannot tell queries from keys. With a single row, or with the same row many times, as in zeros or "
         "ones, all keys are equal, and attention is a plain mean whatever they are. Draw several rows at random."),
        ("c_proj as it is stored", "(c_proj, c_proj.T)", "(c_proj,)",
         "You never tried c_proj transposed; it is square, and fits either way."),
        ("c_proj always turned", "(c_proj, c_proj.T)", "(c_proj.T,)",
         "You never tried c_proj as it is stored; not every file has it as GPT-2 has."),
        ("no test", "itertools.permutations(range(3))", "[(0, 1, 2)]",
         "You took the order queries, keys, values for granted. In this file nobody says so: try all orders, and "
         "compare with theirs."),
        ("biases in one order", "*(biases[i] for i in order)", "*biases",
         "The biases go with their third of the columns: each order of the matrices needs the same order of the "
         "biases."),
        ("not transposed", "(matrices[i].T for i in order)", "(matrices[i] for i in order)",
         "The pieces of c_attn are [in, out], for x @ c_attn; ours takes [out, in]: transpose each."),
        ("dealt in turn", "c_attn.chunk(3, dim=-1)", "[c_attn[:, i::3] for i in range(3)]",
         "You dealt the columns out in turn; a whole third of them, side by side, belongs together."),
        itertools=itertools,
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

# 19.6 Fill gap after gap ---------------------------------------------------------------------------------------------


def fill_gaps(ids, logits_of):
    """Return ids [batch, seq_len] without gaps: each sentence gets one word after the other, the surest first.

    A gap is the id 3. logits_of(ids): [batch, seq_len, vocab_size], whose row t scores the words for place t. Each time
    it is asked, every sentence that still has gaps fills one: that whose likeliest word has the highest probability, by
    that word. The ids 0 to 3 are no words, and are never filled in. ids stay as they are.
    """
    filled = ids.clone()
    while bool((filled == 3).any()):
        probabilities = logits_of(filled).log_softmax(-1)[..., 4:]
        for row, of_row in zip(filled, probabilities, strict=True):
            places = (row == 3).nonzero().flatten().tolist()
            if places:
                surest = max(places, key=lambda t: float(of_row[t].max()))
                row[surest] = int(of_row[surest].argmax()) + 4
    return filled


SAME = 50  # so often in a row a model may be asked about the same ids


def _gap_case(label, seed, lengths, hidden, vocab_size=17, d=5, special=-3.0):
    """Return sentences, padded behind, with gaps, and a pretend model in which every word looks at its neighbours.

    hidden: for each sentence the places of its gaps. special: how likely the ids 0 to 3 are together, in logits. It is
    the same in all places, so that leaving these ids out before the softmax or after it gives the same order.
    """
    longest = max(lengths)
    ids = integers(seed, (len(lengths), longest), 4, vocab_size)
    ids[:, 0] = 1
    for row, length, gaps in zip(ids, lengths, hidden, strict=True):
        row[length - 1 :] = 0
        row[length - 1] = 2
        row[torch.tensor(gaps, dtype=torch.long)] = 3
    table, places, head = normal(seed + 1, (vocab_size, d), (longest, d), (d, vocab_size))
    offsets = special + torch.tensor([0.0, 0.0, 0.0, 1.0]).to(head)
    asked = []

    def logits_of(given):
        if given.shape[1:] != ids.shape[1:]:
            raise ValueError(f"logits_of takes whole sentences, ids of {ids.shape[1]} places, got {list(given.shape)}")
        asked[:] = [*asked, given.clone()] if asked and torch.equal(asked[0], given) else [given.clone()]
        if len(asked) > SAME:
            asked.clear()
            raise ValueError(f"logits_of was asked {SAME} times in a row about the same ids: nothing was filled in")
        x = table[given] + places
        mixed = torch.tanh(2 * x + x.roll(1, dims=1) - 1.5 * x.roll(-1, dims=1))
        logits = 2 * mixed @ head
        logits[..., :4] = logits[..., 4:].logsumexp(dim=-1, keepdim=True) + offsets
        return logits

    return Case(label, (ids, logits_of))


def _gap_cases():
    return [
        _gap_case("one sentence with two gaps side by side", 1980, [7], [[2, 3]]),
        _gap_case("one sentence with one gap", 1982, [5], [[3]]),
        _gap_case("no gaps at all", 1984, [6, 4], [[], []]),
        _gap_case("3 sentences with one, four and two gaps", 1986, [11, 8, 9], [[5], [1, 2, 4, 5], [3, 6]]),
        _gap_case("nothing but gaps", 1988, [8, 6], [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4]]),
        _gap_case("a model that would like to say <unk> again", 1990, [9, 7], [[2, 4, 5], [3, 4]], special=1.0),
    ]


EXERCISE_6 = Exercise(
    "19.6", "Fill gap after gap", 12, 2, fill_gaps, _gap_cases,
    slips(
        "ids, logits_of", """
            ids, rows = ids.clone(), torch.arange(len(ids))
            while (ids == 3).any():
                p = logits_of(ids).softmax(dim=-1)
                p[..., :4] = 0
                best, words = p.max(dim=-1)
                at = best.masked_fill(ids != 3, -1).argmax(dim=1)
                gaps = ids[rows, at] == 3
                ids[rows[gaps], at[gaps]] = words[rows, at][gaps]
            return ids
        """,
        ("all at once", "ids[rows[gaps], at[gaps]] = words[rows, at][gaps]", "ids = torch.where(ids == 3, words, ids)",
         "Each gap was filled without knowing what goes into the others. Fill one in each sentence, and ask "
         "logits_of again before the next."),
        ("from the left", "best.masked_fill(ids != 3, -1)", "(ids == 3).int()",
         "You filled the gaps from left to right; fill the surest first, the one whose best word has the highest "
         "probability."),
        ("from the right", "best.masked_fill(ids != 3, -1).argmax(dim=1)",
         "ids.shape[1] - 1 - (ids == 3).flip(1).int().argmax(dim=1)",
         "You filled the gaps from right to left; fill the surest first, the one whose best word has the highest "
         "probability."),
        ("the least sure first", "best.masked_fill(ids != 3, -1).argmax", "best.masked_fill(ids != 3, 2).argmin",
         "You filled the least sure gap first; it is the surest that others can build on."),
        ("by logits", "logits_of(ids).softmax(dim=-1)\n    p[..., :4] = 0",
         "logits_of(ids).clone()\n    p[..., :4] = -1e9\n    p += 1e3",
         "You compared logits of different places; they say which word is likelier in one place, and only the softmax "
         "makes places comparable."),
        ("says <unk>", "p[..., :4] = 0",
         "p[..., :3] = 0\n    if (p.argmax(dim=-1) == 3)[ids == 3].any():\n        raise Endless",
         "Your words may be id 3, which is the gap itself: leave out the ids 0 to 3 when you choose."),
        Endless=Endless,
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
