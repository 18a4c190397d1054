"""The exercises of notebook 02: similarity without weights."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

# 02.1 All scores at once ---------------------------------------------------------------------------------------------


def similarity_scores(X):
    """Return the dot product of every token with every token.

    X: [..., seq_len, d_model], tokens are rows. Returns [..., seq_len, seq_len], entry (i, j) = x_i · x_j.
    """
    return torch.einsum("...id,...jd->...ij", X, X)


def _token_cases():
    return [
        Case("2 tokens of width 3", tuple(normal(201, (2, 3)))),
        Case("5 tokens of width 5", tuple(normal(202, (5, 5)))),
        Case("7 tokens of width 2", tuple(normal(203, (7, 2)))),
        Case("a batch of 2", tuple(normal(204, (2, 3, 5)))),
        Case("one token", tuple(normal(205, (1, 7)))),
        Case("scores in the hundreds", tuple(13 * x for x in normal(206, (5, 3)))),
    ]


def _unit(X, axis=-1):
    return X / torch.linalg.vector_norm(X, dim=axis, keepdim=True)


EXERCISE_1 = Exercise(
    "02.1",
    "All scores at once",
    5,
    1,
    similarity_scores,
    _token_cases,
    (
        Mistake(
            "features",
            lambda X: X.mT @ X,
            "You compared features with features, [d_model, d_model]. Tokens are rows: X times its transpose.",
        ),
        Mistake(
            "all axes",
            lambda X: X @ X.permute(*reversed(range(X.dim()))),
            "Right for one sentence; with a batch in front swap the last two axes only: X.mT.",
        ),
        Mistake(
            "elementwise",
            lambda X: X * X,
            "You multiplied entry by entry; a score sums over the features of two tokens.",
        ),
        Mistake(
            "scaled",
            lambda X: X @ X.mT / X.shape[-1] ** 0.5,
            "You divided by √d_model; these scores are plain dot products.",
        ),
        Mistake(
            "cosine",
            lambda X: _unit(X) @ _unit(X).mT,
            "Those are cosines: you divided by the lengths. The dot product keeps them.",
        ),
        Mistake(
            "softmax",
            lambda X: torch.softmax(X @ X.mT, dim=-1),
            "You took the softmax as well; the scores alone are asked for.",
        ),
        Mistake(
            "distance",
            lambda X: torch.cdist(X, X),
            "Those are distances, small for similar tokens; a dot product is large for them.",
        ),
    ),
    gradients=("X",),
)


# 02.2 Context vectors ------------------------------------------------------------------------------------------------


def context_vectors(X):
    """Return for each token the mean of all tokens, weighted by the softmax of its scores x_i · x_j.

    X: [..., seq_len, d_model]. Returns [..., seq_len, d_model]. The scores are not divided by anything.
    """
    weights = torch.softmax(similarity_scores(X), dim=-1)
    return torch.einsum("...ij,...jd->...id", weights, X)


def _mix(scores=similarity_scores, axis=-1):
    return lambda X: torch.softmax(scores(X), dim=axis) @ X


def _linear_weights(X):
    scores = similarity_scores(X).abs()
    return scores / scores.sum(-1, keepdim=True) @ X


EXERCISE_2 = Exercise(
    "02.2",
    "Context vectors",
    8,
    1,
    context_vectors,
    _token_cases,
    (
        Mistake(
            "axis",
            _mix(axis=-2),
            "Your weights sum to one down the columns; each token's own weights, a row, must sum to one.",
        ),
        Mistake(
            "axis 1",
            _mix(axis=1),
            "Right for one sentence; with a batch in front the keys are no longer axis 1: use dim=-1.",
        ),
        Mistake(
            "scaled",
            _mix(lambda X: similarity_scores(X) / X.shape[-1] ** 0.5),
            "You divided the scores by √d_model; here they enter the softmax as they are.",
        ),
        Mistake(
            "cosine",
            _mix(lambda X: similarity_scores(_unit(X))),
            "Your scores are cosines; here the lengths count.",
        ),
        Mistake(
            "unnormalised",
            lambda X: similarity_scores(X) @ X,
            "You used the scores themselves as weights: without the softmax they are no shares.",
        ),
        Mistake(
            "linear shares",
            _linear_weights,
            "You made shares by dividing by the sum; the softmax takes exponentials first.",
        ),
        Mistake(
            "weights",
            lambda X: torch.softmax(similarity_scores(X), dim=-1),
            "Those are the weights. Use them to average the rows of X.",
        ),
        Mistake(
            "mean",
            lambda X: X.mean(-2, keepdim=True).expand(X.shape),
            "Every token gets the plain mean: your weights do not depend on the scores.",
        ),
        Mistake(
            "overflow",
            lambda X: (e := torch.exp(similarity_scores(X))) / e.sum(-1, keepdim=True) @ X,
            "Right for small scores, but exp of a score in the hundreds overflows: subtract each row's "
            "largest score first, or use torch.softmax.",
        ),
    ),
    gradients=("X",),
)


# 02.3 Directions only ------------------------------------------------------------------------------------------------


def cosine_weights(X, temperature):
    """Return weights that depend on directions only: the softmax of cosine(x_i, x_j) / temperature.

    X: [..., seq_len, d_model], no row is zero; temperature: a positive number. Returns [..., seq_len, seq_len].
    """
    lengths = torch.linalg.vector_norm(X, dim=-1)
    cosines = similarity_scores(X) / (lengths[..., :, None] * lengths[..., None, :])
    return torch.softmax(cosines / temperature, dim=-1)


def _cosine_cases():
    shapes = [
        ("2 tokens of width 3", (2, 3), 1.0),
        ("5 tokens of width 7, cold", (5, 7), 0.1),
        ("7 tokens of width 2, warm", (7, 2), 3.0),
        ("a batch of 3", (3, 5, 2), 0.5),
        ("a square of 5, colder", (5, 5), 0.02),
    ]
    cases = [Case(label, (*normal(211 + i, shape), T)) for i, (label, shape, T) in enumerate(shapes)]
    (tokens,) = normal(219, (3, 11))
    return [*cases, Case("one token a hundred times as long", (tokens * torch.tensor([[1.0], [100.0], [1.0]]), 0.5))]


def _cosine(X, temperature, axis=-1):
    return torch.softmax(similarity_scores(_unit(X)) / temperature, dim=axis)


EXERCISE_3 = Exercise(
    "02.3",
    "Directions only",
    10,
    2,
    cosine_weights,
    _cosine_cases,
    (
        Mistake(
            "dot product",
            lambda X, T: torch.softmax(similarity_scores(X) / T, dim=-1),
            "Your scores still grow with the lengths: divide each by the lengths of both tokens.",
        ),
        Mistake(
            "one length",
            lambda X, T: torch.softmax(_unit(X) @ X.mT / T, dim=-1),
            "You divided by the length of the first token only; the second one's still counts.",
        ),
        Mistake(
            "squared",
            lambda X, T: torch.softmax(similarity_scores(X / X.square().sum(-1, keepdim=True)) / T, dim=-1),
            "You divided by the squared lengths: the root is missing.",
        ),
        Mistake(
            "feature lengths",
            lambda X, T: torch.softmax(similarity_scores(_unit(X, -2)) / T, dim=-1),
            "You normalised the columns of X; a token is a row.",
        ),
        Mistake(
            "first axis",
            lambda X, T: torch.softmax(similarity_scores(_unit(X, 0)) / T, dim=-1),
            "You normalised along axis 0; the length of a token is taken along its features, dim=-1.",
        ),
        Mistake(
            "after",
            lambda X, T: _cosine(X, 1.0) / T,
            "You divided by the temperature after the softmax; divide the cosines before it.",
        ),
        Mistake(
            "times",
            lambda X, T: _cosine(X, 1 / T),
            "You multiplied by the temperature; a low one must sharpen the weights.",
        ),
        Mistake("no temperature", lambda X, T: _cosine(X, 1.0), "The temperature has no effect on your weights."),
        Mistake("axis", lambda X, T: _cosine(X, T, axis=-2), "Each row of the weights must sum to one."),
        Mistake(
            "cosines",
            lambda X, T: similarity_scores(_unit(X)) / T,
            "Those are scores; the softmax over each row is missing.",
        ),
    ),
    gradients=("X",),
)


# 02.4 A padded batch -------------------------------------------------------------------------------------------------


def padded_context(X, real):
    """Return context vectors of a padded batch: padding is never read, and its own rows come out as zeros.

    X: [batch, seq_len, d_model]; real: boolean [batch, seq_len], True for tokens, False for padding; every sentence has
    at least one token. Returns [batch, seq_len, d_model]. The scores x_i · x_j are not divided by anything.
    """
    output = torch.zeros_like(X)
    for sentence, keep in enumerate(real):
        tokens = X[sentence][keep]
        output[sentence, keep] = torch.softmax(tokens @ tokens.T, dim=-1) @ tokens
    return output


def _padding_cases():
    def case(label, seed, lengths, seq_len, d_model):
        (X,) = normal(seed, (len(lengths), seq_len, d_model))
        return Case(label, (X, torch.arange(seq_len) < torch.tensor(lengths)[:, None]))

    (X,) = normal(226, (2, 5, 3))
    gaps = torch.tensor([[True, False, True, True, False], [False, True, True, False, True]])
    garbage = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [1e6, 1e6, 1e6]]])
    return [
        case("one sentence of 2, padded to 3", 221, [2], 3, 2),
        case("lengths 5, 2 and 3", 222, [5, 2, 3], 5, 7),
        case("a sentence of one token", 223, [1, 7], 7, 3),
        case("no padding at all", 224, [3, 3], 3, 5),
        Case("padding in front and between", (X, gaps)),
        Case("large numbers in the padding", (garbage, torch.tensor([[True, True, False]]))),
    ]


def _padded(keys=True, queries=True, axis=-1, zero_scores=False, after=False):
    """Return context vectors of a padded batch, each slip a switch."""

    def function(X, real):
        scores = X @ X.mT
        if keys and not after:
            scores = scores.masked_fill(~real[:, None, :], 0.0 if zero_scores else -torch.inf)
        weights = torch.softmax(scores, dim=axis)
        if after:
            weights = weights * real[:, None, :]
        output = weights @ X
        return output * real[..., None] if queries else output

    return function


def _hiding(keys, queries):
    def function(X, real):
        hidden = (~real[:, None, :] & keys) | (~real[:, :, None] & queries)
        return torch.softmax((X @ X.mT).masked_fill(hidden, -torch.inf), dim=-1) @ X

    return function


def _inverted(X, real):
    scores = (X @ X.mT).masked_fill(real[:, None, :], -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1)) @ X * real[..., None]


EXERCISE_4 = Exercise(
    "02.4",
    "A padded batch",
    12,
    2,
    padded_context,
    _padding_cases,
    (
        Mistake("padding read", _padded(keys=False), "Padding is still read: its scores must not enter the softmax."),
        Mistake(
            "padding answers",
            _padded(queries=False),
            "The rows of padding are not zero. They too asked a question; their answer must be dropped.",
        ),
        Mistake(
            "queries hidden",
            _hiding(keys=False, queries=True),
            "You hid the rows of padding, and a row of nothing but −∞ is NaN. Hide columns, real[:, None, :], "
            "and set the rows of padding to zero at the end.",
        ),
        Mistake(
            "both hidden",
            _hiding(keys=True, queries=True),
            "Tokens are right, but a row of nothing but −∞ is NaN: hide columns only, "
            "and set the rows of padding to zero at the end.",
        ),
        Mistake(
            "zero scores",
            _padded(zero_scores=True),
            "You set the scores of padding to 0, and exp(0) is 1: they must become −∞.",
        ),
        Mistake(
            "after",
            _padded(after=True),
            "You removed padding after the softmax: the remaining weights no longer sum to one.",
        ),
        Mistake(
            "zero vectors",
            lambda X, real: _padded(keys=False)(X * real[..., None], real),
            "You set the vectors of padding to zero. Their scores are then 0, and they still take a share.",
        ),
        Mistake("inverted", _inverted, "You read the padding and left out the tokens: True in `real` marks a token."),
        Mistake(
            "scaled",
            lambda X, real: (
                torch.softmax((X @ X.mT / X.shape[-1] ** 0.5).masked_fill(~real[:, None, :], -torch.inf), dim=-1)
                @ X
                * real[..., None]
            ),
            "You divided the scores by √d_model; here they stay as they are.",
        ),
        Mistake(
            "not used",
            _padded(keys=False, queries=False),
            "You did not use `real`: padding is read, and its own rows are not zero.",
        ),
        Mistake(
            "finite fill",
            lambda X, real: torch.softmax((X @ X.mT).masked_fill(~real[:, None], -15.0), -1) @ X * real[..., None],
            "Padding still gets a small weight, and its numbers may be large: fill its scores with −∞.",
        ),
    ),
    gradients=("X",),
)


# 02.5 Where repeated averaging ends ----------------------------------------------------------------------------------


def settled_shares(X):
    """Return the shares [seq_len] with which all tokens enter the common limit of A X, A A X, A A A X, …

    X: [seq_len, d_model]; A = softmax(X Xᵀ), over rows, computed once and kept.
    """
    weights = torch.softmax(X @ X.T, dim=-1)
    size = len(X)
    # π A = π and Σ π = 1, as one linear system: the last equation replaces one that follows from the others.
    system = torch.cat([(weights.T - torch.eye(size, dtype=X.dtype))[:-1], torch.ones(1, size, dtype=X.dtype)])
    return torch.linalg.solve(system, torch.eye(size, dtype=X.dtype)[-1])


def _limit_cases():
    def case(label, seed, shape, scale):
        (X,) = normal(seed, shape, dtype=torch.float64)
        return Case(label, (scale * X,))

    return [
        case("2 tokens of width 3", 231, (2, 3), 0.7),
        case("5 tokens of width 2", 232, (5, 2), 0.5),
        case("7 tokens of width 7", 233, (7, 7), 0.3),
        case("3 tokens of width 11", 234, (3, 11), 0.4),
        Case("one token", (torch.tensor([[0.3, 0.5]], dtype=torch.float64),)),
        case("5 tokens of width 8, which mix slowly", 235, (5, 8), 1.2),
    ]


def _totals(X):
    return torch.exp(X @ X.T).sum(-1)


EXERCISE_5 = Exercise(
    "02.5",
    "Where repeated averaging ends",
    15,
    3,
    settled_shares,
    _limit_cases,
    (
        Mistake(
            "equal",
            lambda X: torch.full((len(X),), 1 / len(X), dtype=X.dtype),
            "Equal shares are the limit only if all rows of exp(X Xᵀ) have the same sum.",
        ),
        Mistake("totals", _totals, "Those are the sums of the rows of exp(X Xᵀ); as shares they must sum to one."),
        Mistake(
            "diagonal",
            lambda X: (w := torch.softmax(X @ X.T, -1).diagonal()) / w.sum(),
            "You took the weight that each token gives itself.",
        ),
        Mistake(
            "columns",
            lambda X: torch.softmax(X @ X.T, -1).mean(0),
            "Those are the shares after one step, averaged over tokens; the limit is something else.",
        ),
        Mistake(
            "softmax of lengths",
            lambda X: torch.softmax(X.square().sum(-1), 0),
            "You used a token's score with itself; its scores with all the others count too.",
        ),
        Mistake(
            "reciprocal",
            lambda X: (1 / _totals(X)) / (1 / _totals(X)).sum(),
            "The other way round: a token with a larger sum has the larger share.",
        ),
        Mistake(
            "logarithm",
            lambda X: torch.softmax((X @ X.T).sum(-1), 0),
            "You summed the scores and then took exponentials; the exponentials come first.",
        ),
    ),
    rtol=1e-5,
)


# 02.6 Scores to order ------------------------------------------------------------------------------------------------


def scores_to_order(X, G):
    """Return the matrix W for which x_i W x_jᵀ is the wanted score G[i, j], for all tokens i, j.

    X: [n, n], invertible, tokens are rows; G: [n, n]. Returns W [n, n].
    """
    return torch.linalg.solve(X, torch.linalg.solve(X, G.T).T)


def _order_cases():
    def case(label, seed, size):
        X, G = normal(seed, (size, size), (size, size), dtype=torch.float64)
        return Case(label, (X + 2 * torch.eye(size, dtype=torch.float64), G))

    ring = 4 * torch.eye(5, dtype=torch.float64).roll(1, dims=1)  # token i wants i + 1
    (tokens,) = normal(244, (5, 5), dtype=torch.float64)
    return [
        case("2 tokens", 241, 2),
        case("3 tokens", 242, 3),
        case("7 tokens", 243, 7),
        Case("each of 5 tokens looks for the next", (tokens + 2 * torch.eye(5, dtype=torch.float64), ring)),
    ]


EXERCISE_6 = Exercise(
    "02.6",
    "Scores to order",
    12,
    3,
    scores_to_order,
    _order_cases,
    (
        Mistake(
            "inverse once",
            lambda X, G: torch.linalg.inv(X) @ G,
            "X W would be G: the tokens stand on both sides of W.",
        ),
        Mistake(
            "no transpose",
            lambda X, G: torch.linalg.inv(X) @ G @ torch.linalg.inv(X),
            "On the right stands Xᵀ: its inverse is the transpose of X⁻¹.",
        ),
        Mistake(
            "product",
            lambda X, G: X.T @ G @ X,
            "X W Xᵀ = G is undone by inverses; transposes undo it only where X is a rotation.",
        ),
        Mistake(
            "turned",
            lambda X, G: torch.linalg.inv(X) @ G.T @ torch.linalg.inv(X).T,
            "You got the scores of token j with token i: G came in transposed.",
        ),
        Mistake("forward", lambda X, G: X @ G @ X.T, "That multiplies by X; you have to undo that."),
        Mistake("wanted", lambda X, G: G, "G itself works only where the tokens are unit vectors, X = I."),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
