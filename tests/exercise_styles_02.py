"""Right answers to the exercises of notebook 02 in another style: loops, NumPy, lists."""

from __future__ import annotations

import numpy as np
import torch


def similarity(query, key):
    return torch.stack([(query * key[..., j : j + 1, :]).sum(-1) for j in range(key.shape[-2])], dim=-1)


def cosine_by_pairs(X, temperature):
    cosines = torch.nn.functional.cosine_similarity(X[..., :, None, :], X[..., None, :, :], dim=-1)
    return torch.softmax(cosines / temperature, dim=-1)


def scores_in_numpy(A):
    A = A.numpy()
    E = A * (A[0] / A[:, 0])[:, None]
    return torch.from_numpy(np.log(E / E[0, 0]))


def distance_by_vectors(distance, rounds):
    x, y = np.zeros(3), np.array([distance, 0.0, 0.0])
    middle = (x + y) / 2
    x, y = x - middle, y - middle
    for _ in range(rounds):
        p = 1 / (1 + np.exp(np.minimum(x @ x - x @ y, 700.0)))
        x, y = (1 - p) * x + p * y, p * x + (1 - p) * y
    return np.linalg.norm(x - y)


def solved_twice(X, S):
    half = torch.linalg.solve(X, S)
    return torch.linalg.solve(X, half.T).T


def settled_by_powers(X):
    return torch.linalg.matrix_power((X @ X.T).softmax(-1), 2**20)[0]


def unbalanced_without_loops(A):
    D = np.log(A.numpy()) - np.log(A.numpy()).T
    return float(max((D.T + D[:, k][:, None] + D[k][None, :]).max() for k in range(len(D))))


STYLES = [
    ("02.1", similarity),
    ("02.2", cosine_by_pairs),
    ("02.3", scores_in_numpy),
    ("02.4", distance_by_vectors),
    ("02.5", solved_twice),
    ("02.6", settled_by_powers),
    ("02.7", unbalanced_without_loops),
]
