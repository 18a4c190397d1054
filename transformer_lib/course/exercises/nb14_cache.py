"""Exercises of notebook 14, continued: one step of attention with a key/value cache."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def cached_step(x, keys, values, W_Q, W_K, W_V):
    """Return (output, keys, values) of one step of causal self-attention, one head, with a cache.

    x: [1, d_model], the newest token. keys: [t, d_k] and values: [t, d_v], of the t tokens before it (t may be 0).
    W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v]. The newest query reads all t + 1 tokens, its own included.
    Returns the output [1, d_v], and both caches with one more row, the newest last.
    """
    keys = torch.stack([*keys, (x @ W_K)[0]])
    values = torch.stack([*values, (x @ W_V)[0]])
    output = torch.nn.functional.scaled_dot_product_attention((x @ W_Q)[None], keys[None], values[None])
    return output[0], keys, values


def _cases():
    def case(label, seed, t, d_model, d_k, d_v):
        shapes = [(1, d_model), (t, d_k), (t, d_v), (d_model, d_k), (d_model, d_k), (d_model, d_v)]
        return Case(label, tuple(normal(seed, *shapes)))

    return [
        case("one token in the cache", 1, 1, 2, 3, 2),
        case("2 tokens in the cache", 2, 2, 3, 5, 7),
        case("7 tokens in the cache", 3, 7, 5, 3, 11),
        case("an empty cache", 4, 0, 3, 2, 5),
        case("d_k = d_v = d_model", 5, 5, 3, 3, 3),
    ]


def _step(scale=lambda x, k: k.shape[1] ** -0.5, read=lambda old, all_: all_, join=lambda old, new: (old, new)):
    """The step with one part exchanged for another; read(old, all) gives the rows that the query reads."""

    def function(x, keys, values, W_Q, W_K, W_V):
        all_keys, all_values = (torch.cat(join(old, x @ W)) for old, W in ((keys, W_K), (values, W_V)))
        scores = x @ W_Q @ read(keys, all_keys).T * scale(x, keys)
        return scores.softmax(-1) @ read(values, all_values), all_keys, all_values

    return function


def _not_kept(*args):
    return _step()(*args)[0], args[1], args[2]


def _exchanged(*args):
    output, keys, values = _step()(*args)
    return output, values, keys


def _later_key(x, keys, values, W_Q, W_K, W_V):
    """Score before the new key is stored, but blend with the new value: shapes only fit with zero padding."""
    scores = torch.cat([x @ W_Q @ keys.T, torch.zeros(1, 1)], dim=1) * keys.shape[1] ** -0.5
    all_keys, all_values = torch.cat([keys, x @ W_K]), torch.cat([values, x @ W_V])
    return scores.softmax(-1) @ all_values, all_keys, all_values


EXERCISES = (
    Exercise(
        "14.6",
        "One step with a cache",
        12,
        2,
        cached_step,
        _cases,
        (
            Mistake(
                "old only",
                _step(read=lambda old, all_: old),
                "The newest token does not read itself: append its key and value before you attend.",
            ),
            Mistake(
                "new only",
                _step(read=lambda old, all_: all_[-1:]),
                "The newest token reads only itself: let its query meet all keys kept so far.",
            ),
            Mistake(
                "not kept", _not_kept, "The output is right, but the caches did not grow: return them with the new row."
            ),
            Mistake(
                "in front",
                _step(join=lambda old, new: (new, old)),
                "You put the new row in front; the newest token comes last.",
            ),
            Mistake("no scaling", _step(scale=lambda x, k: 1.0), "You did not divide the scores by √d_k."),
            Mistake(
                "d_model",
                _step(scale=lambda x, k: x.shape[1] ** -0.5),
                "You divided by √d_model; the width of a key is d_k.",
            ),
            Mistake("exchanged", _exchanged, "You returned the values before the keys."),
            Mistake(
                "score of the new token 0",
                _later_key,
                "The newest token's own score is 0: append its key before you compute the scores.",
            ),
        ),
        returns=("output", "keys", "values"),
    ),
)
