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


def today_block_token_by_token(x, weights, n_heads, n_kv_heads, window, base, eps):
    gain_1, W_Q, W_K, W_V, W_O, gain_q, gain_k, gain_2, W_gate, W_up, W_down = weights
    d, n = len(gain_q), x.shape[1]
    normed = torch.nn.functional.rms_norm(x, gain_1.shape, gain_1, eps)
    outputs = []
    for head in range(n_heads):
        shared = head * n_kv_heads // n_heads
        q = normed @ W_Q[:, head * d : (head + 1) * d]
        k, v = (normed @ matrix[:, shared * d : (shared + 1) * d] for matrix in (W_K, W_V))
        places = torch.arange(n)
        q = rotate_halves_with_matrices(rms_norm_by_the_length(q, gain_q, eps), places, base)
        k = rotate_halves_with_matrices(rms_norm_by_the_length(k, gain_k, eps), places, base)
        rows = []
        for t in range(n):
            first = max(0, t - window + 1)
            scores = (k[:, first : t + 1] @ q[:, t, :, None])[..., 0] / d**0.5
            rows.append((scores.softmax(dim=-1)[:, None] @ v[:, first : t + 1])[:, 0])
        outputs.append(torch.stack(rows, dim=1))
    x = x + torch.cat(outputs, dim=-1) @ W_O
    return x + swiglu(rms_norm_by_the_length(x, gain_2, eps), W_gate, W_up, W_down)


def cached_attention_one_by_one(query, key, value, old_keys, old_values, seen, window, base):
    outputs = []
    for t in range(query.shape[2]):
        here = torch.tensor([seen + t])
        q, k = (rotate_halves_with_matrices(x[:, :, t : t + 1], here, base) for x in (query, key))
        old_keys = torch.cat([old_keys, k], dim=2)[:, :, -window:]
        old_values = torch.cat([old_values, value[:, :, t : t + 1]], dim=2)[:, :, -window:]
        mask = torch.ones(1, old_keys.shape[2], dtype=torch.bool)
        outputs.append(grouped_attention_by_an_axis(q, old_keys, old_values, mask))
    return torch.cat(outputs, dim=2), old_keys, old_values


STYLES = [
    ("20.1", rms_norm_by_the_length),
    ("20.2", swiglu),
    ("20.3", grouped_attention_by_an_axis),
    ("20.4", window_mask_with_a_loop),
    ("20.5", rotate_halves_with_matrices),
    ("20.6", today_block_token_by_token),
    ("20.7", cached_attention_one_by_one),
]
