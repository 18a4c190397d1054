"""Right answers to the exercises of notebook 08 in another style: reshapes, loops, the library's names."""

from __future__ import annotations

import torch


def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def split_heads_by_view(x, heads):
    batch, seq_len, d_model = x.shape
    return x.view(batch, seq_len, heads, d_model // heads).permute(0, 2, 1, 3).contiguous()


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def merge_heads_by_reshape(x):
    batch, n_heads, seq_len, width = x.shape
    return x.permute(0, 2, 1, 3).reshape(batch, seq_len, n_heads * width)


def multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads):
    query, key, value = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(torch.nn.functional.scaled_dot_product_attention(query, key, value)) @ W_O


def sum_of_heads(X, W_Q, W_K, W_V, W_O, n_heads):
    output = 0
    d_k, d_v = W_Q.shape[1] // n_heads, W_V.shape[1] // n_heads
    for h in range(n_heads):
        keys, values = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        scores = X @ (W_Q[:, keys] @ W_K[:, keys].T / d_k**0.5) @ X.mT
        output = output + scores.softmax(-1) @ X @ (W_V[:, values] @ W_O[values])
    return output


def head_contributions(heads, W_O):
    n_heads, d_v = heads.shape[1], heads.shape[3]
    return torch.stack([heads[:, h] @ W_O[h * d_v : (h + 1) * d_v] for h in range(n_heads)], dim=1)


STYLES = [
    ("08.1", split_heads),
    ("08.1", split_heads_by_view),
    ("08.2", merge_heads),
    ("08.2", merge_heads_by_reshape),
    ("08.3", multi_head_attention),
    ("08.3", sum_of_heads),
    ("08.4", head_contributions),
]
