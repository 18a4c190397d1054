"""Right answers to the exercises of notebook 06 in another style: loops, lists, complex numbers."""

from __future__ import annotations

import math

import numpy as np
import torch


def table_by_numpy(n, d):
    feature = np.arange(d)
    angles = np.arange(n)[:, None] / 10000.0 ** ((feature - feature % 2) / d)
    return torch.from_numpy(np.where(feature % 2, np.cos(angles), np.sin(angles))).float()


def add_positions(X, table, start):
    places = torch.arange(start, start + X.shape[1])
    return X + torch.nn.functional.embedding(places, table)


def shift_matrix(offset, d_model):
    matrix = torch.zeros(d_model, d_model)
    for j in range(d_model // 2):
        angle = offset / 10000 ** (2 * j / d_model)
        matrix[2 * j, 2 * j] = matrix[2 * j + 1, 2 * j + 1] = math.cos(angle)
        matrix[2 * j, 2 * j + 1], matrix[2 * j + 1, 2 * j] = math.sin(angle), -math.sin(angle)
    return matrix


def offset_as_tensor(pe_a, pe_b, max_offset):
    offsets = torch.arange(-max_offset, max_offset + 1)
    a, b = (torch.complex(pe[1::2], pe[0::2]) for pe in (pe_a, pe_b))
    angles = torch.outer(offsets, 10000.0 ** (-torch.arange(0, len(pe_a), 2) / len(pe_a)))
    return offsets[(a * torch.polar(torch.ones_like(angles), angles) - b).abs().sum(dim=1).argmin()]


def rotary(x, positions):
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = (f(angles).repeat_interleave(2, dim=-1).to(x.dtype) for f in (torch.cos, torch.sin))
    swapped = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).reshape(x.shape)
    return x * cos + swapped * sin


def relative_bias(scores, table, max_distance):
    n = scores.shape[-1]
    places = torch.arange(n)
    offsets = (places[None, :] - places[:, None]).clip(-max_distance, max_distance)
    return scores + table[offsets + max_distance]


def asking_queries(key, back):
    rows = []
    for k in back.tolist():
        row = []
        for j in range(len(key) // 2):
            angle = k * 10000 ** (-2 * j / len(key))
            c, s = math.cos(angle), math.sin(angle)
            a, b = key[2 * j], key[2 * j + 1]
            row += [a * c + b * s, b * c - a * s]
        rows.append(torch.stack(row))
    return torch.stack(rows)


STYLES = [
    ("06.1", table_by_numpy),
    ("06.2", add_positions),
    ("06.3", shift_matrix),
    ("06.4", offset_as_tensor),
    ("06.5", rotary),
    ("06.6", relative_bias),
    ("06.7", asking_queries),
]
