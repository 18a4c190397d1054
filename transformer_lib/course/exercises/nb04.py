"""The exercises of notebook 04: scaled dot-product attention."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import masked_key_leak, weights_sum
from .slips import slips

INF = float("inf")


# 04.1 By what would you divide? --------------------------------------------------------------------------------------


def divisor(query, key):
    """Return the number that brings the variance of the scores to 1, as far as a softmax can notice it.

    A constant that is added to all scores of a query changes no weight, so what counts is the variance of each query's
    scores over its keys; these variances are 1 on average over the queries.
    query: [q_len, d_k]; key: [k_len, d_k]. Returns a number.
    """
    centred = key - key.mean(0)  # which takes from each query's scores their mean
    return torch.einsum("id,jd->ij", query, centred).square().mean() ** 0.5


def _divisor_cases():
    def case(label, seed, q_len, k_len, d_k, change=lambda query, key: (query, key)):
        return Case(label, change(*normal(seed, (q_len, d_k), (k_len, d_k))))

    return [
        case("2 queries, 3 keys, d_k = 2", 1, 2, 3, 2),
        case("5 queries, 7 keys, d_k = 11", 2, 5, 7, 11),
        case("keys of variance 9", 3, 7, 5, 3, lambda query, key: (query, 3 * key)),
        case("all keys are shifted by 4", 4, 5, 11, 7, lambda query, key: (query, key + 4)),
        case("all queries are shifted by −3", 5, 11, 7, 5, lambda query, key: (query - 3, key)),
        case("every token asks for itself", 6, 7, 7, 5, lambda query, key: (key, key)),
        case("one query", 7, 1, 13, 3),
    ]


EXERCISE_1 = Exercise(
    "04.1", "By what would you divide?", 8, 2, divisor, _divisor_cases,
    slips(
        "query, key", """
            products = query @ key.T
            return products.var(-1, correction=0).mean().sqrt()
        """,
        ("root of d_k", "products.var(-1, correction=0).mean().sqrt()", "query.shape[-1] ** 0.5",
         "√d_k is right for independent components of mean 0 and variance 1. These queries and keys are others: "
         "measure the scores that they make."),
        ("d_k", "products.var(-1, correction=0).mean().sqrt()", "query.shape[-1]",
         "You divided by d_k. Measure the spread of the scores that these queries and keys make."),
        ("all pairs", "(-1, correction=0).mean()", "(correction=0)",
         "That is the spread of all scores together. Part of it lies between the queries, where one has high scores "
         "for every key and another low ones, and a softmax does not notice that."),
        ("not centred", "var(-1, correction=0)", "square()",
         "You measured the scores' distance from 0. What all scores of a query have in common changes no weight: take "
         "the distance from that query's own mean."),
        ("over queries", "-1", "0",
         "You took the variance over the queries of one key; a softmax compares the keys of one query, the last axis."),
        ("unbiased", "correction=0", "correction=1",
         "You divided by the number of keys minus one, as var and std do unless told: correction=0."),
        ("mean of deviations", "var(-1, correction=0).mean().sqrt()", "std(-1, correction=0).mean()",
         "You averaged the standard deviations. It is the variances that should be 1 on average: average them, and "
         "take the root last."),
        ("variance", ".sqrt()", "", "That is the variance; dividing scores by s divides their variance by s²."),
        ("inverse", "return products.var(-1, correction=0).mean().sqrt()",
         "return 1 / products.var(-1, correction=0).mean().sqrt()",
         "That is what one would multiply by; return what to divide by."),
    )
    + (
        Mistake("spreads", lambda query, key: (query.shape[-1] * query.var() * key.var()) ** 0.5,
                "You multiplied the spreads of the components, as if queries and keys were independent with mean 0. "
                "Measure the scores themselves."),
    ),
)  # fmt: skip


# 04.2 How far do dot products spread? ---------------------------------------------------------------------------------


def dot_product_deviation(d_k, mean_q, var_q, mean_k, var_k):
    """Return the standard deviation of q · k for independent components with these means and variances, a number.

    Each term has the variance E[q²] E[k²] - (E[q] E[k])², with E[q²] = variance + mean²; d_k such terms add up.
    """
    square_q, square_k = var_q + mean_q**2, var_k + mean_k**2
    return (d_k * (square_q * square_k - (mean_q * mean_k) ** 2)) ** 0.5


def _deviation_cases():
    return [
        Case("mean 0, variance 1", (16, 0.0, 1.0, 0.0, 1.0)),
        Case("other variances", (7, 0.0, 4.0, 0.0, 9.0)),
        Case("queries with a mean", (5, 3.0, 1.0, 0.0, 1.0)),
        Case("keys with a mean", (5, 0.0, 1.0, -2.0, 1.0)),
        Case("both with a mean", (11, 2.0, 3.0, -1.5, 0.5)),
        Case("keys that do not vary", (13, 2.0, 3.0, 2.0, 0.0)),
    ]


EXERCISE_2 = Exercise(
    "04.2", "How far do dot products spread?", 10, 2, dot_product_deviation, _deviation_cases,
    slips(
        "d_k, mean_q, var_q, mean_k, var_k", """
            square_q, square_k = var_q + mean_q**2, var_k + mean_k**2
            variance = d_k * (square_q * square_k - (mean_q * mean_k) ** 2)
            return variance**0.5
        """,
        ("d_k alone", "variance**0.5", "d_k**0.5",
         "Right only for mean 0 and variance 1: a term's variance depends on both means and both variances."),
        ("half", "**0.5", "**1 / 2",
         "That is half of the variance: in Python x ** 1 / 2 is (x ** 1) / 2. Write x ** 0.5."),
        ("mean of squares", " - (mean_q * mean_k) ** 2", "",
         "That is the root of d_k E[q²] E[k²], of the mean of the squares; a variance subtracts the square of the "
         "mean, (E[q] E[k])²."),
        ("variance", "**0.5", "", "That is the variance; the standard deviation is its root."),
        ("one term", "d_k * ", "", "That is the deviation of one term; d_k independent terms add their variances."),
    )
    + slips(
        "d_k, mean_q, var_q, mean_k, var_k", """
            of_a_term = var_q * var_k + var_q * mean_k**2 + var_k * mean_q**2
            return (d_k * of_a_term) ** 0.5
        """,
        ("no means", " + var_q * mean_k**2 + var_k * mean_q**2", "",
         "Right while both means are 0. With a mean, E[q²] is variance + mean², and a term also varies with it."),
        ("one mean", " + var_k * mean_q**2", "",
         "A mean of the keys spreads the products, and so does a mean of the queries: var_k · mean_q² is missing."),
        ("d_k outside", "(d_k * of_a_term) ** 0.5", "d_k * of_a_term**0.5",
         "You added up d_k deviations; of independent terms the variances add up, and the root comes last."),
    ),
)  # fmt: skip


# 04.3 Which softmax survives? ----------------------------------------------------------------------------------------


def judge(softmax):
    """Say whether a softmax over the last axis is right for all scores up to ±10,000, also where some are -inf.

    softmax: a function of scores [q_len, k_len] that returns weights of that shape; a row has at least one finite
    score. Returns "safe" or "broken".
    """
    ordinary = [[0.5, -1.0, 2.0, 0.0], [1.0, 3.0, -2.0, 0.5]]
    large = [[1000.0, 1001.0, 1003.0, 0.0], [10000.0, -10000.0, 9999.0, 9999.5]]
    low = [[-10000.0, -9999.0, -9997.0, -9998.0], [-1000.0, -1002.0, -INF, -1001.0]]
    for rows in (ordinary, large, low, ordinary + large + low):
        scores = torch.tensor(rows)
        powers = (scores.double() - scores.double().amax(-1, keepdim=True)).exp()
        right = (powers / powers.sum(-1, keepdim=True)).float()
        weights = softmax(scores.clone())
        if weights.shape != right.shape or not torch.allclose(weights, right, atol=1e-6):
            return "broken"
    return "safe"


def _finite_size(scores):
    return scores.masked_fill(scores == -INF, 0.0).abs().amax(-1, keepdim=True)


def _shares(powers):
    return powers / powers.sum(-1, keepdim=True)


SOFTMAXES = {
    "as the formula says": lambda scores: _shares(scores.exp()),
    "the row's largest score taken off": lambda scores: _shares((scores - scores.amax(-1, keepdim=True)).exp()),
    "the largest score of all rows taken off": lambda scores: _shares((scores - scores.max()).exp()),
    "the row's mean taken off": lambda scores: _shares((scores - scores.mean(-1, keepdim=True)).exp()),
    "the row's smallest score taken off": lambda scores: _shares((scores - scores.amin(-1, keepdim=True)).exp()),
    "the row's largest size taken off": lambda scores: _shares((scores - _finite_size(scores)).exp()),
    "scores cut at ±80": lambda scores: _shares(scores.clamp(-80, 80).exp()),
    "NaN replaced by 0": lambda scores: _shares(scores.exp()).nan_to_num(0.0),
    "NaN replaced by equal shares": lambda scores: _shares(scores.exp()).nan_to_num(1 / scores.shape[-1]),
    "in float64": lambda scores: _shares(scores.double().exp()).float(),
    "by way of logarithms": lambda scores: scores.log_softmax(-1).exp(),
    "−∞ replaced by 0": lambda scores: scores.masked_fill(scores == -INF, 0.0).softmax(-1),
    "over the first axis": lambda scores: scores.softmax(0),
}


for _softmax in SOFTMAXES.values():
    _softmax.__name__ = "softmax"  # as a report shows it


def _survival_cases():
    return [Case(label, (function,)) for label, function in SOFTMAXES.items()]


_ROWS = """
    rows = torch.tensor([
        [1.0, 2.0, 4.0, 0.0],
        [1e4, 9999.0, 0.0, 1.0],
        [-1e4, -9999.0, -9998.0, -9997.0],
        [0.0, 1.0, -torch.inf, 2.0],
    ])
    right = torch.allclose(softmax(rows), rows.softmax(-1))
    return "safe" if right else "broken"
