"""Exercises of notebook 16: multiply-adds, the crossover length, the bytes of a cache, gradients of uneven parts."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def decoder_layer_multiply_adds(tgt_len, src_len, d_model, d_ff):
    """Return the multiply-adds of all matrix products of a decoder layer, for one sentence, as an int.

    Masked self-attention over tgt_len tokens, cross-attention from these to src_len rows of memory, feed-forward.
    All heads together are d_model wide. What the mask forbids is computed all the same.
    """
    own_projections = 4 * tgt_len * d_model * d_model
    own_pairs = 2 * tgt_len * tgt_len * d_model
    cross_projections = 2 * tgt_len * d_model * d_model + 2 * src_len * d_model * d_model
    cross_pairs = 2 * tgt_len * src_len * d_model
    return own_projections + own_pairs + cross_projections + cross_pairs + 2 * tgt_len * d_model * d_ff


def crossover_length(d_model, d_attention, d_ff):
    """Return the smallest length at which the pairs of an encoder layer take more multiply-adds than all the rest.

    d_attention: the width of all heads together (n_heads · d_k = n_heads · d_v), which may differ from d_model.
    Returns an int.
    """
    n = 1
    rest = 4 * d_model * d_attention + 2 * d_model * d_ff  # per token
    while 2 * n * d_attention <= rest:
        n += 1
    return n


def cache_bytes(tgt_len, src_len, n_layers, n_heads, d_k, d_v, batch, itemsize):
    """Return the bytes of a translator's key/value cache after tgt_len tokens, as an int.

    Each decoder layer keeps keys [batch, n_heads, tokens, d_k] and values [batch, n_heads, tokens, d_v] twice:
    of the tgt_len tokens for its self-attention, and of the src_len memory rows for its cross-attention.
    itemsize: bytes of one number.
    """
    per_token = n_heads * d_k + n_heads * d_v
    return (tgt_len + src_len) * per_token * n_layers * batch * itemsize


def joined_gradient(gradients, counts):
    """Return the gradient of the mean loss over all tokens, [n_parameters].

    The batch was split into parts. gradients: [n_parts, n_parameters], of each part's own mean loss over its real
    tokens. counts: [n_parts], how many real tokens each part has. A part without any has a gradient of zeros.
    """
    total = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        total = total + gradient * float(count)
    return total / float(counts.sum())


def _layer_cases():
    return [
        Case("2 target tokens, 3 source rows, d_model 2, d_ff 5", (2, 3, 2, 5)),
        Case("as many target tokens as source rows", (7, 7, 5, 11)),
        Case("a long source", (5, 1009, 3, 7)),
        Case("a long target", (1013, 2, 11, 3)),
        Case("one target token", (1, 13, 17, 5)),
        Case("the base model", (31, 37, 512, 2048)),
    ]


def _layer(
    own=4,
    pairs=2,
    cross=lambda t, s, m: 2 * t * m * m + 2 * s * m * m,
    mixed=2,
    ff=2,
    own_pairs=lambda t, s, m: t * t * m,
):
    def function(t, s, m, f):
        return own * t * m * m + pairs * own_pairs(t, s, m) + cross(t, s, m) + mixed * t * s * m + ff * t * m * f

    return function


def _crossover_cases():
    return [
        Case("d_model 2, heads 2, d_ff 3", (2, 2, 3)),
        Case("the base model", (512, 512, 2048)),
        Case("narrow heads", (17, 5, 31)),
        Case("wide heads", (11, 23, 13)),
        Case("d_ff smaller than d_model", (19, 19, 2)),
    ]


def _cache_cases():
    return [
        Case("3 target tokens, 2 source rows, one layer", (3, 2, 1, 2, 5, 5, 1, 4)),
        Case("d_k 3 and d_v 7", (11, 5, 2, 3, 3, 7, 1, 4)),
        Case("5 sentences in float16", (7, 13, 3, 2, 11, 11, 5, 2)),
        Case("before the first token", (0, 17, 2, 3, 5, 7, 3, 8)),
        Case("the base model", (29, 37, 6, 8, 64, 64, 1, 4)),
    ]


def _cache(right=lambda *a: cache_bytes(*a), change=lambda *a: a):
    return lambda *a: right(*change(*a))


def _gradient_cases():
    def case(label, seed, counts, n_parameters, zero=()):
        gradients = normal(seed, (len(counts), n_parameters), dtype=torch.float64)[0]
        gradients[list(zero)] = 0
        return Case(label, (gradients, torch.tensor(counts)))

    return [
        Case(
            "2 parts of 3 tokens and 1",
            (torch.tensor([[2.0, 4.0], [6.0, 0.0]], dtype=torch.float64), torch.tensor([3, 1])),
        ),
        case("3 parts, 5 parameters", 161, [2, 7, 11], 5),
        case("equal parts", 162, [5, 5], 3),
        case("one part", 163, [13], 7),
        case("a part of padding alone", 164, [3, 0, 17], 2, zero=(1,)),
    ]


EXERCISES = (
    Exercise(
        "16.1",
        "Multiply-adds of a decoder layer",
        10,
        1,
        decoder_layer_multiply_adds,
        _layer_cases,
        (
            Mistake(
                "no cross-attention",
                _layer(cross=lambda t, s, m: 0, mixed=0),
                "That is an encoder layer; the cross-attention is missing, projections and pairs.",
            ),
            Mistake(
                "no cross projections",
                _layer(cross=lambda t, s, m: 0),
                "The cross-attention has four projections of its own.",
            ),
            Mistake(
                "all from the target",
                _layer(cross=lambda t, s, m: 4 * t * m * m),
                "You projected tgt_len rows four times in the cross-attention; its keys and values are made from "
                "the src_len rows of memory.",
            ),
            Mistake(
                "all from the source",
                _layer(cross=lambda t, s, m: 4 * s * m * m),
                "You projected src_len rows four times in the cross-attention; its queries and its output have "
                "tgt_len rows.",
            ),
            Mistake(
                "square of the source",
                lambda t, s, m, f: _layer(mixed=0)(t, s, m, f) + 2 * s * s * m,
                "The pairs of the cross-attention are tgt_len · src_len: every target token with every row.",
            ),
            Mistake(
                "no blends",
                _layer(pairs=1, mixed=1),
                "The pairs are used twice, in the scores and in the blend of the values.",
            ),
            Mistake(
                "half of the pairs",
                _layer(own_pairs=lambda t, s, m: t * (t + 1) / 2 * m),
                "You left out the pairs behind the causal mask; here they are computed, and then hidden.",
            ),
            Mistake("one matrix", _layer(ff=1), "The feed-forward network has two matrices, d_model × d_ff and back."),
            Mistake(
                "twice",
                lambda *a: 2 * _layer()(*a),
                "You counted multiplications and additions apart: a multiply-add is one.",
            ),
        ),
    ),
    Exercise(
        "16.2",
        "Where the pairs take over",
        10,
        2,
        crossover_length,
        _crossover_cases,
        (
            Mistake(
                "equal",
                lambda m, a, f: 2 * m + m * f // a,
                "One too small: the pairs must take more than the rest, not as much.",
            ),
            Mistake(
                "rounded up",
                lambda m, a, f: -(-(2 * m * a + m * f) // a),
                "Right where the two sides never meet; where they are equal at a whole length, go one further.",
            ),
            Mistake(
                "projections alone",
                lambda m, a, f: 2 * m + 1,
                "That is where the pairs overtake the projections; the feed-forward network is missing.",
            ),
            Mistake(
                "same width",
                lambda m, a, f: 2 * m + f + 1,
                "That is right for d_attention = d_model only. The pairs cost 2n² · d_attention, the projections "
                "4n · d_model · d_attention.",
            ),
            Mistake(
                "scores alone",
                lambda m, a, f: 2 * (2 * m + m * f / a) // 1 + 1,
                "You counted the scores and forgot the blend of the values, which costs as much again.",
            ),
            Mistake(
                "one matrix",
                lambda m, a, f: 2 * m + m * f // (2 * a) + 1,
                "The feed-forward network has two matrices of d_model · d_ff.",
            ),
            Mistake(
                "widths of attention",
                lambda m, a, f: 2 * a + f + 1,
                "You used d_attention for d_model in the rest: a projection has d_model · d_attention numbers, "
                "the feed-forward network d_model · d_ff.",
            ),
        ),
    ),
    Exercise(
        "16.5",
        "The bytes of a cache",
        8,
        1,
        cache_bytes,
        _cache_cases,
        (
            Mistake(
                "keys alone",
                _cache(change=lambda t, s, n, h, k, v, b, i: (t, s, n, h, k, 0, b, i)),
                "The values are kept as well as the keys.",
            ),
            Mistake(
                "no memory",
                _cache(change=lambda t, s, *rest: (t, 0, *rest)),
                "The keys and values of the memory are missing, src_len rows per layer.",
            ),
            Mistake(
                "one layer",
                _cache(change=lambda t, s, n, *rest: (t, s, 1, *rest)),
                "Each layer has keys and values of its own.",
            ),
            Mistake(
                "one head",
                _cache(change=lambda t, s, n, h, *rest: (t, s, n, 1, *rest)),
                "Each head has keys and values of its own; d_k and d_v are the widths of one.",
            ),
            Mistake(
                "numbers", _cache(change=lambda *a: (*a[:7], 1)), "You counted numbers; each takes itemsize bytes."
            ),
            Mistake(
                "one sentence",
                _cache(change=lambda *a: (*a[:6], 1, a[7])),
                "Every sentence of the batch has a cache of its own.",
            ),
            Mistake(
                "d_k twice",
                _cache(change=lambda t, s, n, h, k, v, b, i: (t, s, n, h, k, k, b, i)),
                "You took d_k for the width of the values; it is d_v.",
            ),
            Mistake(
                "pairs",
                _cache(change=lambda t, s, *rest: (t * t, t * s, *rest)),
                "You counted pairs of tokens. The scores are not kept: a cache has one key and one value a token.",
            ),
        ),
    ),
    Exercise(
        "16.6",
        "One gradient from uneven parts",
        10,
        2,
        joined_gradient,
        _gradient_cases,
        (
            Mistake(
                "mean",
                lambda g, c: g.mean(0),
                "A plain mean counts every part alike, so a token in a short part weighs more: weight by tokens.",
            ),
            Mistake(
                "sum",
                lambda g, c: g.sum(0),
                "You added the gradients of means; weight each by its tokens and divide by all tokens.",
            ),
            Mistake(
                "not divided",
                lambda g, c: (g * c[:, None]).sum(0),
                "That is the gradient of the summed loss; divide by the number of all tokens.",
            ),
            Mistake(
                "divided by the parts",
                lambda g, c: (g * c[:, None]).mean(0),
                "You divided by the number of parts; divide by the number of all tokens.",
            ),
            Mistake(
                "inverse",
                lambda g, c: (g / c.clamp(min=1)[:, None]).sum(0),
                "You divided each gradient by its count; it is a mean already. Undo that mean: multiply.",
            ),
            Mistake(
                "non-empty parts",
                lambda g, c: g.sum(0) / (c > 0).sum(),
                "You left out the parts without tokens, and then counted the others alike. Weight by tokens.",
            ),
            Mistake(
                "largest",
                lambda g, c: (g * c[:, None]).sum(0) / c.max(),
                "You divided by the longest part's tokens; divide by the number of all tokens.",
            ),
        ),
        rtol=1e-5,  # shares of counts are float32 unless one asks for more
    ),
)
