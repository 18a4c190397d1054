"""The exercises of notebook 20: the parts of today's block."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal

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


def _normed(
    square=lambda x: x.square().mean(-1, keepdim=True),
    root=lambda square, eps: (square + eps).sqrt(),
    shift=lambda x: x,
    gained=lambda y, gain: y * gain,
):
    """Return RMSNorm, each slip a switch."""

    def function(x, gain, eps):
        x = shift(x)
        return gained(x / root(square(x), eps), gain)

    return function


def _variance(x):
    return x.var(-1, keepdim=True, unbiased=False)


EXERCISE_1 = Exercise(
    "20.1",
    "RMSNorm",
    6,
    1,
    rms_norm,
    _norm_cases,
    (
        Mistake(
            "layer norm",
            _normed(shift=lambda x: x - x.mean(-1, keepdim=True)),
            "You took the mean off first, which is layer normalisation; RMSNorm leaves the mean where it is.",
        ),
        Mistake(
            "standard deviation",
            _normed(square=_variance),
            "You divided by the standard deviation, which leaves out the mean; the mean square is that of x itself.",
        ),
        Mistake(
            "length",
            _normed(square=lambda x: x.square().sum(-1, keepdim=True)),
            "You divided by the length of the vector, the root of the sum of squares; take their mean.",
        ),
        Mistake(
            "mean of absolute values",
            _normed(root=lambda square, eps: square, square=lambda x: x.abs().mean(-1, keepdim=True)),
            "You divided by the mean of the absolute values; it is the root of the mean of squares.",
        ),
        Mistake(
            "square of the mean",
            _normed(square=lambda x: x.mean(-1, keepdim=True).square()),
            "You squared the mean; square first, and take the mean of the squares.",
        ),
        Mistake(
            "no root",
            _normed(root=lambda square, eps: square + eps),
            "You divided by the mean square itself; take its square root.",
        ),
        Mistake(
            "multiplied",
            lambda x, gain, eps: x * (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain,
            "You multiplied by the root mean square; divide by it.",
        ),
        Mistake(
            "eps outside",
            _normed(root=lambda square, eps: square.sqrt() + eps),
            "eps is added after the root; add it to the mean square, before the root.",
        ),
        Mistake(
            "no eps",
            _normed(root=lambda square, eps: square.sqrt()),
            "eps is left out; add it to the mean square, before the root.",
        ),
        Mistake(
            "an eps of one's own",
            _normed(root=lambda square, eps: (square + 1e-6).sqrt()),
            "You took an eps of your own; it is an argument.",
        ),
        Mistake(
            "the length of the whole tensor",
            lambda x, gain, eps: x / x.norm() * gain,
            "x.norm() is one length for the whole tensor; each token has its own root mean square, over its features.",
        ),
        Mistake(
            "over axis 1",
            _normed(square=lambda x: x.square().mean(1, keepdim=True)),
            "The mean runs over the last axis, the features, however many axes come before it.",
        ),
        Mistake(
            "over the whole tensor",
            _normed(square=lambda x: x.square().mean()),
            "All tokens share one root mean square; each has its own: mean(dim=-1, keepdim=True).",
        ),
        Mistake(
            "over the tokens",
            _normed(square=lambda x: x.square().mean(-2, keepdim=True)),
            "You took the mean over the tokens; it is over the features of one token, the last axis.",
        ),
        Mistake(
            "no gain",
            _normed(gained=lambda y, gain: y),
            "The gain is left out; multiply by it, feature by feature.",
        ),
        Mistake(
            "gain added",
            _normed(gained=lambda y, gain: y + gain),
            "You added the gain; multiply by it.",
        ),
        Mistake(
            "1 + gain",
            _normed(gained=lambda y, gain: y * (1 + gain)),
            "You multiplied by 1 + gain, as models do that store the gain's distance from 1; here gain is the factor.",
        ),
        Mistake(
            "gain squared away",
            lambda x, gain, eps: _normed(gained=lambda y, gain: y)(x * gain, gain, eps),
            "You multiplied by the gain before you divided, so that it is part of what is measured; it comes last.",
        ),
    ),
    gradients=("x", "gain"),
    part="rms_norm",
)


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


def _gated(gate=F.silu, up=lambda z: z, join=torch.mul, after=lambda z: z, swap=False):
    """Return a gated feed-forward, each slip a switch."""

    def function(x, W_gate, W_up, W_down):
        first, second = (W_up, W_gate) if swap else (W_gate, W_up)
        return after(join(gate(x @ first), up(x @ second))) @ W_down

    return function


EXERCISE_2 = Exercise(
    "20.2",
    "SwiGLU",
    6,
    1,
    swiglu,
    _gated_cases,
    (
        Mistake(
            "gate and up swapped",
            _gated(swap=True),
            "gate and up are swapped: silu is applied to x @ W_gate, and x @ W_up stays as it is.",
        ),
        Mistake("silu on both", _gated(up=F.silu), "You applied silu to both products; x @ W_up stays linear."),
        Mistake(
            "sigmoid",
            _gated(gate=torch.sigmoid),
            "Your gate is sigmoid(x @ W_gate), that of the first gated linear unit; silu(z) is z · sigmoid(z).",
        ),
        Mistake("relu", _gated(gate=torch.relu), "Your gate is a ReLU; here it is silu(z) = z · sigmoid(z)."),
        Mistake("gelu", _gated(gate=F.gelu), "Your gate is a GELU; here it is silu(z) = z · sigmoid(z)."),
        Mistake(
            "gelu by tanh",
            _gated(gate=lambda z: F.gelu(z, approximate="tanh")),
            "Your gate is a GELU, approximated by tanh; here it is silu(z) = z · sigmoid(z).",
        ),
        Mistake("tanh", _gated(gate=torch.tanh), "Your gate is tanh; here it is silu(z) = z · sigmoid(z)."),
        Mistake("added", _gated(join=torch.add), "You added the two products; the gate multiplies, number by number."),
        Mistake(
            "silu after the product",
            _gated(gate=lambda z: z, after=F.silu),
            "silu is applied to the product of both; apply it to x @ W_gate alone, before you multiply.",
        ),
        Mistake(
            "no up",
            _gated(join=lambda gate, up: gate),
            "x @ W_up is missing; it is what the gate lets through.",
        ),
        Mistake(
            "no gate",
            _gated(join=lambda gate, up: up),
            "The gate is missing; multiply x @ W_up by silu(x @ W_gate).",
        ),
        Mistake(
            "no activation",
            _gated(gate=lambda z: z),
            "The gate has no activation: apply silu to x @ W_gate.",
        ),
        Mistake(
            "softmax",
            _gated(gate=lambda z: z.softmax(-1)),
            "Your gates share one softmax; each is computed from its own number, by silu.",
        ),
        Mistake(
            "without W_down",
            lambda x, W_gate, W_up, W_down: F.silu(x @ W_gate) * (x @ W_up),
            "That is the hidden layer, d_ff wide; multiply it by W_down to come back to d_model.",
        ),
        Mistake(
            "with the residual",
            lambda x, *W: x + _gated()(x, *W),
            "You added x itself; the residual path belongs to the block, not to this part.",
        ),
    ),
    gradients=("x", "W_gate", "W_up", "W_down"),
    part="swiglu",
)


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


def _spread(x, n_heads):
    return x.repeat_interleave(n_heads // x.shape[1], dim=1)


def _tiled(x, n_heads):
    return x.repeat(1, n_heads // x.shape[1], 1, 1)


def _attended(
    keys=_spread, values=_spread, scale=lambda q, k: q.shape[-1] ** 0.5, masked=None, axis=-1, outputs=lambda x, k: x
):
    """Return grouped-query attention, each slip a switch."""

    def function(query, key, value, mask):
        n = query.shape[1]
        scores = query @ keys(key, n).mT / scale(query, key)
        scores = scores.masked_fill(~mask, -INF) if masked is None else masked(scores, mask)
        weights = scores.softmax(axis)
        return outputs(torch.nan_to_num(weights) @ values(value, n), key)

    return function


def _own_mask(scores, mask):
    return scores.masked_fill(~_causal(*mask.shape), -INF)


def _hidden_after_softmax(query, key, value, mask):
    n = query.shape[1]
    weights = (query @ _spread(key, n).mT / query.shape[-1] ** 0.5).softmax(-1)
    return (weights * mask) @ _spread(value, n)


def _inverted_with_inf(query, key, value, mask):
    n = query.shape[1]
    scores = query @ _spread(key, n).mT / query.shape[-1] ** 0.5
    return scores.masked_fill(mask, -INF).softmax(-1) @ _spread(value, n)


def _one_for_all(x, n_heads):
    return x[:, :1].expand(-1, n_heads, -1, -1)


def _groups_apart(query, key, value, mask):
    """Sum the queries of a group, as one head of attention for each head of keys."""
    groups = query.unflatten(1, (key.shape[1], -1)).mean(2)
    return _attended()(groups, key, value, mask)


EXERCISE_3 = Exercise(
    "20.3",
    "Grouped-query attention",
    10,
    2,
    grouped_attention,
    _grouped_cases,
    (
        Mistake(
            "dealt in turn",
            _attended(keys=_tiled, values=_tiled),
            "The heads of keys are dealt out in turn, 0, 1, 0, 1; neighbours share one, 0, 0, 1, 1: repeat_interleave "
            "rather than repeat.",
        ),
        Mistake(
            "keys dealt in turn",
            _attended(keys=_tiled),
            "The values are right, but the heads of keys are dealt out in turn; neighbours share one of them, too.",
        ),
        Mistake(
            "values dealt in turn",
            _attended(values=_tiled),
            "The keys are right, but the heads of values are dealt out in turn; neighbours share one of them, too.",
        ),
        Mistake(
            "the first head for all",
            _attended(keys=_one_for_all, values=_one_for_all),
            "All queries read the first head of keys and values; each group has its own.",
        ),
        Mistake(
            "the first values for all",
            _attended(values=_one_for_all),
            "All groups read the first head of values; each has its own.",
        ),
        Mistake(
            "backwards",
            _attended(keys=lambda x, n: _spread(x.flip(1), n), values=lambda x, n: _spread(x.flip(1), n)),
            "The groups are in reverse order: the first heads of queries read the first head of keys.",
        ),
        Mistake(
            "averaged keys",
            _attended(
                keys=lambda x, n: x.mean(1, keepdim=True).expand(-1, n, -1, -1),
                values=lambda x, n: x.mean(1, keepdim=True).expand(-1, n, -1, -1),
            ),
            "You averaged the heads of keys and values; each group reads one of them.",
        ),
        Mistake(
            "one output for each group",
            _groups_apart,
            "You have merged the queries of a group, so there is one output for each head of keys; every head of "
            "queries keeps its own scores and its own output.",
        ),
        Mistake(
            "no scale",
            _attended(scale=lambda q, k: 1.0),
            "The scores are not divided by √d.",
        ),
        Mistake(
            "scaled by the whole width",
            _attended(scale=lambda q, k: (q.shape[-1] * q.shape[1]) ** 0.5),
            "You divided by the root of n_heads · d; d is the width of one head, the last axis.",
        ),
        Mistake(
            "scaled by d",
            _attended(scale=lambda q, k: q.shape[-1]),
            "You divided by d; it is √d.",
        ),
        Mistake(
            "no mask",
            _attended(masked=lambda scores, mask: scores),
            "The mask is not used: hidden keys are seen.",
        ),
        Mistake(
            "own causal mask",
            _attended(masked=_own_mask),
            "You made a causal mask of your own; use the one that is given, which may be another.",
        ),
        Mistake(
            "inverted mask",
            _attended(masked=lambda scores, mask: scores.masked_fill(mask, -1e9)),
            "The mask is used the wrong way round: True means may see.",
        ),
        Mistake(
            "inverted mask, with -inf",
            _inverted_with_inf,
            "The mask is used the wrong way round: True means may see, and what is False becomes -inf.",
        ),
        Mistake(
            "mask after the softmax",
            _hidden_after_softmax,
            "You hid weights after the softmax, so the others do not sum to 1; hide scores, before it.",
        ),
        Mistake(
            "-100 for hidden",
            _attended(masked=lambda scores, mask: scores.masked_fill(~mask, -100.0)),
            "You filled hidden scores with a number that others fall below; -∞ is below every score.",
        ),
        Mistake(
            "zeros for hidden",
            _attended(masked=lambda scores, mask: scores * mask),
            "Hidden scores became 0, and e^0 = 1 is no small weight; they become -inf.",
        ),
        Mistake(
            "softmax over queries",
            _attended(masked=lambda scores, mask: scores.masked_fill(~mask, -1e9), axis=-2),
            "The softmax runs over the queries; it runs over the keys, the last axis.",
        ),
        Mistake(
            "merged",
            _attended(outputs=lambda x, key: x.transpose(1, 2).flatten(2)),
            "You have merged the heads already; return them one by one, [batch, n_heads, q_len, d].",
        ),
    ),
    gradients=("query", "key", "value"),
    part="grouped_attention",
)


# 20.4 The sliding window ---------------------------------------------------------------------------------------------


def window_mask(q_len, k_len, window):
    """Return booleans [q_len, k_len], True = may see: each query sees itself and the window - 1 tokens before it.

    The keys stand at the positions 0 to k_len - 1, and the queries at the last q_len of them.
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


