"""Right answers to the exercises of notebook 08 in another style: reshapes, loops, the library's names."""

from __future__ import annotations

import torch


def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def split_heads_by_view(x, heads):
    batch, seq_len, d_model = x.shape
    return x.view(batch, seq_len, heads, d_model // heads).permute(0, 2, 1, 3).contiguous()


def split_heads_by_stacking(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


def split_heads_by_einsum(x, n_heads):
    return torch.einsum("bshd->bhsd", x.reshape(*x.shape[:2], n_heads, -1))


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def merge_heads_by_joining(x):
    return torch.cat([*x.unbind(1)], dim=-1)


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


def one_product_for_all(X, W_Q, W_K, W_V, W_O, n_heads):
    sizes = [W_Q.shape[1], W_K.shape[1], W_V.shape[1]]
    query, key, value = (split_heads(part, n_heads) for part in (X @ torch.cat([W_Q, W_K, W_V], 1)).split(sizes, -1))
    weights = torch.einsum("bhqd,bhkd->bhqk", query, key).div(query.size(-1) ** 0.5).softmax(3)
    return torch.einsum("bhqk,bhkd->bqhd", weights, value).reshape(*X.shape[:2], -1) @ W_O


def head_contributions_by_einsum(heads, W_O):
    return torch.einsum("bhsv,hvm->bhsm", heads, W_O.view(heads.size(1), heads.size(3), -1))


def head_contributions_by_zeros(heads, W_O):
    """Let one head at a time through the whole layer."""
    alone = torch.eye(heads.shape[1]).to(heads)[:, None, :, None, None] * heads  # [n_heads, batch, n_heads, ...]
    return (alone.transpose(2, 3).flatten(3) @ W_O).transpose(0, 1)


def head_contributions(heads, W_O):
    n_heads, d_v = heads.shape[1], heads.shape[3]
    return torch.stack([heads[:, h] @ W_O[h * d_v : (h + 1) * d_v] for h in range(n_heads)], dim=1)


STYLES = [
    ("08.1", split_heads),
    ("08.1", split_heads_by_view),
    ("08.1", split_heads_by_stacking),
    ("08.1", split_heads_by_einsum),
    ("08.2", merge_heads),
    ("08.2", merge_heads_by_joining),
    ("08.2", merge_heads_by_reshape),
    ("08.3", multi_head_attention),
    ("08.3", sum_of_heads),
    ("08.3", one_product_for_all),
    ("08.4", head_contributions),
    ("08.4", head_contributions_by_einsum),
    ("08.4", head_contributions_by_zeros),
]
