"""The exercises of notebook 04: scaled dot-product attention."""

from __future__ import annotations

import torch

from .model import Case, Exercise, normal
from .probes import masked_key_leak, weights_sum
from .slips import slips

INF = float("inf")


# 04.1 Scaled scores --------------------------------------------------------------------------------------------------


def scaled_scores(query, key):
    """Return the dot product of every query with every key, divided by √d_k.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]. Returns [..., q_len, k_len].
    """
    return torch.einsum("...id,...jd->...ij", query, key) * query.shape[-1] ** -0.5


def _score_cases():
    return [
        Case("2 queries, 2 keys, d_k = 2", tuple(normal(1, (2, 2), (2, 2)))),
        Case("3 queries, 5 keys, d_k = 7", tuple(normal(2, (3, 7), (5, 7)))),
        Case("5 queries, 5 keys, d_k = 5", tuple(normal(3, (5, 5), (5, 5)))),
        Case("a batch of 2", tuple(normal(4, (2, 3, 5), (2, 7, 5)))),
        Case("a batch of 3 with 2 heads", tuple(normal(5, (3, 2, 5, 11), (3, 2, 7, 11)))),
        Case("one query, one key", tuple(normal(6, (1, 3), (1, 3)))),
    ]


EXERCISE_1 = Exercise(
    "04.1", "Scaled scores", 5, 1, scaled_scores, _score_cases,
    slips(
        "query, key", """
            scores = query @ key.transpose(-2, -1)
            return scores / query.shape[-1] ** 0.5
        """,
        ("d_k", " ** 0.5", "", "You divided by d_k; the formula divides by √d_k."),
        ("unscaled", " / query.shape[-1] ** 0.5", "", "The scores are not scaled: divide by √d_k."),
        ("root of 3", "query.shape[-1]", "3",
         "√3 is the root of d_k in our example; take it from the tensor: query.shape[-1]."),
        ("first axis", "shape[-1]", "shape[0]",
         "You divided by the root of the first axis, which is the batch where there is one; d_k is the last axis."),
        ("axis 1", "shape[-1]", "shape[1]",
         "Right for one sentence; with a batch in front axis 1 counts queries, or heads. d_k is the last axis, "
         "query.shape[-1]."),
        ("softmax", "scores / query.shape[-1] ** 0.5", "(scores / query.shape[-1] ** 0.5).softmax(-1)",
         "You returned the weights; return the scores, before the softmax."),
        ("k_len", "query.shape[-1]", "key.shape[-2]",
         "You divided by the root of the number of keys; d_k is the length of one key (the last axis)."),
        ("no transpose", ".transpose(-2, -1)", "",
         "You multiplied by the keys without transposing them (a reshape does not); a dot product sums over d_k."),
        ("all axes", "transpose(-2, -1)", "permute(*range(key.dim())[::-1])",
         "Right without a batch, but .T turns all axes around: swap only the last two, key.transpose(-2, -1)."),
        ("swapped", "query @ key.transpose(-2, -1)", "key @ query.transpose(-2, -1)",
         "The result has the right values transposed: queries are rows, keys are columns."),
        ("half", "** 0.5", "** 1 / 2",
         "You divided by 2 d_k: in Python d_k ** 1 / 2 is (d_k ** 1) / 2. Write d_k ** 0.5."),
    ),
    gradients=("query", "key"),
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


# 04.3 A softmax that does not overflow -------------------------------------------------------------------------------


def stable_softmax(scores):
    """Return the softmax over the last axis, also for scores in the thousands; a score of -inf gets weight 0.

    scores: [..., k_len], with at least one finite entry in each row. Returns the same shape.
    """
    return torch.nn.functional.softmax(scores, dim=-1)


def _softmax_cases():
    (square,), (batch,) = normal(7, (3, 3)), normal(8, (2, 3, 5))
    masked = normal(9, (5, 7))[0]
    masked[0, 2:] = masked[3, :4] = -INF
    return [
        Case("one row", (torch.tensor([2.0, 1.0, 0.0]),)),
        Case("3 by 3", (square,)),
        Case("a batch of 2", (batch,)),
        Case("scores in the thousands", (torch.tensor([[1000.0, 1001.0, 1002.0], [999.0, 1002.0, 1000.0]]),)),
        Case("rows of very different size", (torch.tensor([[1000.0, 1001.0], [-1000.0, -1002.0], [0.0, 3.0]]),)),
        Case("very negative scores", (torch.tensor([[-2000.0, -2001.0, -2003.0]]),)),
        Case("one score far below the others", (torch.tensor([[0.0, 1.0, 2.0, -100.0]]),)),
        Case("some scores are -inf", (masked,)),
        Case("-inf among very negative scores", (torch.tensor([[-2000.0, -2001.0, -INF], [0.0, 1.0, -INF]]),)),
    ]


EXERCISE_3 = Exercise(
    "04.3", "A softmax that does not overflow", 10, 2, stable_softmax, _softmax_cases,
    slips(
        "scores", """
            e = (scores - scores.amax(-1, keepdim=True)).exp()
            return e / e.sum(-1, keepdim=True)
        """,
        ("naive", " - scores.amax(-1, keepdim=True)", "",
         "exp overflows for scores in the thousands (inf / inf is NaN), and for very negative ones every exp is 0 "
         "(0 / 0 is NaN, too): subtract each row's largest score first."),
        ("nan replaced", "return e / e.sum(-1, keepdim=True)",
         "return (scores.exp() / scores.exp().sum(-1, keepdim=True)).nan_to_num(0.0)",
         "You replaced NaN by 0 afterwards, so such a row has no weights at all. Subtract each row's largest score "
         "before exp."),
        ("mean", "amax", "mean",
         "You subtracted the mean of each row; only subtracting the largest score keeps exp at most 1 (and the mean of "
         "a row with -inf is -inf)."),
        ("global max", "amax(-1, keepdim=True)", "max()",
         "You subtracted the largest score of all rows; in a row far below it every exp underflows to 0, and 0 / 0 is "
         "NaN. Take the largest score of each row."),
    )
    + slips(
        "scores", "return scores.softmax(-1)",
        ("first axis", "-1", "0",
         "You took the softmax over the first axis, the batch where there is one; keys are the last."),
        ("no inf", "scores", "scores.masked_fill(scores == -torch.inf, 0.0)",
         "You replaced -inf by 0, but exp(0) = 1: a score of -inf must get weight exp(-inf) = 0."),
    ),
    probes=(weights_sum(),),
)  # fmt: skip


# 04.4 Attention under a mask -----------------------------------------------------------------------------------------


def masked_attention(query, key, value, mask):
    """Return (output, weights) of scaled dot-product attention under a mask.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]; value: [..., k_len, d_v];
    mask: booleans that broadcast to [..., q_len, k_len]; True = this query may attend to this key.
    output: [..., q_len, d_v]; weights: [..., q_len, k_len].
    A row that may attend to nothing gets weights and output of zero, and no NaN in any gradient.
    """
    scores = scaled_scores(query, key)
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
