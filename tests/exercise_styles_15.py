"""Right answers to the exercises of notebook 15 in another style: library calls, broadcasting, one-hot masks."""

from __future__ import annotations

import torch


def top_weights(weights, tokens, k):
    return [[tokens[j] for j in row] for row in weights.topk(k).indices]


def without_head(heads, W_O, silent):
    spoken = torch.arange(len(heads)) != silent
    return torch.einsum("h,hqv,hvm->qm", spoken.to(heads), heads, W_O.view(*heads.shape[::2], -1))


def weighted_norms(weights, value, W_O):
    return (weights[:, :, None] * (value @ W_O)).norm(dim=-1)


def row_entropy(weights):
    return -torch.special.xlogy(weights, weights).sum(-1)


def row_entropy_by_torch(weights):
    return torch.special.entr(weights).sum(-1)


def nearest_mean(known, labels, asked):
    means = torch.stack([known[labels == kind].mean(0) for kind in labels.unique()])
    return torch.cdist(asked, means).argmin(-1)


def patch(memory, donor, places):
    chosen = torch.arange(memory.shape[1]) == places[:, None]
    return torch.where(chosen[..., None], donor, memory)


def patch_by_index(memory, donor, places):
    result, sentences = memory.clone(), torch.arange(len(places))
    result[sentences, places] = donor[sentences, places]
    return result


STYLES = [
    ("15.1", top_weights),
    ("15.3", without_head),
    ("15.2", weighted_norms),
    ("15.4", row_entropy),
    ("15.4", row_entropy_by_torch),
    ("15.6", nearest_mean),
    ("15.5", patch),
    ("15.5", patch_by_index),
]
