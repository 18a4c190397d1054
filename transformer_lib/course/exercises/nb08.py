"""The exercises of notebook 08: multi-head attention."""

from __future__ import annotations

import torch

from .model import Case, Exercise, normal
from .slips import slips

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


EXERCISE_1 = Exercise(
    "08.1", "Split into heads", 8, 1, split_heads, _split_cases,
    slips(
        "x, n_heads", "return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
        ("reshape", "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "x.reshape(x.shape[0], n_heads, x.shape[1], -1)",
         "The shape is right, the contents are not: a reshape to [batch, n_heads, seq_len, d] cuts across tokens. "
         "Cut the last axis in two first, then swap axes."),
        ("no swap", ".transpose(1, 2)", "",
         "The last axis is cut correctly; the heads must still come before the tokens."),
        ("interleaved", "(n_heads, -1)).transpose(1, 2)", "(-1, n_heads)).permute(0, 3, 1, 2)",
         "You dealt the columns out in turn; head 0 gets the first d columns, head 1 the next d."),
        ("n_heads features", "(n_heads, -1)", "(-1, n_heads)",
         "You made pieces of n_heads features each; make n_heads pieces, of d features each."),
        ("axes 2 and 3", "(1, 2)", "(2, 3)",
         "The last axis is cut correctly. Then you swapped axes 2 and 3, heads and features; swap heads and tokens."),
        ("swapped first", "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
         "x.transpose(1, 2).reshape(x.shape[0], n_heads, x.shape[1], -1)",
         "You swapped before you cut: tokens and features changed places, and the reshape then mixed tokens."),
    ),
    gradients=("x",), part="split_heads",
)  # fmt: skip


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


EXERCISE_2 = Exercise(
    "08.2", "Merge the heads", 5, 1, merge_heads, _merge_cases,
    slips(
        "x", "return x.transpose(1, 2).flatten(2)",
        ("no swap", ".transpose(1, 2).flatten(2)", ".reshape(x.shape[0], x.shape[2], -1)",
         "The shape is right, the contents are not: "
         "the head axis must be next to the last one before the two are flattened."),
        ("interleaved", ".transpose(1, 2)", ".permute(0, 2, 3, 1)",
         "The heads' columns alternate; put all of head 0 first, then all of head 1."),
        ("sum", ".transpose(1, 2).flatten(2)", ".sum(1)", "You added the heads up; put them side by side."),
        ("along tokens", ".transpose(1, 2).flatten(2)", ".flatten(1, 2)",
         "You put the heads one after another as if they were tokens; join them along the last axis."),
        ("kept apart", ".flatten(2)", "", "The heads come after the tokens now; the last two axes must become one."),
        ("flattened only", ".transpose(1, 2)", "",
         "You flattened without a swap, so tokens and features became one axis; make one of heads and features."),
    ),
    gradients=("x",), part="merge_heads",
)  # fmt: skip


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


