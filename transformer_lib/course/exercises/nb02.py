"""Exercises of notebook 02: similarity, context vectors, direction without length."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def similarity_scores(X):
    """Return the dot product of every token with every token.

    X: [..., seq_len, d_model], tokens are rows. Returns [..., seq_len, seq_len], entry (i, j) = x_i · x_j.
    """
    return torch.einsum("...id,...jd->...ij", X, X)


def context_vectors(X):
    """Return for each token the mean of all tokens, weighted by the softmax of its scores x_i · x_j.

    X: [..., seq_len, d_model]. Returns [..., seq_len, d_model]. The scores are not divided by anything.
    """
    weights = torch.softmax(similarity_scores(X), dim=-1)
    return torch.einsum("...ij,...jd->...id", weights, X)


def cosine_weights(X, temperature):
    """Return weights that depend on directions only: the softmax of cosine(x_i, x_j) / temperature.

    X: [..., seq_len, d_model], no row is zero; temperature: a positive number. Returns [..., seq_len, seq_len].
    """
    lengths = torch.linalg.vector_norm(X, dim=-1)
    cosines = similarity_scores(X) / (lengths[..., :, None] * lengths[..., None, :])
    return torch.softmax(cosines / temperature, dim=-1)


def _token_cases():
    return [
        Case("2 tokens of width 3", tuple(normal(201, (2, 3)))),
        Case("5 tokens of width 5", tuple(normal(202, (5, 5)))),
        Case("7 tokens of width 2", tuple(normal(203, (7, 2)))),
        Case("a batch of 2", tuple(normal(204, (2, 3, 5)))),
        Case("one token", tuple(normal(205, (1, 7)))),
        Case("scores in the hundreds", tuple(13 * x for x in normal(206, (5, 3)))),
    ]


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


def _mix(scores=similarity_scores, axis=-1):
    return lambda X: torch.softmax(scores(X), dim=axis) @ X


def _linear_weights(X):
    scores = similarity_scores(X).abs()
    return scores / scores.sum(-1, keepdim=True) @ X


def _unit(X, axis=-1):
    return X / torch.linalg.vector_norm(X, dim=axis, keepdim=True)


def _cosine(X, temperature, axis=-1):
    return torch.softmax(similarity_scores(_unit(X)) / temperature, dim=axis)


EXERCISES = (
    Exercise(
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
    ),
    Exercise(
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
    ),
    Exercise(
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
    ),
)
