"""The exercises of notebook 11: the decoder and cross-attention."""

from __future__ import annotations

import torch

from ..lab import alignments
from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

# 11.1 One head of cross-attention ------------------------------------------------------------------------------------


def cross_attention(x, memory, W_Q, W_K, W_V, memory_mask):
    """Return the output of one head of cross-attention: x asks, memory is read.

    x: [batch, tgt_len, d_model]; memory: [batch, src_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v];
    memory_mask: booleans [batch, 1, src_len], True = may be read. Returns [batch, tgt_len, d_v].
    """
    scores = torch.einsum("bic,bjc->bij", x @ W_Q, memory @ W_K) / W_K.shape[1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~memory_mask, -torch.inf), dim=-1)
    return torch.einsum("bij,bjc->bic", weights, memory @ W_V)


def _attention_case(label, seed, batch, tgt_len, src_len, d_model, d_k, d_v, hidden=0):
    x, memory, *matrices = normal(
        seed, (batch, tgt_len, d_model), (batch, src_len, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v)
    )
    mask = torch.ones(batch, 1, src_len, dtype=torch.bool)
    if hidden:
        mask[0, :, -hidden:] = False  # the first sentence is shorter than the others
    return Case(label, (x, memory, *(W / d_model**0.5 for W in matrices), mask))


def _attention_cases():
    far = torch.tensor([[[20.0, 0.0]]]), torch.tensor([[[-14.0, 1.0], [-11.0, 3.0], [-12.0, 5.0]]])
    hidden = torch.tensor([[[True, False, False]]])
    return [
        _attention_case("2 queries, 3 memory rows", 110, 1, 2, 3, 2, 2, 2),
        _attention_case("3 queries, 5 rows of which 2 are padding", 111, 1, 3, 5, 7, 3, 2, hidden=2),
        _attention_case("2 sentences, one with padding", 112, 2, 5, 7, 11, 3, 5, hidden=3),
        _attention_case("as many queries as rows", 113, 3, 5, 5, 7, 2, 7, hidden=1),
        _attention_case("one query, as in decoding", 114, 2, 1, 7, 5, 3, 2),
        _attention_case("more queries than rows", 115, 1, 7, 2, 3, 5, 3),
        Case("a visible score near −200", (*far, torch.eye(2), torch.eye(2), torch.eye(2), hidden)),
    ]


def _memory_times_mask(x, memory, W_Q, W_K, W_V, memory_mask):
    memory = memory * memory_mask.mT
    scores = x @ W_Q @ (memory @ W_K).mT / W_K.shape[1] ** 0.5
    return scores.softmax(dim=-1) @ memory @ W_V


EXERCISE_1 = Exercise(
    "11.1", "One head of cross-attention", 9, 1, cross_attention, _attention_cases,
    slips(
        "x, memory, W_Q, W_K, W_V, memory_mask", """
            q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
            scores = q @ k.mT / k.shape[-1] ** 0.5
            weights = scores.masked_fill(~memory_mask, -torch.inf).softmax(dim=-1)
            return weights @ v
        """,
        ("swapped", "x @ W_Q, memory @ W_K, memory @ W_V", "memory @ W_Q, x @ W_K, x @ W_V",
         "The roles are exchanged: x asks, so the queries come from x, and keys and values from memory."),
        ("self-attention", "memory @ W_K, memory @ W_V", "x @ W_K, x @ W_V",
         "That is self-attention: keys and values must come from memory."),
        ("unscaled", " / k.shape[-1] ** 0.5", "", "The scores are not divided by √d_k."),
        ("d_model", "k.shape[-1]", "x.shape[-1]", "You divided by √d_model; d_k is the width of a key."),
        ("no mask", ".masked_fill(~memory_mask, -torch.inf)", "",
         "Padding of the source is read: use memory_mask before the softmax."),
        ("after the softmax", "masked_fill(~memory_mask, -torch.inf).softmax(dim=-1)", "softmax(dim=-1) * memory_mask",
         "You removed the padding's weights after the softmax, so the rest no longer sums to one: set the "
         "scores to −∞ before it."),
        ("inverted", "~memory_mask", "memory_mask", "The mask is the wrong way round: True means may be read."),
        ("unprojected", "memory @ W_V", "memory", "The values are memory itself; project it by W_V."),
        ("score 0", "-torch.inf", "0.0",
         "A score of 0 is not a weight of 0, since exp(0) = 1: hide padding with a score of −∞."),
        ("high fill", "-torch.inf", "-100.0",
         "Right unless the visible scores lie below the number that you put in the hidden places; then padding "
         "gets all the weight. Use −∞, or torch.finfo(scores.dtype).min."),
    )
    + (
        Mistake(
            "memory times mask", _memory_times_mask,
            "You set padded memory rows to 0; their scores are then 0, and exp(0) = 1: fill hidden scores with −∞.",
        ),
    ),
    gradients=("x", "memory", "W_Q", "W_K", "W_V"),
)  # fmt: skip


