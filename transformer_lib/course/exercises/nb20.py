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
    "20.1", "What does it divide by?", 5, 1, rms_norm, _norm_cases,
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
    "20.2", "From one unit to all", 5, 1, swiglu, _gated_cases,
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
        ("no gate", "F.silu(gate) * up", "F.silu(up)",
         "There is no gate: W_gate is never used. Each unit is silu of one sum, times another sum."),
        ("nothing to let through", "F.silu(gate) * up", "F.silu(gate)",
         "W_up is never used: there is a gate, and nothing that it lets through."),
        ("added", "F.silu(gate) * up", "F.silu(gate) + up", "The two are added; a gate multiplies."),
        ("silu of both", "F.silu(gate) * up", "F.silu(gate) * F.silu(up)",
         "silu is applied to both sums; the second one, x @ W_up, stays as it is."),
        ("silu of x", "gate, up = x @ W_gate, x @ W_up\nreturn (F.silu(gate) * up)",
         "return ((F.silu(x) @ W_gate) * (x @ W_up))",
         "silu is applied to x; apply it to the sums, x @ W_gate, number by number."),
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
    "20.3", "Grouped-query attention", 7, 2, grouped_attention, _grouped_cases,
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
    "20.4", "The sliding window", 5, 2, window_mask, _window_cases,
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
    "20.5", "Rotary positions by halves", 6, 2, rotate_halves, _rotary_cases,
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


# 20.6 The block, whole -----------------------------------------------------------------------------------------------


def today_block(x, weights, n_heads, n_kv_heads, window, base, eps):
    """Return [batch, seq_len, d_model]: what today's block makes of x [batch, seq_len, d_model].

    weights: a tuple with the gain of the first norm [d_model]; W_Q [d_model, n_heads * d]; W_K and W_V
    [d_model, n_kv_heads * d]; W_O [n_heads * d, d_model]; the gains of queries and keys [d]; the gain of the second
    norm [d_model]; W_gate and W_up [d_model, d_ff]; W_down [d_ff, d_model]. Every norm is an RMSNorm with eps.
    """
    gain_1, W_Q, W_K, W_V, W_O, gain_q, gain_k, gain_2, W_gate, W_up, W_down = weights
    batch, n, _ = x.shape
    normed = rms_norm(x, gain_1, eps)
    query = (normed @ W_Q).view(batch, n, n_heads, -1).transpose(1, 2)
    key = (normed @ W_K).view(batch, n, n_kv_heads, -1).transpose(1, 2)
    value = (normed @ W_V).view(batch, n, n_kv_heads, -1).transpose(1, 2)
    places = torch.arange(n)
    query = rotate_halves(rms_norm(query, gain_q, eps), places, base)
    key = rotate_halves(rms_norm(key, gain_k, eps), places, base)
    output = grouped_attention(query, key, value, window_mask(n, n, window))
    x = x + output.transpose(1, 2).reshape(batch, n, -1) @ W_O
    return x + swiglu(rms_norm(x, gain_2, eps), W_gate, W_up, W_down)


def _block_cases():
    def case(label, seed, batch, n, d_model, heads, kv_heads, d, d_ff, window, base=10000.0, eps=1e-6):
        x, gain_1, q, k, v, o, gain_q, gain_k, gain_2, gate, up, down = normal(
            seed, (batch, n, d_model), (d_model,), (d_model, heads * d), (d_model, kv_heads * d),
            (d_model, kv_heads * d), (heads * d, d_model), (d,), (d,), (d_model,), (d_model, d_ff), (d_model, d_ff),
            (d_ff, d_model),
        )  # fmt: skip
        weights = (1 + gain_1 / 4, q / 2, k / 2, v / 2, o / 2, 1 + gain_q / 4, 1 + gain_k / 4, 1 + gain_2 / 4)
        return Case(label, (x, (*weights, gate / 2, up / 2, down / 2), heads, kv_heads, window, base, eps))

    return [
        case("one sentence, 4 heads of queries, 2 of keys", 2060, 1, 5, 8, 4, 2, 2, 7, 11),
        case("6 heads and 2, a window of 3", 2061, 2, 7, 5, 6, 2, 4, 11, 3, base=100.0),
        case("as many heads of keys as of queries", 2062, 3, 5, 6, 3, 3, 2, 5, 2, base=50.0),
        case("one head of keys for all, a large eps", 2063, 2, 3, 7, 5, 1, 6, 3, 13, eps=0.3),
        case("a single token", 2064, 2, 1, 3, 2, 1, 2, 5, 1),
    ]


