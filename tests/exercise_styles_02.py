"""Right answers to the exercises of notebook 02 in another style: loops, NumPy, lists."""

from __future__ import annotations

import math

import numpy as np
import torch


def similarity_scores(X):
    return torch.stack([(X * X[..., i : i + 1, :]).sum(-1) for i in range(X.shape[-2])], dim=-2)


def context_vectors(x):
    output = []
    for sentence in x.reshape(-1, *x.shape[-2:]):
        exponentials = (sentence @ sentence.T - (sentence @ sentence.T).amax(1, keepdim=True)).exp()
        output.append(exponentials @ sentence / exponentials.sum(1)[:, None])
    return torch.stack(output).reshape(x.shape)


def context_by_sdpa(X):
    return torch.nn.functional.scaled_dot_product_attention(X, X, X, scale=1.0)


def cosine_weights(tokens, T):
    directions = torch.nn.functional.normalize(tokens, dim=-1)
    return (directions @ directions.mT / T).softmax(-1)


def padded_context(X, real):
    scores = (X @ X.mT).masked_fill(~real[:, None], -math.inf)
    return (scores.softmax(-1) @ X).masked_fill(~real[..., None], 0)


def settled_shares(X):
    totals = np.exp(X.numpy() @ X.numpy().T).sum(axis=1)
    return torch.from_numpy(totals / totals.sum())


def settled_by_powers(X):
    return torch.linalg.matrix_power((X @ X.T).softmax(-1), 2**20)[0]


def scores_to_order(X, G):
    inverse = torch.linalg.pinv(X)
    return inverse @ G @ inverse.mT


STYLES = [
    ("02.1", similarity_scores),
    ("02.2", context_vectors),
    ("02.2", context_by_sdpa),
    ("02.3", cosine_weights),
    ("02.4", padded_context),
    ("02.5", settled_shares),
    ("02.5", settled_by_powers),
    ("02.6", scores_to_order),
]
