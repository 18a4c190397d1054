"""The exercises of notebook 15: what the heads learned."""

from __future__ import annotations

import itertools

import torch

from .model import Case, Exercise, Mistake, integers, normal

# 15.1 How much does a key add? ---------------------------------------------------------------------------------------


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


EXERCISE_1 = Exercise(
    "15.1",
    "How much does a key add?",
    7,
    1,
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
            "vectors",
            lambda w, v, W: w[:, :, None] * (v @ W),
            "These are the vectors that arrive; asked for is the length of each.",
        ),
        Mistake(
            "one length for all",
            lambda w, v, W: w * (v @ W).norm(),
            "You took the length of the whole matrix; each key has its own: norm(dim=-1).",
        ),
        Mistake(
            "sum of absolute values",
            lambda w, v, W: w * (v @ W).abs().sum(dim=-1),
            "You added absolute values; the length is the root of the sum of squares.",
        ),
        Mistake(
            "rows to one",
            lambda w, v, W: torch.nn.functional.normalize(w * (v @ W).norm(dim=-1), p=1, dim=-1),
            "You made the rows sum to one again; leave the lengths as they are.",
        ),
    ),
    gradients=("weights", "value", "W_O"),
)


# 15.2 Rank correlation -----------------------------------------------------------------------------------------------


def rank_correlation(x, y):
    """Return Spearman's rank correlation: the correlation of the ranks of x and y, a number from -1 to 1.

    x, y: [n] each, with no number twice.
    """
    n = len(x)
    ranks = [[sum(bool(other < one) for other in values) for one in values] for values in (x, y)]
    squares = sum((r - s) ** 2 for r, s in zip(*ranks, strict=True))
    return 1 - 6 * squares / (n * (n**2 - 1))


def _rank_cases():
    def case(label, seed, n, change=lambda x, y: (x, y)):
        return Case(label, change(*normal(seed, (n,), (n,))))

    return [
        case("3 numbers", 1501, 3, lambda x, y: (x, (x[[1, 2, 0]] - y.abs()))),
        case("5 numbers", 1502, 5),
        case("4 numbers", 1508, 4),
        case("11 numbers", 1503, 11),
        case("10 numbers", 1509, 10),
        case("a curved relation", 1504, 7, lambda x, y: (x, torch.exp(3 * x))),
        case("one falls where the other rises", 1505, 7, lambda x, y: (x, -x - x**3)),
        case("one huge value", 1506, 13, lambda x, y: (x, torch.cat([y[:-1], y[-1:].abs() + 1000]))),
        case("large numbers", 1507, 5, lambda x, y: (1e4 * x + 3e4, y)),
    ]


def _ranks(values):
    return values.argsort().argsort().double()


def _correlated(ranks=_ranks, centred=True, scaled=True, root=0.5):
    """Return a function that correlates what `ranks` makes of its two arguments."""

    def function(x, y):
        r, s = (ranks(values).double() for values in (x, y))
        if centred:
            r, s = r - r.mean(), s - s.mean()
        if not scaled:
            return (r * s).mean()
        return (r * s).sum() / (r.square().sum() * s.square().sum()) ** root

    return function


def _pairs_in_order(x, y):
    """Kendall's tau: pairs that both numbers order alike, minus pairs that they order differently, as a share."""
    pairs = itertools.combinations(range(len(x)), 2)
    signs = [torch.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]
    return sum(signs) / len(signs)


def _bessel(x, y):
    r, s = _ranks(x), _ranks(y)
    return ((r - r.mean()) * (s - s.mean())).mean() / (r.std() * s.std())


def _squared_after(x, y):
    r, s = _ranks(x), _ranks(y)
    r, s = r - r.mean(), s - s.mean()
    return (r * s).sum() / (r.sum() ** 2 * s.sum() ** 2).sqrt()


def _lengths_added(x, y):
    r, s = _ranks(x), _ranks(y)
    r, s = r - r.mean(), s - s.mean()
    return (r * s).sum() / (r.norm() + s.norm())