_BLOCK = """
    gain_1, W_Q, W_K, W_V, W_O, gain_q, gain_k, gain_2, W_gate, W_up, W_down = weights
    n = x.shape[1]
    mask, positions = window_mask(n, n, window), torch.arange(n)

    def heads(z, number):
        return z.unflatten(-1, (number, -1)).transpose(1, 2)

    def turned(z, gain):
        return rotate_halves(rms_norm(z, gain, eps), positions, base)

    normed = rms_norm(x, gain_1, eps)
    query = turned(heads(normed @ W_Q, n_heads), gain_q)
    key = turned(heads(normed @ W_K, n_kv_heads), gain_k)
    value = heads(normed @ W_V, n_kv_heads)
    output = grouped_attention(query, key, value, mask)
    x = x + output.transpose(1, 2).flatten(2) @ W_O
    return x + swiglu(rms_norm(x, gain_2, eps), W_gate, W_up, W_down)
"""
_PARTS = {
    "rms_norm": rms_norm,
    "swiglu": swiglu,
    "grouped_attention": grouped_attention,
    "window_mask": window_mask,
    "rotate_halves": rotate_halves,
}

EXERCISE_6 = Exercise(
    "20.6", "The whole block", 12, 2, today_block, _block_cases,
    slips(
        "x, weights, n_heads, n_kv_heads, window, base, eps", _BLOCK,
        ("post-norm", "swiglu(rms_norm(x, gain_2, eps), ", "swiglu(x, ",
         "The feed-forward network reads x as it is; in front of it, too, there is a norm."),
        ("no first norm", "normed = rms_norm(x, gain_1, eps)", "normed = x",
         "Attention reads x as it is; it should read the normed x."),
        ("gains swapped", "normed = rms_norm(x, gain_1, eps)", "normed = rms_norm(x, gain_2, eps)",
         "The first norm has the gain of the second."),
        ("stream normed", "normed = rms_norm(x, gain_1, eps)", "x = normed = rms_norm(x, gain_1, eps)",
         "You added attention's output to the *normed* x; on the residual stream itself there is no norm."),
        ("no residual around attention", "x = x + output", "x = output",
         "Attention's output replaces x; it is added to it."),
        ("no residual around the feed-forward network", "return x + swiglu", "return swiglu",
         "The feed-forward network's output replaces x; it is added to it."),
        ("value turned", "value = heads(normed @ W_V, n_kv_heads)",
         "value = rotate_halves(heads(normed @ W_V, n_kv_heads), positions, base)",
         "The values are turned, too; positions belong to queries and keys, which make the scores."),
        ("value normed", "value = heads(normed @ W_V, n_kv_heads)",
         "value = rms_norm(heads(normed @ W_V, n_kv_heads), 1.0, eps)",
         "The values are normed, too; QK-norm is for queries and keys."),
        ("turned, then normed", "rotate_halves(rms_norm(z, gain, eps), positions, base)",
         "rms_norm(rotate_halves(z, positions, base), gain, eps)",
         "You turned first and normed then: the gains meet features that are already mixed. The norm comes first."),
        ("not turned", "rotate_halves(rms_norm(z, gain, eps), positions, base)", "rms_norm(z, gain, eps)",
         "Queries and keys are not turned: the block does not know where a token is."),
        ("not normed", "rotate_halves(rms_norm(z, gain, eps), positions, base)",
         "rotate_halves(z, positions, base)", "Queries and keys are not normed; each has a gain of its own."),
        ("normed before the split", "query = turned(heads(normed @ W_Q, n_heads), gain_q)",
         "query = turned(heads(rms_norm(normed @ W_Q, 1.0, eps), n_heads), gain_q)",
         "You normed all heads of a query together as well; each head is normed by itself."),
        ("gains of queries and keys swapped", "n_heads), gain_q)", "n_heads), gain_k)",
         "The queries have the gain of the keys."),
        ("no swap", ".transpose(1, 2)\n\ndef turned",
         ".reshape(len(z), number, n, -1)\n\ndef turned",
         "The heads were cut across the tokens: split the features, [batch, seq_len, heads, d], and then swap the "
         "two axes."),
        ("merged without a swap", "output.transpose(1, 2).flatten(2)", "output.reshape(len(x), n, -1)",
         "Before the heads are laid side by side, swap the axes back: [batch, seq_len, n_heads, d]."),
        ("all is seen", "window_mask(n, n, window)", "torch.ones(n, n, dtype=torch.bool)",
         "Every token sees all others, later ones too."),
        ("no window", "window_mask(n, n, window)", "window_mask(n, n, n)",
         "The window is not used: each token sees all that is before it."),
        **_PARTS,
    ),
    gradients=("x",),
)  # fmt: skip


# 20.7 A cache that forgets -------------------------------------------------------------------------------------------


def cached_attention(query, key, value, old_keys, old_values, seen, window, base):
    """Attend with new tokens, and say what is kept: the output [batch, n_heads, new, d], and keys and values.

    query: [batch, n_heads, new, d]; key, value: [batch, n_kv_heads, new, d], none of them turned. old_keys (turned) and
    old_values: [batch, n_kv_heads, kept, d], of the tokens just before. seen: how many tokens came before, kept or not.
    The positions of the new ones are seen, seen + 1, … Kept are the last `window` keys, turned, and their values.
    """
    new, kept = key.shape[2], old_keys.shape[2]
    places = torch.arange(seen, seen + new)
    keys = torch.cat([old_keys, rotate_halves(key, places, base)], dim=2)
    values = torch.cat([old_values, value], dim=2)
    query = rotate_halves(query, places, base)
    output = grouped_attention(query, keys, values, window_mask(new, kept + new, window))
    first = max(0, kept + new - window)
    return output, keys[:, :, first:], values[:, :, first:]


