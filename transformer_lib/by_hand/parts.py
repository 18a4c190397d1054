"""The parts that know no names: each takes arrays, and returns its output and what its backward pass needs.

Every function is followed by its backward. g_y is the gradient of the loss with respect to y, shaped like y.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import numpy_reference as reference

Array = NDArray[np.floating]
Ids = NDArray[np.integer]
Mask = NDArray[np.bool_]
Saved = tuple[Any, ...]  # what a forward function leaves for its backward


def linear(x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, Saved]:
    """Return y = x Wᵀ + b [..., d_out] for x [..., d_in], W [d_out, d_in], b [d_out] or None."""
    y = (_rows(x) @ weight.T).reshape(*x.shape[:-1], len(weight))  # all tokens in one product
    return (y if bias is None else y + bias), (x, weight, bias)


def linear_backward(g_y: Array, saved: Saved) -> tuple[Array, Array, Array | None]:
    """Return g_x = g_y W, g_W = Σ_tokens g_y xᵀ and g_b = Σ_tokens g_y (None without a bias)."""
    x, weight, bias = saved
    rows = _rows(g_y)  # [tokens, d_out]
    g_x = (rows @ weight).reshape(x.shape)
    return g_x, rows.T @ _rows(x), None if bias is None else rows.sum(axis=0)


def _rows(x: Array) -> Array:
    """[..., width] -> [tokens, width]."""
    return x.reshape(-1, x.shape[-1])


def relu(x: Array) -> tuple[Array, Saved]:
    """Return max(0, x) (paper §3.3)."""
    return np.maximum(0, x), (x > 0,)


def relu_backward(g_y: Array, saved: Saved) -> Array:
    """Return g_x: g_y where x was positive, 0 elsewhere."""
    (positive,) = saved
    return g_y * positive


def softmax(scores: Array) -> tuple[Array, Saved]:
    """Return weights a = exp(s) / Σ exp(s) over the last axis."""
    weights = reference.softmax(scores)
    return weights, (weights,)


def softmax_backward(g_weights: Array, saved: Saved) -> Array:
    """Return g_s = a ⊙ (g_a − a · g_a), which is the Jacobian diag(a) − a aᵀ times g_a, row by row.

    Where a mask made a weight 0, its score has gradient 0.
    """
    (weights,) = saved
    return weights * (g_weights - (weights * g_weights).sum(axis=-1, keepdims=True))


def attention(query: Array, key: Array, value: Array, mask: Mask | None = None) -> tuple[Array, Saved]:
    """Return softmax(Q Kᵀ / √d_k) V [..., q_len, d_v] (paper eq. 1).

    Args:
        query: [..., q_len, d_k]. key: [..., k_len, d_k]. value: [..., k_len, d_v].
        mask: boolean, broadcastable to [..., q_len, k_len]; True = may attend.
    """
    output, weights = reference.attention(query, key, value, mask)
    return output, (query, key, value, weights)


def attention_backward(g_output: Array, saved: Saved) -> tuple[Array, Array, Array]:
    """Return g_Q = g_S K / √d_k, g_K = g_Sᵀ Q / √d_k and g_V = Aᵀ g_Z, with g_A = g_Z Vᵀ."""
    query, key, value, weights = saved
    g_value = weights.swapaxes(-2, -1) @ g_output
    g_scores = softmax_backward(g_output @ value.swapaxes(-2, -1), (weights,)) / math.sqrt(query.shape[-1])
    return g_scores @ key, g_scores.swapaxes(-2, -1) @ query, g_value


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> tuple[Array, Saved]:
    """Return γ ⊙ x̂ + β with x̂ = (x − μ) / s, s = √(σ² + ε), token by token (Ba et al. 2016)."""
    unit, size = reference.standardise(x, eps)
    return weight * unit + bias, (unit, size, weight)


def layer_norm_backward(g_y: Array, saved: Saved) -> tuple[Array, Array, Array]:
    """Return g_x, g_γ = Σ_tokens g_y ⊙ x̂ and g_β = Σ_tokens g_y.

    With g = γ ⊙ g_y, g_x = (g − mean(g) − x̂ · mean(g ⊙ x̂)) / s: the means are over the features of a token.
    """
    unit, size, weight = saved
    g = weight * g_y
    g_x = (g - g.mean(axis=-1, keepdims=True) - unit * (g * unit).mean(axis=-1, keepdims=True)) / size
    return g_x, _rows(g_y * unit).sum(axis=0), _rows(g_y).sum(axis=0)


def embed(ids: Ids, table: Array) -> tuple[Array, Saved]:
    """Return E[ids] · √d_model + PE [batch, seq_len, d_model] for ids [batch, seq_len], E [vocab_size, d_model] (§3.4).

    PE is the sinusoidal table of §3.5.
    """
    d_model = table.shape[1]
    positions = _positions(ids.shape[1], d_model).astype(table.dtype)
    return table[ids] * math.sqrt(d_model) + positions, (ids, table.shape)


def embed_backward(g_x: Array, saved: Saved) -> Array:
    """Return g_E [vocab_size, d_model]: a row adds up the gradients of all places where its token occurs.

    The factor √d_model comes back; the positions are constants and take no gradient.
    """
    ids, shape = saved
    g_table = np.zeros(shape, dtype=g_x.dtype)
    np.add.at(g_table, ids.reshape(-1), _rows(g_x))  # `g_table[ids] += …` would keep one of several
    return g_table * math.sqrt(shape[1])


@cache
def _positions(seq_len: int, d_model: int) -> Array:
    return reference.sinusoidal_encoding(seq_len, d_model)


def cross_entropy(logits: Array, labels: Ids, *, pad_id: int, label_smoothing: float = 0.0) -> tuple[float, Saved]:
    """Return the mean over real labels of −Σ_v w_v ln p_v, with w = 1 − ε on the label and ε / V on all (§5.4).

    Args:
        logits: [batch, tgt_len, vocab_size]. labels: [batch, tgt_len]; pad_id entries do not count.

    Raises:
        ValueError: there is no real label.
    """
    real = labels != pad_id  # [batch, tgt_len]
    if not real.any():
        raise ValueError(f"labels must have a real one, got only pad_id {pad_id} in shape {labels.shape}")
    chosen = logits[real]  # [labels, vocab_size]
    shifted = chosen - chosen.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # ln of a p that may round to 0
    wanted = np.full_like(log_p, label_smoothing / log_p.shape[-1])
    wanted[np.arange(len(wanted)), labels[real]] += 1 - label_smoothing
    return float(-(wanted * log_p).sum() / len(wanted)), (log_p, wanted, real)


def cross_entropy_backward(saved: Saved) -> Array:
    """Return g_logits = (p − w) / number of real labels, 0 at padding: predicted minus wanted."""
    log_p, wanted, real = saved
    g_logits = np.zeros((*real.shape, log_p.shape[-1]), dtype=log_p.dtype)
    g_logits[real] = (np.exp(log_p) - wanted) / len(wanted)
    return g_logits
