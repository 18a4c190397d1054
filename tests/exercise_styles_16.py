"""Right answers to the exercises of notebook 16 in another style: sums written out, NumPy, logarithms."""

from __future__ import annotations

import math

import numpy as np
import torch


def decoder_layer_multiply_adds(tgt_len, src_len, d_model, d_ff):
    products = [(tgt_len, d_model, d_model)] * 6 + [(src_len, d_model, d_model)] * 2
    products += [(tgt_len, d_model, length) for length in (tgt_len, tgt_len, src_len, src_len)]
    products += [(tgt_len, d_model, d_ff), (tgt_len, d_ff, d_model)]
    return sum(math.prod(product) for product in products)


def crossover_length(d_model, d_attention, d_ff):
    return math.floor(2 * d_model + d_model * d_ff / d_attention) + 1


def merge_blocks(first, second):
    total = torch.logsumexp(torch.stack([part[0] + part[1].log() for part in (first, second)]), dim=0)
    blend = sum(part[2] / part[1] * (part[0] + part[1].log() - total).exp() for part in (first, second))
    largest = max(first[0], second[0])
    return largest, (total - largest).exp(), blend * (total - largest).exp()


def blockwise_attention(query, key_blocks, value_blocks):
    outputs = []
    for row in query:
        largest, total, blend = -math.inf, 0.0, 0.0
        for keys, values in zip(key_blocks, value_blocks, strict=True):
            for key, value in zip(keys, values, strict=True):
                score = row @ key / math.sqrt(len(row))
                new = score if score > largest else largest
                shrink = torch.exp(torch.as_tensor(largest - new))
                total, blend = total * shrink + torch.exp(score - new), blend * shrink + torch.exp(score - new) * value
                largest = new
        outputs.append(blend / total)
    return torch.stack(outputs)


def joined_gradient(gradients, counts):
    return torch.from_numpy(np.average(gradients.numpy(), axis=0, weights=counts.numpy()))


def choose_blocks(fast, d, tile):
    sizes = np.arange(tile, fast // (2 * d) + 1, tile)
    rows, keys = np.meshgrid(sizes, sizes)
    fits = 2 * d * (rows + keys) + rows * keys <= fast
    best = np.argmax(np.where(fits, rows, 0))
    return rows.flatten()[best], keys.flatten()[best]


def choose_blocks_by_steps(fast, d, tile):
    rows = keys = tile
    while 2 * d * (rows + tile) + 2 * d * keys + (rows + tile) * keys <= fast:
        rows += tile
    return [rows, keys]


STYLES = [
    ("16.1", decoder_layer_multiply_adds),
    ("16.2", crossover_length),
    ("16.3", merge_blocks),
    ("16.4", blockwise_attention),
    ("16.5", joined_gradient),
    ("16.6", choose_blocks),
    ("16.6", choose_blocks_by_steps),
]
