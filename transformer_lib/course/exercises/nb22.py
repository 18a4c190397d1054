"""The exercises of notebook 22: drafts, a batch that is joined, pages of a cache, int8 weights, and a backward pass."""

from __future__ import annotations

import math
from collections import deque

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

# 22.1 Which drafted tokens stand -------------------------------------------------------------------------------------


def tokens_that_stand(drafted, checked, eos_id):
    """Return the ids that one call of the target adds to the sentence, as a list: what greedy decoding would write.

    drafted: a list of γ ids, the draft's proposal. checked: a list of γ + 1 ids; checked[i] is the target's best token
    after the sentence so far and drafted[:i]. Drafted tokens stand up to the first with which the target disagrees;
    then comes one token of the target's own. Nothing comes after eos_id.
    """
    standing = []
    for place, token in enumerate(checked):
        standing.append(token)
        if token == eos_id or place == len(drafted) or drafted[place] != token:
            return standing
    raise ValueError("checked must have one id more than drafted")


def _drafted_case(label, seed, count, agree, eos_at=(), eos_id=2, drafted_eos=()):
    """Return a case whose first `agree` of `count` drafted tokens are the target's; it disagrees at the next.

    eos_at puts ends of the sentence among the target's tokens, drafted_eos among those of the draft that do not stand.
    Where there is room, both agree once more further on.
    """
    checked = integers(seed, (count + 1,), 3, 50).tolist()
    drafted = [token if place < agree else token + 50 for place, token in enumerate(checked[:count])]
    if count > agree + 1:
        drafted[agree + 1] = checked[agree + 1]
    for place in eos_at:
        checked[place] = eos_id
        if place < agree:
            drafted[place] = eos_id
    for place in drafted_eos:
        drafted[place] = eos_id
    return Case(label, (drafted, checked, eos_id))


def _drafted_cases():
    return [
        _drafted_case("2 of 4 stand", 2200, 4, 2),
        _drafted_case("none of 3 stands", 2201, 3, 0),
        _drafted_case("all of 5 stand", 2202, 5, 5),
        _drafted_case("the second of 5 ends the sentence, and all agree", 2203, 5, 5, eos_at=(1,), eos_id=7),
        _drafted_case("the target ends where the draft goes on", 2204, 7, 3, eos_at=(3,)),
        _drafted_case("the last of 3 ends the sentence", 2205, 3, 3, eos_at=(2,)),
        _drafted_case("nothing was drafted", 2206, 0, 0),
        _drafted_case("4 of 7 stand, and one agrees later", 2207, 7, 4),
        _drafted_case("the end twice, and all agree", 2208, 5, 5, eos_at=(2, 3)),
        _drafted_case("the draft ends behind the token that does not stand", 2209, 5, 1, drafted_eos=(3,)),
        _drafted_case("the draft ends where the target goes on", 2225, 3, 2, drafted_eos=(2,), eos_id=5),
        _drafted_case("the draft ends at once, and the target does not", 2226, 7, 0, drafted_eos=(0,)),
    ]


EXERCISE_1 = Exercise(
    "22.1", "Which drafted tokens stand", 8, 2, tokens_that_stand, _drafted_cases,
    slips(
        "drafted, checked, eos_id", """
            agree = [a == b for a, b in zip(drafted, checked)]
            n = (agree + [False]).index(False)
            ids = drafted[:n] + checked[n : n + 1]
            return ids[: ids.index(eos_id) + 1] if eos_id in ids else ids
        """,
        ("no token of the target's", " + checked[n : n + 1]", "",
         "The target's own token is missing: after the tokens that stand comes one more, which its call has found "
         "anyway."),
        ("none when all stand", "checked[n : n + 1]", "checked[:-1][n : n + 1]",
         "Where every drafted token stands, the target's own token is missing: checked has one id more, and it is "
         "free."),
        ("the wrong token, too", "drafted[:n] + checked[n : n + 1]", "(drafted + checked[-1:])[: n + 1]",
         "You kept the drafted token with which the target disagrees; its own token takes that place."),
        ("the target's last token", "checked[n : n + 1]", "checked[-1:]",
         "You always add checked[-1]; where the target disagrees earlier, that token follows a prefix that does not "
         "stand. Its own token is the one at the first disagreement."),
        ("all that the target says", "drafted[:n] + checked[n : n + 1]", "checked",
         "You take all of checked. After the first disagreement its tokens follow a prefix that does not stand."),
        ("every agreement counts", "(agree + [False]).index(False)\nids = drafted[:n] + checked[n : n + 1]",
         "sum(agree)\nids = checked[: n + 1]",
         "You count agreements after the first disagreement, too; there both tokens follow a prefix that does not "
         "stand."),
        ("on after eos", "return ids[: ids.index(eos_id) + 1] if eos_id in ids else ids", "return ids",
         "You go on after eos_id; the sentence ends with it, even if more drafted tokens agree."),
        ("without eos", "ids.index(eos_id) + 1", "ids.index(eos_id)",
         "You leave eos_id out; greedy decoding writes it as the last token."),
        ("the draft's end ends it", "return ids[:", "ids = drafted[:n] if eos_id in drafted[n:] else ids\nreturn ids[:",
         "Where the draft has an eos_id that does not stand, you leave out the target's own token. Only what stands "
         "may end the sentence; the target's token is added in any case."),
    )
    + (Mistake("checked as it is", lambda drafted, checked, eos_id: list(checked),
               "You return all of checked, whatever was drafted. After the first disagreement its tokens follow a "
               "prefix that does not stand, and after eos_id nothing follows."),),
    part="tokens_that_stand",
)  # fmt: skip


