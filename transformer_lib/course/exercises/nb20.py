"""The exercises of notebook 20: the parts of today's block."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, normal
from .slips import slips

F = torch.nn.functional

INF = float("inf")


# 20.1 RMSNorm --------------------------------------------------------------------------------------------------------


def rms_norm(x, gain, eps):
    """Return each token divided by its root mean square, times the gain; no mean is taken off.

    x: [..., d_model]; gain: [d_model]; eps: a number added to the mean square, before the root.
    """
    mean_square = torch.einsum("...d,...d->...", x, x) / x.shape[-1]
    return x * torch.rsqrt(mean_square + eps).unsqueeze(-1) * gain


def _norm_cases():
    def case(label, seed, shape, eps=1e-6, size=1.0, mean=0.0):
        x, gain = normal(seed, shape, shape[-1:])
        return Case(label, (mean + size * x, gain, eps))

    return [
        case("one token of 5 features", 2001, (1, 5)),
        case("3 tokens of 7 features, far from 0", 2002, (3, 7), mean=2.0),
        case("2 sentences of 5 tokens of 11 features", 2003, (2, 5, 11)),
        case("a large eps of 0.3", 2004, (3, 5), eps=0.3),
        case("small numbers, eps = 0.01", 2005, (2, 3, 5), eps=0.01, size=0.05),
        case("large numbers", 2006, (3, 13), size=30.0),
    ]


EXERCISE_1 = Exercise(
    "20.1", "RMSNorm", 6, 1, rms_norm, _norm_cases,
    slips(
        "x, gain, eps", """
            mean_square = x.square().mean(-1, keepdim=True)
            return x / (mean_square + eps).sqrt() * gain
        """,
        ("layer norm", "mean_square = x", "x = x - x.mean(-1, keepdim=True)\nmean_square = x",
         "You took the mean off first, which is layer normalisation; RMSNorm leaves the mean where it is."),
        ("length", "mean(-1", "sum(-1",
         "You divided by the length of the vector, the root of the sum of squares; take their mean."),
        ("eps outside", "(mean_square + eps).sqrt()", "(mean_square.sqrt() + eps)",
         "eps is added after the root; add it to the mean square, before the root."),
        ("an eps of one's own", "+ eps", "+ 1e-6", "You took an eps of your own; it is an argument."),
        ("over axis 1", "mean(-1", "mean(1",
         "The mean runs over the last axis, the features, however many axes come before it."),
        ("over the whole tensor", "mean(-1, keepdim=True)", "mean()",
         "All tokens share one root mean square; each has its own: mean(dim=-1, keepdim=True)."),
        ("1 + gain", "* gain", "* (1 + gain)",
         "You multiplied by 1 + gain, as do models that store the gain's distance from 1; here gain is the factor."),
    ),
    gradients=("x", "gain"), part="rms_norm",
)  # fmt: skip


# 20.2 SwiGLU ---------------------------------------------------------------------------------------------------------


def swiglu(x, W_gate, W_up, W_down):
    """Return the gated feed-forward of each token: silu of x W_gate, times x W_up, times the matrix W_down.

    x: [..., d_model]; W_gate, W_up: [d_model, d_ff]; W_down: [d_ff, d_model]. silu(z) = z · sigmoid(z), number by
    number. No biases.
    """
    z = torch.matmul(x, W_gate)
    return torch.matmul(torch.mul(z / (1 + torch.exp(-z)), torch.matmul(x, W_up)), W_down)


def _gated_cases():
    def case(label, seed, shape, d_ff):
        d = shape[-1]
        return Case(label, tuple(normal(seed, shape, (d, d_ff), (d, d_ff), (d_ff, d))))

    return [
        case("one token, 3 features, 5 units", 2010, (1, 3), 5),
        case("5 tokens, 3 features, 7 units", 2011, (5, 3), 7),
        case("2 sentences of 3 tokens, 5 features, 11 units", 2012, (2, 3, 5), 11),
        case("fewer units than features", 2013, (3, 7), 2),
        case("as many units as features", 2014, (2, 5), 5),
    ]


EXERCISE_2 = Exercise(
    "20.2", "SwiGLU", 6, 1, swiglu, _gated_cases,
    slips(
        "x, W_gate, W_up, W_down", """
            gate, up = x @ W_gate, x @ W_up
            return (F.silu(gate) * up) @ W_down
        """,
        ("gate and up swapped", "gate, up =", "up, gate =",
         "gate and up are swapped: silu is applied to x @ W_gate, and x @ W_up stays as it is."),
        ("sigmoid", "F.silu(gate)", "gate.sigmoid()",
         "Your gate is sigmoid(x @ W_gate), that of the first gated linear unit; silu(z) is z · sigmoid(z)."),
        ("relu", "F.silu(gate)", "gate.relu()", "Your gate is a ReLU; here it is silu(z) = z · sigmoid(z)."),
        ("gelu", "F.silu(gate)", "F.gelu(gate)", "Your gate is a GELU; here it is silu(z) = z · sigmoid(z)."),
        ("silu after the product", "(F.silu(gate) * up)", "F.silu(gate * up)",
         "silu is applied to the product of both; apply it to x @ W_gate alone, before you multiply."),
        F=F,
    ),
    gradients=("x", "W_gate", "W_up", "W_down"), part="swiglu",
)  # fmt: skip


# 20.3 Grouped-query attention ----------------------------------------------------------------------------------------


def grouped_attention(query, key, value, mask):
    """Return the outputs of attention [batch, n_heads, q_len, d] with fewer heads of keys and values than of queries.

    query: [batch, n_heads, q_len, d]; key, value: [batch, n_kv_heads, k_len, d]; n_heads is a multiple of n_kv_heads.
    The first n_heads / n_kv_heads heads of queries share the first head of keys and values, the next ones the second,
    and so on. Scores are divided by √d. mask: booleans [q_len, k_len], True = may see; every query sees something.
    """
    size = query.shape[1] // key.shape[1]
    outputs = []
    for head in range(query.shape[1]):
        scores = query[:, head] @ key[:, head // size].mT / math.sqrt(query.shape[-1])
        outputs.append(torch.where(mask, scores, -INF).softmax(-1) @ value[:, head // size])
    return torch.stack(outputs, dim=1)


def _causal(q_len, k_len):
    return torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)


def _in_window(q_len, k_len, window=2):
    return _causal(q_len, k_len).triu(k_len - q_len + 1 - window)


def _with_gaps(q_len, k_len):
    """Every second key, earlier or later, and one's own."""
    back = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
    return back % 2 == 0


