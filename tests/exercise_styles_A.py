"""Right answers to the exercises of notebook A in another style: comprehensions, NumPy, bisection."""

from __future__ import annotations

import math

import torch


def first_counterexample_by_index(claim, cases):
    for case in cases:
        if not claim(case):
            return cases.index(case)
    return -1


def agreeing_entries(printed, decimals):
    n, width = printed.shape
    half, counts = width // 2, [0, 0]
    for row in range(n):
        for feature in range(width):
            paper = row / 10000 ** (2 * (feature // 2) / width)
            code = row / 10000 ** ((feature % half) / (half - 1))
            exact = (
                math.cos(paper) if feature % 2 else math.sin(paper),
                math.sin(code) if feature < half else math.cos(code),
            )
            for which in (0, 1):
                counts[which] += abs(float(printed[row, feature]) - exact[which]) <= 0.5 * 10**-decimals
    return counts


def vocabulary_range(printed, others, width):
    fitting = set(range(100_000))
    for millions, rest, d_model in zip(printed.tolist(), others.tolist(), width.tolist(), strict=True):
        fitting = {words for words in fitting if round((rest + words * d_model) / 1e6) == millions}
    return min(fitting), max(fitting)


def rounded_and_equal(printed, exact, decimals):
    return torch.round(exact, decimals=decimals) == printed


STYLES = [
    ("A.1", first_counterexample_by_index),
    ("A.2", rounded_and_equal),
    ("A.3", agreeing_entries),
    ("A.4", vocabulary_range),
]
