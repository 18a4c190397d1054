"""Right targets to the exercises of notebook 01 in another style: loops, other formulas, autograd."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F


def nearest_key_lookup(query, keys, values):
    best, best_score = None, -math.inf
    for key, value in zip(keys, values, strict=True):
        score = torch.dot(key, query).item()
        if score > best_score:
            best, best_score = value, score
    return best


def softmax_by_a_global_shift(scores):
    exponentials = math.e ** (scores - scores.max())
    return exponentials / exponentials.sum(-1, keepdim=True)


def softmax_by_logarithms(scores):
    return (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()


def soft_lookup(queries, keys, values, temperature):
    rows = []
    for query in queries:
        weights = F.softmax(keys @ query / temperature, dim=-1)
        rows.append(sum(weights[i] * values[i] for i in range(len(keys))))
    return torch.stack(rows)


def soft_lookup_fused(queries, keys, values, temperature):
    return F.scaled_dot_product_attention(queries[None], keys[None], values[None], scale=1 / temperature)[0]


def step_by_loops(weights, values, targets, rate):
    new = []
    for j in range(len(values)):
        slope = sum(2 * (weights[i] @ values - targets[i]) * weights[i, j] for i in range(len(targets)))
        new.append(values[j] - rate * slope / len(targets))
    return torch.stack(new)


def kernel_regression(queries, xs, ys, bandwidth):
    out = torch.empty(len(queries))
    for i, query in enumerate(queries):
        exponents = -(((query - xs) / bandwidth) ** 2) / 2
        weights = torch.exp(exponents - exponents.max())
        out[i] = (weights * ys).sum() / weights.sum()
    return out


def scale_for_confidence(scores, p):
    """Newton's method on log(largest weight) = log(p)."""
    gaps, c = (scores - scores.max()).double(), 1e-3
    for _ in range(200):
        weights = torch.softmax(c * gaps, 0)
        slope = -(weights * gaps).sum().item()
        c += min((math.log(p) - math.log(weights.max().item())) / slope, max(1.0, c))
    return torch.tensor(c)


STYLES = [
    ("01.1", nearest_key_lookup),
    ("01.2", softmax_by_a_global_shift),
    ("01.2", softmax_by_logarithms),
    ("01.3", soft_lookup),
    ("01.3", soft_lookup_fused),
    ("01.4", step_by_loops),
    ("01.5", kernel_regression),
    ("01.6", scale_for_confidence),
]