"""

EXERCISE_3 = Exercise(
    "04.3", "Which softmax survives?", 10, 2, judge, _survival_cases,
    slips(
        "softmax", _ROWS,
        ("only NaN", "torch.allclose(softmax(rows), rows.softmax(-1))", "not softmax(rows).isnan().any()",
         "You looked for NaN alone. Weights can be wrong numbers, too: compare them with the right ones."),
        ("only sums", "torch.allclose(softmax(rows), rows.softmax(-1))",
         "torch.allclose(softmax(rows).sum(-1), torch.ones(4))",
         "You looked at the sums of the rows. Wrong weights can sum to one: compare them with the right ones."),
        ("ordinary scores", "torch.allclose(softmax(rows), rows.softmax(-1))",
         "torch.allclose(softmax(rows[:1]), rows[:1].softmax(-1))",
         "With ordinary scores nearly all of them are right. Try scores in the thousands, above and below 0, and −∞."),
        ("no low row", "[-1e4, -9999.0, -9998.0, -9997.0]", "[1.0, 1.0, 0.0, 1.0]",
         "All your rows have a score of 0 or more somewhere, so a softmax that takes off the largest size in place of "
         "the largest score got through: give it a row of very negative scores."),
        ("no -inf", "-torch.inf", "-1e4",
         "No score was −∞, so a softmax that replaces −∞ by 0 got through. Its key should get weight 0."),
        ("row by row", "torch.allclose(softmax(rows), rows.softmax(-1))",
         "all(torch.allclose(softmax(row), row.softmax(-1)) for row in rows[:, None])",
         "You gave it one row at a time, so one that takes off the largest score of all rows got through. Put rows of "
         "very different size into the same scores."),
        ("exactly", "allclose", "equal",
         "You asked for equal numbers, and float32 rounds: two right ways differ in the last digit. Use "
         "torch.allclose."),
        ("nothing to read", "[0.0, 1.0, -torch.inf, 2.0]", "[-torch.inf, -torch.inf, -torch.inf, -torch.inf]",
         "In one of your rows every score is −∞. There the softmax has no right answer, so leave at least one finite."),
        ("inverted", "if right", "if not right",
         "You have the two words the wrong way round: \"safe\" is one that is right."),
    ),
)  # fmt: skip


# 04.4 Attention under a mask -----------------------------------------------------------------------------------------


def masked_attention(query, key, value, mask):
    """Return (output, weights) of scaled dot-product attention under a mask.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]; value: [..., k_len, d_v];
    mask: booleans that broadcast to [..., q_len, k_len]; True = this query may attend to this key.
    output: [..., q_len, d_v]; weights: [..., q_len, k_len].
    A row that may attend to nothing gets weights and output of zero, and no NaN in any gradient.
    """
    scores = torch.einsum("...id,...jd->...ij", query, key) * query.shape[-1] ** -0.5
    allowed = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, may in zip(scores.reshape(allowed.shape), allowed, strict=True):
        weights = torch.zeros_like(row)
        rows.append(weights.masked_scatter(may, torch.softmax(row[may], dim=0)) if may.any() else weights)
    weights = torch.stack(rows).reshape(scores.shape)
    return weights @ value, weights


def _triangle(size):
    return torch.tensor([[column <= row for column in range(size)] for row in range(size)])


def _attention_cases():
    q, k, v = normal(10, (3, 2), (5, 2), (5, 7))
    seen = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    nothing = seen.clone()
    nothing[1] = False
    padding = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.bool)[:, None, None, :]
    far = torch.tensor([[20.0, 0.0, 0.0, 0.0]]), torch.tensor([[-20.0], [-15.0], [-16.0]]) * torch.eye(4)[:1]
    return [
        Case("2 tokens, causal mask", (*normal(11, (2, 2), (2, 2), (2, 2)), _triangle(2))),
        Case("3 queries, 5 keys", (q, k, v, seen)),
        Case("5 tokens, causal mask", (*normal(12, (5, 5), (5, 5), (5, 5)), _triangle(5))),
        Case("nothing is masked", (q, k, v, torch.ones(3, 5, dtype=torch.bool))),
        Case(
            "a batch with heads and a padding mask", (*normal(13, (2, 3, 7, 11), (2, 3, 5, 11), (2, 3, 5, 2)), padding)
        ),
        Case("a query that may attend to nothing", (q, k, v, nothing)),
        Case("a visible score of −200", (*far, v[:3], torch.tensor([[True, False, False]]))),
        Case(
            "scores in the thousands, the largest forbidden",
            (
                torch.tensor([[2000.0, 0.0], [0.0, -2000.0], [1.0, 1.0]]),
                torch.tensor([[-1.0, 1.0], [-1.001, 1.001], [1.0, -1.0]]),
                torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, -1.0]]),
                torch.tensor([[True, True, False], [True, True, False], [True, True, True]]),
            ),
        ),
    ]


_WEIGHTS = "scores.masked_fill(~mask & ~empty, -torch.inf).softmax(-1).masked_fill(empty, 0.0)"

_EMPTY_ROWS = f"""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    empty = ~mask.any(-1, keepdim=True)
    weights = {_WEIGHTS}
    return weights @ value, weights
