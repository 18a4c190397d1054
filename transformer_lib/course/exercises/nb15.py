"""The exercises of notebook 15: what the heads learned."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 15.1 The words that a head reads most -------------------------------------------------------------------------------


def top_weights(weights, tokens, k):
    """Return for each query the k tokens that it reads most, largest weight first, as a list of lists of strings.

    weights: [q_len, k_len], one head. tokens: k_len strings, the keys. k: at most k_len.
    """
    answers = []
    for row in weights.tolist():
        order = sorted(range(len(row)), key=lambda j: -row[j])
        answers.append([tokens[j] for j in order[:k]])
    return answers


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
        case("a word that occurs twice", 1506, 3, "the man saw the bank", 4),
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


EXERCISE_1 = Exercise(
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
)


# 15.2 How much does a key add? ---------------------------------------------------------------------------------------


def weighted_norms(weights, value, W_O):
    """Return the length of what query i receives from key j, weights[i, j] value[j] W_O, as [q_len, k_len].

    weights: [q_len, k_len]; value: [k_len, d_v]; W_O: [d_v, d_model], the rows of this one head.
    """
    lengths = [torch.linalg.vector_norm(row @ W_O) for row in value]
    return weights * torch.stack(lengths)[None, :]


def _norm_cases():
    def case(label, seed, q_len, k_len, d_v, d_model):
        scores, value, W_O = normal(seed, (q_len, k_len), (k_len, d_v), (d_v, d_model))
        return Case(label, (torch.softmax(2 * scores, dim=-1), value, W_O))

    return [
        case("2 queries, 3 keys", 1531, 2, 3, 2, 5),
        case("5 queries, 7 keys", 1532, 5, 7, 3, 11),
        case("as many queries as keys", 1533, 3, 3, 2, 7),
        case("one query", 1534, 1, 5, 3, 2),
        case("square", 1535, 5, 5, 5, 5),
    ]


EXERCISE_2 = Exercise(
    "15.2",
    "How much does a key add?",
    10,
    2,
    weighted_norms,
    _norm_cases,
    (
        Mistake(
            "weights alone",
            lambda w, v, W: w.clone(),
            "These are the weights; each is to be multiplied by a length.",
        ),
        Mistake(
            "no weights",
            lambda w, v, W: (v @ W).norm(dim=-1).expand(len(w), -1).clone(),
            "These are the lengths without the weights.",
        ),
        Mistake(
            "value not projected",
            lambda w, v, W: w * v.norm(dim=-1),
            "The length is that of the value before W_O; what arrives is value[j] W_O.",
        ),
        Mistake(
            "product of norms",
            lambda w, v, W: w * v.norm(dim=-1) * W.norm(),
            "The length of a product is not the product of the lengths: multiply value by W_O first.",
        ),
        Mistake(
            "squared",
            lambda w, v, W: w * (v @ W).square().sum(dim=-1),
            "That is the squared length; take its root.",
        ),
        Mistake(
            "weight squared",
            lambda w, v, W: w.square() * (v @ W).norm(dim=-1),
            "The weight multiplies the vector, so it multiplies the length once, not squared.",
        ),
        Mistake(
            "length of the sum",
            lambda w, v, W: (w @ v @ W).norm(dim=-1)[:, None].expand_as(w).clone(),
            "That is the length of the whole output of a query; asked for is the part of each key.",
        ),
        Mistake(
            "rows to one",
            lambda w, v, W: torch.nn.functional.normalize(w * (v @ W).norm(dim=-1), p=1, dim=-1),
            "You made the rows sum to one again; leave the lengths as they are.",
        ),
    ),
    gradients=("weights", "value", "W_O"),
)


# 15.3 Silence a head -------------------------------------------------------------------------------------------------


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


def _with_factors(factors):
    """Return the multi-head output with a factor for each head."""

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
    """Take the silent head's columns as interleaved: every n-th column."""
    flat = heads.transpose(0, 1).flatten(1).clone()
    flat[:, silent :: heads.shape[0]] = 0
    return flat @ W_O


def _query_silenced(heads, W_O, silent):
    flat = heads.transpose(0, 1).flatten(1).clone()
    flat[silent % len(flat)] = 0
    return flat @ W_O