# 11.2 A decoder layer ---------------------------------------------------------------------------------


def decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    """Return x after the three sub-layers of a post-norm decoder layer, each with its residual and its norm.

    x: [batch, tgt_len, d_model]; memory: [batch, src_len, d_model]. The others are functions:
    self_attention(x), masked already; cross_attention(query, key, value), which projects all three itself;
    feed_forward(x); and the norms of the three in this order, norm_1(x), norm_2(x), norm_3(x), each with a gain and a
    bias of its own.
    """
    after_self = norm_1(torch.add(x, self_attention(x)))
    after_cross = norm_2(torch.add(after_self, cross_attention(after_self, memory, memory)))
    return norm_3(torch.add(after_cross, feed_forward(after_cross)))


def _parts(seed, d_model):
    """Return three sub-layers and three norms, all simple, differentiable and different from each other."""
    first, second, third, fourth = (W / d_model**0.5 for W in normal(seed, *[(d_model, d_model)] * 4))
    gains = normal(seed + 500, *[(2, d_model)] * 3)

    def self_attention(x):
        steps = torch.arange(1, x.shape[1] + 1).to(x)[:, None]
        return (x @ first).cumsum(dim=1) / steps  # equal weights on itself and the tokens before

    def cross_attention(query, key, value):
        return torch.softmax(query @ second @ key.mT, dim=-1) @ value @ fourth

    def feed_forward(x):
        return torch.relu(x) @ third

    def norm(gain, bias):
        return lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]) * (1 + gain / 2) + bias

    return self_attention, cross_attention, feed_forward, *(norm(*pair) for pair in gains)


def _layer_cases():
    def case(label, seed, batch, tgt_len, src_len, d_model):
        shapes = (batch, tgt_len, d_model), (batch, src_len, d_model)
        return Case(label, (*normal(seed, *shapes), *_parts(seed + 1, d_model)))

    return [
        case("2 target tokens, 3 memory rows", 120, 1, 2, 3, 4),
        case("3 sentences, 5 by 7", 122, 3, 5, 7, 11),
        case("one target token", 124, 2, 1, 3, 5),
        case("as many target tokens as memory rows", 126, 2, 5, 5, 7),
        case("more target tokens than memory rows", 128, 1, 7, 2, 5),
    ]


_THREE_SUMS = """
    y = norm_1(x + self_attention(x))
    z = norm_2(y + cross_attention(y, memory, memory))
    return norm_3(z + feed_forward(z))
"""

_THREE_TURNS = """
    sublayers = (self_attention, lambda y: cross_attention(y, memory, memory), feed_forward)
    y = x
    for sublayer, norm in zip(sublayers, (norm_1, norm_2, norm_3)):
        y = norm(y + sublayer(y))
    return y
"""

_DECODER_ARGUMENTS = "x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3"