"""

EXERCISE_4 = Exercise(
    "04.4", "Attention under a mask", 15, 3, masked_attention, _attention_cases,
    slips(
        "query, key, value, mask", _EMPTY_ROWS,
        ("inverted", "scores = query", "mask = ~mask\nscores = query",
         "The mask is used the wrong way round: True means that the query may attend."),
        ("fill where true", _WEIGHTS, "scores.masked_fill(mask, -torch.inf).softmax(-1)",
         "The mask is used the wrong way round: masked_fill fills where its own mask is True, so give it ~mask."),
        ("not zeroed", ".masked_fill(empty, 0.0)", "",
         "A row that may attend to nothing still has weights. Its scores are finite, which is right; after the softmax "
         "set its weights to 0."),
        ("zero", _WEIGHTS, "(scores * mask).softmax(-1)",
         "You set masked scores to 0, but exp(0) = 1, so masked keys still get weight: use -inf."),
        ("added", _WEIGHTS, "(scores + mask).softmax(-1)",
         "You added the booleans to the scores, 1 where attention is allowed: use -inf elsewhere."),
        ("nan", _WEIGHTS, "scores.masked_fill(~mask, -torch.inf).softmax(-1)",
         "Right where there is something to attend to; but a row that may attend to nothing becomes NaN. Its weights "
         "must be zero."),
        ("finite", _WEIGHTS, "scores.masked_fill(~mask, -1e9).softmax(-1)",
         "Right where there is something to attend to; but with a large negative number in place of -inf, a row that "
         "may attend to nothing spreads its weight over all keys. Its weights must be zero."),
        ("nan gradient", _WEIGHTS,
         "(scores + torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)).softmax(-1).nan_to_num(0.0)",
         "Right values, but the gradient is NaN for a row that may attend to nothing: NaN replaced after the softmax "
         "stays in its backward pass. Fill masked scores (masked_fill), do not add -inf."),
        ("0 times inf", _WEIGHTS, "(scores + ~mask * -torch.inf).softmax(-1)",
         "0 times −∞ is NaN, so scores that may be seen became NaN too: use masked_fill or torch.where."),
        ("unscaled", " / query.shape[-1] ** 0.5", "", "The scores are not scaled: divide by √d_k."),
    )
    + slips(
        "query, key, value, mask", """
            scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
            weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask
            return weights @ value, weights
        """,
        ("after", ".masked_fill(~mask, torch.finfo(scores.dtype).min)", "",
         "You masked after the softmax, so rows no longer sum to one: set the scores to -inf before it."),
        ("output emptied", " * mask\nreturn weights @ value", "\nreturn weights @ value * mask.any(-1, keepdim=True)",
         "The output of a row that may attend to nothing is zero, but its weights are not: set them to 0, too."),
        ("high fill", "torch.finfo(scores.dtype).min", "-100.0",
         "Where the visible scores are very low, all your weights are 0. Hide with -inf or "
         "torch.finfo(scores.dtype).min, before the softmax: a number such as −100 can lie above visible scores."),
    ),
    gradients=("query", "key", "value"), returns=("output", "weights"), probes=(weights_sum(1), masked_key_leak),
    part="masked_attention",
)  # fmt: skip


# 04.5 The gradient of a softmax --------------------------------------------------------------------------------------


def softmax_backward(weights, grad_weights):
    """Return the gradient with respect to the scores, given weights = softmax(scores) over the last axis.

    weights, grad_weights (the gradient with respect to the weights): [..., k_len]. Returns [..., k_len].
    """
    rows = []
    for row, grad in zip(weights.flatten(0, -2), grad_weights.flatten(0, -2), strict=True):
        jacobian = torch.diag(row) - torch.outer(row, row)
        rows.append(jacobian @ grad)
    return torch.stack(rows).reshape(weights.shape)


def _softmax_backward_cases():
    def case(label, seed, *shape):
        scores, grad = normal(seed, shape, shape, dtype=torch.float64)
        return Case(label, (torch.softmax(scores, -1), grad))

    certain = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], dtype=torch.float64)
    return [
        case("one row of 2", 6, 1, 2),
        case("2 rows of 3", 7, 2, 3),
        case("5 rows of 5", 8, 5, 5),
        case("a batch of 2", 9, 2, 3, 7),
        Case("one weight is exactly 1", (certain, normal(10, (2, 3), dtype=torch.float64)[0])),
        Case("equal gradients", (certain, torch.full((2, 3), 2.0, dtype=torch.float64))),
    ]


EXERCISE_5 = Exercise(
    "04.5", "The gradient of a softmax", 20, 3, softmax_backward, _softmax_backward_cases,
    slips(
        "weights, grad_weights", """
            mean = (weights * grad_weights).sum(-1, keepdim=True)
            return weights * (grad_weights - mean)
        """,
        ("diagonal", " - mean", "",
         "Raising one score lowers all other weights: the term that subtracts Σ weights · grad is missing."),
        ("sigmoid", "(grad_weights - mean)", "(1 - weights) * grad_weights",
         "You used only the diagonal of the Jacobian, w (1 - w), as for a sigmoid; the entries -w_i w_j between "
         "different keys are missing."),
        ("mean", "(weights * grad_weights).sum", "grad_weights.mean",
         "Subtract the mean of the gradients under the weights, not their plain mean."),
        ("axis", "-1", "-2",
         "You added up over the rows (axis -2); each row is a softmax of its own, so sum over axis -1."),
        ("all", "-1, keepdim=True", "",
         "You added up over all rows; each row is a softmax of its own (sum over axis -1, keepdim=True)."),
        ("no a behind", "weights * (grad_weights - mean)", "weights * grad_weights - mean",
         "The second term lacks its weights: a aᵀ times a vector is a times a number."),
        ("no front", "weights * (grad_weights - mean)", "grad_weights - mean",
         "The weight in front is missing: multiply the difference by the weights."),
    ),
)  # fmt: skip


# 04.6 Attention backwards --------------------------------------------------------------------------------------------


def attention_backward(query, key, value, grad_output):
    """Return (grad_query, grad_key, grad_value) of softmax(query key' / √d_k) value, without autograd.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]; value: [..., k_len, d_v]; grad_output: [..., q_len, d_v].
    """
    inputs = [part.detach().clone().requires_grad_() for part in (query, key, value)]
    scores = inputs[0] @ inputs[1].transpose(-2, -1) / query.shape[-1] ** 0.5
    output = torch.softmax(scores, dim=-1) @ inputs[2]
    return torch.autograd.grad(output, inputs, grad_output)


def _backward_cases():
    def case(label, seed, q_len, k_len, d_k, d_v, *batch):
        shapes = ((q_len, d_k), (k_len, d_k), (k_len, d_v), (q_len, d_v))
        return Case(label, tuple(normal(seed, *((*batch, *shape) for shape in shapes), dtype=torch.float64)))

    return [
        case("2 tokens, d = 2", 11, 2, 2, 2, 2),
        case("3 queries, 5 keys", 12, 3, 5, 2, 7),
        case("5 tokens, d = 5", 13, 5, 5, 5, 5),
        case("one key", 14, 3, 1, 2, 5),
        case("a batch of 2", 15, 3, 5, 7, 2, 2),
    ]


EXERCISE_6 = Exercise(
    "04.6", "Attention's backward pass", 30, 3, attention_backward, _backward_cases,
    slips(
        "query, key, value, grad_output", """
            root = query.shape[-1] ** 0.5
            weights = (query @ key.mT / root).softmax(-1)
            grad_weights = grad_output @ value.mT
            grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))
            grad_query = grad_scores @ key / root
            grad_key = grad_scores.mT @ query / root
            grad_value = weights.mT @ grad_output
            return grad_query, grad_key, grad_value
        """,
        ("unscaled", "key / root\ngrad_key = grad_scores.mT @ query / root", "key\ngrad_key = grad_scores.mT @ query",
         "The scores were divided by √d_k, so grad_query and grad_key are too: the factor is missing."),
        ("twice", "keepdim=True))", "keepdim=True)) / root",
         "You divided by √d_k twice: once on the way back is enough."),
        ("key not turned", "grad_scores.mT", "grad_scores",
         "grad_key collects over queries: multiply by the transposed gradient of the scores."),
        ("value not turned", "weights.mT", "weights",
         "grad_value collects over queries: it is weightsᵀ grad_output, with the weights transposed."),
        ("diagonal", "(grad_weights - (weights * grad_weights).sum(-1, keepdim=True))", "grad_weights",
         "Your softmax step lacks the term that subtracts Σ weights · grad (exercise 04.5)."),
        ("no softmax", "weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))", "grad_weights",
         "You passed the gradient of the weights straight on to the scores: the softmax lies between."),
        ("reversed", "return grad_query, grad_key, grad_value", "return grad_value, grad_key, grad_query",
         "You return them in the order in which they are found; return (grad_query, grad_key, grad_value)."),
    ),
    returns=("grad_query", "grad_key", "grad_value"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
