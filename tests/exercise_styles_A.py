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
    counts = {1.0: 0, 180.0: 0}
    for row in range(n):
        for feature in range(width):
            angle = row / 10000 ** (2 * (feature // 2) / width)
            for unit in counts:
                turned = angle if unit == 1 else math.radians(angle)
                exact = math.cos(turned) if feature % 2 else math.sin(turned)
                counts[unit] += abs(float(printed[row, feature]) - exact) <= 0.5 * 10**-decimals
    return list(counts.values())


def width_range(scores, printed, decimals):
    half, (small, large) = 0.5 * 10**-decimals, sorted(scores.tolist())

    def weight(width):
        return 1 / (1 + math.exp((small - large) / math.sqrt(width)))

    def width_of(target):
        low, high = 1e-9, 1e9
        for _ in range(300):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if weight(middle) > target else (low, middle)
        return low

    most, least = float(printed.max()) + half, float(printed.max()) - half
    return (0.0 if most >= 1 else width_of(most)), (math.inf if least <= 0.5 else width_of(least))


def rounded_and_equal(printed, exact, decimals):
    return torch.round(exact, decimals=decimals) == printed


STYLES = [
    ("A.1", first_counterexample_by_index),
    ("A.2", rounded_and_equal),
    ("A.3", agreeing_entries),
    ("A.4", width_range),
]
