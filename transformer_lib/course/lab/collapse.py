"""Attention without weights, again and again: how many rounds until all tokens are one? (notebook 02).

`load_results()["found"]["16"]["rounds"]` has a number for each seed, null for later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import stored

load_results = stored.loader("collapse.json")
TOKENS, FEATURES = 10, 16
Array = NDArray[np.float64]


def tokens(squared_length: float, seeds: Sequence[int]) -> Array:
    """Return random tokens [seeds, TOKENS, FEATURES] of this squared length on average, in float64."""
    size = (squared_length / FEATURES) ** 0.5
    return np.stack([size * np.random.default_rng(seed).standard_normal((TOKENS, FEATURES)) for seed in seeds])


def one_round(X: Array) -> Array:
    """Return softmax(X Xᵀ) X for tokens [..., seq_len, d_model]."""
    scores = X @ X.swapaxes(-1, -2)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed: Array = exponentials / exponentials.sum(axis=-1, keepdims=True) @ X
    return mixed


def spread(X: Array) -> Array:
    """Return how different the tokens [..., seq_len, d_model] are, [...]: 0 for equal ones, and at most 1.

    The length of what remains when their mean is subtracted from each, as a share of their own, all tokens together.
    """
    rest = X - X.mean(axis=-2, keepdims=True)
    return np.asarray(np.linalg.norm(rest, axis=(-2, -1)) / np.linalg.norm(X, axis=(-2, -1)))


def groups(X: Array, closer_than: float = 0.01) -> list[int]:
    """Return how many different tokens each of X [seeds, seq_len, d_model] has; closer ones count as one."""
    gaps = np.linalg.norm(X[:, :, None] - X[:, None], axis=-1)
    return [len({tuple(row) for row in near.tolist()}) for near in gaps < closer_than]


def repeat(
    X: Array,
    rounds: int,
    *,
    residual: float = 0.0,
    growth: float = 1.0,
    lengths: Sequence[Array] | None = None,
) -> Array:
    """Return tokens [..., seq_len, d_model] after rounds of X ← growth · (softmax(X Xᵀ) X + residual · X).

    Args:
        lengths: [..., seq_len, 1] for each round, given to the tokens after it, as `lengths_of` returns them.
    """
    for number in range(rounds):
        X = growth * (one_round(X) + residual * X)
        if lengths is not None:
            X = lengths[number] * X / np.linalg.norm(X, axis=-1, keepdims=True)
    return X


def lengths_of(X: Array, rounds: int, *, residual: float = 0.0, growth: float = 1.0) -> list[Array]:
    """Return how long the tokens [..., seq_len, d_model] are after each round of `repeat`, [..., seq_len, 1] each."""
    found = []
    for _ in range(rounds):
        X = repeat(X, 1, residual=residual, growth=growth)
        found.append(np.linalg.norm(X, axis=-1, keepdims=True))
    return found
