"""Exercises of notebook 01, continued: kernel regression, and how sharp a lookup is."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal


def kernel_regression(queries, xs, ys, bandwidth):
    """Predict y at each query: a weighted mean of ys, with weights exp(-(query - x)² / (2 bandwidth²)).

    queries: [n_queries]; xs, ys: [n_points]; bandwidth: a positive number. Returns [n_queries].
    The weights of each query are divided by their sum (Nadaraya and Watson, 1964).
    """
    exponents = [-((query - xs).double() ** 2) / (2 * bandwidth**2) for query in queries]
    return torch.stack([torch.softmax(e, dim=0) @ ys.double() for e in exponents]).to(ys.dtype)


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


def _confidence_cases():
    return [
        Case("2 keys", (torch.tensor([2.0, 1.0]), 0.9)),
        Case("3 keys, equal rivals", (torch.tensor([0.5, 1.0, 0.5]), 0.8)),
        Case("5 keys", (torch.tensor([3.0, 1.0, 0.0, -1.0, 2.5]), 0.95)),
        Case("11 keys", (normal(19, (11,))[0], 0.5)),
        Case("p near 1", (normal(20, (7,))[0], 0.999)),
        Case("negative scores", (torch.tensor([-5.0, -7.0, -6.0]), 0.6)),
    ]


def _gap(scores):
    top = scores.sort(descending=True).values
    return (top[0] - top[1]).item()


def _kernel_of(exponent):
    return lambda q, x, y, h: torch.softmax(exponent(q[:, None] - x[None, :], h), dim=1) @ y


def _gaussian(q, x, h):
    return torch.exp(-((q[:, None] - x[None, :]) ** 2) / (2 * h * h))


EXERCISES = (
    Exercise(
        "01.5",
        "Kernel regression is attention",
        15,
        2,
        kernel_regression,
        _kernel_cases,
        (
            Mistake(
                "no 2",
                _kernel_of(lambda gap, h: -(gap**2) / h**2),
                "The exponent is (query - x)² / (2 bandwidth²): the 2 is missing.",
            ),
            Mistake(
                "no square",
                _kernel_of(lambda gap, h: -(gap**2) / (2 * h)),
                "The bandwidth in the exponent must be squared.",
            ),
            Mistake(
                "no minus",
                _kernel_of(lambda gap, h: gap**2 / (2 * h * h)),
                "The exponent lacks its minus: distant points get the largest weights.",
            ),
            Mistake(
                "absolute",
                _kernel_of(lambda gap, h: -gap.abs() / (2 * h * h)),
                "You used the distance; the Gaussian kernel takes its square.",
            ),
            Mistake(
                "axis",
                lambda q, x, y, h: (w := _gaussian(q, x, h)) / w.sum(0) @ y,
                "You divided by the sum over the queries; each query divides by its sum over the points.",
            ),
            Mistake(
                "no sum", lambda q, x, y, h: _gaussian(q, x, h) @ y, "You did not divide the weights by their sum."
            ),
            Mistake(
                "underflow",
                lambda q, x, y, h: (w := _gaussian(q, x, h)) @ y / w.sum(1),
                "Right for wide kernels, but for a narrow one every exponential underflows to 0, and 0 / 0 is "
                "NaN: take the softmax of the exponents.",
            ),
            Mistake("mean", lambda q, x, y, h: y.mean().expand(len(q)), "You gave every point the same weight."),
        ),
    ),
    Exercise(
        "01.6",
        "How sharp is sharp?",
        20,
        3,
        scale_for_confidence,
        _confidence_cases,
        (
            Mistake(
                "two keys",
                lambda s, p: math.log(p / (1 - p)) / _gap(s),
                "Right for two keys. With more, the others take weight too: look only at the best two and the "
                "largest weight stays below p.",
            ),
            Mistake(
                "equal rivals",
                lambda s, p: math.log((len(s) - 1) * p / (1 - p)) / _gap(s),
                "Right when all rivals score the same. Rivals further behind take less weight, so a smaller c "
                "is enough: search for it (the largest weight grows with c).",
            ),
            Mistake(
                "inverse",
                lambda s, p: 1 / scale_for_confidence(s, p),
                "You returned the temperature 1 / c; the factor c itself is asked for.",
            ),
            Mistake(
                "no log",
                lambda s, p: p / (1 - p) / _gap(s),
                "You used the odds p / (1 - p); weights are exponentials, so take their logarithm.",
            ),
            Mistake(
                "log p",
                lambda s, p: -math.log(1 - p) / _gap(s),
                "You used log(1 / (1 - p)); a weight is one exponential among several: work with p / (1 - p).",
            ),
            Mistake(
                "weight",
                lambda s, p: torch.softmax(s, 0).max().item(),
                "You returned the largest weight at c = 1; the factor that brings it to p is asked for.",
            ),
        ),
        rtol=2e-3,
    ),
)
