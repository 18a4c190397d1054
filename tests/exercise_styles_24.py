"""Right answers to the exercises of notebook 24 in another style: loops, other library calls, random search."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F


def lens_ranks_by_sorting(streams, gain, table, word):
    order = F.linear(streams, table * gain).argsort(dim=-1, descending=True)
    return torch.tensor([row.tolist().index(word) for row in order])


def lens_ranks_one_by_one(streams, gain, table, word):
    scaled = table @ torch.diag(gain)
    return torch.stack([((scaled @ x) > scaled[word] @ x).sum() for x in streams])


def patch_map_by_where(rest, here, there, right, wrong):
    sign = torch.zeros(rest(here[0], 0).shape[1])
    sign[right], sign[wrong] = 1, -1
    own, other = ((rest(each[0], 0) @ sign)[-1] for each in (here, there))
    eye = torch.eye(here.shape[1], dtype=torch.bool)
    found = [
        [(rest(torch.where(row[:, None], b, a), layer) @ sign)[-1] for row in eye]
        for layer, (a, b) in enumerate(zip(here, there, strict=True))
    ]
    return (torch.tensor(found) - own) / (other - own)


def patch_map_put_back(rest, here, there, right, wrong):
    work, found = here.clone(), {}
    ends = [rest(each[-1], len(here) - 1)[-1] for each in (here, there)]
    low, high = (end[right] - end[wrong] for end in ends)
    for layer, position in itertools.product(range(here.shape[0]), range(here.shape[1])):
        work[layer, position] = there[layer, position]
        end = rest(work[layer].clone(), layer)[-1]
        work[layer, position] = here[layer, position]
        found[layer, position] = (end[right] - end[wrong] - low) / (high - low)
    return torch.stack(list(found.values())).view(here.shape[:2])


def head_shares_with_gather(run, outputs, right, wrong, low, high):
    both = torch.stack([right, wrong], dim=1)
    rows = []
    for layer, of_layer in enumerate(outputs):
        for head, z in enumerate(of_layer.unbind(dim=1)):
            picked = run(layer, head, z).gather(1, both)
            rows.append(((picked[:, 0] - picked[:, 1] - low) / (high - low)).mean())
    return torch.stack(rows).unflatten(0, (outputs.shape[0], outputs.shape[2]))


def decisive_backwards(facts):
    asked_of = [(q, c) for q, table in facts.items() for c in table]
    for (asked, of), (question, country) in itertools.product(reversed(asked_of), asked_of):
        said = facts[asked].get(country)
        if said is not None and said != facts[asked][of] and facts[question][country] not in (said, facts[asked][of]):
            return [question, country, asked, of]
    return None


def scores_off_a_path_transposed(x, piece, gain, W_Q, W_K):
    left = x - piece
    q = F.rms_norm(x, (x.shape[1],), gain, eps=0.0) @ W_Q
    k = W_K.T @ F.rms_norm(left, (x.shape[1],), gain, eps=0.0).T
    return (q / W_Q.shape[1] ** 0.5) @ k


STYLES = [
    ("24.1", lens_ranks_by_sorting),
    ("24.1", lens_ranks_one_by_one),
    ("24.2", patch_map_by_where),
    ("24.2", patch_map_put_back),
    ("24.3", head_shares_with_gather),
    ("24.4", decisive_backwards),
    ("24.5", scores_off_a_path_transposed),
]
