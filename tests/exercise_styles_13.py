"""Right answers to the exercises of notebook 13 in another style: library calls, loops, NumPy."""

from __future__ import annotations

import numpy as np
import torch

F = torch.nn.functional


def masked_cross_entropy_by_weights(logits, tgt_out, pad_id):
    real = tgt_out != pad_id
    wanted = F.one_hot(tgt_out, logits.shape[-1]).to(logits.dtype) * real[..., None]
    return -(wanted * (logits - logits.logsumexp(-1, keepdim=True))).sum() / real.sum()


def masked_cross_entropy_label_by_label(logits, tgt_out, pad_id):
    losses = [
        F.cross_entropy(row[t], labels[t])
        for row, labels in zip(logits, tgt_out, strict=True)
        for t in range(len(labels))
        if labels[t] != pad_id
    ]
    return sum(losses) / len(losses)


def early_stopping_in_numpy(losses, patience):
    for stopped in range(1, len(losses) + 1):
        kept = int(np.argmin(losses[:stopped])) + 1
        if stopped == kept + patience:
            break
    return kept, stopped


def label_smoothed_loss_against_q(logits, targets, epsilon):
    size = logits.shape[-1]
    q = torch.full_like(logits, epsilon / size) + (1 - epsilon) * F.one_hot(targets, size).to(logits.dtype)
    return F.cross_entropy(logits, q)


def grouped_interval_by_loops(right, groups, draws):
    shares = []
    for row in draws.tolist():
        drawn = [bool(ok) for group in row for ok in right[groups == group]]
        shares.append(sum(drawn) / len(drawn))
    return torch.tensor(np.quantile(shares, [0.025, 0.975]))


def grouped_interval_in_float32(right, groups, draws):
    sizes, hits = torch.bincount(groups), torch.bincount(groups, weights=right.float())
    shares = hits[draws].sum(-1) / sizes[draws].sum(-1)
    return shares.float().quantile(torch.tensor([0.025, 0.975]))


STYLES = [
    ("13.1", masked_cross_entropy_by_weights),
    ("13.1", masked_cross_entropy_label_by_label),
    ("13.2", early_stopping_in_numpy),
    ("13.3", label_smoothed_loss_against_q),
    ("13.4", grouped_interval_by_loops),
    ("13.4", grouped_interval_in_float32),
]
