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


def head_logits_one_by_one(z, W_O, W_out):
    n, n_heads, d_v = z.shape
    logits = torch.zeros(n, n_heads, W_out.shape[1])
    for head in range(n_heads):
        rows = W_O[head * d_v : (head + 1) * d_v]
        for i in range(n):
            logits[i, head] = z[i, head] @ rows @ W_out
    return logits


def head_logits_through_one_matrix(z, W_O, W_out):
    """Each head alone in a row of zeros as wide as all of them."""
    n, n_heads, d_v = z.shape
    alone = torch.eye(n_heads)[None, :, :, None] * z[:, :, None, :]
    return alone.flatten(2) @ (W_O @ W_out)


def head_logits_as_a_batch(z, W_O, W_out):
    n_heads, d_v = z.shape[1:]
    return (z.transpose(0, 1) @ W_O.reshape(n_heads, d_v, -1)).transpose(0, 1) @ W_out


def lenders_in_one_line(mine, others):
    return [
        i
        for i, other in enumerate(others)
        if other[0] == mine[0] and other[1] != mine[1] and not set(mine[2:]) & set(other[2:])
    ]


def lenders_by_names(mine, others):
    pronoun, side, first, second = mine
    opposite = {"first": "second", "second": "first"}[side]
    found = []
    for i in range(len(others)):
        p, s, a, b = others[i]
        if p != pronoun or s != opposite or a in (first, second) or b in (first, second):
            continue
        found += [i]
    return found


def lenders_in_numpy(mine, others):
    table = np.array(others)
    shared = np.isin(table[:, 2:], mine[2:]).any(axis=1)
    return np.flatnonzero((table[:, 0] == mine[0]) & (table[:, 1] != mine[1]) & ~shared)


STYLES = [
    ("15.1", weighted_norms),
    ("15.2", rank_correlation_in_numpy),
    ("15.2", rank_correlation_from_one),
    ("15.3", replace_heads_by_a_mask),
    ("15.4", prune_with_sets),
    ("15.5", control_labels_one_by_one),
    ("15.6", head_logits_one_by_one),
    ("15.6", head_logits_through_one_matrix),
    ("15.6", head_logits_as_a_batch),
    ("15.7", lenders_in_one_line),
    ("15.7", lenders_by_names),
    ("15.7", lenders_in_numpy),
]
