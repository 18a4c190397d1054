"""The exercises of notebook 04: scaled dot-product attention."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal
from .probes import masked_key_leak, weights_sum

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
    "04.1",
    "Scaled scores",
    5,
    1,
    scaled_scores,
    _score_cases,
    (
        Mistake("d_k", lambda q, k: q @ k.mT / q.shape[-1], "You divided by d_k; the formula divides by √d_k."),
        Mistake("unscaled", lambda q, k: q @ k.mT, "The scores are not scaled: divide by √d_k."),
        Mistake("times", lambda q, k: q @ k.mT * q.shape[-1] ** 0.5, "You multiplied by √d_k; divide by it."),
        Mistake(
            "root of 3",
            lambda q, k: q @ k.mT / 3**0.5,
            "√3 is the root of d_k in our example; take it from the tensor: query.shape[-1].",
        ),
        Mistake(
            "q_len",
            lambda q, k: q @ k.mT / q.shape[-2] ** 0.5,
            "You divided by the root of the number of queries; d_k is the length of one query (the last axis).",
        ),
        Mistake(
            "first axis",
            lambda q, k: q @ k.mT / q.shape[0] ** 0.5,
            "You divided by the root of the first axis, which is the batch where there is one; d_k is the last axis.",
        ),
        Mistake(
            "axis 1",
            lambda q, k: q @ k.mT / q.shape[1] ** 0.5,
            "Right for one sentence; with a batch in front axis 1 counts queries, or heads. d_k is the last axis, "
            "query.shape[-1].",
        ),
        Mistake(
            "whole root",
            lambda q, k: q @ k.mT / int(q.shape[-1] ** 0.5),
            "√d_k need not be an integer: do not round it.",
        ),
        Mistake(
            "softmax",
            lambda q, k: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1),
            "You returned the weights; return the scores, before the softmax.",
        ),
        Mistake(
            "k_len",
            lambda q, k: q @ k.mT / k.shape[-2] ** 0.5,
            "You divided by the root of the number of keys; d_k is the length of one key (the last axis).",
        ),
        Mistake(
            "no transpose",
            lambda q, k: q @ k / q.shape[-1] ** 0.5,
            "You multiplied by the keys without transposing them (a reshape does not); a dot product sums over d_k.",
        ),
        Mistake(
            "all axes",
            lambda q, k: q @ k.permute(*reversed(range(k.dim()))) / q.shape[-1] ** 0.5,
            "Right without a batch, but .T turns all axes around: swap only the last two, key.transpose(-2, -1).",
        ),
        Mistake(
            "swapped",
            lambda q, k: k @ q.mT / q.shape[-1] ** 0.5,
            "The result has the right values transposed: queries are rows, keys are columns.",
        ),
        Mistake(
            "half",
            lambda q, k: q @ k.mT / q.shape[-1] ** 1 / 2,
            "You divided by 2 d_k: in Python d_k ** 1 / 2 is (d_k ** 1) / 2. Write d_k ** 0.5.",
        ),
        Mistake(
            "half of d_k",
            lambda q, k: q @ k.mT / (q.shape[-1] / 2),
            "You divided by d_k / 2: in Python d_k ** 1 / 2 is (d_k ** 1) / 2. Write d_k ** 0.5.",
        ),
    ),
    gradients=("query", "key"),
)


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


def _deviation(variance_of_a_term, count=lambda d: d, power=0.5):
    return lambda d, mq, vq, mk, vk: (count(d) * variance_of_a_term(mq, vq, mk, vk)) ** power


EXERCISE_2 = Exercise(
    "04.2",
    "How far do dot products spread?",
    10,
    2,
    dot_product_deviation,
    _deviation_cases,
    (
        Mistake(
            "d_k alone",
            lambda d, mq, vq, mk, vk: d**0.5,
            "Right only for mean 0 and variance 1: a term's variance depends on both means and both variances.",
        ),
        Mistake(
            "half",
            _deviation(lambda mq, vq, mk, vk: (vq * vk + vq * mk**2 + vk * mq**2) / 2, power=1.0),
            "That is half of the variance: in Python x ** 1 / 2 is (x ** 1) / 2. Write x ** 0.5.",
        ),
        Mistake(
            "factor",
            _deviation(lambda mq, vq, mk, vk: vq * vk + vq * mk**2 + vk * mq**2, power=-0.5),
            "That is what one would multiply by; return the standard deviation, by which one divides.",
        ),
        Mistake(
            "squared variances",
            _deviation(lambda mq, vq, mk, vk: (vq**2 + mq**2) * (vk**2 + mk**2) - (mq * mk) ** 2),
            "A variance is a square already: E[q²] is var_q + mean_q².",
        ),
        Mistake(
            "mean of the sum",
            lambda d, mq, vq, mk, vk: abs(d * (vq + mq**2) * (vk + mk**2) - (d * mq * mk) ** 2) ** 0.5,
            "You subtracted the square of the whole sum's mean. Take E[t]² off a single term; d_k terms then add up.",
        ),
        Mistake(
            "no means",
            _deviation(lambda mq, vq, mk, vk: vq * vk),
            "Right while both means are 0. With a mean, E[q²] is variance + mean², and a term also varies with it.",
        ),
        Mistake(
            "mean of squares",
            _deviation(lambda mq, vq, mk, vk: (vq + mq**2) * (vk + mk**2)),
            "That is the root of d_k E[q²] E[k²], of the mean of the squares; a variance subtracts the square of the "
            "mean, (E[q] E[k])².",
        ),
        Mistake(
            "variance",
            _deviation(lambda mq, vq, mk, vk: vq * vk + vq * mk**2 + vk * mq**2, power=1.0),
            "That is the variance; the standard deviation is its root.",
        ),
        Mistake(
            "no product",
            _deviation(lambda mq, vq, mk, vk: vq * mk**2 + vk * mq**2),
            "The term var_q · var_k is missing: with both means 0 the products would not vary at all.",
        ),
        Mistake(
            "one mean",
            _deviation(lambda mq, vq, mk, vk: vq * vk + vq * mk**2),
            "A mean of the keys spreads the products, and so does a mean of the queries: var_k · mean_q² is missing.",
        ),
        Mistake(
            "other mean",
            _deviation(lambda mq, vq, mk, vk: vq * vk + vk * mq**2),
            "A mean of the queries spreads the products, and so does a mean of the keys: var_q · mean_k² is missing.",
        ),
        Mistake(
            "own means",
            _deviation(lambda mq, vq, mk, vk: vq * vk + vq * mq**2 + vk * mk**2),
            "Each mean multiplies the variance of the *other* factor: var_q · mean_k² and var_k · mean_q².",
        ),
        Mistake(
            "one term",
            _deviation(lambda mq, vq, mk, vk: vq * vk + vq * mk**2 + vk * mq**2, count=lambda d: 1),
            "That is the deviation of one term; d_k independent terms add their variances.",
        ),
        Mistake(
            "d_k outside",
            lambda d, mq, vq, mk, vk: d * (vq * vk + vq * mk**2 + vk * mq**2) ** 0.5,
            "You added up d_k deviations; of independent terms the variances add up, and the root comes last.",
        ),
        Mistake(
            "sum of variances",
            _deviation(lambda mq, vq, mk, vk: vq + vk),
            "The components are multiplied, not added: a product of independent components has E[q²] E[k²] in place of "
            "a sum.",
        ),
    ),
)


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


def _exp_share(shift):
    return lambda s: (e := torch.exp(s - shift(s))) / e.sum(-1, keepdim=True)


EXERCISE_3 = Exercise(
    "04.3",
    "A softmax that does not overflow",
    10,
    2,
    stable_softmax,
    _softmax_cases,
    (
        Mistake(
            "naive",
            _exp_share(lambda s: 0.0),
            "exp overflows for scores in the thousands (inf / inf is NaN), and for very negative ones every exp is 0 "
            "(0 / 0 is NaN, too): subtract each row's largest score first.",
        ),
        Mistake(
            "nan replaced",
            lambda s: _exp_share(lambda s: 0.0)(s).nan_to_num(0.0),
            "You replaced NaN by 0 afterwards, so such a row has no weights at all. Subtract each row's largest score "
            "before exp.",
        ),
        Mistake(
            "mean",
            _exp_share(lambda s: s.mean(-1, keepdim=True)),
            "You subtracted the mean of each row; only subtracting the largest score keeps exp at most 1 "
            "(and the mean of a row with -inf is -inf).",
        ),
        Mistake(
            "smallest",
            _exp_share(lambda s: s.amin(-1, keepdim=True)),
            "You subtracted the smallest score of each row; where the others lie far above it, exp overflows: "
            "subtract the largest.",
        ),
        Mistake(
            "global max",
            _exp_share(lambda s: s.max()),
            "You subtracted the largest score of all rows; in a row far below it every exp underflows to 0, "
            "and 0 / 0 is NaN. Take the largest score of each row.",
        ),
        Mistake(
            "axis",
            lambda s: torch.softmax(s, 0 if s.dim() == 1 else -2),
            "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
        ),
        Mistake(
            "first axis",
            lambda s: torch.softmax(s, 0),
            "You took the softmax over the first axis, the batch where there is one; keys are the last.",
        ),
        Mistake(
            "all",
            lambda s: torch.softmax(s.flatten(), 0).view_as(s),
            "You took one softmax over all entries; every row needs its own.",
        ),
        Mistake(
            "no sum",
            lambda s: torch.exp(s - s.amax(-1, keepdim=True)),
            "You did not divide by the sum of each row.",
        ),
        Mistake(
            "no inf",
            lambda s: torch.softmax(s.masked_fill(s == -INF, 0.0), -1),
            "You replaced -inf by 0, but exp(0) = 1: a score of -inf must get weight exp(-inf) = 0.",
        ),
        Mistake(
            "log",
            lambda s: torch.log_softmax(s, -1),
            "You returned the logarithm of the weights; take the exponential.",
        ),
    ),
    probes=(weights_sum(),),
)


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


def _attend(weigh):
    """Return attention whose weights come from `weigh(scaled scores, mask)`."""

    def function(query, key, value, mask):
        weights = weigh(scaled_scores(query, key), mask)
        return weights @ value, weights

    return function


def _masked(scores, mask, fill=-INF):
    return scores.masked_fill(~mask, fill)


def _infinite(mask):
    """Return 0 where attention is allowed and -inf elsewhere: a mask to be added."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF)


