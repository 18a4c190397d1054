"""Right answers to the exercises of notebook 21 in another style: loops, library calls, sums in another order."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def induction_score(weights, period):
    return weights.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:].mean(dim=(0, -1))


def bigram_in_context_step_by_step(ids, vocab_size):
    counts = torch.ones(len(ids), vocab_size, vocab_size, dtype=torch.float64)
    rows, found = torch.arange(len(ids)), []
    for t in range(ids.shape[1]):
        if t:
            counts[rows, ids[:, t - 1], ids[:, t]] += 1
        row = counts[rows, ids[:, t]]
        found.append(row / row.sum(-1, keepdim=True))
    return torch.stack(found, 1)


def head_contributions_one_by_one(heads, W_O, W_U, letters):
    found = []
    for head in range(len(heads)):
        alone = torch.zeros_like(heads)
        alone[head] = heads[head]
        logits = alone.permute(1, 0, 2).reshape(heads.shape[1], -1) @ W_O @ W_U
        found.append(logits.gather(1, letters[:, None])[:, 0])
    return torch.stack(found)


def ablate_head_by_a_mask(heads, head):
    chosen = F.one_hot(torch.tensor(head), heads.shape[1])[None, :, None, None].bool()
    return torch.where(chosen, heads.mean(dim=(0, 2), keepdim=True), heads)


def told_layer_in_place(ids, letters, positions, before, W_Q, W_K, W_V, W_O, W_U):
    n = ids.shape[1]
    x = F.embedding(ids, letters) + positions[:n]
    knows = x.clone()
    knows[:, 1:] += before[ids[:, :-1]]
    read = F.scaled_dot_product_attention(x @ W_Q, knows @ W_K, x @ W_V, is_causal=True)
    return (x + read @ W_O) @ W_U


def told_layer_by_a_shift(ids, letters, positions, before, W_Q, W_K, W_V, W_O, W_U):
    n = ids.shape[1]
    x = letters[ids] + positions[torch.arange(n)]
    one_back = torch.diag(torch.ones(n - 1), -1) if n > 1 else torch.zeros(1, 1)
    scores = torch.einsum("btk,bsk->bts", x @ W_Q, (x + one_back @ before[ids]) @ W_K) / W_Q.shape[1] ** 0.5
    weights = (scores + torch.full((n, n), -1e9).triu(1)).softmax(-1)
    return x @ W_U + torch.einsum("bts,bsd->btd", weights, x) @ (W_V @ W_O @ W_U)


def told_layer_letter_by_letter(ids, letters, positions, before, W_Q, W_K, W_V, W_O, W_U):
    strings = []
    for row in ids:
        x, keys = letters[row] + positions[: len(row)], []
        for t in range(len(row)):
            key = x[t] @ W_K
            if t > 0:
                key = key + before[row[t - 1]] @ W_K
            keys.append(key)
        K, rows = torch.stack(keys), []
        for t in range(len(row)):
            weights = torch.softmax(K[: t + 1] @ (x[t] @ W_Q) / K.shape[1] ** 0.5, dim=0)
            rows.append((x[t] + (weights @ x[: t + 1]) @ W_V @ W_O) @ W_U)
        strings.append(torch.stack(rows))
    return torch.stack(strings)


STYLES = [
    ("21.5", told_layer_in_place),
    ("21.5", told_layer_by_a_shift),
    ("21.5", told_layer_letter_by_letter),
    ("21.1", induction_score),
    ("21.4", bigram_in_context_step_by_step),
    ("21.3", head_contributions_one_by_one),
    ("21.2", ablate_head_by_a_mask),
]