EXERCISE_2 = Exercise(
    "11.2", "A decoder layer", 10, 2, decoder_layer, _layer_cases,
    slips(
        _DECODER_ARGUMENTS, _THREE_TURNS,
        ("pre-norm", "norm(y + sublayer(y))", "y + sublayer(norm(y))",
         "You normalised before each sub-layer (pre-norm); here a norm follows each addition."),
        ("norm of the result alone", "norm(y + sublayer(y))", "y + norm(sublayer(y))",
         "You normalised each sub-layer's result before you added it; add first, then normalise the sum."),
        ("no residuals", "y + sublayer(y)", "sublayer(y)",
         "The residuals are missing: each sub-layer's result is added to what went in."),
        ("cross first", "self_attention, lambda y: cross_attention(y, memory, memory)",
         "lambda y: cross_attention(y, memory, memory), self_attention",
         "The cross-attention came first; the target reads itself before it reads the source."),
        ("one norm three times", "(norm_1, norm_2, norm_3)", "[norm_1] * 3",
         "norm_1 is used three times; each sub-layer has a norm of its own: norm_1, norm_2, norm_3."),
    )
    + slips(
        _DECODER_ARGUMENTS, _THREE_SUMS,
        ("first residual twice", "y + cross_attention", "x + cross_attention",
         "The residual of the cross-attention adds the layer's input x; it adds what norm_1 returned."),
        ("input at the end", "z + feed_forward", "x + feed_forward",
         "The last residual adds the layer's input x; it adds what norm_2 returned."),
        ("no residual around cross-attention", "y + cross_attention", "cross_attention",
         "The residual around the cross-attention is missing: add what went in."),
        ("cross reads x", "(y, memory, memory)", "(x, memory, memory)",
         "The cross-attention got the layer's input x; it gets what the first norm returned."),
        ("memory asks", "(y, memory, memory)", "(memory, y, y)",
         "memory asked and x was read; the query is x, key and value are memory."),
        ("reads itself", "(y, memory, memory)", "(y, y, y)",
         "The cross-attention got x for key and value, so it read the target: key and value are memory."),
    ),
    gradients=("x", "memory"), part="decoder_layer",
)  # fmt: skip


# 11.3 One step from the cache ----------------------------------------------------------------------------------------


def step_from_cache(x_new, keys, values, W_Q, W_O):
    """Return the cross-attention output of one new target token, from keys and values computed once before.

    x_new: [batch, d_model]; keys: [batch, n_heads, src_len, d_k]; values: [batch, n_heads, src_len, d_v];
    W_Q: [d_model, n_heads · d_k]; W_O: [n_heads · d_v, d_model]. No padding. Returns [batch, d_model].
    """
    _, n_heads, _, d_k = keys.shape
    heads = []
    for h in range(n_heads):
        query = x_new @ W_Q[:, h * d_k : (h + 1) * d_k]
        weights = torch.softmax(torch.einsum("bc,bjc->bj", query, keys[:, h]) / d_k**0.5, dim=-1)
        heads.append(torch.einsum("bj,bjc->bc", weights, values[:, h]))
    return torch.cat(heads, dim=-1) @ W_O


def _step_case(label, seed, batch, n_heads, src_len, d_model, d_k, d_v):
    shapes = (batch, d_model), (batch, n_heads, src_len, d_k), (batch, n_heads, src_len, d_v)
    x_new, keys, values, W_Q, W_O = normal(seed, *shapes, (d_model, n_heads * d_k), (n_heads * d_v, d_model))
    return Case(label, (x_new, keys, values, W_Q / d_model**0.5, W_O / len(W_O) ** 0.5))


def _step_cases():
    return [
        _step_case("2 heads of width 2, 3 memory rows", 140, 1, 2, 3, 4, 2, 2),
        _step_case("3 sentences, 7 memory rows", 141, 3, 2, 7, 11, 5, 3),
        _step_case("one head", 142, 2, 1, 5, 7, 3, 2),
        _step_case("one memory row", 143, 2, 3, 1, 5, 2, 3),
        _step_case("5 heads", 144, 2, 5, 3, 15, 3, 3),
        _step_case("as many sentences as heads", 145, 3, 3, 5, 7, 2, 2),
    ]


EXERCISE_3 = Exercise(
    "11.3", "One step from the cache", 10, 2, step_from_cache, _step_cases,
    slips(
        "x_new, keys, values, W_Q, W_O", """
            q = (x_new @ W_Q).unflatten(-1, (keys.shape[1], 1, -1))
            scores = q @ keys.mT / keys.shape[-1] ** 0.5
            weights = scores.softmax(dim=-1)
            return (weights @ values).flatten(1) @ W_O
        """,
        ("unscaled", " / keys.shape[-1] ** 0.5", "", "The scores are not divided by √d_k."),
        ("all widths", "keys.shape[-1]", "W_Q.shape[-1]",
         "You divided by the root of the width of all heads together; d_k is the width of one head."),
        ("axis", "dim=-1", "dim=-2",
         "There is one query, and your softmax runs over it: every weight is 1. It has to run over the memory rows."),
        ("no W_O", " @ W_O", "", "The heads are concatenated, but W_O is missing."),
        ("interleaved", "(keys.shape[1], 1, -1))", "(-1, keys.shape[1])).mT[:, :, None]",
         "You dealt the query's columns out in turn; head 0 gets the first d_k columns, head 1 the next."),
        ("root of d_model", "keys.shape[-1]", "x_new.shape[-1]",
         "You divided by √d_model; d_k is the width of one key."),
    ),
    gradients=("x_new", "keys", "values", "W_Q", "W_O"),
)  # fmt: skip