def _softmax_of(scores):
    """Return the softmax over the keys, with zeros and no NaN where everything is -inf."""
    alone = (scores == -INF).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(alone, 0.0), -1).masked_fill(alone, 0.0)


def _rescaled(factor):
    """Return attention whose scores are `factor(d_k)` times too large."""

    def function(query, key, value, mask):
        weights = _softmax_of(_masked(scaled_scores(query, key) * factor(query.shape[-1]), mask))
        return weights @ value, weights

    return function


def _output_emptied(weigh):
    """Return attention with the weights `weigh(scaled scores, mask)`, whose output alone is 0 for an empty row."""

    def function(query, key, value, mask):
        weights = weigh(scaled_scores(query, key), mask)
        return (weights @ value).masked_fill(~mask.any(-1, keepdim=True), 0.0), weights

    return function


EXERCISE_4 = Exercise(
    "04.4",
    "Attention under a mask",
    15,
    3,
    masked_attention,
    _attention_cases,
    (
        Mistake(
            "inverted",
            _attend(lambda s, m: _softmax_of(_masked(s, ~m))),
            "The mask is used the wrong way round: True means that the query may attend.",
        ),
        Mistake(
            "fill where true",
            _attend(lambda s, m: torch.softmax(_masked(s, ~m), -1)),
            "The mask is used the wrong way round: masked_fill fills where its own mask is True, so give it ~mask.",
        ),
        Mistake(
            "fill where true, rows",
            _attend(
                lambda s, m: torch.softmax(s.masked_fill(m & m.any(-1, keepdim=True), -INF), -1).masked_fill(
                    ~m.any(-1, keepdim=True), 0.0
                )
            ),
            "The empty rows are right; elsewhere the mask is used the wrong way round: masked_fill fills where its own "
            "mask is True, so give it ~mask there.",
        ),
        Mistake(
            "not zeroed",
            _attend(lambda s, m: torch.softmax(_masked(s, m | ~m.any(-1, keepdim=True)), -1)),
            "A row that may attend to nothing still has weights. Its scores are finite, which is right; after the "
            "softmax set its weights to 0.",
        ),
        Mistake("no mask", _attend(lambda s, m: torch.softmax(s, -1)), "You did not use the mask."),
        Mistake(
            "after",
            _attend(lambda s, m: torch.softmax(s, -1) * m),
            "You masked after the softmax, so rows no longer sum to one: set the scores to -inf before it.",
        ),
        Mistake(
            "zero",
            _attend(lambda s, m: torch.softmax(s * m, -1)),
            "You set masked scores to 0, but exp(0) = 1, so masked keys still get weight: use -inf.",
        ),
        Mistake(
            "added",
            _attend(lambda s, m: torch.softmax(s + m, -1)),
            "You added the booleans to the scores, 1 where attention is allowed: use -inf elsewhere.",
        ),
        Mistake(
            "nan",
            _attend(lambda s, m: torch.softmax(_masked(s, m), -1)),
            "Right where there is something to attend to; but a row that may attend to nothing becomes NaN. "
            "Its weights must be zero.",
        ),
        Mistake(
            "finite",
            _attend(lambda s, m: torch.softmax(_masked(s, m, -1e9), -1)),
            "Right where there is something to attend to; but with a large negative number in place of -inf, "
            "a row that may attend to nothing spreads its weight over all keys. Its weights must be zero.",
        ),
        Mistake(
            "output emptied",
            _output_emptied(lambda s, m: torch.softmax(_masked(s, m, -1e9), -1)),
            "The output of a row that may attend to nothing is zero, but its weights are not: set them to 0, too.",
        ),
        Mistake(
            "output emptied, finite scores",
            _output_emptied(lambda s, m: torch.softmax(_masked(s, m | ~m.any(-1, keepdim=True)), -1)),
            "You emptied the output of a row that may attend to nothing, but not its weights: set them to 0 after the "
            "softmax, and the output follows.",
        ),
        Mistake(
            "nan gradient",
            _attend(lambda s, m: torch.softmax(s + _infinite(m), -1).nan_to_num(0.0)),
            "Right values, but the gradient is NaN for a row that may attend to nothing: NaN replaced after "
            "the softmax stays in its backward pass. Fill masked scores (masked_fill), do not add -inf.",
        ),
        Mistake(
            "0 times inf",
            _attend(lambda s, m: torch.softmax(s + ~m * -INF, -1)),
            "0 times −∞ is NaN, so scores that may be seen became NaN too: use masked_fill or torch.where.",
        ),
        Mistake("d_k", _rescaled(lambda d: d**-0.5), "You divided by d_k; the formula divides by √d_k."),
        Mistake("unscaled", _rescaled(lambda d: d**0.5), "The scores are not scaled: divide by √d_k."),
        Mistake(
            "axis",
            _attend(lambda s, m: _softmax_of(_masked(s, m).mT).mT),
            "Your weights sum to one over queries (axis -2), not over keys (axis -1).",
        ),
        Mistake(
            "order",
            lambda *args: masked_attention(*args)[::-1],
            "You returned (weights, output); the order is (output, weights).",
        ),
        Mistake(
            "high fill",
            _attend(lambda s, m: torch.softmax(_masked(s, m, -100.0), -1) * m),
            "Where the visible scores are very low, all your weights are 0. Hide with -inf or "
            "torch.finfo(scores.dtype).min, before the softmax: a number such as −100 can lie above visible scores.",
        ),
        Mistake(
            "high fill, rows",
            _attend(lambda s, m: torch.softmax(_masked(s, m, -100.0), -1) * m.any(-1, keepdim=True)),
            "Where the visible scores lie below the number that you put in the hidden places, hidden keys get the "
            "weight. Use -inf, or torch.finfo(scores.dtype).min.",
        ),
    ),
    gradients=("query", "key", "value"),
    returns=("output", "weights"),
    probes=(weights_sum(1), masked_key_leak),
    part="masked_attention",
)


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
    "04.5",
    "The gradient of a softmax",
    20,
    3,
    softmax_backward,
    _softmax_backward_cases,
    (
        Mistake(
            "diagonal",
            lambda w, g: w * g,
            "Raising one score lowers all other weights: the term that subtracts Σ weights · grad is missing.",
        ),
        Mistake(
            "sigmoid",
            lambda w, g: w * (1 - w) * g,
            "You used only the diagonal of the Jacobian, w (1 - w), as for a sigmoid; the entries -w_i w_j "
            "between different keys are missing.",
        ),
        Mistake(
            "unweighted",
            lambda w, g: w * (g - g.sum(-1, keepdim=True)),
            "Subtract the sum of the gradients each times its weight; yours adds them up without weights.",
        ),
        Mistake(
            "mean",
            lambda w, g: w * (g - g.mean(-1, keepdim=True)),
            "Subtract the mean of the gradients under the weights, not their plain mean.",
        ),
        Mistake(
            "axis",
            lambda w, g: w * (g - (w * g).sum(-2, keepdim=True)),
            "You added up over the rows (axis -2); each row is a softmax of its own, so sum over axis -1.",
        ),
        Mistake(
            "all",
            lambda w, g: w * (g - (w * g).sum()),
            "You added up over all rows; each row is a softmax of its own (sum over axis -1, keepdim=True).",
        ),
        Mistake("sign", lambda w, g: w * ((w * g).sum(-1, keepdim=True) - g), "The sign is flipped."),
        Mistake(
            "no a behind",
            lambda w, g: w * g - (w * g).sum(-1, keepdim=True),
            "The second term lacks its weights: a aᵀ times a vector is a times a number.",
        ),
        Mistake(
            "plus",
            lambda w, g: w * (g + (w * g).sum(-1, keepdim=True)),
            "Subtract the mean under the weights; you added it.",
        ),
        Mistake(
            "no front",
            lambda w, g: g - (w * g).sum(-1, keepdim=True),
            "The weight in front is missing: multiply the difference by the weights.",
        ),
    ),
)


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