def _own_block(W, n_heads):
    """Return W where head h's columns have weights for the h-th part of the features only."""
    rows, columns = (torch.arange(size) * n_heads // size for size in W.shape)
    return W * (rows[:, None] == columns)


EXERCISE_3 = Exercise(
    "08.3", "Multi-head attention", 15, 2, multi_head_attention, _attention_cases,
    slips(
        "X, W_Q, W_K, W_V, W_O, n_heads", """
            q, k, v = ((X @ W).unflatten(-1, (n_heads, -1)).transpose(1, 2) for W in (W_Q, W_K, W_V))
            weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
            return (weights @ v).transpose(1, 2).flatten(2) @ W_O
        """,
        ("one large head", "(n_heads, -1)", "(1, -1)",
         "That is one head of the full width: Q, K and V are not split before the scores are taken."),
        ("full width", "q.shape[-1]", "W_Q.shape[1]",
         "You divided by the root of all heads' width together; d_k is the width of one head."),
        ("unscaled", " / q.shape[-1] ** 0.5", "", "The scores are not divided by √d_k."),
        ("reshape", ".unflatten(-1, (n_heads, -1)).transpose(1, 2)", ".reshape(X.shape[0], n_heads, X.shape[1], -1)",
         "The heads were cut by a plain reshape, which mixes tokens: cut the last axis, then swap axes 1 and 2."),
        ("merge", ".transpose(1, 2).flatten(2)", ".reshape(*X.shape[:2], -1)",
         "The heads were merged without swapping back: tokens and heads are mixed up."),
        ("no W_O", " @ W_O", "", "The heads are side by side, but W_O is missing."),
        ("chunks of X", "(X @ W)", "(X @ own_block(W, n_heads))",
         "Each head saw only its part of X. Every head projects the whole X; only Q, K and V are split."),
        ("root of d_model", "q.shape[-1]", "X.shape[-1]", "You divided by √d_model; d_k is the width of one head."),
        ("d_model over n_heads, rounded down", "q.shape[-1]", "(X.shape[-1] // n_heads)",
         "You took d_model // n_heads for d_k, which need not be so; take the last axis of Q after the split."),
        own_block=_own_block,
    )
    + slips(
        "X, W_Q, W_K, W_V, W_O, n_heads", """
            q, k, v = ((X @ W).unflatten(-1, (n_heads, -1)) for W in (W_Q, W_K, W_V))
            heads = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)
            return heads.flatten(2) @ W_O
        """,
        ("among heads", "attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)",
         "attention(q, k, v)",
         "Here heads attend to heads, within each token: swap axes after the split; then tokens attend to tokens."),
        ("reshape twice", "attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)",
         "attention(*(t.reshape(len(X), n_heads, X.shape[1], -1) for t in (q, k, v))).reshape(v.shape)",
         "Split and merge are plain reshapes. They undo each other, but in between the heads hold mixed tokens."),
        attention=torch.nn.functional.scaled_dot_product_attention,
    ),
    gradients=("X", "W_Q", "W_K", "W_V", "W_O"),
)  # fmt: skip


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


EXERCISE_4 = Exercise(
    "08.4", "What each head adds", 12, 2, head_contributions, _contribution_cases,
    slips(
        "heads, W_O", """
            blocks = W_O.unflatten(0, (heads.shape[1], -1))
            return heads @ blocks
        """,
        ("first rows", "@ blocks", "@ blocks[0]",
         "Every head went through the first rows of W_O; head h owns the rows from h · d_v on."),
        ("interleaved", "(heads.shape[1], -1))", "(-1, heads.shape[1])).transpose(0, 1)",
         "Each head took every n_heads-th row of W_O; its rows are d_v neighbours."),
        ("output", "heads @ blocks", "(heads @ blocks).sum(1)",
         "That is the sum, the output of the layer; the heads are asked for one by one."),
        ("axes", "heads @ blocks", "(heads @ blocks).transpose(1, 2)",
         "Heads and tokens are swapped: the axes are [batch, n_heads, seq_len, d_model]."),
        ("columns of W_O", "W_O.unflatten(0, (heads.shape[1], -1))",
         "W_O.T.reshape(heads.shape[1], heads.shape[3], -1)",
         "You took columns of W_O, transposed; head h owns rows, and takes them as they are."),
    ),
    gradients=("heads", "W_O"),
)  # fmt: skip


# 08.5 One head after all ---------------------------------------------------------------------------------------------


def both_letters(blend):
    """Return which letters a head has read that prefers a to b, by the same unknown preference everywhere.

    blend: [..., 2], the share of a in it, and the weight on the first position. Returns booleans [..., 2]: whether
    the first letter is an a, and whether the second is one.
    """
    share, place = blend[..., 0], blend[..., 1]
    even = place == 0.5  # two equal letters
    first = (place > 0.5) | (even & (share > 0.5))
    second = (place < 0.5) | (even & (share > 0.5))
    return torch.stack([first, second], dim=-1)


def _blends(letters, preferences):
    """Return the blends [n, 2] of letters [n, 2], True for a, by heads that score an a higher by their preferences."""
    first, second = letters.unbind(-1)
    preferred = torch.sigmoid(preferences)  # at least a half
    place = torch.where(first == second, 0.5, torch.where(first, preferred, 1 - preferred))
    return torch.stack([place * first + (1 - place) * second, place], dim=-1)


def _both_cases():
    four = torch.tensor([[True, True], [True, False], [False, True], [False, False]])

    def drawn(label, seed, *shape):
        numbers, preferences = normal(seed, (*shape, 2), shape)
        return Case(label, (_blends(numbers > 0, preferences.abs() + 0.1),))

    return [
        Case("aa, ab, ba and bb, with weights of ¾ for an a and ¼ for a b", (_blends(four, torch.tensor(3.0).log()),)),
        Case("the four pairs, with a slight preference", (_blends(four, torch.tensor(0.1)),)),
        Case("the four pairs, with a strong preference", (_blends(four, torch.tensor(5.0)),)),
        drawn("13 pairs, a preference each", 85, 13),
        drawn("3 times 7 pairs", 86, 3, 7),
    ]


EXERCISE_5 = Exercise(
    "08.5", "One head after all", 10, 2, both_letters, _both_cases,
    slips(
        "blend", """
            share, place = blend.unbind(-1)
            return torch.stack([share + place > 1, share > place], dim=-1)
        """,
        ("share alone, first letter", "share + place > 1", "share > 0.5",
         "You took the share alone for the first letter, but ab and ba have the same one. Use the weight on the first "
         "position, too."),
        ("place alone", "share + place > 1", "place > 0.5",
         "You took the weight alone for the first letter, but in aa and in bb it is ½. Use the share, too."),
        ("share alone, second letter", "share > place", "share > 0.5",
         "You took the share alone for the second letter, but ab and ba have the same one. Compare it with the weight "
         "on the first position."),
        ("swapped", "share + place > 1, share > place", "share > place, share + place > 1",
         "Right, but in the wrong order: first the answer for the first letter."),
        ("one preference", "share > place", "share - place > 0.4",
         "Your cut for the second letter suits some preferences only. Look for the pair in which the share is equal to "
         "the weight on the first position."),
        ("columns", "share, place", "place, share",
         "You swapped the two columns: the share of a comes first, then the weight on the first position."),
        ("numbers", "dim=-1)", "dim=-1).float()", "Right answers, but as numbers 0 and 1: return booleans."),
    ),
)  # fmt: skip


EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