# 11.4 Whom do you ask? -----------------------------------------------------------------------------------------------


def alignment(weights, src_tokens, tgt_tokens):
    """Return for each written token the source token that it translates, as a list of tuples (tgt, src).

    weights: [n_layers, n_heads, tgt_len, src_len], the cross-attention of a translator with two layers and four heads
    each; whom to ask is yours to decide. src_tokens: src_len strings. tgt_tokens: tgt_len + 1 strings, from "<bos>" to
    "<eos>"; row t of the weights reads the t-th of them. Nouns and verbs must be right, for the rest any token will do.
    """
    heads, pairs = weights[1], []
    for t in range(weights.shape[2]):
        shares = [sum(heads[h, t, j].item() for h in range(len(heads))) for j in range(len(src_tokens))]
        pairs.append((tgt_tokens[t + 1], src_tokens[shares.index(max(shares))]))
    return pairs


def _alignment_cases():
    grids = alignments.clear_grids()
    chosen = integers(130, (8,), 0, len(grids)).tolist()
    return [Case(grids[n].text, (grids[n].weights, grids[n].source, grids[n].target)) for n in sorted(set(chosen))]


def _known_links(src_tokens, tgt_tokens):
    """Return {position written: the source token that it translates}, as the grammar has it."""
    (grid,) = [g for g in alignments.clear_grids() if g.source == list(src_tokens) and g.target == list(tgt_tokens)]
    return {i: src_tokens[j] for _, i, j in grid.links}


def _wrongly_aligned(weights, src_tokens, tgt_tokens, pairs):
    """Name the first known link that was missed; None if nouns and verbs are right."""
    written, read = zip(*pairs, strict=True)
    if list(written) != tgt_tokens[1:]:
        return "The first of each pair must be the token that the row writes, from the first word to <eos>."
    if not set(read) <= set(src_tokens):
        return "The second of each pair must be a source token."
    known = _known_links(src_tokens, tgt_tokens)
    wrong = [(i, word) for i, word in known.items() if read[i] != word]
    if not wrong:
        return None
    i, word = wrong[0]
    return (
        f"Of {len(known)} nouns and verbs that we know, {len(wrong)} went wrong: {written[i]!r} translates {word!r}, "
        f"and you say {read[i]!r}. Ask somebody else, or ask more of them."
    )


EXERCISE_4 = Exercise(
    "11.4", "Whom do you ask?", 10, 2, alignment, _alignment_cases,
    slips(
        "weights, src_tokens, tgt_tokens", """
            shares = weights[1].mean(dim=0)
            pairs = [(tgt_tokens[t + 1], src_tokens[j]) for t, j in enumerate(shares.argmax(dim=-1).tolist())]
            return pairs
        """,
        ("reads", "t + 1", "t",
         "You paired each row with the token that it reads; pair it with the token that it writes, "
         "one position later."),
        ("layer 1", "weights[1]", "weights[0]",
         "You asked layer 1, and it looks elsewhere. (Layers are counted from 0 in code.)"),
        ("head 3", ".mean(dim=0)", "[2]",
         "You asked head 3 of layer 2. It knows the nouns and hardly a verb; somebody else knows those."),
        ("head 4", ".mean(dim=0)", "[3]",
         "You asked head 4 of layer 2 alone. It is often right, and not often enough."),
        ("the loudest", "weights[1].mean(dim=0)", "weights.amax(dim=(0, 1))",
         "You took the largest weight of any head in any layer, so that one head that is sure of something else "
         "overrules all the others."),
        ("per source token", "t, j in enumerate(shares.argmax(dim=-1)", "j, t in enumerate(shares.argmax(dim=0)",
         "You went through the source tokens; return one pair per written token, with the source "
         "token of the largest weight in its row."),
        ("a dictionary", "return pairs", "return list(dict(pairs).items())",
         "A dictionary keeps one entry per word, and a word may be written twice; make a list, one pair per row."),
        ("indices", "src_tokens[j]", "j", "You returned positions; look the source token up."),
        ("swapped", "tgt_tokens[t + 1], src_tokens[j]", "src_tokens[j], tgt_tokens[t + 1]",
         "The pairs are the other way round: the written token comes first, then the source token."),
    ),
    judge=_wrongly_aligned,
)  # fmt: skip


