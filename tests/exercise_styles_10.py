"""Right answers to the exercises of notebook 10 in another style: loops, powers, sets, products."""

from __future__ import annotations

import torch


def encoder_layer(x, sublayer_1, sublayer_2, norm_1, norm_2):
    for sublayer, norm in ((sublayer_1, norm_1), (sublayer_2, norm_2)):
        x = norm(x + sublayer(x))
    return x


def influence_all_at_once(encode, x, amount):
    changed = x + torch.eye(len(x)).to(x)[:, :, None] * amount
    moved = torch.stack([encode(rows) for rows in changed]) - encode(x)
    return (moved.abs() > 1e-6).any(-1).T


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


STYLES = [
    ("10.1", encoder_layer),
    ("10.2", influence_all_at_once),
    ("10.3", reach_by_sets),
    ("10.4", mean_of_others),
]