def _grouped_cases():
    def case(label, seed, n_heads, n_kv_heads, q_len, k_len, d, batch=2, mask=_causal):
        shapes = ((batch, n_heads, q_len, d), (batch, n_kv_heads, k_len, d), (batch, n_kv_heads, k_len, d))
        return Case(label, (*normal(seed, *shapes), mask(q_len, k_len)))

    return [
        case("one sentence, 4 heads of queries, 2 of keys", 2020, 4, 2, 3, 3, 5, batch=1),
        case("6 heads of queries, 2 of keys", 2021, 6, 2, 5, 5, 3),
        case("6 heads of queries, 3 of keys", 2022, 6, 3, 5, 5, 7, batch=3),
        case("one head of keys for all 5", 2023, 5, 1, 3, 3, 2),
        case("as many heads of keys as of queries", 2024, 3, 3, 5, 5, 7),
        case("2 new tokens after 5, 4 heads and 2", 2025, 4, 2, 2, 7, 3),
        case("a window of 2, 4 heads and 2", 2026, 4, 2, 5, 5, 3, mask=_in_window),
        case("every second key, later ones too, 6 heads and 3", 2027, 6, 3, 5, 5, 2, batch=1, mask=_with_gaps),
        _low_case(),
    ]


def _low_case():
    """Return a case with scores near -100 for keys that may be seen, and near 70 for a hidden one."""
    query, key, value = normal(2028, (1, 2, 3, 3), (1, 1, 3, 3), (1, 1, 3, 3))
    aim, scores = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([-101.0, -100.0, 70.0])
    query, key = 10 * aim + 0.1 * query, scores[:, None] * math.sqrt(3) / 10 * aim + 0.1 * key
    return Case("readable scores near -100, and a hidden one of 70", (query, key, value, _causal(3, 3)))