# 11.5 The gradient of the memory -------------------------------------------------------------------------------------


def memory_gradient(x, memory, W_Q, W_K, W_V, grad_output):
    """Return the gradient that one head of cross-attention, without a mask, sends to memory.

    x: [tgt_len, d_model]; memory: [src_len, d_model]; W_Q, W_K: [d_model, d_k]; W_V: [d_model, d_v];
    grad_output: [tgt_len, d_v], the gradient at the head's output. Returns [src_len, d_model].
    """
    query, key, value = x @ W_Q, memory @ W_K, memory @ W_V
    root = W_K.shape[1] ** 0.5
    weights = torch.softmax(torch.einsum("ic,jc->ij", query, key) / root, dim=-1)
    grad_weights = torch.einsum("ic,jc->ij", grad_output, value)
    shared = torch.einsum("ij,ij->i", weights, grad_weights)[:, None]
    grad_key = torch.einsum("ij,ic->jc", weights * (grad_weights - shared) / root, query)
    grad_value = torch.einsum("ij,ic->jc", weights, grad_output)
    return grad_key @ W_K.T + grad_value @ W_V.T


def _gradient_case(label, seed, tgt_len, src_len, d_model, d_k, d_v):
    shapes = (tgt_len, d_model), (src_len, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v), (tgt_len, d_v)
    return Case(label, tuple(normal(seed, *shapes, dtype=torch.float64)))


def _gradient_cases():
    return [
        _gradient_case("2 queries, 3 memory rows", 150, 2, 3, 2, 2, 2),
        _gradient_case("3 queries, 5 memory rows", 151, 3, 5, 7, 2, 3),
        _gradient_case("one query", 152, 1, 7, 5, 3, 2),
        _gradient_case("one memory row", 153, 5, 1, 3, 2, 5),
        _gradient_case("d_v larger than d_k", 154, 5, 3, 11, 2, 7),
        _gradient_case("as many queries as rows", 155, 3, 3, 5, 5, 5),
    ]


EXERCISE_5 = Exercise(
    "11.5", "The gradient of the memory", 15, 3, memory_gradient, _gradient_cases,
    slips(
        "x, memory, W_Q, W_K, W_V, grad_output", """
            q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
            root = W_K.shape[1] ** 0.5
            weights = (q @ k.T / root).softmax(dim=-1)
            grad_weights = grad_output @ v.T
            shared = (weights * grad_weights).sum(dim=-1, keepdim=True)
            grad_scores = weights * (grad_weights - shared)
            by_key = grad_scores.T @ q / root @ W_K.T
            by_value = weights.T @ grad_output @ W_V.T
            return by_value + by_key
        """,
        ("values only", "return by_value + by_key", "return by_value",
         "Only the route through the values is there; memory is read twice, as keys too."),
        ("keys only", "return by_value + by_key", "return by_key",
         "Only the route through the keys is there; memory is read twice, as values too."),
        ("plain mean", "(weights * grad_weights).sum(", "grad_weights.mean(",
         "In the softmax's gradient you subtract the plain mean; subtract each row's Σ weights · grad_weights."),
        ("no root at the start", "k.T / root", "k.T",
         "The weights are not those of the head: divide the scores by √d_k before the softmax."),
        ("no root anywhere", "W_K.shape[1] ** 0.5", "1",
         "√d_k is missing twice: the scores are divided by it, and so is the route through the keys."),
        ("no root", "q / root", "q", "The route through the keys must be divided by √d_k, once."),
        ("no shared part", " - shared", "",
         "The softmax's gradient lacks its second term: subtract each row's Σ weights · grad_weights."),
    ),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
