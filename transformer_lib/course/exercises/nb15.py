"""The exercises of notebook 15: what the heads learned."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

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
    "15.1", "How much does a key add?", 7, 1, weighted_norms, _norm_cases,
    slips(
        "weights, value, W_O", """
            arriving = value @ W_O
            lengths = arriving.norm(dim=-1)
            return weights * lengths
        """,
        ("value not projected", "value @ W_O", "value",
         "The length is that of the value before W_O; what arrives is value[j] W_O."),
        ("product of norms", "arriving.norm(dim=-1)", "value.norm(dim=-1) * W_O.norm()",
         "The length of a product is not the product of the lengths: multiply value by W_O first."),
        ("squared", ".norm(dim=-1)", ".square().sum(dim=-1)", "That is the squared length; take its root."),
        ("vectors", "weights * lengths", "weights[:, :, None] * arriving",
         "These are the vectors that arrive; the exercise asks for the length of each."),
        ("one length for all", ".norm(dim=-1)", ".norm()",
         "You took the length of the whole matrix; each key has its own: norm(dim=-1)."),
        ("rows to one", "weights * lengths", "weights * lengths / (weights * lengths).sum(dim=-1, keepdim=True)",
         "You made the rows sum to one again; leave the lengths as they are."),
    ),
    gradients=("weights", "value", "W_O"),
)  # fmt: skip


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
        case("11 numbers", 1503, 11),
        case("a curved relation", 1504, 7, lambda x, y: (x, torch.exp(3 * x))),
        case("one falls where the other rises", 1505, 7, lambda x, y: (x, -x - x**3)),
        case("one huge value", 1506, 13, lambda x, y: (x, torch.cat([y[:-1], y[-1:].abs() + 1000]))),
    ]


EXERCISE_2 = Exercise(
    "15.2", "Rank correlation", 9, 2, rank_correlation, _rank_cases,
    slips(
        "x, y", """
            r, s = (values.argsort().argsort().double() for values in (x, y))
            r, s = r - r.mean(), s - s.mean()
            lengths = (r.square().sum() * s.square().sum()) ** 0.5
            return (r * s).sum() / lengths
        """,
        ("no ranks", ".argsort().argsort()", "",
         "That is the correlation of the numbers themselves; replace each by its rank first."),
        ("argsort once", ".argsort().argsort()", ".argsort()",
         "argsort() says which element comes first, second …; the rank says where an element comes. "
         "Its own argsort() gives the ranks."),
        ("not centred", "r - r.mean(), s - s.mean()", "r, s", "The means of the ranks have to be subtracted first."),
        ("centred by half of n", "r - r.mean(), s - s.mean()", "r - len(x) / 2, s - len(x) / 2",
         "The mean of the ranks 0 to n − 1 is (n − 1) / 2, not n / 2."),
        ("n and n - 1", "sum() / lengths", "mean() / (r.std() * s.std())",
         "The mean divides by n and std() by n − 1, so that the result is too small by (n − 1) / n."),
    ),
    rtol=1e-4,
)  # fmt: skip


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


def _heads_before_tokens(x, other, heads, n_heads):
    parts, new = (rows.reshape(len(x), n_heads, x.shape[1], -1).clone() for rows in (x, other))
    parts[:, heads] = new[:, heads]
    return parts.reshape(x.shape)


EXERCISE_3 = Exercise(
    "15.3", "Replace heads", 7, 2, replace_heads, _replace_cases,
    slips(
        "x, other, heads, n_heads", """
            parts, new = (rows.unflatten(-1, (n_heads, -1)).clone() for rows in (x, other))
            parts[..., heads, :] = new[..., heads, :]
            return parts.flatten(-2)
        """,
        ("in place", ".clone()", "", "You changed an input itself; work on a copy."),
        ("the others", "(x, other)", "(other, x)",
         "The roles are swapped: the heads in the list come from other, the rest from x."),
        ("sizes swapped", "(n_heads, -1)", "(-1, n_heads)",
         "You split the last axis into [d, n_heads]; it is [n_heads, d], as the features of a head are side by side."),
        ("list on the features", "parts[..., heads, :] = new[..., heads, :]", "parts[..., heads] = new[..., heads]",
         "The list went to the features of each head; after the split the heads are the last axis but one."),
    )
    + slips(
        "x, other, heads, n_heads", """
            result, d = x.clone(), x.shape[-1] // n_heads
            for head in heads:
                columns = slice(head * d, (head + 1) * d)
                result[..., columns] = other[..., columns]
            return result
        """,
        ("dealt in turn", "slice(head * d, (head + 1) * d)", "slice(head, None, n_heads)",
         "The features of a head are side by side: head h has the columns h · d to (h + 1) · d − 1."),
    )
    + (
        Mistake("split before the tokens", _heads_before_tokens,
                "Split the last axis, into [batch, seq_len, n_heads, d]; a reshape that puts the heads in front of the "
                "tokens mixes both."),
    ),
    gradients=("x", "other"),
)  # fmt: skip


# 15.4 Prune ----------------------------------------------------------------------------------------------------------


def prune(score, heads, n):
    """Return n heads in the order in which they are silenced, as a list.

    Each time it is the head without which the score is best, given those that are silent already; of equals, the one
    that comes first in heads. score: a function from a list of silent heads to a number, larger is better.
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