EXERCISE_3 = Exercise(
    "20.3", "Grouped-query attention", 10, 2, grouped_attention, _grouped_cases,
    slips(
        "query, key, value, mask", """
            size = query.shape[1] // key.shape[1]
            keys, values = (heads.repeat_interleave(size, dim=1) for heads in (key, value))
            scores = query @ keys.mT / query.shape[-1] ** 0.5
            weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
            return weights @ values
        """,
        ("dealt in turn", "heads.repeat_interleave(size, dim=1)", "heads.repeat(1, size, 1, 1)",
         "The heads of keys are dealt out in turn, 0, 1, 0, 1; neighbours share one, 0, 0, 1, 1: repeat_interleave "
         "rather than repeat."),
        ("the first head for all", "heads.repeat_interleave(size, dim=1)", "heads[:, :1]",
         "All queries read the first head of keys and values; each group has its own."),
        ("no scale", " / query.shape[-1] ** 0.5", "", "The scores are not divided by √d."),
        ("no mask", ".masked_fill(~mask, -math.inf)", "", "The mask is not used: hidden keys are seen."),
        ("own causal mask", "~mask", "torch.ones_like(mask).triu(1 + mask.shape[1] - mask.shape[0])",
         "You made a causal mask of your own; use the one that is given, which may be another."),
        ("inverted mask, with -inf", "~mask", "mask",
         "The mask is used the wrong way round: True means may see, and what is False becomes -inf."),
        ("mask after the softmax", "scores.masked_fill(~mask, -math.inf).softmax(-1)", "scores.softmax(-1) * mask",
         "You hid weights after the softmax, so the others do not sum to 1; hide scores, before it."),
        ("zeros for hidden", "scores.masked_fill(~mask, -math.inf)", "(scores * mask)",
         "Hidden scores became 0, but e^0 = 1 is not a small weight; set them to -inf."),
        ("merged", "weights @ values", "(weights @ values).transpose(1, 2).flatten(2)",
         "You have merged the heads already; return them one by one, [batch, n_heads, q_len, d]."),
    ),
    gradients=("query", "key", "value"), part="grouped_attention",
)  # fmt: skip


# 20.4 The sliding window ---------------------------------------------------------------------------------------------


def window_mask(q_len, k_len, window):
    """Return booleans [q_len, k_len], True = may see: each query sees itself and the window - 1 tokens before it.

    The keys have the positions 0 to k_len - 1, and the queries the last q_len of them.
    """
    rows = []
    for position in range(k_len - q_len, k_len):
        rows.append([position - window < key <= position for key in range(k_len)])
    return torch.tensor(rows)


def _window_cases():
    def case(label, *sizes):
        return Case(label, sizes)

    return [
        case("5 tokens, a window of 2", 5, 5, 2),
        case("7 tokens, a window of 3", 7, 7, 3),
        case("a window of 1: itself alone", 3, 3, 1),
        case("a window longer than the text", 5, 5, 11),
        case("2 new tokens after 5, a window of 3", 2, 7, 3),
        case("one new token after 10, a window of 5", 1, 11, 5),
        case("5 new tokens after 2, a window of 2", 5, 7, 2),
    ]


EXERCISE_4 = Exercise(
    "20.4", "The sliding window", 10, 2, window_mask, _window_cases,
    slips(
        "q_len, k_len, window", """
            queries = torch.arange(k_len - q_len, k_len)
            back = queries[:, None] - torch.arange(k_len)
            return (back >= 0) & (back < window)
        """,
        ("one too long", "< window", "<= window",
         "Your window is one key too long: a query sees itself and window - 1 earlier tokens, window keys in all."),
        ("one too short", "< window", "< window - 1",
         "Your window is one key too short: a query sees itself and window - 1 earlier tokens, window keys in all."),
        ("not itself", "(back >= 0) & (back < window)", "(back > 0) & (back <= window)",
         "A query does not see itself in your mask; its own token is part of the window."),
        ("not causal", "(back >= 0) & (back < window)", "back < window",
         "All later tokens are seen, too; a key must be at least 0 positions back."),
        ("both sides", "(back >= 0) & (back < window)", "back.abs() < window",
         "Your window reaches to the right, too; later tokens must stay hidden."),
        ("inverted", "(back >= 0) & (back < window)", "(back < 0) | (back >= window)",
         "The mask is the wrong way round: True means may see."),
        ("queries from 0", "torch.arange(k_len - q_len, k_len)", "torch.arange(q_len)",
         "Your queries start at position 0; theirs are the last q_len of the k_len positions."),
        ("only new keys", "queries = torch", "k_len = q_len\nqueries = torch",
         "Only the new tokens have columns; earlier keys, those of the cache, need theirs as well."),
    ),
    part="window_mask",
)  # fmt: skip