def _one(n, silent):
    return torch.arange(n) == silent


EXERCISE_3 = Exercise(
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
)


# 15.4 Sharp or spread: the entropy of a row --------------------------------------------------------------------------


def row_entropy(weights):
    """Return the entropy of each row in nats, [n_heads, q_len]; a weight of 0 adds nothing.

    weights: [n_heads, q_len, k_len], each row sums to one. 0 where one key has everything, ln k_len where all share.
    """
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -torch.einsum("hqk,hqk->hq", weights, torch.log(safe))


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


def _entropy(log=torch.log, sign=-1.0, axis=-1, mean=False, scale=lambda w: 1.0):
    def function(weights):
        safe = torch.where(weights > 0, weights, torch.ones_like(weights))
        summed = (weights * log(safe)).mean(dim=axis) if mean else (weights * log(safe)).sum(dim=axis)
        return sign * summed / scale(weights)

    return function


EXERCISE_4 = Exercise(
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
)


# 15.5 Exchange one row -----------------------------------------------------------------------------------------------


def patch(memory, donor, places):
    """Return a copy of memory in which sentence i has row places[i] of donor's sentence i; memory stays as it is.

    memory, donor: [batch, src_len, d_model]; places: [batch] integers.
    """
    rows = []
    for own, other, place in zip(memory, donor, places.tolist(), strict=True):
        rows.append(torch.cat([own[:place], other[place : place + 1], own[place + 1 :]]))
    return torch.stack(rows)


def _patch_cases():
    def case(label, seed, batch, src_len, d_model):
        memory, donor = normal(seed, (batch, src_len, d_model), (batch, src_len, d_model))
        return Case(label, (memory, donor, integers(seed, (batch,), 0, src_len)))

    def at(label, seed, places, src_len, d_model):
        memory, donor = normal(seed, (len(places), src_len, d_model), (len(places), src_len, d_model))
        return Case(label, (memory, donor, torch.tensor(places)))

    return [
        at("2 sentences, places 0 and 2", 1551, [0, 2], 3, 2),
        at("one sentence, its last place", 1552, [4], 5, 3),
        case("5 sentences", 1553, 5, 7, 3),
        at("as many sentences as places", 1554, [2, 0, 1], 3, 5),
        case("7 sentences of 11", 1555, 7, 11, 2),
    ]


def _patched(rows, columns=None, turned=False):
    """Return the memory with rows from the donor; rows(places) are sentences, columns(places) places (default: all)."""

    def function(memory, donor, places):
        base, source = (donor, memory) if turned else (memory, donor)
        result = base.clone()
        sentences, chosen = rows(places), columns(places) if columns else slice(None)
        result[sentences, chosen] = source[sentences, chosen]
        return result

    return function


def _all(places):
    return torch.arange(len(places))


def _in_place(memory, donor, places):
    memory[_all(places), places] = donor[_all(places), places]
    return memory


def _first_donor(memory, donor, places):
    result = memory.clone()
    result[_all(places), places] = donor[0, places]
    return result


EXERCISE_5 = Exercise(
    "15.5",
    "Exchange one row",
    10,
    2,
    patch,
    _patch_cases,
    (
        Mistake("in place", _in_place, "You changed memory itself; work on a copy."),
        Mistake(
            "all but one",
            _patched(_all, lambda p: p, turned=True),
            "The roles are exchanged: all rows come from donor, and one from memory.",
        ),
        Mistake(
            "every sentence, every place",
            _patched(lambda p: slice(None), lambda p: p),
            "Each sentence got donor's rows at all the places: index sentence i together with places[i].",
        ),
        Mistake(
            "first place",
            _patched(_all, lambda p: p[:1].expand(len(p))),
            "All sentences were changed at the place of the first one.",
        ),
        Mistake("one too late", _patched(_all, lambda p: p - 1), "You changed a row beside the one asked for."),
        Mistake("first donor", _first_donor, "All rows come from donor's first sentence."),
        Mistake("nothing", lambda memory, donor, places: memory.clone(), "Nothing was exchanged."),
    ),
    gradients=("memory", "donor"),
)


# 15.6 A probe: the nearest mean --------------------------------------------------------------------------------------


