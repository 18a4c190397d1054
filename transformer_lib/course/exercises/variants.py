"""Variants: an exercise with one thing changed, for another term. Answers to the published one fail, and are named.

A variant has the id of its exercise and a b, the same arguments and inputs, a reference and a docstring of its own.
The reference is also the solution that a teacher sees, so it needs nothing but torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import torch

from .model import Case, Exercise, Mistake
from .registry import published


@dataclass(frozen=True)
class Variant:
    """A changed exercise, and the sentence that tells a learner what is different."""

    exercise: Exercise
    sentence: str


def nearest_key_lookup(query, keys, values):
    """query [d_k], keys [n_keys, d_k], values [n_keys, d_v] -> the value of the key with the smallest score [d_v]"""
    return values[(keys @ query).argmin()]


def softmax(scores):
    """scores [..., n_keys] -> weights of the same shape, proportional to 2 to the power of the score, with sum 1"""
    powers = 2.0**scores
    return powers / powers.sum(dim=-1, keepdim=True)


def kernel_regression(queries, xs, ys, bandwidth):
    """queries [n_queries], xs [n_points], ys [n_points] -> [n_queries], with weights exp(-|query - x| / bandwidth)"""
    gaps = queries[:, None] - xs[None, :]
    return (-gaps.abs() / bandwidth).softmax(dim=-1) @ ys


def cosine_weights(X, temperature):
    """X [..., seq_len, d_model] -> weights [..., seq_len, seq_len], the softmax of -squared distance / temperature"""
    gaps = X[..., :, None, :] - X[..., None, :, :]
    return (-gaps.square().sum(dim=-1) / temperature).softmax(dim=-1)


def output_without(weights, value, j):
    """weights [..., q_len, k_len], value [..., k_len, d_v], key j with half its weight -> output [..., q_len, d_v]"""
    kept = weights.clone()
    kept[..., j] = kept[..., j] / 2
    return kept / kept.sum(dim=-1, keepdim=True) @ value


def head_sizes(d_model, d_k, d_v, batch, seq_len):
    """One head whose three projections have biases -> (parameters, activations)"""
    parameters = (d_model + 1) * (2 * d_k + d_v)
    return parameters, batch * seq_len * (2 * d_k + 2 * d_v + 2 * seq_len)


def divisor(query, key):
    """query [q_len, d_k], key [k_len, d_k] -> the standard deviation of all their dot products together, a number"""
    return (query @ key.T).std(correction=0)


def masked_attention(query, key, value, mask):
    """query [..., q_len, d_k], key [..., k_len, d_k], value [..., k_len, d_v], mask [..., q_len, k_len], True = hidden
    -> (output [..., q_len, d_v], weights [..., q_len, k_len]); zeros for a query from which all is hidden
    """
    empty = mask.all(dim=-1, keepdim=True)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(mask & ~empty, -torch.inf).softmax(dim=-1).masked_fill(empty, 0.0)
    return weights @ value, weights


def nearest_neighbours(table, token_id, k):
    """table [vocab_size, d_model] -> ids of the k other rows with the largest dot product, the largest first"""
    products = table @ table[token_id]
    products[token_id] = -torch.inf
    return products.topk(k).indices.tolist()


def sinusoidal_table(seq_len, d_model):
    """-> [seq_len, d_model]: cosines in columns 0, 2, 4, …, and sines of the same angles in columns 1, 3, 5, …"""
    omega = 10000.0 ** (-2 * torch.arange(d_model // 2) / d_model)
    angles = torch.arange(seq_len)[:, None] * omega
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(1)


def relative_bias(scores, table, max_distance):
    """scores [..., n, n], table [2 * max_distance + 1] -> scores plus the entry for the query's position - the key's"""
    n = torch.arange(scores.shape[-1])
    offsets = n[:, None] - n[None, :]
    return scores + table[offsets.clamp(-max_distance, max_distance) + max_distance]


def padding_mask(ids, pad_id):
    """ids [batch, k_len] -> booleans [batch, 1, 1, k_len], True where the key is padding"""
    return (ids == pad_id)[:, None, None, :]


def multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads):
    """X [batch, seq_len, d_model] and four matrices -> [batch, seq_len, d_model]; no token reads a later one"""
    query, key, value = ((X @ W).unflatten(-1, (n_heads, -1)).transpose(1, 2) for W in (W_Q, W_K, W_V))
    later = torch.ones(X.shape[1], X.shape[1], dtype=torch.bool).triu(1)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
    return (weights @ value).transpose(1, 2).flatten(2) @ W_O


def feed_forward(x, W_1, b_1, W_2, b_2):
    """x [..., d_model] -> [..., d_model]: as before, but negative hidden units are multiplied by 0.1"""
    hidden = x @ W_1 + b_1
    return torch.where(hidden > 0, hidden, 0.1 * hidden) @ W_2 + b_2


def layer_norm(x, gain, bias, eps):
    """x [..., d_model] -> centred, divided by (mean absolute deviation + eps), times gain, plus bias"""
    centred = x - x.mean(dim=-1, keepdim=True)
    return gain * centred / (centred.abs().mean(dim=-1, keepdim=True) + eps) + bias


def encoder_layer(x, attention, feed_forward, norm_1, norm_2):
    """x [batch, seq_len, d_model], two sub-layers, two norms -> x after one pre-norm encoder layer"""
    y = x + attention(norm_1(x))
    return y + feed_forward(norm_2(y))


def cross_attention(x, memory, W_Q, W_K, W_V, memory_mask):
    """x [batch, tgt_len, d_model], memory [batch, src_len, d_model], memory_mask [batch, 1, src_len], True = hidden
    -> [batch, tgt_len, d_v]
    """
    scores = (x @ W_Q) @ (memory @ W_K).transpose(-2, -1) / W_K.shape[1] ** 0.5
    return scores.masked_fill(memory_mask, -torch.inf).softmax(dim=-1) @ (memory @ W_V)


def parameters(d_model, d_ff, n_layers, src_vocab_size, tgt_vocab_size, tied):
    """-> the number of parameters when each matrix of attention has a bias of d_model numbers, too"""
    attention, feed_forward, norm = 4 * d_model**2 + 4 * d_model, 2 * d_model * d_ff + d_ff + d_model, 2 * d_model
    layers = n_layers * (3 * attention + 2 * feed_forward + 5 * norm)
    rows = src_vocab_size if tied else src_vocab_size + 2 * tgt_vocab_size
    return layers + rows * d_model


def label_smoothed_loss(logits, targets, epsilon):
    """logits [n, vocab_size], targets [n] -> mean loss: 1 - epsilon for the label, epsilon shared by all others"""
    log_p = logits.log_softmax(dim=-1)
    of_label = log_p.gather(-1, targets[:, None])[:, 0]
    of_others = (log_p.sum(dim=-1) - of_label) / (logits.shape[-1] - 1)
    return -((1 - epsilon) * of_label + epsilon * of_others).mean()


def _inverted_mask(args: tuple) -> tuple:
    return (*args[:-1], ~args[-1])


def _variant(
    name: str,
    reference: Callable[..., object],
    sentence: str,
    old: str,
    change: Callable[[tuple], tuple] = lambda args: args,
) -> Variant:
    """Return a variant of an exercise; `old` says what the published version does, `change` makes its inputs."""
    original = published(name)
    said = f"This answers {name} as the published notebook asks it: {old} Read once more what this version asks."
    exercise = replace(
        original,
        id=f"{name}b",
        title=f"{original.title}, changed",
        reference=reference,
        cases=lambda: [Case(case.label, change(case.args)) for case in original.cases()],
        mistakes=(Mistake("as published", original.reference, said),),
        probes=(),
        part="",
        original=name,
    )
    return Variant(exercise, sentence)


@cache
def all_variants() -> dict[str, Variant]:
    """Return the variants, {id of the exercise that is changed: variant}."""
    return {changed.exercise.original: changed for changed in _all()}


def _all() -> tuple[Variant, ...]:
    """Return them one by one; called when they are first needed, as each looks up its exercise."""
    return (
        _variant(
            "01.1",
            nearest_key_lookup,
            "Return the value of the key with the *smallest* dot product.",
            "you return the value of the key with the largest.",
        ),
        _variant(
            "01.2",
            softmax,
            "The weights are proportional to *2* to the power of the score, in place of e.",
            "your weights are powers of e.",
        ),
        _variant(
            "01.5",
            kernel_regression,
            "The weights are `exp(-distance / bandwidth)`, with the *distance* itself: no square and no 2.",
            "your weights are Gaussian, with the square of the gap.",
        ),
        _variant(
            "02.2",
            cosine_weights,
            "The score of two tokens is minus their *squared distance*, divided by the temperature; "
            "there is no cosine.",
            "your scores are cosines.",
        ),
        _variant(
            "03.2",
            output_without,
            "Key j is not removed: it keeps *half* its weight before the rows are rescaled.",
            "you remove the key.",
        ),
        _variant(
            "03.5",
            head_sizes,
            "Each of the three projections has a bias, which is a parameter, too.",
            "you count the projections without biases.",
        ),
        _variant(
            "04.1",
            divisor,
            "Count *all* differences between the scores, also those that a softmax does not notice.",
            "you count what a softmax notices.",
        ),
        _variant(
            "04.4",
            masked_attention,
            "The mask is inverted: True means *hidden*. A query from which all is hidden gets zeros.",
            "to you, True means may attend.",
            _inverted_mask,
        ),
        _variant(
            "05.6",
            nearest_neighbours,
            "Near means a large *dot product*: lengths count.",
            "you compare by the cosine, in which lengths do not count.",
        ),
        _variant(
            "06.1",
            sinusoidal_table,
            "The cosines stand in the even columns, 0, 2, 4, …, and the sines in the odd ones.",
            "your sines stand in the even columns.",
        ),
        _variant(
            "06.6",
            relative_bias,
            "The offset is the position of the *query minus* that of the key.",
            "your offset is the key's position minus the query's.",
        ),
        _variant(
            "07.2",
            padding_mask,
            "The mask is inverted: True where the key is *padding*.",
            "your mask is True where the key is a real token.",
        ),
        _variant(
            "08.3",
            multi_head_attention,
            "The layer is *causal*: a token reads itself and those before it.",
            "your tokens also read those that come later.",
        ),
        _variant(
            "09.1",
            feed_forward,
            "In place of the ReLU, negative hidden units are *multiplied by 0.1*.",
            "you set negative hidden units to 0.",
        ),
        _variant(
            "09.3",
            layer_norm,
            "Divide by the *mean absolute deviation* plus eps, in place of the standard deviation. "
            "(That is the mean of the features' distances from their mean.)",
            "you divide by the standard deviation.",
        ),
        _variant(
            "10.1",
            encoder_layer,
            "The layer is *pre-norm*: each sub-layer reads normed rows, and the sums are not normed.",
            "your layer is post-norm.",
        ),
        _variant(
            "11.1",
            cross_attention,
            "The mask is inverted: True means *hidden*.",
            "to you, True means may be read.",
            _inverted_mask,
        ),
        _variant(
            "12.3",
            parameters,
            "Each of attention's four matrices has a bias.",
            "you count attention without biases.",
        ),
        _variant(
            "13.3",
            label_smoothed_loss,
            "Epsilon is shared by the *other* tokens alone; the label has 1 − epsilon and nothing more.",
            "your label gets its part of epsilon, too.",
        ),
    )