def _backward(jacobian=softmax_backward, swap=lambda m: m.mT, swap_weights=lambda m: m.mT, power=0.5, order=(0, 1, 2)):
    """Return the backward pass with one step replaced."""

    def function(query, key, value, grad_output):
        scale = query.shape[-1] ** power
        weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
        grad_scores = jacobian(weights, grad_output @ value.mT) / scale
        gradients = (grad_scores @ key, swap(grad_scores) @ query, swap_weights(weights) @ grad_output)
        return tuple(gradients[index] for index in order)

    return function


def _one_unscaled(index):
    """Return the backward pass with the factor forgotten in one of its gradients."""

    def function(query, key, value, grad_output):
        gradients = list(attention_backward(query, key, value, grad_output))
        gradients[index] = gradients[index] * query.shape[-1] ** 0.5
        return tuple(gradients)

    return function


EXERCISE_6 = Exercise(
    "04.6",
    "Attention's backward pass",
    30,
    3,
    attention_backward,
    _backward_cases,
    (
        Mistake(
            "unscaled",
            _backward(power=0.0),
            "The scores were divided by √d_k, so grad_query and grad_key are too: the factor is missing.",
        ),
        Mistake(
            "query unscaled",
            _one_unscaled(0),
            "grad_query lacks the factor 1 / √d_k: divide it, as you did grad_key.",
        ),
        Mistake(
            "key unscaled",
            _one_unscaled(1),
            "grad_key lacks the factor 1 / √d_k: divide it, as you did grad_query.",
        ),
        Mistake("twice", _backward(power=1.0), "You divided by √d_k twice: once on the way back is enough."),
        Mistake(
            "key not turned",
            _backward(swap=lambda m: m),
            "grad_key collects over queries: multiply by the transposed gradient of the scores.",
        ),
        Mistake(
            "value not turned",
            _backward(swap_weights=lambda m: m),
            "grad_value collects over queries: it is weightsᵀ grad_output, with the weights transposed.",
        ),
        Mistake(
            "diagonal",
            _backward(lambda w, g: w * g),
            "Your softmax step lacks the term that subtracts Σ weights · grad (exercise 04.5).",
        ),
        Mistake(
            "sigmoid",
            _backward(lambda w, g: w * (1 - w) * g),
            "Your softmax step uses only the diagonal w (1 - w) of the Jacobian (exercise 04.5).",
        ),
        Mistake(
            "no softmax",
            _backward(lambda w, g: g),
            "You passed the gradient of the weights straight on to the scores: the softmax lies between.",
        ),
        Mistake(
            "axis",
            _backward(lambda w, g: w * (g - (w * g).sum(-2, keepdim=True))),
            "In the softmax step you added up over queries (axis -2); sum over keys (axis -1).",
        ),
        Mistake(
            "reversed",
            _backward(order=(2, 1, 0)),
            "You return them in the order in which they are found; return (grad_query, grad_key, grad_value).",
        ),
        Mistake(
            "key first",
            _backward(order=(1, 0, 2)),
            "grad_query and grad_key have changed places: return (grad_query, grad_key, grad_value).",
        ),
        Mistake(
            "order",
            _backward(order=(2, 0, 1)),
            "The three gradients are right but in another order: return (grad_query, grad_key, grad_value).",
        ),
    ),
    returns=("grad_query", "grad_key", "grad_value"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