def _window(rule=lambda back, window: (back >= 0) & (back < window), first=lambda q, k: k - q):
    """Return the mask; `rule` gets how far back each key stands, `first` gives the first query's position."""

    def function(q_len, k_len, window):
        queries = first(q_len, k_len) + torch.arange(q_len)
        return rule(queries[:, None] - torch.arange(k_len), window)

    return function


def _blocks(q_len, k_len, window):
    queries, keys = torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)
    return (keys <= queries) & (keys // window == queries // window)


EXERCISE_4 = Exercise(
    "20.4",
    "The sliding window",
    10,
    2,
    window_mask,
    _window_cases,
    (
        Mistake(
            "one too long",
            _window(rule=lambda back, window: (back >= 0) & (back <= window)),
            "Your window is one key too long: a query sees itself and window - 1 earlier tokens, window keys in all.",
        ),
        Mistake(
            "one too short",
            _window(rule=lambda back, window: (back >= 0) & (back < window - 1)),
            "Your window is one key too short: a query sees itself and window - 1 earlier tokens, window keys in all.",
        ),
        Mistake(
            "not itself",
            _window(rule=lambda back, window: (back > 0) & (back <= window)),
            "A query does not see itself in your mask; its own token is one of the window.",
        ),
        Mistake(
            "not itself, and one key fewer",
            _window(rule=lambda back, window: (back > 0) & (back < window)),
            "A query does not see itself in your mask: back = 0 belongs to the window, too.",
        ),
        Mistake(
            "not causal",
            _window(rule=lambda back, window: back < window),
            "All later tokens are seen, too; a key must be at least 0 positions back.",
        ),
        Mistake(
            "both sides",
            _window(rule=lambda back, window: back.abs() < window),
            "Your window reaches to the right, too; later tokens must stay hidden.",
        ),
        Mistake(
            "to the right",
            _window(rule=lambda back, window: (back <= 0) & (back > -window)),
            "Your window looks to the right; it is the earlier tokens that a query may see.",
        ),
        Mistake(
            "no window",
            _window(rule=lambda back, window: back >= 0),
            "That is the causal mask; tokens further back than the window must be hidden.",
        ),
        Mistake(
            "only what is far",
            _window(rule=lambda back, window: back >= window),
            "You hid the window and show what lies before it; it is the other way round.",
        ),
        Mistake(
            "inverted",
            lambda q_len, k_len, window: ~_window()(q_len, k_len, window),
            "The mask is the wrong way round: True means may see.",
        ),
        Mistake(
            "queries from 0",
            _window(first=lambda q_len, k_len: 0),
            "Your queries stand at the positions from 0 on; they are the last q_len of the k_len.",
        ),
        Mistake(
            "one position on",
            _window(first=lambda q_len, k_len: k_len - q_len + 1),
            "Your queries stand one position too far to the right: the first of them is at k_len - q_len.",
        ),
        Mistake(
            "blocks",
            _blocks,
            "You cut the text into blocks of fixed places; the window slides along with its query.",
        ),
        Mistake(
            "the last keys for all",
            lambda q_len, k_len, window: (
                _window(rule=lambda back, window: back >= 0)(q_len, k_len, window)
                & (torch.arange(k_len) >= k_len - window)
            ),
            "All queries have the same window, the last keys of the text; each has its own, which ends at itself.",
        ),
        Mistake(
            "keys by queries",
            lambda q_len, k_len, window: _window()(q_len, k_len, window).mT,
            "Queries and keys are swapped: rows are queries, columns keys.",
        ),
        Mistake(
            "only new keys",
            lambda q_len, k_len, window: _window()(q_len, q_len, window),
            "Only the new tokens have columns; earlier keys, those of the cache, need theirs as well.",
        ),
    ),
    part="window_mask",
)


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


def _turned(
    angles=lambda positions, base, d: positions[:, None] * base ** (-2 * torch.arange(d // 2) / d),
    halves=lambda x: x.chunk(2, dim=-1),
    turn=lambda a, b, cos, sin: (a * cos - b * sin, a * sin + b * cos),
    join=lambda first, second: torch.cat([first, second], dim=-1),
):
    """Return a rotation, each slip a switch."""

    def function(x, positions, base):
        angle = angles(positions, base, x.shape[-1])
        a, b = halves(x)
        return join(*turn(a, b, angle.cos().to(x.dtype), angle.sin().to(x.dtype)))

    return function


def _interleaved(first, second):
    return torch.stack([first, second], dim=-1).flatten(-2)


def _neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def _mixed_angles(x, positions, base):
    """Halves are paired, but the angles are laid out for neighbours."""
    d = x.shape[-1]
    angle = (positions[:, None] * base ** (-2 * torch.arange(d // 2) / d)).repeat_interleave(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    return x * angle.cos() + torch.cat([-b, a], dim=-1) * angle.sin()


def _one_rotated(x, positions, base):
    return torch.cat([_turned()(x, positions, base)[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]], dim=-1)


EXERCISE_5 = Exercise(
    "20.5",
    "Rotary positions by halves",
    8,
    2,
    rotate_halves,
    _rotary_cases,
    (
        Mistake(
            "neighbours",
            _turned(halves=_neighbours, join=_interleaved),
            "You paired neighbours, features 2j and 2j + 1, as in 06.5; here feature j belongs to feature j + d/2.",
        ),
        Mistake(
            "neighbours in, halves out",
            _turned(halves=_neighbours),
            "You took neighbours as pairs and put the results side by side as halves; take the pairs from the halves, "
            "too.",
        ),
        Mistake(
            "halves in, neighbours out",
            _turned(join=_interleaved),
            "The pairs are right, but you wove the results together; the first ones form the first half.",
        ),
        Mistake(
            "angles of neighbours",
            _mixed_angles,
            "The halves are paired, but each angle stands beside itself; features j and j + d/2 share one angle.",
        ),
        Mistake(
            "backwards",
            _turned(turn=lambda a, b, cos, sin: (a * cos + b * sin, b * cos - a * sin)),
            "You turned the other way: (a cos - b sin, a sin + b cos).",
        ),
        Mistake(
            "the new a",
            _turned(turn=lambda a, b, cos, sin: (a * cos - b * sin, (a * cos - b * sin) * sin + b * cos)),
            "The second of the pair uses the a that is turned already; both use the old one.",
        ),
        Mistake(
            "both signs plus",
            _turned(turn=lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
            "A sign is wrong: the first of the pair becomes a cos - b sin.",
        ),
        Mistake(
            "second half negated",
            _turned(turn=lambda a, b, cos, sin: (a * cos - b * sin, -a * sin + b * cos)),
            "A sign is wrong: the second of the pair becomes a sin + b cos.",
        ),
        Mistake(
            "sine and cosine swapped",
            _turned(turn=lambda a, b, cos, sin: (a * sin - b * cos, a * cos + b * sin)),
            "Sine and cosine are swapped: at position 0 nothing may turn.",
        ),
        Mistake(
            "halves swapped",
            _turned(join=lambda first, second: torch.cat([second, first], dim=-1)),
            "The two halves of the result are swapped.",
        ),
        Mistake(
            "exponent j / d",
            _turned(angles=lambda p, base, d: p[:, None] * base ** (-torch.arange(d // 2) / d)),
            "Your angles shrink too slowly: the exponent is -2 j / d.",
        ),
        Mistake(
            "exponent 4 j / d",
            _turned(angles=lambda p, base, d: p[:, None] * base ** (-4 * torch.arange(d // 2) / d)),
            "Your angles shrink too fast: the exponent is -2 j / d.",
        ),
        Mistake(
            "pairs from 1",
            _turned(angles=lambda p, base, d: p[:, None] * base ** (-2 * torch.arange(1, d // 2 + 1) / d)),
            "You count the pairs from 1; j begins at 0, so that the first pair turns by p itself.",
        ),
        Mistake(
            "growing angles",
            _turned(angles=lambda p, base, d: p[:, None] * base ** (2 * torch.arange(d // 2) / d)),
            "Your angles grow with j; the exponent is negative.",
        ),
        Mistake(
            "one angle for all",
            _turned(angles=lambda p, base, d: p[:, None].expand(-1, d // 2) * 1.0),
            "All pairs turn by the same angle; pair j turns by p · base^(-2 j / d).",
        ),
        Mistake(
            "base 10000",
            _turned(angles=lambda p, base, d: p[:, None] * 10000.0 ** (-2 * torch.arange(d // 2) / d)),
            "You took 10000 for the base; it is an argument.",
        ),
        Mistake(
            "places for positions",
            lambda x, positions, base: _turned()(x, torch.arange(len(positions)), base),
            "You counted the rows from 0; the positions are given, and may begin later.",
        ),
        Mistake(
            "from 1",
            lambda x, positions, base: _turned()(x, positions + 1, base),
            "Your positions are one too large.",
        ),
        Mistake(
            "degrees",
            _turned(angles=lambda p, base, d: torch.deg2rad(p[:, None] * base ** (-2 * torch.arange(d // 2) / d))),
            "Your angles are taken as degrees; they are radians.",
        ),
        Mistake(
            "half of it",
            _one_rotated,
            "Only the first half is turned; the second becomes a sin + b cos.",
        ),
    ),
    gradients=("x",),
    part="rotate_halves",
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