def _cached_cases():
    def case(label, seed, heads, kv_heads, new, kept, d, seen, window, batch=2, base=50.0):
        shapes = (batch, heads, new, d), (batch, kv_heads, new, d), (batch, kv_heads, new, d)
        old = (batch, kv_heads, kept, d), (batch, kv_heads, kept, d)
        return Case(label, (*normal(seed, *shapes, *old), seen, window, base))

    return [
        case("the first 5 tokens, window 11, an empty cache", 2070, 4, 2, 5, 0, 4, 0, 11, batch=1),
        case("one token after 3, window 7", 2071, 4, 2, 1, 3, 6, 3, 7),
        case("one token after 29, of which 5 are kept, window 5", 2072, 6, 2, 1, 5, 4, 29, 5),
        case("3 tokens after 13, of which 5 are kept, window 5", 2073, 6, 3, 3, 5, 2, 13, 5),
        case("7 tokens at once, window 3, an empty cache", 2074, 3, 3, 7, 0, 4, 0, 3, base=10000.0),
        case("7 tokens after 11, of which 3 are kept, window 3, one head of keys", 2075, 5, 1, 7, 3, 2, 11, 3),
    ]


EXERCISE_7 = Exercise(
    "20.7", "A cache that forgets", 15, 3, cached_attention, _cached_cases,
    slips(
        "query, key, value, old_keys, old_values, seen, window, base", """
            positions = torch.arange(seen, seen + key.shape[2])
            query, key = rotate_halves(query, positions, base), rotate_halves(key, positions, base)
            keys, values = torch.cat([old_keys, key], dim=2), torch.cat([old_values, value], dim=2)
            mask = window_mask(query.shape[2], keys.shape[2], window)
            output = grouped_attention(query, keys, values, mask)
            return output, keys[:, :, -window:], values[:, :, -window:]
        """,
        ("positions of what is kept", "torch.arange(seen, seen + key.shape[2])",
         "old_keys.shape[2] + torch.arange(key.shape[2])",
         "You count positions by what is kept; the cache forgets keys, but positions go on, from `seen`."),
        ("positions from 0", "torch.arange(seen, seen + key.shape[2])", "torch.arange(key.shape[2])",
         "Your new tokens begin at position 0 each time; they begin at position `seen`."),
        ("cut first", "mask = window_mask(query.shape[2], keys.shape[2], window)",
         "keys, values = keys[:, :, -window:], values[:, :, -window:]\n"
         "mask = torch.ones(query.shape[2], keys.shape[2], dtype=torch.bool).tril(keys.shape[2] - query.shape[2])",
         "You cut the keys before you attend: the first of several new tokens still needs keys that the last one "
         "does not. Attend first, and then forget."),
        ("keeps all", "keys[:, :, -window:], values[:, :, -window:]", "keys, values",
         "Nothing is forgotten: only the last `window` keys and values are kept."),
        ("keeps the first", "keys[:, :, -window:], values[:, :, -window:]",
         "keys[:, :, :window], values[:, :, :window]",
         "You kept the first keys; the last ones are needed."),
        ("one fewer kept", "keys[:, :, -window:], values[:, :, -window:]",
         "keys[:, :, max(0, keys.shape[2] - window + 1):], values[:, :, max(0, keys.shape[2] - window + 1):]",
         "One key fewer is kept than was asked for: the last `window` of them."),
        ("turned twice", "torch.cat([old_keys, key], dim=2)",
         "torch.cat([rotate_halves(old_keys, seen - old_keys.shape[2] + torch.arange(old_keys.shape[2]), base), "
         "key], dim=2)",
         "The old keys are turned once more; in the cache they are turned already."),
        ("keys not turned", ", rotate_halves(key, positions, base)", ", key",
         "The new keys are not turned; both queries and keys are."),
        ("queries not turned", "rotate_halves(query, positions, base), ", "query, ",
         "The queries are not turned; both queries and keys are."),
        ("new before old", "torch.cat([old_keys, key], dim=2), torch.cat([old_values, value], dim=2)",
         "torch.cat([key, old_keys], dim=2), torch.cat([value, old_values], dim=2)",
         "The new keys and values come after the old ones, not before."),
        ("no mask", "window_mask(query.shape[2], keys.shape[2], window)",
         "torch.ones(query.shape[2], keys.shape[2], dtype=torch.bool)",
         "There is no mask: of several new tokens, each sees the later ones, and the window is not kept."),
        ("causal alone", "window_mask(query.shape[2], keys.shape[2], window)",
         "window_mask(query.shape[2], keys.shape[2], keys.shape[2])",
         "Your mask hides later tokens, but lets new ones look further back than the window."),
        **_PARTS,
    ),
    returns=("the output", "keys", "values"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7)