# 22.2 Accept or replace ----------------------------------------------------------------------------------------------


def acceptance(p, q):
    """Return (accept, residual), both [vocab_size], which make a token drawn from q a token drawn from p.

    p: the target's probabilities [vocab_size]; q: the draft's. A drafted token stands with the probability
    accept[token], which is as high as possible; where q is 0 it is 1. If it does not stand, another is drawn from the
    probabilities residual, so that in the end each token comes with its probability in p. Where nothing is ever
    refused, residual is p.
    """
    accept = [min(1.0, float(a / b)) if b > 0 else 1.0 for a, b in zip(p, q, strict=True)]
    missing = [max(float(a - b), 0.0) for a, b in zip(p, q, strict=True)]
    total = sum(missing)
    residual = [value / total for value in missing] if total > 0 else p.tolist()
    return torch.tensor(accept, dtype=p.dtype), torch.tensor(residual, dtype=p.dtype)


def _probabilities(values):
    values = values.clone()
    return values / values.sum()


def _drawing_case(label, seed, size, p_zeros=(), q_zeros=(), equal=False):
    """Return two distributions over `size` tokens, in float64, with zeros at the given places."""
    p, q = (values.exp() for values in normal(seed, (size,), (size,), dtype=torch.float64))
    p[list(p_zeros)], q[list(q_zeros)] = 0.0, 0.0
    p, q = _probabilities(p), _probabilities(q)
    return Case(label, (p, p.clone() if equal else q))


def _drawing_cases():
    return [
        Case(
            "three words",
            (torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64), torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64)),
        ),
        _drawing_case("7 words", 2210, 7),
        _drawing_case("the draft never says 2 of 5 words", 2211, 5, q_zeros=(1, 4)),
        _drawing_case("the target never says 3 of 11 words", 2212, 11, p_zeros=(0, 5, 6)),
        _drawing_case("a word that neither says", 2213, 5, p_zeros=(2,), q_zeros=(2, 3)),
        _drawing_case("no word in common", 2214, 5, p_zeros=(0, 1), q_zeros=(2, 3, 4)),
        _drawing_case("both the same", 2215, 7, equal=True),
        _drawing_case("both the same, and a word that neither says", 2216, 7, p_zeros=(3,), equal=True),
    ]


EXERCISE_2 = Exercise(
    "22.2", "Accept or replace", 12, 3, acceptance, _drawing_cases,
    slips(
        "p, q", """
            missing = (p - q).clamp(min=0)
            accept = torch.where(q > 0, (p / q).clamp(max=1), 1.0)
            residual = missing / missing.sum() if missing.any() else p
            return accept, residual
        """,
        ("drawn from p again", "return accept, residual", "return accept, p",
         "You replace a refused token by one drawn from p. Tokens that the draft proposes too often would then be "
         "too frequent, since the kept ones have their whole probability in p already. Only what is still "
         "missing may be drawn."),
        ("never normalised", "missing / missing.sum() if missing.any() else p", "missing",
         "The residual does not sum to 1; divide it by its sum. Where that is 0, return p."),
        ("absolute differences", "(p - q).clamp(min=0)", "(p - q).abs()",
         "The residual has tokens of which the draft has too much: take max(0, p - q), not |p - q|."),
        ("no minimum", ".clamp(max=1)", "",
         "Some entries of accept are above 1, so they are not probabilities: take min(1, p / q)."),
        ("upside down", "p / q", "q / p",
         "The quotient is upside down: a token is refused when the draft has more of it than the target, so p / q."),
        ("0 / 0", "torch.where(q > 0, (p / q).clamp(max=1), 1.0)", "(p / q).clamp(max=1)",
         "accept is NaN where neither has a word: 0 / 0. Where q is 0, accept is 1."),
        ("nothing missing", " if missing.any() else p", "",
         "The residual is NaN where both distributions are the same: nothing is missing, so its sum is 0. Return p "
         "there."),
        ("neither is taken care of",
         "torch.where(q > 0, (p / q).clamp(max=1), 1.0)\nresidual = missing / missing.sum() if missing.any() else p",
         "(p / q).clamp(max=1)\nresidual = missing / missing.sum()",
         "There are two quotients 0 / 0: accept where q is 0 (return 1), and the residual where both distributions "
         "are the same (return p)."),
    ),
    returns=("accept", "residual"),
)  # fmt: skip


