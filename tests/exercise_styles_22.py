"""Right answers to the exercises of notebook 22 in another style: loops, library calls, other dtypes."""

from __future__ import annotations

import math

import numpy as np
import torch


def tokens_that_stand_in_torch(drafted, checked, eos_id):
    drafted, checked = torch.tensor(drafted, dtype=torch.long), torch.tensor(checked)
    standing = ((drafted == checked[:-1]) & (drafted != eos_id)).cumprod(0).sum()
    return checked[: standing + 1]


def acceptance_in_numpy(p, q):
    p, q = p.numpy(), q.numpy()
    accept = np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))
    stands = q * accept
    left = p - stands
    return torch.from_numpy(accept), torch.from_numpy(left / left.sum() if (p != q).any() else p.copy())


def acceptance_in_single_precision(p, q):
    missing = (p - q).clamp(min=0)
    residual = missing / missing.sum() if missing.sum() > 0 else p
    return (p / q).nan_to_num(1.0, posinf=1.0).clamp(max=1).float(), residual.float()


def quantize_by_rows(weight):
    scales = torch.stack([row.abs().max() / 127 if row.any() else torch.tensor(1.0) for row in weight])
    codes = torch.stack([torch.round(row / scale).char() for row, scale in zip(weight, scales, strict=True)])
    return [codes, scales]


def append_by_where(pages, table, length, free, row):
    size = pages.shape[1]
    new = length % size == 0
    table, free = [*table, *free[:new]], free[new:]
    here = torch.zeros(pages.shape[:2], dtype=torch.bool)
    here[table[-1], length % size] = True
    return torch.where(here[..., None], row, pages), tuple(table), tuple(free)


def block_gradients(g, query, key, value, log_totals, shared, first_query, first_key):
    root = math.sqrt(query.shape[1])
    seen = torch.ones(len(query), len(key), dtype=torch.bool).tril(first_query - first_key)
    weights = torch.where(seen, torch.exp(query @ key.T / root - log_totals[:, None]), 0.0)
    g_scores = weights * (g @ value.T - shared[:, None]) / root
    return g_scores @ key, g_scores.T @ query, weights.T @ g


def block_gradients_by_autograd(g, query, key, value, log_totals, shared, first_query, first_key):
    leaves = [x.clone().requires_grad_() for x in (query, key, value)]
    q, k, v = leaves
    positions = torch.arange(len(key)) + first_key, torch.arange(len(query)) + first_query
    scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(positions[0] > positions[1][:, None], -torch.inf)
    weights = (scores - log_totals[:, None]).exp()
    # the row's total changes with each score, and so does every weight: that is the part with `shared`
    target = (weights * (g @ v.T)).sum() - (weights * shared[:, None]).sum()
    return torch.autograd.grad(target, leaves)


STYLES = [
    ("22.1", tokens_that_stand_in_torch),
    ("22.2", acceptance_in_numpy),
    ("22.2", acceptance_in_single_precision),
    ("22.3", quantize_by_rows),
    ("22.4", append_by_where),
    ("22.5", block_gradients),
    ("22.5", block_gradients_by_autograd),
]