EXERCISE_4 = Exercise(
    "15.4", "Prune", 12, 3, prune, _prune_cases,
    slips(
        "score, heads, n", """
            left, order = list(heads), []
            for _ in range(n):
                best = max(left, key=lambda head: score([*order, head]))
                left.remove(best)
                order.append(best)
            return order
        """,
        ("sorted once", "score([*order, head])", "score([head])",
         "You ranked the heads by what each costs alone; score them again in each round, with the silent ones."),
        ("speaking scored", "score([*order, head])", "score([other for other in left if other != head])",
         "You scored the heads that still speak; score takes the silent ones."),
        ("with the same head again", "    left.remove(best)\n", "",
         "The same head comes again and again; a silent head cannot be silenced twice."),
        ("heads emptied", "list(heads)", "heads",
         "You removed heads from the list that you were given; work on a copy."),
    )
    + slips(
        "score, heads, n", """
            order = []
            while len(order) < n:
                best, chosen = -math.inf, None
                for head in heads:
                    if head not in order and score([*order, head]) > best:
                        best, chosen = score([*order, head]), head
                order.append(chosen)
            return order
        """,
        ("last of equals", "> best", ">= best",
         "Of heads with equal scores you took the last; take the one that comes first in heads."),
        ("best from 0 on", "-math.inf", "0",
         "Your best score begins at 0, and all scores are negative, so no head is ever chosen (None): begin at "
         "-inf, or use max."),
    ),
)  # fmt: skip


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


EXERCISE_5 = Exercise(
    "15.5", "A control task", 10, 2, control_labels, _control_cases,
    slips(
        "known, asked, draws", """
            different = dict.fromkeys(known + asked)
            label = dict(zip(different, draws))
            return [label[word] for word in known], [label[word] for word in asked]
        """,
        ("a draw for each occurrence", "[label[word] for word in known], [label[word] for word in asked]",
         "draws[: len(known)], draws[len(known) : len(known + asked)]",
         "A word that occurs again keeps its label; you drew a new one each time."),
        ("two dictionaries", "[label[word] for word in asked]",
         "[dict(zip(dict.fromkeys(asked), draws))[word] for word in asked]",
         "You labelled the words asked about from scratch; those that are known keep their label."),
        ("alphabetical", "dict.fromkeys(known + asked)", "sorted({*known, *asked})",
         "The draws belong to the words in the order in which they first occur, not in the alphabet's."),
        ("overwritten", "dict.fromkeys(known + asked)", "known + asked",
         "A word that occurs again took a new draw and lost its first one."),
        ("draws skipped", "dict(zip(different, draws))",
         "{word: draws[(known + asked).index(word)] for word in different}",
         "A word that occurs again uses up no draw: the next different word gets the next one."),
    ),
    returns=("labels of known", "labels of asked"),
)  # fmt: skip

# 15.6 What does a head say? ------------------------------------------------------------------------------------------


def head_logits(z, W_O, W_out):
    """Return what each head adds to the logits if nothing comes in between, [n, n_heads, vocab_size].

    z: [n, n_heads, d_v], what the heads hand on; W_O: [n_heads * d_v, d_model]; W_out: [d_model, vocab_size].
    """
    d_v = z.shape[-1]
    blocks = [W_O[head * d_v : (head + 1) * d_v] @ W_out for head in range(z.shape[1])]
    return torch.stack([z[:, head] @ block for head, block in enumerate(blocks)], dim=1)


def _logits_cases():
    def case(label, seed, n, n_heads, d_v, d_model, vocab_size):
        return Case(label, tuple(normal(seed, (n, n_heads, d_v), (n_heads * d_v, d_model), (d_model, vocab_size))))

    return [
        case("2 heads of width 3", 1561, 5, 2, 3, 7, 11),
        case("3 heads of width 2", 1562, 2, 3, 2, 5, 13),
        case("as many heads as features of one", 1563, 5, 3, 3, 7, 2),
        case("one row", 1564, 1, 2, 5, 3, 7),
        case("one head", 1565, 3, 1, 5, 2, 11),
        case("width and heads as in a small model", 1566, 7, 2, 2, 4, 5),
    ]