# 22.3 Eight bits -----------------------------------------------------------------------------------------------------


def quantize(weight):
    """Return (codes, scales) of a weight [out, in]: whole numbers in int8 [out, in], and a scale for each row [out].

    The codes are between −127 and 127. A row's scale is the smallest with which all of its weights fit, and the codes
    are those whose products with it are as near to the weights as they get. The scale of a row of zeros is 1.
    """
    codes, scales = [], []
    for row in weight:
        largest = max(abs(value) for value in row.tolist())
        scale = torch.tensor(largest, dtype=weight.dtype) / 127 if largest else torch.tensor(1, dtype=weight.dtype)
        scales.append(scale)
        codes.append(torch.round(row / scale))
    return torch.stack(codes).to(torch.int8), torch.stack(scales)


def _weight_case(label, seed, shape, factors=None, zero=()):
    weight = normal(seed, shape)[0]
    if factors is not None:
        weight = weight * torch.tensor(factors, dtype=weight.dtype)[:, None]
    weight[list(zero)] = 0
    return Case(label, (weight,))


def _weight_cases():
    return [
        Case("2 × 3, by hand", (torch.tensor([[1.27, -0.5, 0.1], [0.02, 0.0, -0.0254]]),)),
        _weight_case("3 × 5, rows of very different size", 2220, (3, 5), (0.01, 1.0, 100.0)),
        _weight_case("a row of zeros", 2221, (3, 7), zero=(1,)),
        Case("largest where it is negative", (-normal(2222, (5, 3))[0].abs() - torch.tensor([0.0, 0.5, 3.0]),)),
        _weight_case("7 × 7", 2223, (7, 7), (3.0, 0.2, 1.0, 5.0, 0.1, 2.0, 0.7)),
        _weight_case("11 × 2", 2224, (11, 2)),
    ]


def _int8(values):
    return values.clamp(-32768, 32767).to(torch.int16).to(torch.int8)  # what does not fit wraps around


def _one_scale(weight):
    scale = weight.abs().max() / 127
    return torch.round(weight / scale).to(torch.int8), scale


EXERCISE_3 = Exercise(
    "22.3", "Eight bits", 8, 1, quantize, _weight_cases,
    slips(
        "weight", """
            largest = weight.abs().amax(dim=1, keepdim=True)
            scales = torch.where(largest == 0, 1.0, largest / 127)
            codes = int8(torch.round(weight / scales))
            return codes, scales.flatten()
        """,
        ("by columns", "dim=1", "dim=0",
         "Your scales belong to columns; each output, a row of the weight, has one: the largest over dim=1."),
        ("128", "/ 127", "/ 128",
         "Your scale is the largest divided by 128. Then the largest positive entry becomes 128, which int8 does not "
         "hold: it ends at 127, and 128 wraps around to -128."),
        ("cut off", "torch.round(weight / scales)", "weight / scales",
         "You cut off the digits after the point, as .to(torch.int8) does by itself; round to the nearest first."),
        ("largest without its sign", ".abs()", "",
         "You took the largest entry, not the largest absolute value; where a negative one is larger, it does not "
         "fit."),
        ("largest without its sign, or 1", ".abs().amax(dim=1, keepdim=True)\nscales = torch.where(largest == 0",
         ".amax(dim=1, keepdim=True)\nscales = torch.where(largest <= 0",
         "You took the largest entry of each row; a weight far below 0 is as hard to fit as one far above, so take the "
         "largest absolute value."),
        ("0 / 0", "return codes, scales.flatten()", "return codes, largest.flatten() / 127",
         "The scale of a row of zeros is to be 1; yours is 0, or nearly 0."),
        ("whole, but floats", "int8(torch.round(weight / scales))", "torch.round(weight / scales)",
         "The codes are whole numbers, but stored in floating point, so nothing is saved: convert them by "
         ".to(torch.int8)."),
        ("scales as a column", ".flatten()", "",
         "The scales have the shape [out, 1]; return [out], one number for each row."),
        int8=_int8,
    )
    + (Mistake("one scale, as a number", _one_scale,
               "You used one scale for the whole matrix, and return a single number; each row has a scale of its "
               "own."),),
    returns=("codes", "scales"),
)  # fmt: skip


# 22.4 A cache in pages -----------------------------------------------------------------------------------------------


