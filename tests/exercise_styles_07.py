"""Right answers to the exercises of notebook 07 in another style: torch one-liners, NumPy, loops."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional as F


def causal_mask(seq_len):
    places = torch.arange(seq_len)
    return places[None, :] <= places[:, None]


def causal_mask_in_place(seq_len):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for i in range(seq_len):
        mask[i, : i + 1] = True
    return mask


def padding_mask(ids, pad_id):
    return ids.ne(pad_id).reshape(len(ids), 1, 1, -1)


def masked_weights(scores, mask):
    empty = ~mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~(mask | empty), -math.inf).softmax(dim=-1).masked_fill(empty, 0.0)


def masked_weights_replacing_nan(scores, mask):  # filling, unlike adding −∞, stops the NaN on its way back
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1).nan_to_num(0.0)


def masked_weights_by_exponentials(scores, mask):
    largest = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True).detach()
    shifted = (scores - largest.nan_to_num(neginf=0.0)).masked_fill(~mask, -math.inf)
    exponentials = shifted.exp()
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / torch.where(total == 0, 1.0, total)


def packed_mask(segments):
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return same & (segments != 0)[:, None, None, :] & torch.ones(*same.shape[-2:]).tril().bool()


def packed_mask_by_numpy(segments):
    rows = segments.numpy()
    n = rows.shape[1]
    mask = np.zeros((len(rows), 1, n, n), dtype=bool)
    for b, i, j in np.ndindex(len(rows), n, n):
        mask[b, 0, i, j] = j <= i and rows[b, i] == rows[b, j] and rows[b, j] > 0
    return torch.from_numpy(mask)


def stepwise_loss(logits_of, tgt):
    last_rows = torch.stack([logits_of(tgt[:n])[n - 1] for n in range(1, len(tgt))])
    return F.cross_entropy(last_rows, tgt[1:])


def leak_map(logits_of, ids, vocab_size):
    n, found = len(ids), torch.zeros(len(ids), len(ids), dtype=torch.bool)
    for s in range(1, n):
        for step in range(1, vocab_size):
            changed = ids.clone()
            changed[s] = (ids[s] + step) % vocab_size
            found[:s, s] |= ~torch.isclose(logits_of(changed), logits_of(ids)).all(dim=1)[:s]
    return found


STYLES = [
    ("07.1", causal_mask),
    ("07.1", causal_mask_in_place),
    ("07.2", padding_mask),
    ("07.3", masked_weights),
    ("07.3", masked_weights_by_exponentials),
    ("07.3", masked_weights_replacing_nan),
    ("07.4", packed_mask),
    ("07.4", packed_mask_by_numpy),
    ("07.5", stepwise_loss),
    ("07.6", leak_map),
]
