"""Right answers to the exercises of notebook 10 in another style: loops, powers, sets, products."""

from __future__ import annotations

import torch


def encoder_layer(x, sublayer_1, sublayer_2, norm_1, norm_2):
    for sublayer, norm in ((sublayer_1, norm_1), (sublayer_2, norm_2)):
        x = norm(x + sublayer(x))
    return x


def influence(encode, x, amount):
    grid = torch.zeros(len(x), len(x), dtype=torch.bool)
    for j in range(len(x)):
        changed = x.clone()
        changed[j] += amount
        grid[:, j] = (encode(changed) - encode(x)).abs().amax(dim=-1) > 1e-6
    return grid


def influence_all_at_once(encode, x, amount):
    changed = x + torch.eye(len(x)).to(x)[:, :, None] * amount
    moved = torch.stack([encode(rows) for rows in changed]) - encode(x)
    return (moved.abs() > 1e-6).any(-1).T


def reach(mask, n_layers):
    step = (mask | torch.eye(len(mask), dtype=torch.bool)).float()
    known = torch.eye(len(mask))
    for _ in range(n_layers):
        known = (step @ known).clamp(max=1)
    return known > 0.5


def reach_by_power(mask, n_layers):
    step = mask.double() + torch.eye(len(mask), dtype=torch.float64)
    return torch.linalg.matrix_power(step, n_layers) > 0


def reach_by_sets(mask, n_layers):
    known = [{i} for i in range(len(mask))]
    for _ in range(n_layers):
        known = [
            set.union(own, *(known[j] for j in row.nonzero().flatten().tolist()))
            for own, row in zip(known, mask, strict=True)
        ]
    return torch.tensor([[j in own for j in range(len(mask))] for own in known])


def mean_of_others(x, mask, places):
    share = (mask[:, 0, 0] & (torch.arange(x.shape[1]) != places[:, None])).to(x.dtype)
    return torch.einsum("bs,bsd->bd", share / share.sum(-1, keepdim=True), x)


def mean_of_others_by_difference(x, mask, places):
    real = mask[:, 0].to(x.dtype)  # [batch, 1, src_len]
    return ((real @ x).squeeze(1) - x[torch.arange(len(x)), places]) / (real.sum(-1) - 1)


STYLES = [
    ("10.1", encoder_layer),
    ("10.2", influence),
    ("10.2", influence_all_at_once),
    ("10.3", reach),
    ("10.3", reach_by_power),
    ("10.3", reach_by_sets),
    ("10.4", mean_of_others),
    ("10.4", mean_of_others_by_difference),
]
