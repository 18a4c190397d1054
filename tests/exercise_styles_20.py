"""Right answers to the exercises of notebook 20 in another style: loops, library calls, other layouts."""

from __future__ import annotations

import torch


def rms_norm_by_the_length(x, gain, eps):
    d = x.shape[-1]
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return gain * (x / torch.sqrt(length**2 / d + eps))


def swiglu(x, W_gate, W_up, W_down):
    gate, up = (x @ torch.cat([W_gate, W_up], dim=1)).chunk(2, dim=-1)
    return (gate * torch.sigmoid(gate) * up) @ W_down


def grouped_attention_by_an_axis(query, key, value, mask):
    groups = query.unflatten(1, (key.shape[1], -1))  # [batch, n_kv_heads, heads of a group, q_len, d]
    scores = groups @ key[:, :, None].mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
    return (weights @ value[:, :, None]).flatten(1, 2)


def window_mask_with_a_loop(q_len, k_len, window):
    mask = torch.zeros(q_len, k_len, dtype=torch.bool)
    for row in range(q_len):
        position = k_len - q_len + row
        mask[row, max(0, position - window + 1) : position + 1] = True
    return mask


def rotate_halves_with_matrices(x, positions, base):
    half = x.shape[-1] // 2
    rows = []
    for row, p in zip(x.unbind(-2), positions.tolist(), strict=True):
        angle = p * torch.tensor([base ** (-j / half) for j in range(half)])
        cos, sin = angle.cos().diag(), angle.sin().diag()
        turn = torch.cat([torch.cat([cos, -sin], dim=1), torch.cat([sin, cos], dim=1)])
        rows.append(row @ turn.T)
    return torch.stack(rows, dim=-2)


STYLES = [
    ("20.1", rms_norm_by_the_length),
    ("20.2", swiglu),
    ("20.3", grouped_attention_by_an_axis),
    ("20.4", window_mask_with_a_loop),
    ("20.5", rotate_halves_with_matrices),
]
