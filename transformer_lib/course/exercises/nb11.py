"""The exercises of notebook 11: the decoder and cross-attention."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal

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


def _cross(
    query="x",
    key="memory",
    value="memory",
    scale=lambda W: W.shape[1] ** 0.5,
    axis=-1,
    hide=lambda m: ~m,
    fill=-torch.inf,
):
    """Return one head of cross-attention, each slip a switch."""

    def function(x, memory, W_Q, W_K, W_V, memory_mask):
        source = {"x": x, "memory": memory, "projected": memory @ W_K}
        q, k = source[query] @ W_Q, source[key] @ W_K
        v = source["projected"] if value == "projected" else source[value] @ W_V
        scores = (q @ k.mT / scale(W_K)).masked_fill(hide(memory_mask), fill)
        return torch.softmax(scores, dim=axis) @ v

    return function


def _mask_added(x, memory, W_Q, W_K, W_V, memory_mask):
    scores = (x @ W_Q) @ (memory @ W_K).mT / W_K.shape[1] ** 0.5
    return torch.softmax(scores + memory_mask, dim=-1) @ (memory @ W_V)


def _without_softmax(x, memory, W_Q, W_K, W_V, memory_mask):
    scores = (x @ W_Q) @ (memory @ W_K).mT / W_K.shape[1] ** 0.5
    return scores.masked_fill(~memory_mask, 0.0) @ (memory @ W_V)


def _after_softmax(x, memory, W_Q, W_K, W_V, memory_mask):
    weights = torch.softmax((x @ W_Q) @ (memory @ W_K).mT / W_K.shape[1] ** 0.5, dim=-1)
    return weights * memory_mask @ (memory @ W_V)


EXERCISE_1 = Exercise(
    "11.1",
    "One head of cross-attention",
    10,
    1,
    cross_attention,
    _attention_cases,
    (
        Mistake(
            "swapped",
            _cross("memory", "x", "x"),
            "The roles are exchanged: x asks, so the queries come from x, and keys and values from memory.",
        ),
        Mistake(
            "self-attention",
            _cross(key="x", value="x"),
            "That is self-attention: keys and values must come from memory.",
        ),
        Mistake(
            "self-attention without the mask",
            lambda x, memory, Q, K, V, m: cross_attention(x, x, Q, K, V, torch.ones_like(x[:, None, :, 0]).bool()),
            "That is self-attention of x: keys and values must come from memory, and memory_mask hides its padding.",
        ),
        Mistake(
            "weights",
            lambda x, memory, Q, K, V, m: torch.softmax(
                ((x @ Q) @ (memory @ K).mT / K.shape[1] ** 0.5).masked_fill(~m, -torch.inf), dim=-1
            ),
            "You returned the weights; they still have to blend the values, memory W_V.",
        ),
        Mistake("keys from x", _cross(key="x"), "The keys come from x; x makes the queries only, and memory the keys."),
        Mistake(
            "values from x", _cross(value="x"), "The values come from x; they must come from memory, like the keys."
        ),
        Mistake("d_k", _cross(scale=lambda W: W.shape[1]), "You divided by d_k; the scores are divided by its root."),
        Mistake("mask added", _mask_added, "You added the mask to the scores, as 0 and 1: fill hidden scores with −∞."),
        Mistake(
            "memory times mask",
            lambda x, memory, W_Q, W_K, W_V, m: _cross(hide=torch.zeros_like)(
                x, memory * m.transpose(-2, -1), W_Q, W_K, W_V, m
            ),
            "You set padded memory rows to 0; their scores are then 0, and exp(0) = 1: fill hidden scores with −∞.",
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
        Mistake(
            "no softmax",
            _without_softmax,
            "You used the scores themselves as weights; take their softmax over the memory rows.",
        ),
        Mistake(
            "matrices swapped",
            lambda x, memory, W_Q, W_K, W_V, m: _cross()(x, memory, W_K, W_Q, W_V, m),
            "W_Q and W_K are swapped: x goes through W_Q, memory through W_K.",
        ),
        Mistake(
            "root of d_v",
            lambda x, memory, W_Q, W_K, W_V, m: _cross(scale=lambda _: W_V.shape[1] ** 0.5)(
                x, memory, W_Q, W_K, W_V, m
            ),
            "You divided by √d_v, the width of a value; d_k is the width of a key.",
        ),
        Mistake(
            "score 0",
            _cross(fill=0.0),
            "A score of 0 is not a weight of 0, since exp(0) = 1: hide padding with a score of −∞.",
        ),
        Mistake(
            "score −10",
            _cross(fill=-10.0),
            "A score of −10 still gets some weight: hide padding with a score of −∞.",
        ),
        Mistake(
            "high fill",
            _cross(fill=-100.0),
            "Right unless the visible scores lie below the number that you put in the hidden places; then padding "
            "gets all the weight. Use −∞, or torch.finfo(scores.dtype).min.",
        ),
    ),
    gradients=("x", "memory", "W_Q", "W_K", "W_V"),
)


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


def _layer(first=None, second=None, third=None, order="scf"):
    """Return the decoder layer with one sub-layer's step replaced, or with another order."""

    def function(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
        steps = {
            "s": first or (lambda x, m, f, norm: norm(x + f(x))),
            "c": second or (lambda x, m, f, norm: norm(x + f(x, m, m))),
            "f": third or (lambda x, m, f, norm: norm(x + f(x))),
        }
        parts = {"s": self_attention, "c": cross_attention, "f": feed_forward}
        for name, norm in zip(order, (norm_1, norm_2, norm_3), strict=False):
            x = steps[name](x, memory, parts[name], norm)
        return x

    return function


def _pre_norm(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    x = x + self_attention(norm_1(x))
    x = x + cross_attention(norm_2(x), memory, memory)
    return x + feed_forward(norm_3(x))


def _norm_of_the_result(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    x = x + norm_1(self_attention(x))
    x = x + norm_2(cross_attention(x, memory, memory))
    return x + norm_3(feed_forward(x))


def _wired(residuals=(0, 1, 2), inputs=(0, 1, 2)):
    """Return the decoder layer whose sub-layer i reads state inputs[i] and is added to state residuals[i].

    State 0 is x, state 1 the output of the first sub-layer with its norm, state 2 that of the second.
    """

    def function(x, memory, self_attention, cross_attention, feed_forward, *norms):
        states = [x]
        sublayers = (self_attention, lambda query: cross_attention(query, memory, memory), feed_forward)
        for sublayer, norm, residual, given in zip(sublayers, norms, residuals, inputs, strict=True):
            states.append(norm(states[residual] + sublayer(states[given])))
        return states[-1]

    return function


def _parallel(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    x = norm_2(norm_1(x + self_attention(x) + cross_attention(x, memory, memory)))
    return norm_3(x + feed_forward(x))


def _norms(*places):
    """Return the decoder layer with the norms at these places, counted from 0."""

    def function(x, memory, self_attention, cross_attention, feed_forward, *norms):
        first, second, third = (norms[place] for place in places)
        return decoder_layer(x, memory, self_attention, cross_attention, feed_forward, first, second, third)

    return function


EXERCISE_2 = Exercise(
    "11.2",
    "A decoder layer",
    10,
    2,
    decoder_layer,
    _layer_cases,
    (
        Mistake(
            "pre-norm",
            _pre_norm,
            "You normalised before each sub-layer (pre-norm); asked for is the norm after each addition.",
        ),
        Mistake(
            "norm of the result alone",
            _norm_of_the_result,
            "You normalised each sub-layer's result before you added it; add first, then normalise the sum.",
        ),
        Mistake(
            "no norms",
            lambda x, m, s, c, f, n1, n2, n3: decoder_layer(x, m, s, c, f, *[lambda y: y] * 3),
            "The norms are missing: norm_1, norm_2 and norm_3 each normalise one of the three sums.",
        ),
        Mistake(
            "neither cross-attention nor its norm",
            lambda x, m, s, c, f, n1, n2, n3: n3((y := n1(x + s(x))) + f(y)),
            "The cross-attention is missing, and norm_2 with it: memory never enters.",
        ),
        Mistake(
            "feed-forward before cross",
            _layer(order="sfc"),
            "The feed-forward network came before the cross-attention; it is the last of the three.",
        ),
        Mistake(
            "first residual twice",
            _wired(residuals=(0, 0, 2)),
            "The residual of the cross-attention adds the layer's input x; it adds what norm_1 returned.",
        ),
        Mistake(
            "input at the end",
            _wired(residuals=(0, 1, 0)),
            "The last residual adds the layer's input x; it adds what norm_2 returned.",
        ),
        Mistake(
            "older residual",
            _wired(residuals=(0, 1, 1)),
            "The last residual adds what went into the cross-attention; it adds what goes into feed_forward.",
        ),
        Mistake(
            "cross first",
            _layer(order="csf"),
            "The cross-attention came first; the target reads itself before it reads the source.",
        ),
        Mistake(
            "no residual around cross-attention",
            _layer(second=lambda x, m, f, norm: norm(f(x, m, m))),
            "The residual around the cross-attention is missing: add what went in.",
        ),
        Mistake(
            "no norm after cross-attention",
            _layer(second=lambda x, m, f, norm: x + f(x, m, m)),
            "norm_2, which follows the cross-attention, is missing; there is one norm per sub-layer.",
        ),
        Mistake(
            "no norm at the end",
            _layer(third=lambda x, m, f, norm: x + f(x)),
            "norm_3, which follows the feed-forward network, is missing.",
        ),
        Mistake("no cross-attention", _layer(order="sf"), "That is an encoder layer: nothing reads memory."),
        Mistake(
            "in parallel",
            _parallel,
            "Both attentions got the same x; the cross-attention gets what comes out of the first norm.",
        ),
        Mistake(
            "cross reads x",
            _wired(inputs=(0, 0, 2)),
            "The cross-attention got the layer's input x; it gets what the first norm returned.",
        ),
        Mistake(
            "one norm",
            _layer(first=lambda x, m, f, norm: x + f(x), second=lambda x, m, f, norm: x + f(x, m, m)),
            "There is one norm, at the end; each of the three sub-layers is followed by one.",
        ),
        Mistake(
            "one residual",
            _wired(residuals=(0, 0, 0)),
            "You added the layer's input x each time; each residual adds the input of its own sub-layer.",
        ),
        Mistake(
            "memory asks",
            _layer(second=lambda x, m, f, norm: norm(x + f(m, x, x))),
            "memory asked and x was read; the query is x, key and value are memory.",
        ),
        Mistake(
            "reads itself",
            _layer(second=lambda x, m, f, norm: norm(x + f(x, x, x))),
            "The cross-attention got x for key and value, so it read the target: key and value are memory.",
        ),
        Mistake(
            "x as value",
            _layer(second=lambda x, m, f, norm: norm(x + f(x, m, x))),
            "The value of the cross-attention is x; it is memory, like the key.",
        ),
        Mistake(
            "x as key",
            _layer(second=lambda x, m, f, norm: norm(x + f(x, x, m))),
            "The key of the cross-attention is x; it is memory, like the value.",
        ),
        Mistake(
            "memory in all three places",
            _layer(second=lambda x, m, f, norm: norm(x + f(m, m, m))),
            "The cross-attention got memory for its query, too; it is the target that asks.",
        ),
        Mistake(
            "no residuals",
            lambda x, m, s, c, f, n1, n2, n3: n3(f(n2(c(n1(s(x)), m, m)))),
            "The residuals are missing: each sub-layer's result is added to what went in.",
        ),
        Mistake(
            "no residual around self-attention",
            _layer(first=lambda x, m, f, norm: norm(f(x))),
            "The residual around the self-attention is missing: add what went in.",
        ),
        Mistake(
            "no residual around the feed-forward network",
            _layer(third=lambda x, m, f, norm: norm(f(x))),
            "The residual around the feed-forward network is missing: add what went in.",
        ),
        Mistake(
            "no norm after self-attention",
            _layer(first=lambda x, m, f, norm: x + f(x)),
            "norm_1, which follows the self-attention, is missing; there is one norm per sub-layer.",
        ),
        Mistake("no feed-forward network", _layer(order="sc"), "The feed-forward network is missing."),
        Mistake(
            "one norm three times",
            _norms(0, 0, 0),
            "norm_1 is used three times; each sub-layer has a norm of its own: norm_1, norm_2, norm_3.",
        ),
        Mistake(
            "first norms swapped", _norms(1, 0, 2), "norm_1 and norm_2 are swapped: norm_1 follows self-attention."
        ),
        Mistake(
            "last norms swapped", _norms(0, 2, 1), "norm_2 and norm_3 are swapped: norm_2 follows the cross-attention."
        ),
        Mistake(
            "norms in reverse", _norms(2, 1, 0), "norm_1 and norm_3 are swapped: norm_1 follows the self-attention."
        ),
        Mistake("second norm twice", _norms(0, 1, 1), "norm_2 is used twice; norm_3 follows the feed-forward network."),
        Mistake("first norm twice", _norms(0, 0, 2), "norm_1 is used twice; norm_2 is that of the cross-attention."),
    ),
    gradients=("x", "memory"),
    part="decoder_layer",
)


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


def _step(scale=lambda keys: keys.shape[3] ** 0.5, axis=-1, project=True, split=None):
    """Return one cached step, each slip a switch."""

    def function(x_new, keys, values, W_Q, W_O):
        heads = keys.shape[1]
        cut = split or (lambda q: q.unflatten(-1, (heads, -1)))
        query = cut(x_new @ W_Q) if split is None else split(x_new @ W_Q, heads)
        weights = torch.softmax(query[:, :, None, :] @ keys.mT / scale(keys), dim=axis)
        merged = (weights @ values)[:, :, 0].flatten(1)
        return merged @ W_O if project else merged

    return function


def _mean_of_values(x_new, keys, values, W_Q, W_O):
    return values.mean(dim=2).flatten(1) @ W_O


def _all_heads_one_query(x_new, keys, values, W_Q, W_O):
    width = keys.shape[3]
    return step_from_cache(x_new, keys, values, W_Q[:, :width].repeat(1, keys.shape[1]), W_O)


def _sum_of_heads(x_new, keys, values, W_Q, W_O):
    merged = step_from_cache(x_new, keys, values, W_Q, torch.eye(len(W_O)))
    return merged.unflatten(1, (keys.shape[1], -1)).sum(dim=1) @ W_O[: values.shape[3]]


def _shared_weights(x_new, keys, values, W_Q, W_O):
    query = (x_new @ W_Q).unflatten(-1, (keys.shape[1], 1, -1))
    weights = torch.softmax(query @ keys.mT / keys.shape[3] ** 0.5, dim=-1).mean(dim=1, keepdim=True)
    return (weights @ values).flatten(1) @ W_O


def _one_wide_head(x_new, keys, values, W_Q, W_O):
    wide_keys, wide_values = (part.transpose(1, 2).flatten(2)[:, None] for part in (keys, values))
    return step_from_cache(x_new, wide_keys, wide_values, W_Q, W_O)


EXERCISE_3 = Exercise(
    "11.3",
    "One step from the cache",
    10,
    2,
    step_from_cache,
    _step_cases,
    (
        Mistake("unscaled", _step(lambda keys: 1.0), "The scores are not divided by √d_k."),
        Mistake(
            "all widths",
            _step(lambda keys: (keys.shape[1] * keys.shape[3]) ** 0.5),
            "You divided by the root of all heads' width together; d_k is the width of one head.",
        ),
        Mistake(
            "values' root",
            _step(lambda keys: keys.shape[2] ** 0.5),
            "You divided by the root of src_len; it is the width of one key that counts.",
        ),
        Mistake(
            "axis",
            _step(axis=-2),
            "There is one query, and your softmax runs over it: every weight is 1. It has to run over the memory rows.",
        ),
        Mistake(
            "no root", _step(lambda keys: keys.shape[3]), "You divided by d_k; the scores are divided by its root."
        ),
        Mistake(
            "root of d_v",
            lambda x, K, V, Q, W: _step(lambda keys: V.shape[3] ** 0.5)(x, K, V, Q, W),
            "You divided by √d_v, the width of a value; d_k is the width of one key.",
        ),
        Mistake(
            "one set of weights",
            _shared_weights,
            "All heads read with the mean of their weights; each head has weights of its own.",
        ),
        Mistake(
            "with a residual",
            lambda x, K, V, Q, W: x + step_from_cache(x, K, V, Q, W),
            "You added x_new; the residual belongs to the layer around this, so return the attention's output alone.",
        ),
        Mistake(
            "mean of the heads",
            lambda x, K, V, Q, W: _sum_of_heads(x, K, V, Q, W) / K.shape[1],
            "You took the mean of the heads before W_O; they stand side by side.",
        ),
        Mistake("no W_O", _step(project=False), "The heads stand side by side, but W_O is missing."),
        Mistake(
            "interleaved",
            _step(split=lambda q, n: q.unflatten(-1, (-1, n)).transpose(1, 2)),
            "You dealt the query's columns out in turn; head 0 gets the first d_k columns, head 1 the next.",
        ),
        Mistake("uniform", _mean_of_values, "Every memory row got the same weight; the query must choose."),
        Mistake(
            "one query", _all_heads_one_query, "All heads asked with head 0's query; each has its own d_k columns."
        ),
        Mistake("sum", _sum_of_heads, "You added the heads up before W_O; they stand side by side."),
        Mistake(
            "root of d_model",
            lambda x, K, V, Q, W: _step(lambda keys: x.shape[1] ** 0.5)(x, K, V, Q, W),
            "You divided by √d_model; d_k is the width of one key.",
        ),
        Mistake(
            "over the heads",
            _step(axis=1),
            "The softmax runs over the heads (axis 1); it has to run over the memory rows.",
        ),
        Mistake(
            "over the sentences",
            _step(axis=0),
            "The softmax runs over the sentences (axis 0); it has to run over the memory rows.",
        ),
        Mistake(
            "no softmax",
            lambda x, K, V, Q, W: (
                ((x @ Q).unflatten(-1, (K.shape[1], 1, -1)) @ K.mT @ V).flatten(1) @ W / K.shape[3] ** 0.5
            ),
            "You used the scores themselves as weights; take their softmax over the memory rows.",
        ),
        Mistake(
            "one wide head",
            _one_wide_head,
            "You joined the keys of all heads to one wide key; each head has scores and a softmax of its own.",
        ),
        Mistake(
            "merged in turn",
            lambda x, K, V, Q, W: step_from_cache(
                x, K, V, Q, W.unflatten(0, (-1, K.shape[1])).transpose(0, 1).flatten(0, 1)
            ),
            "You merged the heads' columns in turn; put all of head 0 first, then all of head 1.",
        ),
    ),
    gradients=("x_new", "keys", "values", "W_Q", "W_O"),
)


# 11.4 Read an alignment ----------------------------------------------------------------------------------------------


def alignment(weights, src_tokens, tgt_tokens):
    """Return for each written token the source token that is read most for it, as a list of tuples (tgt, src).

    weights: [n_heads, tgt_len, src_len], cross-attention; take the mean over the heads. src_tokens: src_len strings.
    tgt_tokens: tgt_len + 1 strings, from "<bos>" to "<eos>"; row t of the weights reads the t-th of them.
    """
    pairs = []
    for t in range(weights.shape[1]):
        shares = [sum(weights[h, t, j].item() for h in range(len(weights))) for j in range(len(src_tokens))]
        pairs.append((tgt_tokens[t + 1], src_tokens[shares.index(max(shares))]))
    return pairs


def _alignment_case(label, seed, n_heads, source, target):
    src, tgt = source.split(), ["<bos>", *target.split(), "<eos>"]
    scores = normal(seed, (n_heads, len(tgt) - 1, len(src)))[0]
    return Case(label, (torch.softmax(2 * scores, dim=-1), src, tgt))


def _alignment_cases():
    return [
        _alignment_case("one word written, 2 read", 130, 2, "Not me", "nein"),
        _alignment_case("4 source tokens, 3 heads", 131, 3, "Show me the money", "Zeig mir das Geld"),
        _alignment_case("one head", 132, 1, "the man saw the bank .", "der Mann sah das Ufer ."),
        _alignment_case("a long source", 133, 2, "near the river , the man saw a small bank .", "er sah sie"),
        _alignment_case("5 heads, a short source", 134, 5, "see it", "das ist eine viel zu lange Antwort"),
        _alignment_case("a word written twice", 136, 2, "a man saw the bank .", "das Ufer und das Geld ."),
    ]


def _aligned(pick=lambda w: w.mean(dim=0), shift=1, best=torch.argmax):
    def function(weights, src_tokens, tgt_tokens):
        chosen = best(pick(weights), dim=-1).tolist()
        return [(tgt_tokens[t + shift], src_tokens[j]) for t, j in enumerate(chosen)]

    return function


def _per_source(weights, src_tokens, tgt_tokens):
    chosen = weights.mean(dim=0).argmax(dim=0).tolist()
    return [(tgt_tokens[t + 1], src_tokens[j]) for j, t in enumerate(chosen)]


def _first_place(weights, src_tokens, tgt_tokens):
    chosen = weights.mean(dim=0).argmax(dim=-1).tolist()
    return [(word, src_tokens[chosen[tgt_tokens.index(word) - 1]]) for word in tgt_tokens[1:]]


def _indices(weights, src_tokens, tgt_tokens):
    return [(word, j) for word, j in zip(tgt_tokens[1:], weights.mean(dim=0).argmax(dim=-1).tolist(), strict=True)]


EXERCISE_4 = Exercise(
    "11.4",
    "Read an alignment",
    10,
    2,
    alignment,
    _alignment_cases,
    (
        Mistake(
            "reads",
            _aligned(shift=0),
            "You paired each row with the token that it reads; what it looks for is the token that it writes, "
            "one further.",
        ),
        Mistake("first head", _aligned(lambda w: w[0]), "You took the first head; take the mean over all heads."),
        Mistake("last head", _aligned(lambda w: w[-1]), "You took the last head; take the mean over all heads."),
        Mistake(
            "strongest head",
            _aligned(lambda w: w.amax(dim=0)),
            "You took the largest weight of any head; take the mean over the heads.",
        ),
        Mistake("least", _aligned(best=torch.argmin), "You chose the source token that is read least."),
        Mistake(
            "per source token",
            _per_source,
            "You went through the source tokens; asked for is one pair per written token, with the largest "
            "weight of its row.",
        ),
        Mistake(
            "majority",
            _aligned(lambda w: torch.nn.functional.one_hot(w.argmax(dim=-1), w.shape[-1]).sum(dim=0)),
            "You let each head vote for its own largest weight; take the mean of the weights first.",
        ),
        Mistake(
            "a dictionary",
            lambda w, s, t: list(dict(alignment(w, s, t)).items()),
            "A dictionary keeps one entry per word, and a word may be written twice; make a list, one pair per row.",
        ),
        Mistake(
            "by its first place",
            _first_place,
            "A word may be written twice, and index finds the first place each time; go through the rows instead.",
        ),
        Mistake("indices", _indices, "You returned positions; look the source token up."),
        Mistake(
            "swapped",
            lambda w, s, t: [(b, a) for a, b in alignment(w, s, t)],
            "The pairs are the other way round: the written token comes first, then the source token.",
        ),
        Mistake(
            "no end",
            lambda w, s, t: alignment(w, s, t)[:-1],
            "The last row is missing; it writes the last token, <eos>.",
        ),
    ),
)


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


def _plain_mean(weights, grad_weights):
    return grad_weights.mean(dim=-1, keepdim=True)


def _over_queries(weights, grad_weights):
    return (weights * grad_weights).sum(dim=0, keepdim=True)


def _gradient(
    by_key=1.0, by_value=1.0, scale=True, shared=True, softmax=True, inner_of=None, power=0.5, first_power=0.5
):
    def function(x, memory, W_Q, W_K, W_V, grad_output):
        query, root = x @ W_Q, W_K.shape[1] ** power
        weights = torch.softmax(query @ (memory @ W_K).T / W_K.shape[1] ** first_power, dim=-1)
        grad_weights = grad_output @ (memory @ W_V).T
        inner = (weights * grad_weights).sum(dim=-1, keepdim=True) if shared else 0.0
        inner = inner_of(weights, grad_weights) if inner_of else inner
        grad_scores = weights * (grad_weights - inner) if softmax else grad_weights
        grad_key = grad_scores.T @ query / (root if scale else 1.0)
        return by_key * grad_key @ W_K.T + by_value * weights.T @ grad_output @ W_V.T

    return function


EXERCISE_5 = Exercise(
    "11.5",
    "The gradient of the memory",
    15,
    3,
    memory_gradient,
    _gradient_cases,
    (
        Mistake(
            "values only",
            _gradient(by_key=0.0),
            "Only the route through the values is there; memory is read twice, as keys too.",
        ),
        Mistake(
            "keys only",
            _gradient(by_value=0.0),
            "Only the route through the keys is there; memory is read twice, as values too.",
        ),
        Mistake("difference", _gradient(by_key=-1.0), "The two routes are subtracted; the gradients of two uses add."),
        Mistake("mean", _gradient(0.5, 0.5), "You took the mean of the two routes; the gradients of two uses add."),
        Mistake(
            "plain mean",
            _gradient(inner_of=_plain_mean),
            "In the softmax's gradient you subtract the plain mean; subtract each row's Σ weights · grad_weights.",
        ),
        Mistake(
            "sum without weights",
            _gradient(inner_of=lambda weights, grad: grad.sum(dim=-1, keepdim=True)),
            "In the softmax's gradient you subtract the sum of grad_weights; each of them counts with its weight.",
        ),
        Mistake(
            "diagonal",
            _gradient(inner_of=lambda weights, grad: weights * grad),
            "You used only the diagonal of the softmax's Jacobian; raising one score also lowers the other weights.",
        ),
        Mistake(
            "no root at the start",
            _gradient(first_power=0.0),
            "The weights are not those of the head: divide the scores by √d_k before the softmax.",
        ),
        Mistake(
            "no root anywhere",
            _gradient(first_power=0.0, power=0.0),
            "√d_k is missing twice: the scores are divided by it, and so is the route through the keys.",
        ),
        Mistake(
            "over queries",
            _gradient(inner_of=_over_queries),
            "In the softmax's gradient you add up over the queries; each query has a row of its own: sum over axis -1.",
        ),
        Mistake(
            "root twice", _gradient(power=1.0), "You divided the route through the keys by d_k; its root belongs there."
        ),
        Mistake("no root", _gradient(scale=False), "The route through the keys must be divided by √d_k, once."),
        Mistake(
            "no shared part",
            _gradient(shared=False),
            "The softmax's gradient lacks its second term: subtract each row's Σ weights · grad_weights.",
        ),
        Mistake(
            "no softmax",
            _gradient(softmax=False),
            "The gradient of the weights went to the scores as it is; it must pass the softmax.",
        ),
    ),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