def append(pages, table, length, free, row):
    """Return (pages, table, free) after one more token of a sentence has been written into a cache in pages.

    pages: [n_pages, page_size, d], the memory that all sentences share. table: a list of this sentence's pages, in the
    order of its tokens. length: how many tokens it has so far; free: a list of the pages that nobody uses. row: [d],
    to be written behind the sentence's last token. If its pages are full, it gets the first of free, as its last.
    What was given stays as it was.
    """
    size = pages.shape[1]
    table, free, pages = list(table), list(free), pages.detach().clone()
    if length == size * len(table):
        table, free = [*table, free[0]], free[1:]
    pages[table[length // size]][length % size] = row
    return pages, table, free


def _page_case(label, seed, n_pages, size, table, length, free, d=3):
    pages, row = normal(seed, (n_pages, size, d), (d,))
    return Case(label, (pages, list(table), length, list(free), row))


def _page_cases():
    return [
        _page_case("the second token of a page", 2230, 5, 3, [4], 1, [2, 0]),
        _page_case("a new page", 2231, 5, 3, [3, 1], 6, [4, 2, 0]),
        _page_case("the first token of a sentence", 2232, 3, 2, [], 0, [1, 0, 2]),
        _page_case("the last place of a page", 2233, 7, 5, [6, 2], 9, [3, 0]),
        _page_case("pages of one token", 2234, 5, 1, [2, 4], 2, [0, 3]),
        _page_case("the last free page", 2235, 5, 2, [4, 0, 3], 6, [1], d=2),
        _page_case("in the third of four pages' worth", 2236, 11, 4, [9, 1, 5], 10, [7, 3, 2], d=5),
    ]


EXERCISE_4 = Exercise(
    "22.4", "A cache in pages", 10, 2, append, _page_cases,
    slips(
        "pages, table, length, free, row", """
            size = pages.shape[1]
            pages, table, free = pages.clone(), list(table), list(free)
            if length % size == 0:
                table.append(free.pop(0))
            pages[table[length // size], length % size] = row
            return pages, table, free
        """,
        ("a page too early", "if length % size == 0", "if length == 0 or (length + 1) % size == 0",
         "You take a new page when the row fills the last one; wait until the next token needs it."),
        ("one token early", "if length % size == 0", "if (length + 1) % size == 0",
         "You take a new page one token early, for the last place of a page, and none for a sentence's first token. "
         "The token that comes is number length, counted from 0."),
        ("one place early", "table[length // size], length % size]", "table[-1], (length - 1) % size]",
         "You write one place too early: with length tokens in the cache, numbered from 0, the next is number length."),
        ("no first page", "if length % size == 0", "if length > 0 and length % size == 0",
         "At length 0 there is no page yet: a sentence's first token needs one, too."),
        ("in the page of the same number", "table[length // size]", "length // size",
         "You write into page number length // page_size of the memory; that is the place in the table, which says "
         "where this sentence's pages lie."),
        ("the last free page", "free.pop(0)", "free.pop()", "You take the last of free; take the first."),
        ("still free", "free.pop(0)", "free[0]",
         "The page that you take stays in free, and another sentence will take it as well."),
        ("not in the table", "if length % size == 0:\n    table.append(free.pop(0))\npages[table[length // size]",
         "page = free.pop(0) if length % size == 0 else table[-1]\npages[page",
         "The new page is missing from the table that you return, and its token will never be found again."),
    ),
    returns=("pages", "table", "free"),
)  # fmt: skip


# 22.5 One block of the backward pass ---------------------------------------------------------------------------------


def block_gradients(g, query, key, value, log_totals, shared, first_query, first_key):
    """Return (g_query, g_key, g_value) that one block of causal attention adds to the gradients.

    query: [q_len, d_k], the sentence's rows from first_query on; key: [k_len, d_k] and value: [k_len, d_v], those from
    first_key on. g: [q_len, d_v], the gradient with respect to these rows' outputs. log_totals: [q_len], the logarithm
    of the sum of e^score over all keys that a row may see; shared: [q_len], g · output. A row sees the keys of its own
    position and before. Scores are divided by √d_k.
    """
    root = math.sqrt(query.shape[1])
    g_query, g_key, g_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    for i in range(len(query)):
        for j in range(len(key)):
            if first_key + j > first_query + i:
                continue
            weight = torch.exp(torch.dot(query[i], key[j]) / root - log_totals[i])
            g_score = weight * (torch.dot(g[i], value[j]) - shared[i]) / root
            g_query[i] += g_score * key[j]
            g_key[j] += g_score * query[i]
            g_value[j] += weight * g[i]
    return g_query, g_key, g_value


def _block_case(label, seed, length, queries, keys, d_k=3, d_v=5):
    """Return a block of a sentence of `length` rows; queries and keys are ranges of its positions."""
    g, query, key, value = normal(seed, (length, d_v), (length, d_k), (length, d_k), (length, d_v), dtype=torch.float64)
    scores = (query @ key.T / math.sqrt(d_k)).masked_fill(~torch.ones(length, length).tril().bool(), -math.inf)
    shared = (g * (scores.softmax(-1) @ value)).sum(-1)
    rows, columns = slice(*queries), slice(*keys)
    block = (g[rows], query[rows], key[columns], value[columns], scores.logsumexp(-1)[rows], shared[rows])
    return Case(label, (*block, queries[0], keys[0]))


def _overflowing_case():
    """Return a block whose last key is hidden from every query, with scores of 2,000: e^2000 is infinite."""
    case = _block_case("a later key with scores of 2,000", 2247, 7, (2, 5), (3, 6))
    g, query, key, *others = case.args
    key = key.clone()
    key[-1] = torch.linalg.solve(query, torch.full((3,), 2000 * math.sqrt(3), dtype=key.dtype))
    return Case(case.label, (g, query, key, *others))


def _block_cases():
    return [
        _block_case("queries 4 to 6, keys 0 to 2: all in the past", 2240, 7, (4, 7), (0, 3)),
        _block_case("queries and keys 3 to 5", 2241, 7, (3, 6), (3, 6)),
        _block_case("queries 2 to 6, keys 4 to 5", 2242, 7, (2, 7), (4, 6)),
        _block_case("queries 0 to 1, keys 5 to 9: all in the future", 2243, 11, (0, 2), (5, 10)),
        _block_case("the whole sentence as one block", 2244, 5, (0, 5), (0, 5), 5, 2),
        _block_case("a single query", 2245, 11, (7, 8), (5, 10), 2, 7),
        _block_case("queries and keys 3 to 5, d_k = d_v", 2246, 8, (3, 6), (3, 6), 3, 3),
        _overflowing_case(),
    ]


EXERCISE_5 = Exercise(
    "22.5", "One block of the backward pass", 12, 3, block_gradients, _block_cases,
    slips(
        "g, query, key, value, log_totals, shared, first_query, first_key", """
            root = math.sqrt(query.shape[1])
            later = first_key + torch.arange(len(key)) > first_query + torch.arange(len(query))[:, None]
            scores = (query @ key.T / root).masked_fill(later, -math.inf)
            weights = (scores - log_totals[:, None]).exp()
            g_scores = weights * (g @ value.T - shared[:, None])
            return g_scores @ key / root, g_scores.T @ query / root, weights.T @ g
        """,
        ("no mask", ".masked_fill(later, -math.inf)", "",
         "Queries see later keys: position first_query + i may see first_key + j only up to its own position."),
        ("hidden after the exponential",
         ".masked_fill(later, -math.inf)\nweights = (scores - log_totals[:, None]).exp()",
         "\nweights = (scores - log_totals[:, None]).exp() * ~later",
         "exp of a later key's score overflows, and inf · 0 is NaN: hide it before the exponential."),
        ("a mask from the block's corner", "first_key + torch.arange(len(key)) > first_query + torch",
         "torch.arange(len(key)) > torch",
         "Your mask counts positions from the corner of the block; they begin at first_query and first_key."),
        ("softmax within the block", "(scores - log_totals[:, None]).exp()", "scores.softmax(-1).nan_to_num(0.0)",
         "You took the softmax within the block, but a row's weights are shared by all its blocks: exp(score - "
         "log_totals)."),
        ("softmax of the block, NaN", "(scores - log_totals[:, None]).exp()", "scores.softmax(-1)",
         "You took the softmax within the block: a row's weights are shared by all its blocks, exp(score - "
         "log_totals), and where the whole block is hidden, the softmax is NaN."),
        ("the block's own sum", "shared[:, None]", "(weights * (g @ value.T)).sum(-1, keepdim=True)",
         "You subtract the block's own sum of weight · (g · value); the softmax needs the sum over all keys, and "
         "that is shared."),
        ("gradients not divided", "key / root, g_scores.T @ query / root", "key, g_scores.T @ query",
         "The gradients of query and key are too large by a factor of √d_k: the scores were divided by it, so their "
         "gradient is, too."),
        ("never divided", "math.sqrt(query.shape[1])", "1",
         "√d_k is missing altogether: the scores are divided by it, and so is their gradient."),
    ),
    returns=("g_query", "g_key", "g_value"),
)  # fmt: skip

# 22.6 A draft that has only counted ----------------------------------------------------------------------------------


def propose(ids, table, n, gamma):
    """Return up to gamma ids that may come next, as a list: the counted draft.

    ids: what was said so far. table: a dictionary from a tuple of ids to the id that most often followed these. At each
    place, ask it for the longest known end of the text, of n − 1 ids at most, then of fewer, down to one. What was
    drafted is part of the text. Where not even the last id is known, the draft ends.
    """
    drafted = []
    while len(drafted) < gamma:
        text = [*ids, *drafted]
        ends = [tuple(text[start:]) for start in range(max(0, len(text) - n + 1), len(text))]  # the longest first
        known = [table[end] for end in ends if end in table]
        if not known:
            break
        drafted.append(known[0])
    return drafted


def _counted_case(label, seed, ids, n, gamma, ends, words=4):
    """Return a case with a table of `ends` {ends of the text: how many}, drawn from few ids, so that many are known."""
    table = {}
    for length, count in ends.items():
        for row in integers(seed + 10 * length, (count, length + 1), 5, 5 + words).tolist():
            table.setdefault(tuple(row[:-1]), row[-1])
    return Case(label, (integers(seed, (ids,), 5, 5 + words).tolist(), table, n, gamma))


def _counted_cases():
    return [
        Case("by hand", ([1, 8], {(8,): 5, (1, 8): 7, (8, 7): 6, (7,): 9, (6,): 3}, 3, 4)),
        Case("only the last id is known", ([1, 8], {(8,): 5, (5,): 8, (9, 8): 7}, 3, 3)),
        Case("nothing is known", ([1, 4], {(8,): 5, (4, 8): 6}, 3, 5)),
        Case("longer ends than n allows", ([1, 8, 7], {(1, 8, 7): 3, (7,): 6, (8, 7): 5, (5,): 7, (7, 5): 2}, 3, 2)),
        Case("the text is shorter than n - 1", ([1], {(1,): 6, (1, 6): 4, (6,): 8, (1, 6, 4): 9}, 5, 3)),
        Case("0 is an id, too", ([1, 8], {(8,): 0, (0,): 3, (1, 8): 0, (8, 0): 0}, 3, 4)),
        _counted_case("2-grams", 22610, 3, 2, 5, {1: 30}),
        _counted_case("4-grams, 7 drafted", 22620, 11, 4, 7, {1: 30, 2: 11, 3: 13}),
        _counted_case("5-grams, 11 drafted", 22630, 7, 5, 11, {1: 40, 2: 17, 3: 23, 4: 29}),
    ]


EXERCISE_6 = Exercise(
    "22.6", "A draft that has only counted", 8, 2, propose, _counted_cases,
    slips(
        "ids, table, n, gamma", """
            text = list(ids)
            while len(text) < len(ids) + gamma:
                for length in range(n - 1, 0, -1):
                    if len(text) >= length and tuple(text[-length:]) in table:
                        text.append(table[tuple(text[-length:])])
                        break
                else:
                    break
            return text[len(ids):]
        """,
        ("the shortest first", "range(n - 1, 0, -1)", "range(1, n)",
         "You ask for the shortest end first. Longer ones know better what follows: begin with n - 1 ids."),
        ("n ids", "range(n - 1, 0, -1)", "range(n, 0, -1)",
         "You ask for ends of n ids. An n-gram is n ids with the one that follows, so ask for n - 1 at most."),
        ("the longest alone", "range(n - 1, 0, -1)", "range(n - 1, n - 2, -1)",
         "Where the longest end is not known, you give up; ask for shorter ones, down to the last id."),
        ("down to two", "range(n - 1, 0, -1)", "range(n - 1, 1, -1)",
         "You never ask for the last id alone: range ends before its second argument."),
        ("what was given, too", "text[len(ids):]", "text", "You return the text itself, too; return what was drafted."),
        ("one too many", "< len(ids) + gamma", "<= len(ids) + gamma", "You draft one id too many: gamma at most."),
        ("only of the given ids",
         "tuple(text[-length:]) in table:\n            text.append(table[tuple(text[-length:])])",
         "tuple(ids[-length:]) in table:\n            text.append(table[tuple(ids[-length:])])",
         "You always look at the end of ids. What was drafted is part of the text: the next id follows it."),
    ),
    items="ids",
)  # fmt: skip


# 22.7 A batch that is joined -----------------------------------------------------------------------------------------


def serve(arrivals, capacity, step, eos_id):
    """Return a list of pairs, (the step at which a request joined, the list of its tokens), one for each request.

    arrivals: request r comes at step arrivals[r], and they come in this order. capacity: how many may be in the batch.
    step: a function. Give it a dictionary of the requests in the batch, {request: list of its tokens so far}; it
    returns {request: its next token}. Steps are counted from 0, also those in which nobody was there. Before each step,
    those who have come by then and wait join in order, while there is room. A request whose token is eos_id has ended,
    and its place is free at the next step; eos_id is its last token.
    """
    waiting, joined = deque(range(len(arrivals))), [0] * len(arrivals)
    said = [[] for _ in arrivals]
    inside, now = [], 0
    while waiting or inside:
        while waiting and arrivals[waiting[0]] <= now and len(inside) < capacity:
            joined[waiting[0]] = now
            inside.append(waiting.popleft())
        if inside:
            for request, token in step({request: list(said[request]) for request in inside}).items():
                said[request].append(token)
            inside = [request for request in inside if said[request][-1] != eos_id]
        now += 1
    return list(zip(joined, said, strict=True))


def _speaking(scripts, eos_id):
    """Return a `step` in which each request says the tokens of its script, and then eos_id."""

    def step(texts):
        return {r: (*scripts[r], *[eos_id] * 99)[len(said)] for r, said in texts.items()}

    return step


def _serving_case(label, seed, arrivals, lengths, capacity, eos_id=2):
    ids = integers(seed, (len(lengths), max(lengths)), 10, 50).tolist()
    scripts = [row[: length - 1] for row, length in zip(ids, lengths, strict=True)]
    return Case(label, (list(arrivals), capacity, _speaking(scripts, eos_id), eos_id))


def _serving_cases():
    return [
        _serving_case("three requests, room for two", 22700, (0, 0, 0), (2, 5, 3), 2),
        _serving_case("six requests, room for two", 22701, [0] * 6, (2, 9, 3, 8, 2, 3), 2),
        _serving_case("one at a time", 22702, (0, 0, 1, 1), (3, 1, 2, 5), 1),
        _serving_case("room for all", 22703, (0, 0, 0, 0, 0), (5, 2, 7, 1, 3), 7, eos_id=3),
        _serving_case("they come while others are inside", 22704, (0, 2, 3, 3, 7, 11), (5, 7, 2, 3, 5, 1), 3),
        _serving_case("nobody is there for a while", 22705, (0, 13, 13, 29), (3, 2, 5, 2), 2),
        _serving_case("nobody is there at first", 22706, (5, 6), (2, 2), 3, eos_id=7),
        _serving_case(
            "eleven, room for three", 22707, (0, 0, 1, 1, 2, 3, 5, 5, 5, 19, 23), (3, 11, 2, 5, 7, 1, 2, 13, 3, 2, 5), 3
        ),
        _serving_case("no requests", 22708, (), (1,), 2),
    ]


EXERCISE_7 = Exercise(
    "22.7", "A batch that is joined", 14, 3, serve, _serving_cases,
    slips(
        "arrivals, capacity, step, eos_id", """
            inside, joined, said, now, first = {}, {}, {}, 0, 0
            while len(said) < len(arrivals):
                while first < len(arrivals) and arrivals[first] <= now and len(inside) < capacity:
                    inside[first], joined[first] = [], now
                    first += 1
                for request, token in (step(inside) if inside else {}).items():
                    inside[request].append(token)
                    if token == eos_id:
                        said[request] = inside.pop(request)
                now += 1
            return [(joined[r], said[r]) for r in range(len(arrivals))]
        """,
        ("static", "while first < len(arrivals) and arrivals[first] <= now and len(inside) < capacity:",
         "new = not inside\n    "
         "while new and first < len(arrivals) and arrivals[first] <= now and len(inside) < capacity:",
         "Nobody joins as long as somebody is inside: that is a static batch. A place is free as soon as its sentence "
         "has ended."),
        ("no limit", " and len(inside) < capacity", "",
         "Every request has joined when it came, though it had to wait: at most capacity requests may be in the batch "
         "at a step, and asked is the step at which it joined."),
        ("one too many", "len(inside) < capacity", "len(inside) <= capacity",
         "There is one request too many in the batch: join only while fewer than capacity are inside."),
        ("before they come", " and arrivals[first] <= now", "",
         "Requests join before they have come: request r is there from step arrivals[r] on."),
        ("a step late", "arrivals[first] <= now", "arrivals[first] < now",
         "Requests join one step too late: who comes at a step may take part in it."),
        ("without eos", "    inside[request].append(token)\n        if token == eos_id:\n            "
         "said[request] = inside.pop(request)",
         "    if token == eos_id:\n            said[request] = inside.pop(request)\n        else:\n            "
         "inside[request].append(token)",
         "You leave eos_id out of the tokens; it is the last of them."),
        ("in the order of their ends", "[(joined[r], said[r]) for r in range(len(arrivals))]",
         "[(joined[r], said[r]) for r in said]",
         "Your list is in the order in which requests end; entry r belongs to request r."),
        ("one a step", "while first < len(arrivals) and", "if first < len(arrivals) and",
         "You let one request join at a step; as many may as there is room for."),
    ),
)  # fmt: skip


# 22.8 Pages that requests share --------------------------------------------------------------------------------------


def find_pages(tokens, page_size, held, free):
    """Return (table, computed, held, free) for a new request: its pages, and how many of its tokens must be computed.

    tokens: the list of its ids. held: for each page of the memory the tuple of all ids from a text's beginning to the
    end of that page, or () if the page is not full. free: a list of unused pages. As long as a page holds the right
    beginning, the request shares it (the first such page), but its last token is always computed. Then it takes pages
    from the front of free, and those that it fills are noted in held. If free has too few, it takes nothing: table is
    [], computed 0, and held and free stay as they were.
    """
    table = []
    for count in range(1, len(tokens)):
        beginning = tuple(tokens[: count * page_size])
        if count * page_size >= len(tokens) or beginning not in held:
            break
        table.append(held.index(beginning))
    shared = len(table)
    needed = -(-len(tokens) // page_size) - shared
    if needed > len(free):
        return [], 0, list(held), list(free)
    notes = list(held)
    for number, page in enumerate(free[:needed], start=shared + 1):
        table.append(page)
        if number * page_size <= len(tokens):
            notes[page] = tuple(tokens[: number * page_size])
    return table, len(tokens) - shared * page_size, notes, list(free[needed:])


def _sharing_case(label, seed, length, page_size, n_pages, shared=(), others=(), free=None):
    """Return a case in which `shared` pages hold the beginning of the tokens, and `others` something else."""
    tokens = integers(seed, (length,), 5, 60).tolist()
    held = [()] * n_pages
    for count, page in enumerate(shared, start=1):
        held[page] = tuple(tokens[: count * page_size])
    for page, (changed, count) in others:
        held[page] = tuple(70 + i if place == changed else i for place, i in enumerate(tokens[: count * page_size]))
    if free is None:
        free = [page for page in range(n_pages)[::-1] if not held[page]]
    return Case(label, (tokens, page_size, held, list(free)))


def _sharing_cases():
    return [
        _sharing_case("nothing is held", 22800, 7, 3, 5),
        _sharing_case("two pages are held", 22801, 11, 3, 7, shared=(4, 1)),
        _sharing_case("the same tokens after another beginning", 22802, 11, 3, 7, shared=(5,), others=[(2, (0, 2))]),
        _sharing_case("the whole text is held", 22803, 6, 3, 5, shared=(3, 0)),
        _sharing_case("the whole text but one token", 22804, 7, 3, 5, shared=(3, 0)),
        _sharing_case("too few pages are free", 22805, 11, 2, 7, shared=(4, 1), free=(6, 2, 5)),
        _sharing_case("just enough are free", 22806, 11, 2, 7, shared=(4, 1), free=(6, 2, 5, 0)),
        _sharing_case("pages of one token", 22807, 5, 1, 11, shared=(7, 2, 9)),
        _sharing_case("the last page is filled", 22808, 15, 5, 7, shared=(2,)),
        _sharing_case("a short text", 22809, 2, 5, 3),
        _sharing_case("the second page differs in its last token", 22810, 13, 3, 11, shared=(8,), others=[(3, (5, 2))]),
    ]


EXERCISE_8 = Exercise(
    "22.8", "Pages that requests share", 12, 3, find_pages, _sharing_cases,
    slips(
        "tokens, page_size, held, free", """
            held, free, table = list(held), list(free), []
            for end in range(page_size, len(tokens), page_size):
                if tuple(tokens[:end]) not in held:
                    break
                table.append(held.index(tuple(tokens[:end])))
            computed = len(tokens) - page_size * len(table)
            missing = -(-len(tokens) // page_size) - len(table)
            if missing > len(free):
                return [], 0, held, free
            for page in free[:missing]:
                table.append(page)
                end = len(table) * page_size
                if end <= len(tokens):
                    held[page] = tuple(tokens[:end])
            return table, computed, held, free[missing:]
        """,
        ("the page's own tokens",
         "if tuple(tokens[:end]) not in held:\n        break\n    table.append(held.index(tuple(tokens[:end])))",
         "mine = [beginning[-page_size:] for beginning in held]\n    if tuple(tokens[end - page_size:end]) not in mine:"
         "\n        break\n    table.append(mine.index(tuple(tokens[end - page_size:end])))",
         "You compare the page's own tokens alone. Their keys depend on all tokens before them, so the whole "
         "beginning must be the same."),
        ("the last token, too", "range(page_size, len(tokens), page_size)",
         "range(page_size, len(tokens) + 1, page_size)",
         "Where pages hold the whole text you share them all, and then nothing is left to compute the next token from: "
         "the last token is always computed."),
        ("never noted", "held[page] = tuple(tokens[:end])", "pass",
         "The pages that you fill are not noted in held, so no later request will find them."),
        ("noted before they are full", "if end <= len(tokens):", "if end:",
         "You note the last page though it is not full: its other places are still to be written."),
        ("its own tokens noted", "held[page] = tuple(tokens[:end])", "held[page] = tuple(tokens[end - page_size:end])",
         "You note a page's own tokens in held; note all from the beginning of the text to the page's end."),
        ("still free", "free[missing:]", "free",
         "The pages that you take are still in free, and others will take them, too."),
        ("everything is computed", "len(tokens) - page_size * len(table)", "len(tokens)",
         "You count all tokens as computed; those in shared pages were computed before."),
        ("takes what there is", "if missing > len(free):\n    return [], 0, held, free\n", "",
         "Where too few pages are free you go on all the same, with a table that is too short. The request must wait: "
         "return [], 0 and the other two unchanged."),
        ("one page at least", "-(-len(tokens) // page_size) - len(table)", "len(tokens) // page_size + 1 - len(table)",
         "Where the text ends with a page you take one page too many: its number of pages is len(tokens) / page_size, "
         "rounded up."),
    ),
    returns=("table", "computed", "held", "free"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7, EXERCISE_8)
