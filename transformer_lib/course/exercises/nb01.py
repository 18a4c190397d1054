"""The exercises of notebook 01: attention is a lookup."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, normal
from .probes import weights_sum
from .slips import slips

# 01.1 Look up the nearest key ----------------------------------------------------------------------------------------


def nearest_key_lookup(query, keys, values):
    """Return the value whose key has the largest dot product with the query.

    query: [d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]. Returns [d_v].
    """
    scores = [sum(q * k for q, k in zip(query.tolist(), key.tolist(), strict=True)) for key in keys]
    return values[scores.index(max(scores))]


def _lookup_cases():
    long_key = torch.tensor([[0.9, 0.1], [3.0, 3.0], [-4.0, 1.0]])
    return [
        Case("2 keys", (torch.tensor([1.0, 2.0]), torch.eye(2), torch.tensor([[10.0, 20.0], [30.0, 50.0]]))),
        Case("3 keys, one much longer", (torch.tensor([1.0, 0.2]), long_key, torch.tensor([[1.0], [2.0], [4.0]]))),
        Case("5 keys", tuple(normal(1, (3,), (5, 3), (5, 7)))),
        Case("11 keys, d_k = d_v", tuple(normal(2, (5,), (11, 5), (11, 5)))),
        Case("one key", tuple(normal(3, (3,), (1, 3), (1, 2)))),
        Case("all scores negative", (torch.ones(3), -1 - normal(4, (7, 3))[0].abs(), normal(5, (7, 2))[0])),
    ]


EXERCISE_1 = Exercise(
    "01.1", "Look up the nearest key", 5, 1, nearest_key_lookup, _lookup_cases,
    slips(
        "query, keys, values", """
            scores = keys @ query
            return values[scores.argmax()]
        """,
        ("smallest", "argmax", "argmin",
         "You took the key with the smallest dot product; the best match has the largest."),
        ("distance", "keys @ query", "-((keys - query) ** 2).sum(-1)",
         "You took the key at the smallest distance; here the largest dot product wins, and a long key can win "
         "although it lies further away."),
        ("cosine", "keys @ query", "keys @ query / keys.norm(dim=-1)",
         "You divided by the length of the keys (cosine); the plain dot product is asked for."),
        ("key", "values[", "keys[", "You returned the best key; a lookup returns the value that belongs to it."),
        ("index", "values[scores.argmax()]", "scores.argmax()",
         "You returned the index of the best key; return the value at that index."),
        ("over keys", "keys @ query", "(keys * query).sum(0)",
         "You added up over the keys; a dot product adds up over the components, the last axis."),
        ("blend", "values[scores.argmax()]", "scores.softmax(0) @ values",
         "You blended all values; this lookup returns the value of the best key alone."),
        ("score", "values[scores.argmax()]", "scores.max()",
         "You returned the largest score; return the value that belongs to that key."),
    ),
)  # fmt: skip


# 01.2 The softmax ----------------------------------------------------------------------------------------------------


def softmax(scores):
    """Return the weights of scores over the last axis: positive, with sum 1. A score of -inf gets weight 0.

    scores: [..., n_keys], below 20. Returns the same shape.
    """
    return torch.nn.functional.softmax(scores, dim=-1)


def _softmax_cases():
    masked = normal(6, (5, 7))[0]
    masked[0, 2:] = masked[3, :4] = -math.inf
    return [
        Case("4 keys", (torch.tensor([3.0, 1.0, 0.0, -1.0]),)),
        Case("3 queries, 3 keys", tuple(normal(7, (3, 3)))),
        Case("5 queries, 2 keys", tuple(normal(8, (5, 2)))),
        Case("a batch of 2", tuple(normal(9, (2, 3, 5)))),
        Case("a batch of 2 with 3 more axes", tuple(2 * part for part in normal(10, (2, 3, 5, 7)))),
        Case("one key", tuple(normal(11, (3, 1)))),
        Case("scores around 10 and −10", (torch.tensor([[10.0, 8.0, 9.0], [-10.0, -11.0, -9.0]]),)),
        Case("some scores are −∞", (masked,)),
    ]


EXERCISE_2 = Exercise(
    "01.2", "The softmax", 8, 1, softmax, _softmax_cases,
    slips(
        "scores", """
            e = scores.exp()
            return e / e.sum(-1, keepdim=True)
        """,
        ("no sum", " / e.sum(-1, keepdim=True)", "",
         "You took the exponential but did not divide by the sum: the weights do not add up to one."),
        ("linear", "scores.exp()", "scores",
         "You divided the scores by their sum without the exponential; weights may come out negative."),
        ("one number", "scores.exp()", "math.exp(scores)",
         "math.exp takes a single number; scores.exp() takes all of them at once."),
        ("in place", "return e / e.sum(-1, keepdim=True)", "e /= e.sum(-1, keepdim=True)\nreturn e",
         "Right values, but e /= … overwrites the exponentials, which the gradient still needs: write e = e / …."),
        ("whole", "-1, keepdim=True", "",
         "You divided by the sum over all rows; each row needs a sum of its own, over the last axis."),
        ("first axis", "-1", "0",
         "You summed over the first axis, which is the queries or the batch where there is one; keys are the last."),
        ("second axis", "-1", "1",
         "You summed over axis 1, which is the last one only for a single matrix; take axis -1."),
        ("no keepdim", ", keepdim=True", "",
         "The sum of a row must divide that row: without keepdim=True it is lined up with the columns."),
    ),
    gradients=("scores",), probes=(weights_sum(),), part="softmax",
)  # fmt: skip


# 01.3 Many queries at once -------------------------------------------------------------------------------------------


def soft_lookup(queries, keys, values, temperature):
    """Answer each query by a soft lookup: the softmax over the keys of query · key / temperature, times the values.

    queries: [n_queries, d_k]; keys: [n_keys, d_k]; values: [n_keys, d_v]; temperature: a positive number.
    Returns [n_queries, d_v].
    """
    rows = [torch.softmax(torch.mv(keys, query) / temperature, dim=0) for query in queries]
    return torch.stack([sum(w * value for w, value in zip(row, values, strict=True)) for row in rows])


def _soft_lookup_cases():
    small = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    return [
        Case("2 queries, 2 keys, d = 2", (small, torch.tensor([[1.0, 1.0], [0.0, 1.0]]), small + 1, 2.0)),
        Case("3 queries, 5 keys", (*normal(12, (3, 2), (5, 2), (5, 7)), 0.5)),
        Case("7 queries, 3 keys", (*normal(13, (7, 5), (3, 5), (3, 2)), 3.0)),
        Case("5 queries, 5 keys, d = 5", (*normal(14, (5, 5), (5, 5), (5, 5)), 0.7)),
        Case("one query, one key", (*normal(15, (1, 3), (1, 3), (1, 2)), 1.5)),
        Case("temperature 1", (*normal(16, (3, 7), (11, 7), (11, 2)), 1.0)),
        Case("a low temperature", (*normal(17, (3, 5), (7, 5), (7, 2)), 0.2)),
    ]


EXERCISE_3 = Exercise(
    "01.3", "Many queries at once", 10, 2, soft_lookup, _soft_lookup_cases,
    slips(
        "queries, keys, values, temperature", """
            scores = queries @ keys.T / temperature
            weights = scores.softmax(-1)
            return weights @ values
        """,
        ("axis", "softmax(-1)", "softmax(0)",
         "Your weights sum to one over queries (axis -2), not over keys (axis -1)."),
        ("no transpose", "keys.T", "keys",
         "You multiplied queries by keys without transposing the keys: query · key sums over d_k."),
        ("temperature times", "/ temperature", "* temperature",
         "You multiplied the scores by the temperature; divide, so that a high one makes them alike."),
        ("no temperature", " / temperature", "",
         "The temperature has no effect on your weights: divide the scores by it."),
        ("after", " / temperature\nweights = scores.softmax(-1)", "\nweights = scores.softmax(-1) / temperature",
         "You divided by the temperature after the softmax; divide the scores before it."),
        ("scaled", "temperature", "temperature / keys.shape[-1] ** 0.5",
         "You divided the scores by √d_k as well; this lookup has only the temperature (notebook 04 adds the root)."),
        ("hard", "weights @ values", "values[scores.argmax(-1)]",
         "You returned the best value for each query; blend all values by their weights."),
        ("no keepdim in the blend", "scores.softmax(-1)", "scores.exp() / scores.exp().sum(-1)",
         "The sum of a row must divide that row: without keepdim=True it is lined up with the columns."),
        ("keys ask", "queries @ keys.T", "keys @ queries.T",
         "Your scores are keys @ queries.T, where a row belongs to a key; each query needs a row: queries @ keys.T."),
    ),
    gradients=("queries", "keys", "values"),
)  # fmt: skip


# 01.4 Let the prices learn -------------------------------------------------------------------------------------------


def step_of_values(weights, values, targets, rate):
    """Return the values after one step of gradient descent on the mean squared error of the prices weights @ values.

    weights: [n_queries, n_keys]; values: [n_keys]; targets: [n_queries], the right prices; rate: the learning rate.
    Returns [n_keys].
    """
    leaf = values.detach().clone().requires_grad_()
    with torch.enable_grad():
        loss = sum((row @ leaf - answer) ** 2 for row, answer in zip(weights, targets, strict=True)) / len(targets)
        (gradient,) = torch.autograd.grad(loss, leaf)
    return values - rate * gradient


def _step_cases():
    def exact(*rows):
        return tuple(torch.tensor(row, dtype=torch.float64) for row in rows)

    def case(label, seed, n_queries, n_keys, rate):
        shapes = (n_queries, n_keys), (n_keys,), (n_queries,)
        scores, values, targets = normal(seed, *shapes, dtype=torch.float64)
        return Case(label, (torch.softmax(2 * scores, -1), values, targets, rate))

    by_hand = exact([[0.75, 0.25], [0.5, 0.5]], [4.0, 8.0], [3.0, 10.0])
    nobody = exact([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]], [2.0, 1.0, 9.0], [3.0, 3.0])
    return [
        Case("2 questions, 2 entries", (*by_hand, 0.5)),
        case("3 questions, 5 entries", 18, 3, 5, 0.1),
        case("7 questions, 3 entries", 19, 7, 3, 0.3),
        case("5 questions, 5 entries", 20, 5, 5, 0.2),
        case("one question", 21, 1, 5, 0.5),
        case("a learning rate above 1", 22, 3, 2, 1.5),
        Case("an entry that nobody looks at", (*nobody, 0.1)),
    ]


EXERCISE_4 = Exercise(
    "01.4", "Let the prices learn", 12, 3, step_of_values, _step_cases,
    slips(
        "weights, values, targets, rate", """
            errors = weights @ values - targets
            gradient = 2 * weights.T @ errors / len(targets)
            return values - rate * gradient
        """,
        ("uphill", "- rate", "+ rate",
         "You went uphill: the step goes against the gradient, so subtract it. (Or is it answer − price in the slope, "
         "in place of price − answer?)"),
        ("gradient", "values - rate * gradient", "gradient",
         "You returned the gradient; return the values after the step, values − rate · gradient."),
        ("no 2", "2 * ", "", "The factor 2 is missing: the slope of e² is 2e."),
        ("sum", " / len(targets)", "", "The loss is the mean over the questions, not the sum: divide by their number."),
        ("no 2, sum", "2 * weights.T @ errors / len(targets)", "weights.T @ errors",
         "Two factors are missing: the slope of e² is 2e, and the mean divides by the number of questions."),
        ("over entries", "len(targets)", "len(values)",
         "You divided by the number of entries; the loss is the mean over the questions."),
        ("not transposed", "weights.T", "weights",
         "You multiplied the errors by the weights without transposing: value j collects over the questions i, so it "
         "is weights.T @ errors."),
    )
    + slips(
        "weights, values, targets, rate", """
            leaf = values.clone().requires_grad_()
            loss = ((weights @ leaf - targets) ** 2).mean()
            loss.backward()
            return values - rate * leaf.grad
        """,
        ("no leaf", ".clone().requires_grad_()", "",
         "No tensor in your loss requires a gradient, so backward() has nothing to record: begin with "
         "v = values.clone().requires_grad_()."),
    )
    + slips(
        "weights, values, targets, rate", """
            new = values.clone()
            for j in range(len(values)):
                new[j] -= rate * 2 * weights[:, j] @ (weights @ values - targets) / len(targets)
            return new
        """,
        ("value after value", "weights @ values", "weights @ new",
         "You updated one value after the other, so later slopes were measured where the first had moved already. "
         "Measure all slopes first."),
    )
    + slips(
        "weights, values, targets, rate", """
            new = values
            for row, answer in zip(weights, targets):
                new = new - rate * 2 * (row @ values - answer) * row / len(targets)
            return new
        """,
        ("one after the other", "(row @ values - answer) * row / len(targets)", "(row @ new - answer) * row",
         "You took a step after each question, so the later errors were measured at values that had moved already. One "
         "step follows the mean of all slopes, measured at the same values."),
    ),
)  # fmt: skip


# 01.5 Kernel regression is attention ---------------------------------------------------------------------------------


def kernel_regression(queries, xs, ys, bandwidth):
    """Predict y at each query: a weighted mean of ys, with weights exp(-(query - x)² / (2 bandwidth²)).

    queries: [n_queries]; xs, ys: [n_points]; bandwidth: a positive number. Returns [n_queries].
    The weights of each query are divided by their sum (Nadaraya and Watson, 1964).
    """
    exponents = [-((query - xs).double() ** 2) / (2 * bandwidth**2) for query in queries]
    return torch.stack([torch.softmax(e, dim=0) @ ys.double() for e in exponents]).to(ys.dtype)


def _kernel_cases():
    return [
        Case("2 queries, 3 points", (torch.tensor([0.0, 1.0]), *normal(14, (3,), (3,)), 0.7)),
        Case("5 queries, 11 points", (*normal(15, (5,), (11,), (11,)), 0.5)),
        Case("7 queries, 7 points", (*normal(16, (7,), (7,), (7,)), 1.3)),
        Case("one point", (*normal(17, (3,), (1,), (1,)), 0.9)),
        Case("a wide kernel", (*normal(18, (3,), (5,), (5,)), 40.0)),
        Case(
            "a kernel much narrower than the gaps",
            (torch.tensor([0.3, 0.6]), torch.arange(3.0), torch.tensor([2.0, -1.0, 1.0]), 0.01),
        ),
    ]


EXERCISE_5 = Exercise(
    "01.5", "Kernel regression is attention", 15, 2, kernel_regression, _kernel_cases,
    slips(
        "queries, xs, ys, bandwidth", """
            exponents = -((queries[:, None] - xs) ** 2) / (2 * bandwidth**2)
            return exponents.softmax(-1) @ ys
        """,
        ("no 2", "(2 * bandwidth**2)", "bandwidth**2",
         "The exponent is (query - x)² / (2 bandwidth²): the 2 is missing."),
        ("no square", "bandwidth**2", "bandwidth", "The bandwidth in the exponent must be squared."),
        ("no minus", "-((queries", "((queries",
         "The exponent lacks its minus: distant points get the largest weights."),
        ("axis", "exponents.softmax(-1)", "exponents.exp() / exponents.exp().sum(0)",
         "You divided by the sum over the queries; each query divides by its sum over the points."),
        ("no sum", "exponents.softmax(-1)", "exponents.exp()", "You did not divide the weights by their sum."),
        ("underflow", "exponents.softmax(-1) @ ys", "exponents.exp() @ ys / exponents.exp().sum(-1)",
         "Right for wide kernels, but for a narrow one every exponential underflows to 0, and 0 / 0 is NaN: take the "
         "softmax of the exponents."),
        ("underflow, hidden", "exponents.softmax(-1) @ ys", "exponents.exp() @ ys / (exponents.exp().sum(-1) + 1e-12)",
         "A small number in the denominator hides 0 / 0 and gives 0: take the softmax of the exponents."),
        ("multiplied by the square", "(2 * bandwidth**2)", "2 * bandwidth**2",
         "Your exponent is multiplied by bandwidth²; divide by it (a / 2 * b**2 needs brackets: a / (2 * b**2))."),
        ("2 squared too", "(2 * bandwidth**2)", "(2 * bandwidth) ** 2",
         "You divided by (2 bandwidth)², which is 4 bandwidth²; the formula has 2 bandwidth²."),
    ),
)  # fmt: skip


# 01.6 How sharp is sharp? --------------------------------------------------------------------------------------------


def scale_for_confidence(scores, p):
    """Return the number c > 0 for which the largest weight of softmax(c * scores) is exactly p.

    scores: [n_keys] with one largest entry; p: a number between 1 / n_keys and 1. Returns a float.
    A relative error of 0.1 % is allowed.
    """
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        largest = torch.softmax(middle * scores.double(), dim=0).max().item()
        low, high = (middle, high) if largest < p else (low, middle)
    return high


def _confidence_cases():
    return [
        Case("2 keys", (torch.tensor([2.0, 1.0]), 0.9)),
        Case("3 keys, equal rivals", (torch.tensor([0.5, 1.0, 0.5]), 0.8)),
        Case("5 keys", (torch.tensor([3.0, 1.0, 0.0, -1.0, 2.5]), 0.95)),
        Case("11 keys", (normal(19, (11,))[0], 0.5)),
        Case("p near 1", (normal(20, (7,))[0], 0.999)),
        Case("negative scores", (torch.tensor([-5.0, -7.0, -6.0]), 0.6)),
        Case("a close rival", (torch.tensor([1.0, 0.99]), 0.99)),
    ]


def _gap(scores):
    top = scores.sort(descending=True).values
    return (top[0] - top[1]).item()


def _weight_reached(call, case, got):
    scores, p = case.args
    if float(got) <= 0:
        return "Your c is not positive: it multiplies the scores, and a negative one favours the worst key."
    reached = torch.softmax(float(got) * scores.double(), 0).max().item()
    more = "a larger c is needed; does your search go far enough?" if reached < p else "a smaller c is needed."
    return f"At your c the largest weight is {reached:.3g} in place of {p:g}: {more}"


EXERCISE_6 = Exercise(
    "01.6", "How sharp is sharp?", 20, 3, scale_for_confidence, _confidence_cases,
    slips(
        "scores, p", """
            low, high = 0.0, 1e6
            for _ in range(100):
                middle = (low + high) / 2
                largest = (middle * scores.double()).softmax(0).max().item()
                low, high = (middle, high) if largest < p else (low, middle)
            return high
        """,
        ("two keys", "return high", "return math.log(p / (1 - p)) / gap(scores)",
         "Right for two keys. With more, the others take weight too: look only at the best two and the largest weight "
         "stays below p."),
        ("equal rivals", "return high", "return math.log((len(scores) - 1) * p / (1 - p)) / gap(scores)",
         "Right when all rivals score the same. Rivals further behind take less weight, so a smaller c is enough: "
         "search for it (the largest weight grows with c)."),
        ("inverse", "return high", "return 1 / high",
         "You returned the temperature 1 / c; the factor c itself is asked for."),
        ("no log", "return high", "return p / (1 - p) / gap(scores)",
         "You used the odds p / (1 - p); weights are exponentials, so take their logarithm."),
        ("log p", "return high", "return -math.log(1 - p) / gap(scores)",
         "You used log(1 / (1 - p)); a weight is one exponential among several: work with p / (1 - p)."),
        gap=_gap,
    ),
    probes=(_weight_reached,), rtol=2e-3,
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
