"""Right answers to the exercises of notebook 08 in another style: reshapes, loops, the library's names."""

from __future__ import annotations

import torch


def split_heads_by_stacking(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


def merge_heads_by_joining(x):
    return torch.cat([*x.unbind(1)], dim=-1)


def sum_of_heads(X, W_Q, W_K, W_V, W_O, n_heads):
    output = 0
    d_k, d_v = W_Q.shape[1] // n_heads, W_V.shape[1] // n_heads
    for h in range(n_heads):
        keys, values = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        scores = X @ (W_Q[:, keys] @ W_K[:, keys].T / d_k**0.5) @ X.mT
        output = output + scores.softmax(-1) @ X @ (W_V[:, values] @ W_O[values])
    return output


def head_contributions_by_zeros(heads, W_O):
    """Let one head at a time through the whole layer."""
    alone = torch.eye(heads.shape[1]).to(heads)[:, None, :, None, None] * heads  # [n_heads, batch, n_heads, ...]
    return (alone.transpose(2, 3).flatten(3) @ W_O).transpose(0, 1)


def head_contributions(heads, W_O):
    n_heads, d_v = heads.shape[1], heads.shape[3]
    return torch.stack([heads[:, h] @ W_O[h * d_v : (h + 1) * d_v] for h in range(n_heads)], dim=1)


def both_letters_by_cases(blend):
    """Tell the four pairs apart one by one."""
    answers = []
    for share, place in blend.reshape(-1, 2).tolist():
        if place == 0.5:
            answers.append([share > 0.5] * 2)
        else:
            answers.append([place > 0.5, place < 0.5])
    return torch.tensor(answers).reshape(blend.shape)


def both_letters_by_readers(blend):
    """A weighted sum and a cut for each letter."""
    readers = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    return blend @ readers > torch.tensor([1.0, 0.0])


STYLES = [
    ("08.1", split_heads_by_stacking),
    ("08.2", merge_heads_by_joining),
    ("08.3", sum_of_heads),
    ("08.4", head_contributions),
    ("08.4", head_contributions_by_zeros),
    ("08.5", both_letters_by_cases),
    ("08.5", both_letters_by_readers),
]