def nearest_mean(known, labels, asked):
    """Return for each asked vector the label whose known vectors have the nearest mean, [n_asked] integers.

    known: [n_known, d_model]; labels: [n_known] integers 0, 1, …, each used at least once; asked: [n_asked, d_model].
    Nearest by Euclidean distance.
    """
    kinds = int(labels.max()) + 1
    answers = []
    for vector in asked:
        distances = [((vector - known[labels == kind].mean(dim=0)) ** 2).sum().item() for kind in range(kinds)]
        answers.append(distances.index(min(distances)))
    return torch.tensor(answers)


def _probe_cases():
    def case(label, seed, n_known, n_asked, d_model, kinds):
        centres, noise, other = normal(seed, (kinds, d_model), (n_known, d_model), (n_asked, d_model))
        labels = torch.cat([torch.arange(kinds), integers(seed, (n_known - kinds,), 0, kinds)])
        sizes = torch.linspace(0.5, 2.5, kinds)[:, None]  # means of different lengths: distance is not a product
        asked = (centres * sizes)[integers(seed + 1, (n_asked,), 0, kinds)] + 0.8 * other
        return Case(label, ((centres * sizes)[labels] + 0.8 * noise, labels, asked))

    return [
        case("2 labels in the plane", 1541, 11, 7, 2, 2),
        case("3 labels", 1542, 23, 13, 5, 3),
        case("5 labels", 1543, 31, 17, 7, 5),
        case("one vector asked", 1544, 7, 1, 3, 2),
        case("few known vectors", 1545, 5, 19, 2, 3),
        case("more asked than known", 1546, 7, 29, 3, 3),
        Case(
            "the labels are not in order",
            (
                torch.tensor([[4.0, 0], [0, 4], [4, 1], [0, 0]]),
                torch.tensor([2, 0, 2, 1]),
                torch.tensor([[3.0, 0], [0, 3], [0, 1], [5, 1], [1, 0]]),
            ),
        ),
    ]


def _means(known, labels):
    one_hot = torch.nn.functional.one_hot(labels).to(known)
    return one_hot.T @ known / one_hot.sum(dim=0)[:, None], one_hot


def _probe(closeness):
    return lambda known, labels, asked: closeness(asked, *_means(known, labels)).argmax(dim=-1)


def _nearest_neighbour(known, labels, asked):
    return labels[torch.cdist(asked, known).argmin(dim=-1)]


def _in_order_of_appearance(known, labels, asked):
    means = torch.stack([known[labels == label].mean(dim=0) for label in dict.fromkeys(labels.tolist())])
    return torch.cdist(asked, means).argmin(dim=1)


EXERCISE_6 = Exercise(
    "15.6",
    "A probe: the nearest mean",
    12,
    2,
    nearest_mean,
    _probe_cases,
    (
        Mistake("farthest", _probe(lambda a, m, h: torch.cdist(a, m)), "That is the farthest mean."),
        Mistake(
            "dot product",
            _probe(lambda a, m, h: a @ m.T),
            "The largest dot product prefers long means; asked for is the smallest distance.",
        ),
        Mistake(
            "cosine",
            _probe(
                lambda a, m, h: torch.nn.functional.normalize(a, dim=-1) @ torch.nn.functional.normalize(m, dim=-1).T
            ),
            "You compared directions (cosine); asked for is the Euclidean distance.",
        ),
        Mistake(
            "sums",
            _probe(lambda a, m, h: -torch.cdist(a, m * h.sum(dim=0)[:, None])),
            "You compared with sums; divide each by the number of its vectors.",
        ),
        Mistake(
            "divided by all",
            _probe(lambda a, m, h: -torch.cdist(a, m * h.mean(dim=0)[:, None])),
            "You divided each sum by the number of all vectors; a mean divides by the number of its own.",
        ),
        Mistake(
            "nearest neighbour",
            _nearest_neighbour,
            "That is the label of the single nearest known vector; asked for is the nearest mean.",
        ),
        Mistake(
            "most frequent",
            lambda known, labels, asked: labels.mode().values.expand(len(asked)).clone(),
            "You answer the most frequent label, whatever is asked.",
        ),
        Mistake(
            "in the order of appearance",
            _in_order_of_appearance,
            "Your means stand in the order in which the labels appear; mean c belongs to label c.",
        ),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
