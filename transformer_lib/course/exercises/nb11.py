"""Exercises of notebook 11: cross-attention, and the mask of the memory."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def cross_attention(x, memory, W_Q, W_K, W_V, memory_mask):
    """Return the output of one head of cross-attention: x asks, memory is read.

    x: [batch, tgt_len, d_model]; memory: [batch, src_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v];
    memory_mask: booleans [batch, 1, src_len], True = may be read. Returns [batch, tgt_len, d_v].
    """
    scores = torch.einsum("bic,bjc->bij", x @ W_Q, memory @ W_K) / W_K.shape[1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~memory_mask, -torch.inf), dim=-1)
    return torch.einsum("bij,bjc->bic", weights, memory @ W_V)


def memory_mask_from_lengths(src_lengths, src_len):
    """Return the mask of the memory as booleans [batch, 1, 1, src_len], True = may attend.

    src_lengths: [batch] integers, how many tokens of each source sentence are real; they come first.
    src_len: an int, the length to which all are filled up.
    """
    return torch.tensor([[[[j < length for j in range(src_len)]]] for length in src_lengths.tolist()])


def _attention_case(label, seed, batch, tgt_len, src_len, d_model, d_k, d_v, hidden=0):
    x, memory, *matrices = normal(
        seed, (batch, tgt_len, d_model), (batch, src_len, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v)
    )
    mask = torch.ones(batch, 1, src_len, dtype=torch.bool)
    if hidden:
        mask[0, :, -hidden:] = False  # the first sentence is shorter than the others
    return Case(label, (x, memory, *(W / d_model**0.5 for W in matrices), mask))


def _attention_cases():
    return [
        _attention_case("2 queries, 3 memory rows", 110, 1, 2, 3, 2, 2, 2),
        _attention_case("3 queries, 5 rows of which 2 are padding", 111, 1, 3, 5, 7, 3, 2, hidden=2),
        _attention_case("2 sentences, one with padding", 112, 2, 5, 7, 11, 3, 5, hidden=3),
        _attention_case("as many queries as rows", 113, 3, 5, 5, 7, 2, 7, hidden=1),
        _attention_case("one query, as in decoding", 114, 2, 1, 7, 5, 3, 2),
        _attention_case("more queries than rows", 115, 1, 7, 2, 3, 5, 3),
    ]


def _length_cases():
    return [
        Case("lengths 2 and 1 of 2", (torch.tensor([2, 1]), 2)),
        Case("lengths 3, 5 and 2 of 5", (torch.tensor([3, 5, 2]), 5)),
        Case("nobody fills the row", (torch.tensor([3, 2]), 7)),
        Case("one sentence", (torch.tensor([5]), 11)),
        Case("as many sentences as places", (torch.tensor([1, 3, 2, 5, 4]), 5)),
    ]


def _cross(
    query="x",
    key="memory",
    value="memory",
    scale=lambda W: W.shape[1] ** 0.5,
    axis=-1,
    hide=lambda m: ~m,
    fill=-torch.inf,
):
    """One head of cross-attention, each slip a switch."""

    def function(x, memory, W_Q, W_K, W_V, memory_mask):
        source = {"x": x, "memory": memory, "projected": memory @ W_K}
        q, k = source[query] @ W_Q, source[key] @ W_K
        v = source["projected"] if value == "projected" else source[value] @ W_V
        scores = (q @ k.mT / scale(W_K)).masked_fill(hide(memory_mask), fill)
        return torch.softmax(scores, dim=axis) @ v

    return function


def _after_softmax(x, memory, W_Q, W_K, W_V, memory_mask):
    weights = torch.softmax((x @ W_Q) @ (memory @ W_K).mT / W_K.shape[1] ** 0.5, dim=-1)
    return weights * memory_mask @ (memory @ W_V)


def _real(lengths, size):
    return torch.arange(size) < lengths[:, None]


EXERCISES = (
    Exercise(
        "11.1",
        "One head of cross-attention",
        10,
        1,
        cross_attention,
        _attention_cases,
        (
            Mistake(
                "swapped",
                _cross("memory", "x", "x", hide=lambda m: torch.zeros(m.shape[0], 1, 1).bool()),
                "The roles are exchanged: x asks, so the queries come from x, and keys and values from memory.",
            ),
            Mistake(
                "self-attention",
                _cross(key="x", value="x", hide=lambda m: torch.zeros(m.shape[0], 1, 1).bool()),
                "That is self-attention: keys and values must come from memory.",
            ),
            Mistake("queries from memory", _cross(query="memory"), "The queries come from memory; it is x that asks."),
            Mistake("unscaled", _cross(scale=lambda W: 1.0), "The scores are not divided by √d_k."),
            Mistake(
                "d_model",
                _cross(scale=lambda W: W.shape[0] ** 0.5),
                "You divided by √d_model; d_k is the width of a key.",
            ),
            Mistake("axis", _cross(axis=-2), "The softmax runs over the queries; the memory rows are the last axis."),
            Mistake(
                "no mask",
                _cross(hide=torch.zeros_like),
                "Padding of the source is read: use memory_mask before the softmax.",
            ),
            Mistake(
                "after the softmax",
                _after_softmax,
                "You removed the padding's weights after the softmax, so the rest no longer sums to one: set the "
                "scores to −∞ before it.",
            ),
            Mistake("inverted", _cross(hide=lambda m: m), "The mask is the wrong way round: True means may be read."),
            Mistake(
                "inverted, a large number",
                _cross(hide=lambda m: m, fill=-1e9),
                "The mask is the wrong way round: True means may be read, so the large negative score belongs "
                "where it is False.",
            ),
            Mistake(
                "unprojected",
                lambda x, memory, W_Q, W_K, W_V, m: _cross()(x, memory, W_Q, W_K, torch.eye(memory.shape[2]), m),
                "The values are memory itself; project it by W_V.",
            ),
        ),
        gradients=("x", "memory", "W_Q", "W_K", "W_V"),
    ),
    Exercise(
        "11.4",
        "A memory mask from lengths",
        8,
        1,
        memory_mask_from_lengths,
        _length_cases,
        (
            Mistake(
                "inverted",
                lambda n, size: ~_real(n, size)[:, None, None],
                "The mask is the wrong way round: real tokens are True.",
            ),
            Mistake(
                "one too many",
                lambda n, size: _real(n + 1, size)[:, None, None],
                "One padding token is readable: places count from 0, so the last real one is length − 1.",
            ),
            Mistake("one too few", lambda n, size: _real(n - 1, size)[:, None, None], "The last real token is hidden."),
            Mistake(
                "from the front",
                lambda n, size: _real(n, size).flip(1)[:, None, None],
                "The real tokens stand first; you hid the front.",
            ),
            Mistake(
                "causal",
                lambda n, size: (
                    torch.ones(size, size).tril().bool()[n - 1][:, None, None]
                    & (torch.arange(size) == n[:, None] - 1)[:, None, None]
                ),
                "Only the last real token is readable; all real ones are.",
            ),
            Mistake(
                "two axes",
                lambda n, size: _real(n, size),
                "The shape must be [batch, 1, 1, src_len], so that the mask spreads over heads and queries.",
            ),
            Mistake(
                "as queries",
                lambda n, size: _real(n, size)[:, None, :, None],
                "Your mask hides queries (rows): the memory rows are keys, the last axis.",
            ),
            Mistake(
                "numbers",
                lambda n, size: _real(n, size)[:, None, None].float(),
                "The mask holds numbers; it must be boolean (torch.bool).",
            ),
        ),
    ),
)
