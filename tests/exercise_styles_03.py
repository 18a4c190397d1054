"""Right answers to the exercises of notebook 03 in another style: loops, NumPy, lists."""

from __future__ import annotations

import numpy as np
import torch


def project(X, W_Q, W_K, W_V):
    stacked = X @ torch.cat([W_Q, W_K, W_V], dim=1)
    return list(stacked.split([W_Q.shape[1], W_K.shape[1], W_V.shape[1]], dim=-1))


def one_head_attention(x, w_q, w_k, w_v):
    rows = x.reshape(-1, *x.shape[-2:])
    outputs = []
    for sentence in rows:
        scores = sentence @ (w_q @ w_k.T) @ sentence.T * w_q.shape[1] ** -0.5
        exponentials = (scores - scores.amax(1, keepdim=True)).exp()
        outputs.append(exponentials / exponentials.sum(1, keepdim=True) @ sentence @ w_v)
    return torch.stack(outputs).reshape(*x.shape[:-1], -1)


def one_head_by_sdpa(X, W_Q, W_K, W_V):
    return torch.nn.functional.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)


def score_matrix(W_Q, W_K):
    return sum(torch.outer(W_Q[:, c], W_K[:, c]) for c in range(W_Q.shape[1]))


def head_sizes(d_model, d_k, d_v, batch, seq_len):
    parameters = np.int64(2 * d_model * d_k + d_model * d_v)
    return [parameters, sum(2 * seq_len * width for width in (d_k, d_v, seq_len)) * batch]


def same_scores(W_Q, W_K, R):
    return torch.einsum("ac,cd->ad", W_Q, R), W_K @ torch.linalg.inv(R.T)


def column_head(X, W_Q, W_K, W_V):
    columns = []
    for token in X.T:
        scores = (W_K @ X).T @ (W_Q @ token) / W_Q.shape[0] ** 0.5
        columns.append(W_V @ (X @ torch.softmax(scores, dim=0)))
    return torch.stack(columns, dim=1)


STYLES = [
    ("03.1", project),
    ("03.2", one_head_attention),
    ("03.2", one_head_by_sdpa),
    ("03.3", score_matrix),
    ("03.4", head_sizes),
    ("03.5", same_scores),
    ("03.6", column_head),
]