EXERCISE_2 = Exercise(
    "15.2",
    "Rank correlation",
    9,
    2,
    rank_correlation,
    _rank_cases,
    (
        Mistake(
            "no ranks",
            _correlated(ranks=lambda values: values),
            "That is the correlation of the numbers themselves; replace each by its rank first.",
        ),
        Mistake(
            "argsort once",
            _correlated(ranks=lambda values: values.argsort()),
            "argsort() says which element comes first, second …; the rank says where an element comes. "
            "Its own argsort() gives the ranks.",
        ),
        Mistake(
            "one of them ranked",
            lambda x, y: torch.corrcoef(torch.stack([_ranks(x), y.double()]))[0, 1],
            "Only x was replaced by its ranks; y needs them, too.",
        ),
        Mistake(
            "ranks in opposite directions",
            lambda x, y: _correlated()(x, -y),
            "The sign is wrong: rank both from the smallest to the largest.",
        ),
        Mistake("sign lost", lambda x, y: _correlated()(x, y).abs(), "A falling relation has a negative correlation."),
        Mistake("not centred", _correlated(centred=False), "The means of the ranks have to be subtracted first."),
        Mistake("not divided", _correlated(scaled=False), "That is a covariance: it is not divided by the lengths."),
        Mistake(
            "centred by half of n",
            _correlated(ranks=lambda values: _ranks(values) - len(values) / 2, centred=False),
            "The mean of the ranks 0 to n − 1 is (n − 1) / 2, not n / 2.",
        ),
        Mistake(
            "centred by a whole number",
            _correlated(ranks=lambda values: _ranks(values) - len(values) // 2, centred=False),
            "For an even n the mean of the ranks is no whole number.",
        ),
        Mistake(
            "squared after the sum",
            _squared_after,
            "Square each rank before you add them up; here the sums were squared.",
        ),
        Mistake(
            "lengths added",
            _lengths_added,
            "The sum of products is divided by the product of the two lengths, not by their sum.",
        ),
        Mistake("no root", _correlated(root=1.0), "The root in the denominator is missing."),
        Mistake(
            "n and n - 1",
            _bessel,
            "The mean divides by n and std() by n − 1, so that the result is too small by (n − 1) / n.",
        ),
        Mistake(
            "pairs",
            _pairs_in_order,
            "You counted pairs in the same order (Kendall's tau); asked for is the correlation of the ranks.",
        ),
        Mistake(
            "squared",
            lambda x, y: _correlated()(x, y) ** 2,
            "You squared the correlation; its sign and size belong to the answer.",
        ),
        Mistake(
            "distance",
            lambda x, y: (_ranks(x) - _ranks(y)).abs().mean(),
            "That is how far the ranks lie apart; asked for is their correlation.",
        ),
    ),
    rtol=1e-4,
)


# 15.3 Replace heads --------------------------------------------------------------------------------------------------


def replace_heads(x, other, heads, n_heads):
    """Return a copy of x in which the features of some heads are those of other.

    x, other: [batch, seq_len, n_heads * d], the heads side by side; heads: a list of their numbers, from 0.
    """
    pieces = list(x.chunk(n_heads, dim=-1))
    for head in heads:
        pieces[head] = other.chunk(n_heads, dim=-1)[head]
    return torch.cat(pieces, dim=-1)


def _replace_cases():
    def case(label, seed, batch, seq_len, n_heads, d, heads):
        x, other = normal(seed, (batch, seq_len, n_heads * d), (batch, seq_len, n_heads * d))
        return Case(label, (x, other, heads, n_heads))

    return [
        case("2 heads of width 2, the first one", 1511, 1, 2, 2, 2, [0]),
        case("3 heads, the last one", 1512, 2, 5, 3, 2, [2]),
        case("3 heads, two of them", 1513, 3, 2, 3, 5, [0, 2]),
        case("5 heads, two of them in another order", 1514, 2, 3, 5, 3, [3, 1]),
        case("one sentence, one token", 1515, 1, 1, 2, 3, [1]),
        case("as many heads as features of one", 1516, 2, 7, 3, 3, [1]),
        case("all but one head", 1517, 1, 3, 3, 5, [1, 0]),
    ]


def _replaced(features):
    """Return a function that takes the features of x where `features` [n_heads * d] is False, else those of other."""

    def function(x, other, heads, n_heads):
        return torch.where(features(x.shape[-1], heads, n_heads), other, x)

    return function


def _of_heads(width, heads, n_heads):
    return torch.tensor([feature // (width // n_heads) in heads for feature in range(width)])


def _interleaved(width, heads, n_heads):
    return torch.tensor([feature % n_heads in heads for feature in range(width)])


def _from_one(width, heads, n_heads):
    return _of_heads(width, [(head - 1) % n_heads for head in heads], n_heads)


def _none_for_0(width, heads, n_heads):
    """Take the columns (head - 1) · d to head · d, of which there are none for head 0."""
    return _of_heads(width, [head - 1 for head in heads if head], n_heads)


def _in_place(x, other, heads, n_heads):
    chosen = _of_heads(x.shape[-1], heads, n_heads)
    x[..., chosen] = other[..., chosen]
    return x


def _features_as_heads(width, heads, n_heads):
    return torch.tensor([feature in heads for feature in range(width)])


def _first_of_other(x, other, heads, n_heads):
    parts = x.unflatten(-1, (n_heads, -1)).clone()
    parts[..., heads, :] = other.unflatten(-1, (n_heads, -1))[..., : len(heads), :]
    return parts.flatten(-2)


def _sizes_swapped(x, other, heads, n_heads):
    parts = x.unflatten(-1, (-1, n_heads)).clone()
    parts[..., heads, :] = other.unflatten(-1, (-1, n_heads))[..., heads, :]
    return parts.flatten(-2)


def _on_the_features(x, other, heads, n_heads):
    parts = x.unflatten(-1, (n_heads, -1)).clone()
    parts[..., heads] = other.unflatten(-1, (n_heads, -1))[..., heads]
    return parts.flatten(-2)


def _on_the_batch(x, other, heads, n_heads):
    parts = x.unflatten(-1, (n_heads, -1)).clone()
    parts[heads] = other.unflatten(-1, (n_heads, -1))[heads]
    return parts.flatten(-2)


def _tokens_replaced(x, other, heads, n_heads):
    result = x.clone()
    for head in heads:
        result[:, head % x.shape[1]] = other[:, head % x.shape[1]]
    return result


def _heads_before_tokens(x, other, heads, n_heads):
    batch, seq_len, width = x.shape
    parts = x.reshape(batch, n_heads, seq_len, width // n_heads).clone()
    parts[:, heads] = other.reshape(batch, n_heads, seq_len, width // n_heads)[:, heads]
    return parts.reshape(x.shape)


def _not_merged(x, other, heads, n_heads):
    return replace_heads(x, other, heads, n_heads).unflatten(-1, (n_heads, -1))


EXERCISE_3 = Exercise(
    "15.3",
    "Replace heads",
    7,
    2,
    replace_heads,
    _replace_cases,
    (
        Mistake("in place", _in_place, "You changed an input itself; work on a copy."),
        Mistake(
            "the others",
            _replaced(lambda *given: ~_of_heads(*given)),
            "The roles are swapped: the heads in the list come from other, the rest from x.",
        ),
        Mistake("counts from 1", _replaced(_from_one), "Neighbouring heads were replaced: heads counts from 0."),
        Mistake(
            "columns from 1",
            _replaced(_none_for_0),
            "You counted the heads from 1; head 0 has the columns 0 to d − 1.",
        ),
        Mistake(
            "dealt in turn",
            _replaced(_interleaved),
            "The features of a head stand together: head h has the columns h · d to (h + 1) · d − 1.",
        ),
        Mistake(
            "features",
            _replaced(_features_as_heads),
            "You replaced single features; a head has d of them, side by side.",
        ),
        Mistake(
            "sizes swapped",
            _sizes_swapped,
            "You split the last axis into [d, n_heads]; it is [n_heads, d], as the features of a head stand together.",
        ),
        Mistake(
            "list on the features",
            _on_the_features,
            "The list went to the features of each head; after the split the heads are the last axis but one.",
        ),
        Mistake(
            "list on the batch",
            _on_the_batch,
            "The list went to the sentences, axis 0; after the split the heads are the last axis but one.",
        ),
        Mistake("tokens", _tokens_replaced, "You replaced tokens; the heads lie along the last axis."),
        Mistake(
            "split before the tokens",
            _heads_before_tokens,
            "Split the last axis, into [batch, seq_len, n_heads, d]; a reshape that puts the heads in front of the "
            "tokens mixes both.",
        ),
        Mistake(
            "only the first",
            _replaced(lambda width, heads, n: _of_heads(width, heads[:1], n)),
            "Only the first head of the list was replaced.",
        ),
        Mistake(
            "only the last",
            _replaced(lambda width, heads, n: _of_heads(width, heads[-1:], n)),
            "Only the last head of the list was replaced.",
        ),
        Mistake(
            "zeros",
            lambda x, other, heads, n: torch.where(_of_heads(x.shape[-1], heads, n), torch.zeros_like(x), x),
            "You made these heads zero; their features come from other.",
        ),
        Mistake(
            "added",
            lambda x, other, heads, n: torch.where(_of_heads(x.shape[-1], heads, n), x + other, x),
            "You added other's features to x's; they take their place.",
        ),
        Mistake("the whole of other", lambda x, other, heads, n: other.clone(), "Everything came from other."),
        Mistake("nothing", lambda x, other, heads, n: x.clone(), "Nothing was replaced."),
        Mistake(
            "the first heads of other",
            _first_of_other,
            "You took the first heads of other; each head in the list takes the place of the same head of x.",
        ),
        Mistake("not merged", _not_merged, "Join the last two axes again, so that the result has the shape of x."),
    ),
    gradients=("x", "other"),
)


# 15.4 Prune ----------------------------------------------------------------------------------------------------------


def prune(score, heads, n):
    """Return n heads in the order in which they are silenced, as a list.

    Each time it is the head without which the score is best, given those that are silent already; of equals, the one
    that stands first in heads. score: a function from a list of silent heads to a number, larger is better.
    """
    order = []
    while len(order) < n:
        best = None
        for head in heads:
            if head in order:
                continue
            value = score([*order, head])
            if best is None or value > best[0]:
                best = value, head
        order.append(best[1])
    return order


class Score:
    """Minus the cost of what is silent: so much for each head, and more once a whole group is silent.

    Args:
        costs: {head: cost}. groups: {heads that stand in for each other: cost once all of them are silent}.
    """

    def __init__(self, costs, groups):
        self.costs, self.groups = costs, groups

    def __call__(self, silent):
        """Return the score once these heads are silent."""
        silent = set(silent)
        alone = sum(self.costs[head] for head in silent)
        return -alone - sum(cost for group, cost in self.groups.items() if silent >= set(group))

    def __repr__(self):
        groups = ", ".join(f"{cost} once {' and '.join(map(str, group))} are" for group, cost in self.groups.items())
        return f"minus {self.costs} for each silent head, and minus {groups}"


def _prune_cases():
    def case(label, costs, groups, n, heads="ABCDE"):
        """The letters stand for the heads 0, 1, 2 …"""
        number = {letter: head for head, letter in enumerate(costs)}
        score = Score(
            {number[letter]: cost for letter, cost in costs.items()},
            {tuple(number[letter] for letter in group): cost for group, cost in groups.items()},
        )
        told = f"{label}; score: {score!r}" if groups else label
        return Case(told, (score, [number[letter] for letter in heads if letter in costs], n))

    five = {"A": 1, "B": 2, "C": 4, "D": 7, "E": 9}
    return [
        case("two heads stand in for each other", {"A": 1, "B": 2, "C": 3}, {"AB": 10}, 2),
        case("five heads", five, {"AB": 3, "CD": 20}, 3),
        case("no groups", {"A": 5, "B": 1, "C": 3, "D": 2}, {}, 3),
        case("equals", {"A": 2, "B": 1, "C": 1, "D": 1}, {"BC": 4, "CD": 4}, 3),
        case("in another order", five, {"AC": 6, "BD": 1, "AE": 2}, 4, heads="ECADB"),
        case("one", {"A": 3, "B": 2, "C": 5}, {}, 1),
        case("all", {"A": 3, "B": 2, "C": 4, "D": 1}, {"BD": 5, "AC": 1}, 4),
        case("a group of three", {"A": 1, "B": 1.5, "C": 2, "D": 5, "E": 6}, {"ABC": 30, "DE": 1}, 4),
        case("a better pair, without the cheapest", {"A": 1, "B": 2, "C": 2.5, "D": 20}, {"AB": 10, "AC": 10}, 2),
        case("none", {"A": 1, "B": 2}, {}, 0),
    ]


def _pruned(value=lambda score, order, head: score([*order, head]), best=max, left=None):
    def function(score, heads, n):
        order = []
        for _ in range(n):
            speaking = [head for head in heads if head not in order]
            speaking = left(speaking) if left else speaking
            order.append(best(speaking, key=lambda head: value(score, order, head)))
        return order

    return function


def _sorted_once(score, heads, n):
    return sorted(heads, key=lambda head: -score([head]))[:n]


def _speaking(score, order, head, heads):
    return score([other for other in heads if other != head and other not in order])


def _kept_scored(score, heads, n):
    return _pruned(lambda score, order, head: _speaking(score, order, head, heads))(score, heads, n)


def _from_0(score, heads, n):
    """Look for the best score from 0 on, which none exceeds."""
    order = []
    for _ in range(n):
        best, chosen = 0, None
        for head in heads:
            if head not in order and score([*order, head]) > best:
                best, chosen = score([*order, head]), head
        order.append(chosen)
    return order


def _best_set(score, heads, n):
    """The best n heads together, in the order of heads."""
    return list(max(itertools.combinations(heads, n), key=score))


def _emptied(score, heads, n):
    order = []
    for _ in range(n):
        best = max(heads, key=lambda head: score([*order, head]))
        heads.remove(best)
        order.append(best)
    return order


EXERCISE_4 = Exercise(
    "15.4",
    "Prune",
    12,
    3,
    prune,
    _prune_cases,
    (
        Mistake(
            "sorted once",
            _sorted_once,
            "You ranked the heads by what each costs alone; score them again in each round, with the silent ones.",
        ),
        Mistake(
            "costliest first",
            lambda score, heads, n: sorted(heads, key=lambda head: score([head]))[:n],
            "You sorted once, the costliest first; a larger score is better, and the scores change in each round.",
        ),
        Mistake("the worst", _pruned(best=min), "You silence the head that costs most: a larger score is better."),
        Mistake(
            "speaking scored",
            _kept_scored,
            "You scored the heads that still speak; score takes the silent ones.",
        ),
        Mistake(
            "last of equals",
            _pruned(left=lambda speaking: speaking[::-1]),
            "Of equals you took the last; it is the one that stands first in heads.",
        ),
        Mistake(
            "in the order of heads",
            lambda score, heads, n: sorted(prune(score, heads, n), key=heads.index),
            "These heads are right, but they stand in the order of heads; return them in the order of pruning.",
        ),
        Mistake(
            "those that are left",
            lambda score, heads, n: [head for head in heads if head not in prune(score, heads, n)],
            "You returned the heads that still speak; asked for are the silent ones.",
        ),
        Mistake(
            "the other way",
            lambda score, heads, n: prune(score, heads, n)[::-1],
            "The order is reversed: the first to be silenced comes first.",
        ),
        Mistake(
            "only the last silent",
            _pruned(lambda score, order, head: score([*order[-1:], head])),
            "You remember only the head silenced last; all earlier ones stay silent, too.",
        ),
        Mistake(
            "with the same head again",
            lambda score, heads, n: [prune(score, heads, 1)[0]] * n if n else [],
            "The same head comes again and again; a silent head cannot be silenced twice.",
        ),
        Mistake(
            "best from 0 on",
            _from_0,
            "Your best score begins at 0, and all scores are negative, so no head is ever chosen (None): begin at "
            "-inf, or use max.",
        ),
        Mistake("best set", _best_set, "Other heads are silent: begin with none, and silence them one by one."),
        Mistake("heads emptied", _emptied, "You removed heads from the list that you were given; work on a copy."),
        Mistake(
            "scores",
            lambda score, heads, n: [score(prune(score, heads, k)) for k in range(1, n + 1)],
            "You returned scores; asked for are the heads.",
        ),
    ),
)


# 15.5 A control task -------------------------------------------------------------------------------------------------


def control_labels(known, asked, draws):
    """Return the labels of a control task, two lists of integers, for known and for asked.

    known, asked: lists of words. draws: random labels. The first different word, known first and then asked, gets
    draws[0], the next different one draws[1], and so on, wherever it occurs again.
    """
    different = list(dict.fromkeys(known + asked))
    return [draws[different.index(word)] for word in known], [draws[different.index(word)] for word in asked]


def _control_cases():
    def case(label, seed, known, asked, n_labels=2):
        return Case(label, (known.split(), asked.split(), integers(seed, (19,), 0, n_labels).tolist()))

    return [
        Case("two words", (["tired", "wide", "tired"], ["wide", "tired"], [1, 0, 1])),
        Case("a new word among those asked", (["big", "big", "low"], ["tall", "big", "tall"], [2, 0, 1, 2])),
        case("five labels", 1551, "tired wide big tired low wide big", "low big steep tired steep", 5),
        case("all words different", 1552, "tall low wide", "sick lazy", 7),
        case("many words", 1553, "big sick lazy big moldy tired sick narrow", "narrow sick heavy big heavy", 11),
        case("none known", 1554, "", "wide tired wide", 5),
        case("one word", 1555, "wide wide", "wide", 3),
    ]


def _labels_by(order):
    """Return a function in which the words get their draws in the order that `order` gives them."""

    def function(known, asked, draws):
        label = dict(zip(dict.fromkeys(order(known, asked)), draws, strict=False))
        return [label[word] for word in known], [label[word] for word in asked]

    return function


def _per_occurrence(known, asked, draws):
    return draws[: len(known)], draws[len(known) : len(known) + len(asked)]


def _twice(known, asked, draws):
    return control_labels(known, [], draws)[0], control_labels(asked, [], draws)[0]


def _by_count(known, asked, draws):
    """The number of the draw is that of the occurrence, not of the different word."""
    words = known + asked
    return tuple([draws[words.index(word)] for word in part] for part in (known, asked))


def _begin_again(known, asked, draws):
    label = {word: draws[n] for n, word in enumerate(dict.fromkeys(known))}
    new = [word for word in dict.fromkeys(asked) if word not in label]
    label |= {word: draws[n] for n, word in enumerate(new)}
    return [label[word] for word in known], [label[word] for word in asked]


def _overwritten(known, asked, draws):
    label = dict(zip(known + asked, draws, strict=False))
    return [label[word] for word in known], [label[word] for word in asked]


EXERCISE_5 = Exercise(
    "15.5",
    "A control task",
    10,
    2,
    control_labels,
    _control_cases,
    (
        Mistake(
            "a draw for each occurrence",
            _per_occurrence,
            "A word that occurs again keeps its label; you drew a new one each time.",
        ),
        Mistake(
            "two dictionaries",
            _twice,
            "The words asked about were labelled anew; those that are known keep their label.",
        ),
        Mistake(
            "alphabetical",
            _labels_by(lambda known, asked: sorted({*known, *asked})),
            "The draws belong to the words in the order in which they first occur, not in the alphabet's.",
        ),
        Mistake(
            "asked first",
            _labels_by(lambda known, asked: asked + known),
            "The known words come first, then those asked about.",
        ),
        Mistake(
            "draws begin again",
            _begin_again,
            "The new words of asked go on with the draws where known stopped; you began with draws[0] again.",
        ),
        Mistake(
            "overwritten",
            _overwritten,
            "A word that occurs again took a new draw and lost its first one.",
        ),
        Mistake(
            "draws skipped",
            _by_count,
            "A word that occurs again uses up no draw: the next different word gets the next one.",
        ),
        Mistake(
            "from the end",
            lambda known, asked, draws: control_labels(known, asked, draws[::-1]),
            "The draws are used from the end; the first different word gets draws[0].",
        ),
        Mistake(
            "numbers of the words",
            lambda known, asked, draws: control_labels(known, asked, list(range(len(draws)))),
            "These number the different words; look the number up in draws.",
        ),
        Mistake(
            "one list",
            lambda known, asked, draws: sum(control_labels(known, asked, draws), []),
            "Return two lists, one for known and one for asked.",
        ),
    ),
    returns=("labels of known", "labels of asked"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