# 20.5 Rotary positions by halves -------------------------------------------------------------------------------------


def rotate_halves(x, positions, base):
    """Return x [..., seq_len, d] with feature j and feature j + d/2 of each token turned as a pair (a, b).

    positions: [seq_len]; base: a number. At position p pair j, for j from 0 to d/2 - 1, turns by the angle
    p · base^(-2 j / d) to (a cos - b sin, a sin + b cos). d is even.
    """
    half = x.shape[-1] // 2
    omega = torch.tensor([base ** (-2 * j / x.shape[-1]) for j in range(half)])
    turn = torch.polar(torch.ones(len(positions), half), positions[:, None] * omega)
    turned = torch.complex(x[..., :half], x[..., half:]) * turn
    return torch.cat([turned.real, turned.imag], dim=-1)


def _rotary_cases():
    def case(label, seed, shape, base=10000.0, start=0, step=1):
        positions = start + step * torch.arange(shape[-2])
        return Case(label, (normal(seed, shape)[0], positions, base))

    return [
        case("2 tokens, 4 features", 2040, (2, 4)),
        case("5 tokens, 6 features, base 100", 2041, (5, 6), base=100.0),
        case("2 sentences of 3 heads, 7 tokens, 10 features", 2042, (2, 3, 7, 10)),
        case("3 tokens from position 11 on, base 500000", 2043, (3, 6), base=500000.0, start=11),
        case("every second position", 2044, (5, 4), base=50.0, step=2),
        case("one single pair", 2045, (3, 2)),
    ]


EXERCISE_5 = Exercise(
    "20.5", "Rotary positions by halves", 8, 2, rotate_halves, _rotary_cases,
    slips(
        "x, positions, base", """
            d = x.shape[-1]
            angle = positions[:, None] * base ** (-2 * torch.arange(d // 2) / d)
            cos, sin = angle.cos(), angle.sin()
            a, b = x.chunk(2, dim=-1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
        """,
        ("neighbours", "x.chunk(2, dim=-1)\nreturn torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)",
         "x[..., ::2], x[..., 1::2]\nreturn torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)",
         "You paired neighbours, features 2j and 2j + 1, as in 06.5; here feature j belongs to feature j + d/2."),
        ("the new a", "return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)",
         "a = a * cos - b * sin\nb = a * sin + b * cos\nreturn torch.cat([a, b], dim=-1)",
         "The second of the pair uses the a that was already turned; both must use the old one."),
        ("exponent j / d", "-2 * torch", "-torch", "Your angles shrink too slowly: the exponent is -2 j / d."),
        ("base 10000", "base", "10000.0", "You took 10000 for the base; it is an argument."),
        ("places for positions", "positions", "torch.arange(len(positions))",
         "You counted the rows from 0; the positions are given, and may begin later."),
    )
    + slips(
        "x, positions, base", """
            angle = positions[:, None] * base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
            angle = torch.cat([angle, angle], dim=-1)
            a, b = x.chunk(2, dim=-1)
            return x * angle.cos() + torch.cat([-b, a], dim=-1) * angle.sin()
        """,
        ("angles of neighbours", "torch.cat([angle, angle], dim=-1)", "angle.repeat_interleave(2, dim=-1)",
         "The halves are paired, but each angle is repeated side by side; features j and j + d/2 share one angle."),
        ("backwards", "[-b, a]", "[b, -a]", "You turned the other way: (a cos - b sin, a sin + b cos)."),
    ),
    gradients=("x",), part="rotate_halves",
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
