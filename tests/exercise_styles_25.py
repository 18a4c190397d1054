"""Right answers to the exercises of notebook 25 in another style: loops, library calls, other dtypes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def answer_targets_by_where(turns, ignored):
    ids = np.concatenate([ids for _, ids in turns])
    mine = np.repeat([role == "assistant" for role, _ in turns], [len(ids) for _, ids in turns])
    return ids[:-1].tolist(), np.where(mine, ids, ignored)[1:].tolist()


def answer_targets_backwards(turns, ignored):
    every, targets = [], []
    for role, ids in turns:
        for token in ids:
            every.append(token)
            targets.append(ignored)
            if role == "assistant":
                targets[-1] = token
    every.pop()
    del targets[0]
    return every, targets


def adapted_by_merging_first(x, weight, A, B, alpha):
    rank, _ = A.shape
    merged = weight + (B * (alpha / rank)) @ A
    return F.linear(x, merged), merged


def adapted_rank_by_rank(x, weight, A, B, alpha):
    output, merged = F.linear(x, weight), weight.clone()
    for row, column in zip(A, B.T, strict=True):
        share = alpha / A.size(0)
        output = output + share * (x @ row)[..., None] * column
        merged = merged + share * torch.outer(column, row)
    return output, merged


def advantages_in_numpy(rewards):
    rows = rewards.numpy()
    spread = rows.std(axis=1, ddof=1, keepdims=True)
    return torch.from_numpy((rows - rows.mean(axis=1, keepdims=True)) / np.where(spread == 0, 1, spread))


def advantages_by_rows(rewards):
    done = []
    for row in rewards:
        std, mean = torch.std_mean(row)
        done.append(torch.zeros(len(row)) if std == 0 else (row - mean) / std)
    return torch.stack(done)


def dpo_by_softplus(chosen, rejected, reference_chosen, reference_rejected, beta):
    margin = chosen - rejected - (reference_chosen - reference_rejected)
    return F.softplus(-beta * margin).sum() / len(margin)


def dpo_as_cross_entropy(chosen, rejected, reference_chosen, reference_rejected, beta):
    logits = torch.stack([chosen - reference_chosen, rejected - reference_rejected], dim=1) * beta
    return nn.CrossEntropyLoss()(logits, torch.zeros(len(logits), dtype=torch.long))


def reward_for_the_first_of_its_kind(texts, right):
    return [
        int(good) * (2 if len(text.split()) > 4 else 1) * (text not in texts[:at])
        for at, (text, good) in enumerate(zip(texts, right, strict=True))
    ]


def reward_that_grows_with_the_length(texts, right):
    times, scale = Counter(texts), max(len(text.split()) for text in texts)
    long = [len(text.split()) / scale * 0.9 ** (times[text] - 1) for text in texts]
    return torch.where(torch.tensor(right), torch.tensor(long), -1.0)


def reward_in_three_grades(texts, right):
    earned = np.zeros(len(texts))
    for i, text in enumerate(texts):
        if right[i]:
            earned[i] = 3 if len(text.split()) >= 5 else 1
            earned[i] -= 0.2 * (texts.count(text) - 1)
    return earned - earned.min() * 0 - 5 * ~np.array(right)


STYLES = [
    ("25.1", answer_targets_by_where),
    ("25.1", answer_targets_backwards),
    ("25.2", adapted_by_merging_first),
    ("25.2", adapted_rank_by_rank),
    ("25.3", advantages_in_numpy),
    ("25.3", advantages_by_rows),
    ("25.4", reward_for_the_first_of_its_kind),
    ("25.4", reward_that_grows_with_the_length),
    ("25.4", reward_in_three_grades),
    ("25.5", dpo_by_softplus),
    ("25.5", dpo_as_cross_entropy),
]
