"""Right answers to the exercises of notebook 15 in another style: library calls, broadcasting, loops, dictionaries."""

from __future__ import annotations

import numpy as np
import torch


def weighted_norms(weights, value, W_O):
    return (weights[:, :, None] * (value @ W_O)).norm(dim=-1)


def rank_correlation_in_numpy(x, y):
    ranks = [np.argsort(np.argsort(np.asarray(values))) for values in (x, y)]
    return float(np.corrcoef(ranks)[0, 1])


def rank_correlation_from_one(x, y):
    """Spearman's own formula, with ranks counted from 1 and from the largest."""
    n = len(x)
    ranks = []
    for values in (x.tolist(), y.tolist()):
        order = sorted(values, reverse=True)
        ranks.append([order.index(value) + 1 for value in values])
    return 1 - 6 * sum((r - s) ** 2 for r, s in zip(*ranks, strict=True)) / (n * (n * n - 1))


def replace_heads_by_a_mask(x, other, heads, n_heads):
    chosen = torch.zeros(n_heads, dtype=torch.bool)
    chosen[heads] = True
    return torch.where(chosen.repeat_interleave(x.shape[-1] // n_heads), other, x)


def prune_with_sets(score, heads, n):
    silent = ()
    while len(silent) < n:
        best = max((head for head in heads if head not in silent), key=lambda head: score({head, *silent}))
        silent = (*silent, best)
    return silent


def control_labels_one_by_one(known, asked, draws):
    draws, label = iter(draws), {}
    for word in known + asked:
        label.setdefault(word, None)
        if label[word] is None:
            label[word] = next(draws)
    return [label[word] for word in known], [label[word] for word in asked]


STYLES = [
    ("15.1", weighted_norms),
    ("15.2", rank_correlation_in_numpy),
    ("15.2", rank_correlation_from_one),
    ("15.3", replace_heads_by_a_mask),
    ("15.4", prune_with_sets),
    ("15.5", control_labels_one_by_one),
]
