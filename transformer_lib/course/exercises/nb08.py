"""The exercises of notebook 08: multi-head attention."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

# 08.1 Split into heads -----------------------------------------------------------------------------------------------


def split_heads(x, n_heads):
    """Cut each token's vector into n_heads pieces of equal width, and let the head axis come before the tokens.

    x: [batch, seq_len, n_heads · d]. Returns [batch, n_heads, seq_len, d]; head 0 gets the first d columns.
    """
    width = x.shape[-1] // n_heads
    return torch.stack([x[..., h * width : (h + 1) * width] for h in range(n_heads)], dim=1)


def _split_cases():
    return [
        Case("1 sentence of 2 tokens, 2 heads of width 2", (torch.arange(8.0).reshape(1, 2, 4), 2)),
        Case("2 sentences of 5 tokens, 3 heads of width 7", (normal(61, (2, 5, 21))[0], 3)),
        Case("one head", (normal(62, (3, 2, 5))[0], 1)),
        Case("heads of width 1", (normal(63, (2, 3, 5))[0], 5)),
        Case("one token", (normal(64, (2, 1, 15))[0], 5)),
        Case("as many tokens as heads", (normal(65, (5, 3, 33))[0], 3)),
    ]


def _plain_reshape(x, n_heads):
    return x.reshape(x.shape[0], n_heads, x.shape[1], -1)


EXERCISE_1 = Exercise(
    "08.1",
    "Split into heads",
    8,
    1,
    split_heads,
    _split_cases,
    (
        Mistake(
            "reshape",
            _plain_reshape,
            "The shape is right, the contents are not: a reshape to [batch, n_heads, seq_len, d] cuts across "
            "tokens. Cut the last axis in two first, then swap axes.",
        ),
        Mistake(
            "no swap",
            lambda x, n: x.unflatten(-1, (n, -1)),
            "The last axis is cut rightly; the heads must still come before the tokens.",
        ),
        Mistake(
            "interleaved",
            lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2),
            "You dealt the columns out in turn; head 0 gets the first d columns, head 1 the next d.",
        ),
        Mistake(
            "columns",
            lambda x, n: x.unflatten(-1, (n, -1)).permute(0, 2, 3, 1),
            "Your tokens came out as columns: the axes are [batch, n_heads, d, seq_len].",
        ),
        Mistake(
            "heads first",
            lambda x, n: x.unflatten(-1, (n, -1)).permute(2, 0, 1, 3),
            "The heads stand before the batch; the batch stays in front.",
        ),
        Mistake(
            "copies",
            lambda x, n: x[:, None].expand(-1, n, -1, -1),
            "Each head got the whole vector; it gets its own piece.",
        ),
        Mistake(
            "into the batch",
            lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 2).flatten(0, 1),
            "Batch and heads are merged into one axis; they are asked for as two.",
        ),
        Mistake(
            "n_heads features",
            lambda x, n: x.unflatten(-1, (-1, n)).transpose(1, 2),
            "You made pieces of n_heads features each; make n_heads pieces, of d features each.",
        ),
        Mistake(
            "axes 2 and 3",
            lambda x, n: x.unflatten(-1, (n, -1)).transpose(2, 3),
            "The last axis is cut rightly. Then you swapped axes 2 and 3, heads and features; swap heads and tokens.",
        ),
        Mistake(
            "axes 1 and 3",
            lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 3),
            "The last axis is cut rightly. Then you swapped axes 1 and 3, tokens and features; swap heads and tokens.",
        ),
        Mistake(
            "axes 0 and 1",
            lambda x, n: x.unflatten(-1, (n, -1)).transpose(0, 1),
            "The last axis is cut rightly. Then you swapped axes 0 and 1, batch and tokens: with a batch in front, "
            "tokens and heads are axes 1 and 2.",
        ),
        Mistake(
            "axes 0 and 2",
            lambda x, n: x.unflatten(-1, (n, -1)).transpose(0, 2),
            "The last axis is cut rightly. Then you swapped axes 0 and 2, batch and heads; swap heads and tokens.",
        ),
        Mistake(
            "swapped first",
            lambda x, n: x.transpose(1, 2).reshape(x.shape[0], n, x.shape[1], -1),
            "You swapped before you cut: tokens and features changed places, and the reshape then mixed tokens.",
        ),
        Mistake(
            "first piece",
            lambda x, n: x[:, None, :, : x.shape[-1] // n].expand(-1, n, -1, -1),
            "Every head got the first piece; head h gets the columns from h · d on.",
        ),
        Mistake(
            "last piece first",
            lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 2).flip(1),
            "The pieces come in reversed order; head 0 gets the first d columns.",
        ),
    ),
    gradients=("x",),
    part="split_heads",
)


# 08.2 Merge the heads ------------------------------------------------------------------------------------------------


def merge_heads(x):
    """Put the heads' vectors of each token side by side again: the way back from split_heads.

    x: [batch, n_heads, seq_len, d]. Returns [batch, seq_len, n_heads · d].
    """
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


def _merge_cases():
    return [
        Case("2 heads, 2 tokens, width 2", (torch.arange(8.0).reshape(1, 2, 2, 2),)),
        Case("2 sentences, 3 heads, 5 tokens, width 7", (normal(66, (2, 3, 5, 7))[0],)),
        Case("one head", (normal(67, (3, 1, 2, 5))[0],)),
        Case("heads of width 1", (normal(68, (2, 5, 3, 1))[0],)),
        Case("one token", (normal(69, (2, 5, 1, 3))[0],)),
    ]


def _merge_unturned(x):
    return x.reshape(x.shape[0], x.shape[2], -1)


EXERCISE_2 = Exercise(
    "08.2",
    "Merge the heads",
    5,
    1,
    merge_heads,
    _merge_cases,
    (
        Mistake(
            "no swap",
            _merge_unturned,
            "The shape is right, the contents are not: the head axis must stand next to the last one before "
            "the two are flattened.",
        ),
        Mistake(
            "interleaved",
            lambda x: x.permute(0, 2, 3, 1).flatten(2),
            "The heads' columns alternate; put all of head 0 first, then all of head 1.",
        ),
        Mistake("sum", lambda x: x.sum(dim=1), "You added the heads up; they stand side by side."),
        Mistake("mean", lambda x: x.mean(dim=1), "You averaged the heads; they stand side by side."),
        Mistake(
            "along tokens",
            lambda x: x.flatten(1, 2),
            "You put the heads one after another as if they were tokens; join them along the last axis.",
        ),
        Mistake(
            "kept apart",
            lambda x: x.transpose(1, 2),
            "The heads stand after the tokens now; the last two axes must become one.",
        ),
        Mistake(
            "backwards",
            lambda x: x.flip(1).transpose(1, 2).flatten(2),
            "The last head comes first; head 0 gets the first columns.",
        ),
        Mistake(
            "flattened only",
            lambda x: x.flatten(2),
            "You flattened without a swap, so tokens and features became one axis; make one of heads and features.",
        ),
        Mistake(
            "axes 2 and 3",
            lambda x: x.transpose(2, 3).flatten(2),
            "You swapped tokens and features (axes 2 and 3); swap heads and tokens (1 and 2), then flatten.",
        ),
        Mistake(
            "axes 1 and 3",
            lambda x: x.transpose(1, 3).flatten(2),
            "You swapped heads and features (axes 1 and 3); swap heads and tokens (1 and 2), then flatten.",
        ),
        Mistake(
            "along the batch",
            lambda x: torch.cat(list(x.unbind(1))),
            "You joined the heads along the batch (axis 0); join them along the last axis.",
        ),
        Mistake("one head", lambda x: x[:, 0], "That is the first head alone; all heads stand side by side."),
    ),
    gradients=("x",),
    part="merge_heads",
)


# 08.3 Multi-head attention -------------------------------------------------------------------------------------------


def multi_head_attention(X, W_Q, W_K, W_V, W_O, n_heads):
    """Return the output of multi-head self-attention, without biases or mask.

    X: [batch, seq_len, d_model]; W_Q, W_K: [d_model, n_heads · d_k]; W_V: [d_model, n_heads · d_v];
    W_O: [n_heads · d_v, d_model]. Head h owns the h-th block of columns. Returns [batch, seq_len, d_model].
    """
    heads = []
    blocks = (W.chunk(n_heads, dim=1) for W in (W_Q, W_K, W_V))
    for w_q, w_k, w_v in zip(*blocks, strict=True):
        scores = torch.einsum("bic,bjc->bij", X @ w_q, X @ w_k) / w_q.shape[1] ** 0.5
        heads.append(torch.einsum("bij,bjc->bic", torch.softmax(scores, dim=-1), X @ w_v))
    return torch.cat(heads, dim=-1) @ W_O


def _attention_case(label, seed, batch, seq_len, d_model, n_heads, d_k, d_v):
    shapes = [(d_model, n_heads * d_k)] * 2 + [(d_model, n_heads * d_v), (n_heads * d_v, d_model)]
    X, *matrices = normal(seed, (batch, seq_len, d_model), *shapes)
    return Case(label, (X, *(W / len(W) ** 0.5 for W in matrices), n_heads))


def _attention_cases():
    return [
        _attention_case("2 tokens, d_model 4, 2 heads of width 2", 70, 1, 2, 4, 2, 2, 2),
        _attention_case("3 sentences of 5 tokens, 2 heads, d_model 14", 71, 3, 5, 14, 2, 7, 7),
        _attention_case("d_k 5 and d_v 2 with 3 heads, d_model 11", 72, 2, 7, 11, 3, 5, 2),
        _attention_case("one head", 73, 2, 3, 5, 1, 5, 5),
        _attention_case("one token", 74, 2, 1, 6, 3, 2, 2),
        _attention_case("5 heads of width 3", 75, 2, 3, 15, 5, 3, 3),
    ]


def _mha(split=split_heads, merge=merge_heads, scale=None, axis=-1, project=True, value_from_key=False):
    """Return multi-head attention, each slip a switch."""

    def function(X, W_Q, W_K, W_V, W_O, n_heads):
        q, k, v = (split(X @ W, n_heads) for W in (W_Q, W_K, W_V))
        size = q.shape[-1] ** 0.5 if scale is None else scale(X, W_Q)
        weights = torch.softmax(q @ k.mT / size, dim=axis)
        merged = merge(weights @ v)
        return merged @ W_O if project else merged

    return function


def _one_large_head(X, W_Q, W_K, W_V, W_O, n_heads):
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, 1)


def _chunks_of_x(X, W_Q, W_K, W_V, W_O, n_heads):
    """Let head h see only the h-th part of the features: the rows of all others are cut out of its columns."""

    def cut(W):
        rows, columns = (torch.arange(size) * n_heads // size for size in W.shape)
        return W * (rows[:, None] == columns)

    return multi_head_attention(X, cut(W_Q), cut(W_K), cut(W_V), W_O, n_heads)


def _first_block_only(X, W_Q, W_K, W_V, W_O, n_heads):
    heads = split_heads(multi_head_attention(X, W_Q, W_K, W_V, torch.eye(len(W_O)).to(X), n_heads), n_heads)
    return heads.sum(dim=1) @ W_O[: len(W_O) // n_heads]


def _sum_of_heads(X, W_Q, W_K, W_V, W_O, n_heads):
    heads = split_heads(multi_head_attention(X, W_Q, W_K, W_V, torch.eye(len(W_O)).to(X), n_heads), n_heads)
    return heads.sum(dim=1).repeat(1, 1, n_heads) @ W_O


def _attended(X, W_Q, W_K, W_V, W_O, n_heads, weigh, value=lambda k, v: v):
    """Return multi-head attention whose weights come from `weigh(q kᵀ, d_k)`."""
    q, k, v = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(weigh(q @ k.mT, q.shape[-1]) @ value(k, v)) @ W_O


def _among_heads(X, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = ((X @ W).unflatten(-1, (n_heads, -1)) for W in (W_Q, W_K, W_V))
    return (torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v).flatten(2) @ W_O


def _not_transposed(X, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(torch.softmax(q @ k / q.shape[-1] ** 0.5, -1) @ v) @ W_O


def _causal(scores, d_k):
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf) / d_k**0.5, -1)


def _no_softmax(X, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(q @ k.mT / q.shape[-1] ** 0.5 @ v) @ W_O


EXERCISE_3 = Exercise(
    "08.3",
    "Multi-head attention",
    15,
    2,
    multi_head_attention,
    _attention_cases,
    (
        Mistake(
            "one large head",
            _one_large_head,
            "That is one head of the full width: Q, K and V are not split before the scores are taken.",
        ),
        Mistake(
            "full width",
            _mha(scale=lambda X, W: W.shape[1] ** 0.5),
            "You divided by the root of all heads' width together; d_k is the width of one head.",
        ),
        Mistake("unscaled", _mha(scale=lambda X, W: 1.0), "The scores are not divided by √d_k."),
        Mistake("axis", _mha(axis=-2), "The softmax runs over the queries; the keys are the last axis."),
        Mistake(
            "reshape",
            _mha(split=_plain_reshape),
            "The heads were cut by a plain reshape, which mixes tokens: cut the last axis, then swap axes 1 and 2.",
        ),
        Mistake(
            "merge",
            _mha(merge=_merge_unturned),
            "The heads were merged without swapping back: tokens and heads are mixed up.",
        ),
        Mistake("no W_O", _mha(project=False), "The heads stand side by side, but W_O is missing."),
        Mistake(
            "chunks of X",
            _chunks_of_x,
            "Each head saw only its part of X. Every head projects the whole X; only Q, K and V are split.",
        ),
        Mistake(
            "first block",
            _first_block_only,
            "All heads went through the first rows of W_O; head h has the h-th block of rows.",
        ),
        Mistake(
            "root of d_model",
            _mha(scale=lambda X, W: X.shape[-1] ** 0.5),
            "You divided by √d_model; d_k is the width of one head.",
        ),
        Mistake(
            "no softmax",
            _no_softmax,
            "You used the scores themselves as weights; take their softmax over the keys.",
        ),
        Mistake(
            "over the heads",
            _mha(axis=1),
            "The softmax runs over the heads (axis 1); the keys are the last axis.",
        ),
        Mistake(
            "dealt in turn",
            _mha(split=lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)),
            "You dealt the columns out in turn; head 0 owns the first d_k columns, head 1 the next.",
        ),
        Mistake(
            "queries and keys swapped",
            lambda X, Q, K, V, W_O, h: multi_head_attention(X, K, Q, V, W_O, h),
            "Keys ask and queries answer: row i of the scores belongs to query i.",
        ),
        Mistake(
            "d_k",
            lambda *a: _attended(*a, lambda s, d: torch.softmax(s / d, -1)),
            "You divided by d_k, or twice by √d_k; the formula divides by √d_k once.",
        ),
        Mistake(
            "root of n_heads",
            lambda X, Q, K, V, W_O, h: _mha(scale=lambda X, W: h**0.5)(X, Q, K, V, W_O, h),
            "You divided by √n_heads; d_k is the width of one head.",
        ),
        Mistake(
            "root of seq_len",
            _mha(scale=lambda X, W: X.shape[1] ** 0.5),
            "You divided by √seq_len; d_k is the width of one head, the last axis after the split.",
        ),
        Mistake(
            "d_model over n_heads",
            lambda X, Q, K, V, W_O, h: _mha(scale=lambda X, W: (X.shape[-1] / h) ** 0.5)(X, Q, K, V, W_O, h),
            "You took d_model / n_heads for d_k, which need not be so; take the last axis of Q after the split.",
        ),
        Mistake(
            "d_model over n_heads, rounded down",
            lambda X, Q, K, V, W_O, h: _mha(scale=lambda X, W: (X.shape[-1] // h) ** 0.5)(X, Q, K, V, W_O, h),
            "You took d_model // n_heads for d_k, which need not be so; take the last axis of Q after the split.",
        ),
        Mistake(
            "multiplied",
            lambda *a: _attended(*a, lambda s, d: torch.softmax(s * d**0.5, -1)),
            "You multiplied the scores by √d_k; divide by it.",
        ),
        Mistake(
            "divided after",
            lambda *a: _attended(*a, lambda s, d: torch.softmax(s, -1) / d**0.5),
            "You divided the weights by √d_k; divide the scores, before the softmax.",
        ),
        Mistake(
            "causal",
            lambda *a: _attended(*a, _causal),
            "You masked later tokens; here every token may attend to all.",
        ),
        Mistake(
            "keys as values",
            lambda *a: _attended(*a, lambda s, d: torch.softmax(s / d**0.5, -1), value=lambda k, v: k),
            "You blended the keys; blend the values, X W_V.",
        ),
        Mistake(
            "among heads",
            _among_heads,
            "Here heads attend to heads, within each token: swap axes after the split; then tokens attend to tokens.",
        ),
        Mistake(
            "summed",
            _sum_of_heads,
            "You added the heads up before W_O; they stand side by side, and each meets its own rows of W_O.",
        ),
        Mistake(
            "residual",
            lambda X, *a: X + multi_head_attention(X, *a),
            "You added X. That comes in notebook 09; the layer itself returns only what the heads add.",
        ),
        Mistake(
            "reshape twice",
            _mha(split=_plain_reshape, merge=_merge_unturned),
            "Split and merge are plain reshapes. They undo each other, but in between the heads hold mixed tokens.",
        ),
        Mistake(
            "no transpose",
            _not_transposed,
            "You multiplied queries by keys that are not transposed; that fits only if there are as many tokens as "
            "features of a head, and even then a score is not a dot product.",
        ),
        Mistake(
            "W_O transposed",
            lambda X, Q, K, V, W_O, h: multi_head_attention(X, Q, K, V, W_O.T, h),
            "You multiplied by the transposed W_O; its rows belong to the heads, so it comes as it is.",
        ),
    ),
    gradients=("X", "W_Q", "W_K", "W_V", "W_O"),
)


# 08.4 What each head adds --------------------------------------------------------------------------------------------


def head_contributions(heads, W_O):
    """Return what each head adds to the output of the layer, through its own rows of W_O.

    heads: [batch, n_heads, seq_len, d_v], the heads' outputs before they are merged; W_O: [n_heads · d_v, d_model].
    Returns [batch, n_heads, seq_len, d_model], whose sum over the heads is the output.
    """
    blocks = W_O.reshape(heads.shape[1], heads.shape[3], W_O.shape[1])
    return torch.einsum("bhtv,hvm->bhtm", heads, blocks)


def _contribution_cases():
    smallest = torch.tensor([1.0, 2.0]).reshape(1, 2, 1, 1), torch.tensor([[3.0, 5.0], [7.0, 11.0]])
    return [
        Case("2 heads of width 1, one token", smallest),
        Case("3 heads of width 2, 5 tokens, d_model 7", tuple(normal(81, (2, 3, 5, 2), (6, 7)))),
        Case("one head", tuple(normal(82, (3, 1, 2, 5), (5, 7)))),
        Case("5 heads of width 3, d_model 15", tuple(normal(83, (2, 5, 7, 3), (15, 15)))),
        Case("as many heads as features each", tuple(normal(84, (1, 3, 2, 3), (9, 11)))),
    ]


def _output(heads, W_O):
    return torch.einsum("bhtm->btm", head_contributions(heads, W_O))


def _cut_columns(heads, W_O):
    """Return the output, its columns dealt out to the heads."""
    owner = torch.arange(W_O.shape[1]) * heads.shape[1] // W_O.shape[1]
    mine = owner == torch.arange(heads.shape[1])[:, None]
    return _output(heads, W_O)[:, None] * mine[:, None, :]


def _interleaved_rows(heads, W_O):
    blocks = W_O.reshape(heads.shape[3], heads.shape[1], -1).transpose(0, 1)
    return heads @ blocks


EXERCISE_4 = Exercise(
    "08.4",
    "What each head adds",
    12,
    2,
    head_contributions,
    _contribution_cases,
    (
        Mistake(
            "first rows",
            lambda heads, W: heads @ W[: heads.shape[3]],
            "Every head went through the first rows of W_O; head h owns the rows from h · d_v on.",
        ),
        Mistake(
            "interleaved",
            _interleaved_rows,
            "Each head took every n_heads-th row of W_O; its rows are d_v neighbours.",
        ),
        Mistake("output", _output, "That is the sum, the output of the layer; the heads are asked for one by one."),
        Mistake(
            "equal shares",
            lambda heads, W: (_output(heads, W) / heads.shape[1])[:, None].expand(-1, heads.shape[1], -1, -1).clone(),
            "You divided the output equally; each head adds what its own rows of W_O make of it.",
        ),
        Mistake(
            "columns",
            _cut_columns,
            "You dealt out the columns of the output. W_O mixes: each head may write to every column.",
        ),
        Mistake(
            "the rest",
            lambda heads, W: _output(heads, W)[:, None] - head_contributions(heads, W),
            "That is what remains when the head is taken away; asked for is what it adds.",
        ),
        Mistake(
            "axes",
            lambda heads, W: head_contributions(heads, W).transpose(1, 2),
            "Heads and tokens are swapped: the axes are [batch, n_heads, seq_len, d_model].",
        ),
        Mistake(
            "reversed",
            lambda heads, W: heads @ W.reshape(heads.shape[1], heads.shape[3], -1).flip(0),
            "The blocks of W_O are dealt out in reversed order; head 0 owns the first d_v rows.",
        ),
        Mistake(
            "columns of W_O",
            lambda heads, W: heads @ W.T.reshape(heads.shape[1], heads.shape[3], -1),
            "You took columns of W_O, transposed; head h owns rows, and takes them as they are.",
        ),
        Mistake(
            "divided",
            lambda heads, W: head_contributions(heads, W) / heads.shape[1],
            "You divided by the number of heads: the heads add up, they are not averaged.",
        ),
        Mistake(
            "sums so far",
            lambda heads, W: head_contributions(heads, W).cumsum(dim=1),
            "You added up the heads so far; each is asked for by itself.",
        ),
        Mistake(
            "heads in front",
            lambda heads, W: head_contributions(heads, W).transpose(0, 1),
            "The heads stand before the batch; stack them along axis 1.",
        ),
    ),
    gradients=("heads", "W_O"),
)


EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4)
