"""Right answers to the exercises of notebook 20 in another style: loops, library calls, other layouts."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def rms_norm(x, gain, eps):
    return F.rms_norm(x, gain.shape, gain, eps)


def rms_norm_by_the_length(x, gain, eps):
    d = x.shape[-1]
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return gain * (x / torch.sqrt(length**2 / d + eps))


def swiglu(x, W_gate, W_up, W_down):
    gate, up = (x @ torch.cat([W_gate, W_up], dim=1)).chunk(2, dim=-1)
    return (gate * torch.sigmoid(gate) * up) @ W_down


def swiglu_by_library(x, W_gate, W_up, W_down):
    return F.linear(F.silu(F.linear(x, W_gate.T)).mul(F.linear(x, W_up.T)), W_down.T)


def grouped_attention(query, key, value, mask):
    size = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(size, dim=1) for x in (key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def grouped_attention_by_an_axis(query, key, value, mask):
    groups = query.unflatten(1, (key.shape[1], -1))  # [batch, n_kv_heads, heads of a group, q_len, d]
    scores = groups @ key[:, :, None].mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
    return (weights @ value[:, :, None]).flatten(1, 2)


def grouped_attention_with_einsum(query, key, value, mask):
    groups = query.unflatten(1, (key.shape[1], -1)) * query.shape[-1] ** -0.5
    scores = torch.einsum("bghqd,bgkd->bghqk", groups, key) + torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    return torch.einsum("bghqk,bgkd->bghqd", scores.softmax(-1), value).flatten(1, 2)


def window_mask(q_len, k_len, window):
    square = torch.ones(k_len, k_len, dtype=torch.bool)
    return (square.tril() & square.triu(1 - window))[k_len - q_len :]


def window_mask_with_a_loop(q_len, k_len, window):
    mask = torch.zeros(q_len, k_len, dtype=torch.bool)
    for row in range(q_len):
        position = k_len - q_len + row
        mask[row, max(0, position - window + 1) : position + 1] = True
    return mask


def rotate_halves(x, positions, base):
    d = x.shape[-1]
    angle = positions[:, None] / base ** (torch.arange(0, d, 2) / d)
    angle = torch.cat([angle, angle], dim=-1)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return x * angle.cos() + torch.cat([-b, a], dim=-1) * angle.sin()


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
    ("20.1", rms_norm),
    ("20.1", rms_norm_by_the_length),
    ("20.2", swiglu),
    ("20.2", swiglu_by_library),
    ("20.3", grouped_attention),
    ("20.3", grouped_attention_by_an_axis),
    ("20.3", grouped_attention_with_einsum),
    ("20.4", window_mask),
    ("20.4", window_mask_with_a_loop),
    ("20.5", rotate_halves),
    ("20.5", rotate_halves_with_matrices),
]
