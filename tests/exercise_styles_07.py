"""Right answers to the exercises of notebook 07 in another style: torch one-liners, NumPy, loops."""

from __future__ import annotations

import math

import numpy as np
import torch


def causal_mask_in_place(seq_len):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for i in range(seq_len):
        mask[i, : i + 1] = True
    return mask


def padding_mask(ids, pad_id):
    return ids.ne(pad_id).reshape(len(ids), 1, 1, -1)


def packed_mask_by_numpy(segments):
    rows = segments.numpy()
    n = rows.shape[1]
    mask = np.zeros((len(rows), 1, n, n), dtype=bool)
    for b, i, j in np.ndindex(len(rows), n, n):
        mask[b, 0, i, j] = j <= i and rows[b, i] == rows[b, j] and rows[b, j] > 0
    return torch.from_numpy(mask)


def stepwise_loss_in_float32(logits_of, tgt):
    losses = torch.zeros(len(tgt) - 1)
    for t in range(len(tgt) - 1):
        losses[t] = -logits_of(tgt[: t + 1])[-1].softmax(dim=-1)[tgt[t + 1]].log()
    return losses.mean()


def stepwise_loss_by_loop(logits_of, tgt):
    total = 0.0
    for known in range(1, len(tgt)):
        last = logits_of(tgt[:known])[-1]
        total += math.log(last.exp().sum().item()) - last[tgt[known]].item()
    return total / (len(tgt) - 1)


def leak_map(logits_of, ids, vocab_size):
    n, found = len(ids), torch.zeros(len(ids), len(ids), dtype=torch.bool)
    for s in range(1, n):
        for step in range(1, vocab_size):
            changed = ids.clone()
            changed[s] = (ids[s] + step) % vocab_size
            found[:s, s] |= ~torch.isclose(logits_of(changed), logits_of(ids)).all(dim=1)[:s]
    return found


STYLES = [
    ("07.1", causal_mask_in_place),
    ("07.2", padding_mask),
    ("07.3", stepwise_loss_in_float32),
    ("07.3", stepwise_loss_by_loop),
    ("07.4", leak_map),
    ("07.5", packed_mask_by_numpy),
]