EXERCISE_6 = Exercise(
    "15.6", "What does a head say?", 8, 2, head_logits, _logits_cases,
    slips(
        "z, W_O, W_out", """
            n_heads, d_v = z.shape[1:]
            rows = W_O.unflatten(0, (n_heads, d_v))
            added = torch.einsum("nhd,hdm->nhm", z, rows)
            return added @ W_out
        """,
        ("sizes swapped", "W_O.unflatten(0, (n_heads, d_v))", "W_O.unflatten(0, (d_v, n_heads)).transpose(0, 1)",
         "A head has d_v neighbouring rows of W_O: the first axis is [n_heads, d_v], not [d_v, n_heads]."),
        ("heads added up", '"nhd,hdm->nhm"', '"nhd,hdm->nm"',
         "You added the heads up, which is what the layer does; keep them apart, with an axis for the heads."),
        ("first rows for all", "rows = W_O.unflatten(0, (n_heads, d_v))",
         "rows = W_O[:d_v].expand(n_heads, d_v, W_O.shape[1])",
         "All heads went through the rows of the first one; head h has the rows h · d_v to (h + 1) · d_v − 1."),
        ("no output head", "return added @ W_out", "return added",
         "That is what each head adds to the residual stream; the output head turns it into a logit for every word."),
        ("probabilities", "added @ W_out", "(added @ W_out).softmax(dim=-1)",
         "You applied the softmax; return the logits themselves."),
        ("shared among heads", "added @ W_out", "added @ W_out / n_heads",
         "You divided by the number of heads; they are added, not averaged."),
    ),
    gradients=("z", "W_O", "W_out"),
)  # fmt: skip


# 15.7 Design a control -----------------------------------------------------------------------------------------------


def lenders(mine, others):
    """Return the numbers, from 0, of the others that may lend their head to `mine`, to see what the side alone does.

    mine: (pronoun, side of the noun meant, first noun, second noun), four words; others: a list of such.
    """
    chosen = []
    for number, other in enumerate(others):
        differ = [mine[0] != other[0], mine[1] != other[1]]
        if differ == [False, True] and set(mine[2:]).isdisjoint(other[2:]):
            chosen.append(number)
    return chosen


def _lenders_cases():
    def case(label, mine, others):
        return Case(label, (tuple(mine.split()), [tuple(other.split()) for other in others.split("; ")]))

    return [
        case("one of two", "er first dog street", "er second cat river; sie second wolf bridge"),
        case("side and pronoun", "es second cow field",
             "es first horse apple; es second bear bread; sie first cat dune; er first fox soup; es first sheep sea"),
        case("nouns in common", "er first dog street",
             "er second cow ditch; er second dog river; er second goat street; er first wolf dune; sie second dog bog"),
        case("the twin", "er second ball suitcase",
             "sie first ball suitcase; er first desk box; er first ball car; er first ball suitcase"),
        case("one has no lender", "sie first cat bridge",
             "sie first cow dune; es second pig field; sie second cat meadow"),
        case("none of the other side", "es first horse river", "es first camel stream; er first dog bread"),
        case("several", "sie second dog carriage",
             "sie first cow cart; er second ox bell; sie first goat boat; es first llama box; sie second bull cannon; "
             "sie first dog wagon; sie first cat raft"),
        case("a noun on the other side", "er second lamp basket", "er first basket drawer; er first cake sack"),
    ]  # fmt: skip


EXERCISE_7 = Exercise(
    "15.7", "Design a control", 8, 2, lenders, _lenders_cases,
    slips(
        "mine, others", """
            pronoun, side, *nouns = mine
            chosen = []
            for number, other in enumerate(others):
                same_pronoun, same_side = other[0] == pronoun, other[1] == side
                shared = set(nouns) & set(other[2:])
                if same_pronoun and not same_side and not shared:
                    chosen.append(number)
            return chosen
        """,
        ("nouns in common", " and not shared", "",
         "A stranger with a noun in common could hand on that very noun; take none that shares one."),
        ("pronoun free", "same_pronoun and not same_side", "not same_side",
         "If the pronoun may differ, too, you cannot tell which of the two has flipped it."),
        ("side free", "same_pronoun and not same_side", "same_pronoun",
         "Where the side is the same nothing is tested: it is the side that you want to change."),
        ("the other test", "same_pronoun and not same_side", "not same_pronoun and same_side",
         "That holds the side and changes the pronoun: a test of the pronoun. Here the side is the suspect."),
        ("the twin again", "same_pronoun and not same_side", "not same_pronoun and not same_side",
         "That changes pronoun and side together, as the twin does, and so cannot tell them apart."),
        ("one of both", "same_pronoun and not same_side", "(same_pronoun or not same_side)",
         "Both have to hold at once: the pronoun is the same, and the side is not."),
        ("some noun is new", "not shared", "set(nouns) != set(other[2:])",
         "One noun in common is one too many: the two sentences may not share any."),
        ("only in the same place", "not shared", "nouns[0] != other[2] and nouns[1] != other[3]",
         "A noun may also be shared in another place: first in one sentence and second in the other."),
        ("counted from 1", "enumerate(others)", "enumerate(others, 1)", "The numbers count from 0."),
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7)
