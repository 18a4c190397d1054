"""Right answers to the exercises of notebook 18 in another style: loops, einsum, one-hot tables, single precision."""

from __future__ import annotations

import math

import numpy as np


def linear_backward(g_y, x, weight):
    g_weight, g_bias = np.zeros(weight.shape), np.zeros(len(weight))
    for token in np.ndindex(x.shape[:-1]):
        g_weight += np.outer(g_y[token], x[token])
        g_bias += g_y[token]
    return [g_y @ weight, g_weight, g_bias]


def linear_backward_in_single_precision(g_y, x, weight):
    g, tokens = g_y.reshape(-1, len(weight)), x.reshape(-1, weight.shape[1])
    parts = (g @ weight).reshape(x.shape), np.einsum("to,ti->oi", g, tokens), np.ones(len(g)) @ g
    return tuple(part.astype(np.float32) for part in parts)


def numerical_gradient(loss, x, delta):
    moved, slopes = x.copy(), np.empty(x.size)
    flat = moved.reshape(-1)
    for index, value in enumerate(x.reshape(-1)):
        flat[index] = value + delta
        above = loss(moved)
        flat[index] = value - delta
        slopes[index] = (above - loss(moved)) / (2 * delta)
        flat[index] = value
    return slopes.reshape(x.shape)


def embedding_backward_in_a_product(g_x, ids, vocab_size):
    one_hot = (ids[..., None] == np.arange(vocab_size)).astype(g_x.dtype)
    return np.einsum("btv,btd->vd", one_hot, g_x) * g_x.shape[-1] ** 0.5


def decoder_layer_backward(g_y, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    g_sum = norm_3(g_y)
    g_b = feed_forward(g_sum)
    g_b = g_b + g_sum
    g_sum = norm_2(g_b)
    g_a, g_memory = cross_attention(g_sum)
    g_sum = norm_1(g_a + g_sum)
    return np.sum([*self_attention(g_sum), g_sum], axis=0), g_memory


def adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    mean, square = mean - (1 - beta_1) * (mean - g), square - (1 - beta_2) * (square - np.square(g))
    effective = (
        rate * math.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    )  # as Kingma and Ba put it at the end of section 2
    return [parameter - effective * mean / (np.sqrt(square) + eps * math.sqrt(1 - beta_2**step)), mean, square]


STYLES = [
    ("18.1", linear_backward),
    ("18.1", linear_backward_in_single_precision),
    ("18.2", numerical_gradient),
    ("18.3", embedding_backward_in_a_product),
    ("18.4", decoder_layer_backward),
    ("18.5", adam_step),
]
