"""The same formulas in NumPy alone: an independent reference for notebooks, exercises and tests."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def exact(x: Array) -> Array:
    """Return x in float32 at least: in 16 bits, sums lose small terms, and float16 overflows at 65,504."""
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def softmax(x: Array, axis: int = -1) -> Array:
    """Return exp(x) / Σ exp(x) along `axis`, shifted by the maximum so that no exponential overflows."""
    x = exact(x)
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def attention(query: Array, key: Array, value: Array, mask: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Return softmax(query keyᵀ / √d_k) value [..., q_len, d_v] and the weights [..., q_len, k_len].

    `mask` is boolean, True = may attend; a row that may attend to nothing gets zero weights.
    """
    query, key, value = exact(query), exact(key), exact(value)
    scores = query @ np.swapaxes(key, -2, -1) / math.sqrt(query.shape[-1])  # a plain float keeps float32 as it is
    if mask is None:
        weights = softmax(scores)
    else:
        scores = np.where(mask, scores, -np.inf)
        highest = scores.max(axis=-1, keepdims=True)
        exponentials = np.exp(scores - np.where(np.isfinite(highest), highest, 0.0))
        totals = exponentials.sum(axis=-1, keepdims=True)
        weights = exponentials / np.where(totals > 0, totals, 1.0)
    return weights @ value, weights


def sinusoidal_encoding(seq_len: int, d_model: int) -> Array:
    """Return PE[pos, 2j] = sin(pos / 10000^(2j/d_model)), PE[pos, 2j+1] = cos(same), [seq_len, d_model]."""
    table = np.zeros((seq_len, d_model))
    for position in range(seq_len):
        for j in range(d_model // 2):
            angle = position / 10000 ** (2 * j / d_model)
            table[position, 2 * j : 2 * j + 2] = np.sin(angle), np.cos(angle)
    return table


def standardise(x: Array, eps: float = 1e-5) -> tuple[Array, Array]:
    """Return x̂ = (x − μ) / s [..., d_model] and s = √(σ² + ε) [..., 1] over the last axis, population variance."""
    x = exact(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    return centred / size, size


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> Array:
    """Return γ ⊙ x̂ + β, with x̂ as in `standardise`."""
    return weight * standardise(x, eps)[0] + bias


def feed_forward(x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array) -> Array:
    """Return max(0, x W_1 + b_1) W_2 + b_2 for x [..., d_model], W_1 [d_model, d_ff], W_2 [d_ff, d_model]."""
    return np.maximum(0.0, x @ w_1 + b_1) @ w_2 + b_2


def multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    w_o: Array,
    n_heads: int,
    mask: NDArray[np.bool_] | None = None,
) -> Array:
    """Return Concat(head_1 …) W_O, one head after another in a loop.

    Shapes: query [batch, q_len, d_model], key and value [batch, k_len, d_model]; w_q, w_k [d_model, n_heads · d_k],
    w_v [d_model, n_heads · d_v], w_o [n_heads · d_v, d_model]; mask broadcastable to [batch, 1, q_len, k_len].
    """
    head_mask = None if mask is None else mask[:, 0]
    heads = [
        attention(query @ q, key @ k, value @ v, head_mask)[0]
        for q, k, v in zip(*(np.split(w, n_heads, axis=1) for w in (w_q, w_k, w_v)), strict=True)
    ]
    return np.concatenate(heads, axis=-1) @ w_o


def label_smoothed_loss(logits: Array, labels: NDArray[np.integer], pad_id: int, smoothing: float = 0.0) -> float:
    """Return the mean over real labels of −Σ_v target_v ln p_v, with (1 − ε) + ε/V on the label and ε/V elsewhere."""
    log_p = np.log(softmax(logits))
    vocab_size = logits.shape[-1]
    losses = []
    for index in np.ndindex(labels.shape):
        if labels[index] != pad_id:
            target = np.full(vocab_size, smoothing / vocab_size)
            target[labels[index]] += 1 - smoothing
            losses.append(-(target * log_p[index]).sum())
    return float(np.mean(losses))
