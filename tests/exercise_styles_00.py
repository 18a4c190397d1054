"""The exercises of notebook 00, each solved in another style."""

from __future__ import annotations

import numpy as np
import torch


def mean_of_rows_in_numpy(x):
    return torch.from_numpy(np.mean(x.numpy(), axis=0))


def weighted_mean(weights, x):
    return (weights[:, None] * x).sum(dim=0) / weights.sum()


def itself_and_one_more_in_numpy(n, query, key):
    mask = np.identity(n, dtype=bool)
    mask[query][key] = True
    return torch.from_numpy(mask)


def best_connection(count_right, n):
    results = []
    for query in range(n):
        for key in range(n):
            if query == key:
                continue
            mask = torch.eye(n).bool()
            mask[query, key] = True
            results.append((count_right(mask), query, key))
    return list(sorted(results)[-1][1:])


STYLES = [
    ("00.1", mean_of_rows_in_numpy),
    ("00.2", weighted_mean),
    ("00.3", itself_and_one_more_in_numpy),
    ("00.4", best_connection),
]
