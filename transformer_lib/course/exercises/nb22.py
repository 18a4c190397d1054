"""The exercises of notebook 22: drafted tokens, int8 weights, pages of a cache, and one block of a backward pass."""

from __future__ import annotations

import math

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


def _drafted_case(label, seed, count, agree, eos_at=(), eos_id=2):
    """Return a case whose first `agree` of `count` drafted tokens are the target's; it disagrees at the next.

    eos_at puts ends of the sentence among the target's tokens. Where there is room, both agree once more further on.
    """
    checked = integers(seed, (count + 1,), 3, 50).tolist()
    drafted = [token if place < agree else token + 50 for place, token in enumerate(checked[:count])]
    if count > agree + 1:
        drafted[agree + 1] = checked[agree + 1]
    for place in eos_at:
        checked[place] = eos_id
        if place < agree:
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
    ]


EXERCISE_1 = Exercise(
    "22.1", "Which drafted tokens stand", 10, 2, tokens_that_stand, _drafted_cases,
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
    ),
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

    A row's scale is its largest absolute value, divided by 127; of a row of zeros it is 1. The codes are the row
    divided by its scale, rounded to the nearest whole number, so that codes · scale is as near to the row as it gets.
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

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
