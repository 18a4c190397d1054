"""The exercises of notebook 18: the whole Transformer by hand. Its arrays are NumPy's."""

from __future__ import annotations

import math

import numpy as np

from .model import Case, Exercise, Mistake, arrays, integers

# 18.1 A linear map, backwards ----------------------------------------------------------------------------------------


def linear_backward(g_y, x, weight):
    """Return the gradients (g_x, g_weight, g_bias) of y = x weight' + bias, given g_y, that of y.

    g_y: [..., d_out]; x: [..., d_in]; weight: [d_out, d_in], NumPy arrays.
    g_x: [..., d_in]; g_weight: [d_out, d_in]; g_bias: [d_out].
    """
    tokens = tuple(range(x.ndim - 1))
    g_weight = np.tensordot(g_y, x, axes=(tokens, tokens))
    return np.einsum("...o,oi->...i", g_y, weight), g_weight, g_y.sum(axis=tokens)


def _linear_cases():
    def case(label, seed, d_out, d_in, *tokens):
        return Case(label, tuple(arrays(seed, (*tokens, d_out), (*tokens, d_in), (d_out, d_in))))

    return [
        case("one sentence of 2 tokens", 1801, 2, 3, 2),
        case("a single token", 1802, 11, 13),
        case("5 tokens, d_in = d_out", 1803, 3, 3, 5),
        case("a batch of 2", 1804, 11, 5, 2, 7),
        case("a batch of 3, as many tokens as outputs", 1805, 5, 7, 3, 5),
        case("a batch of 2 with 3 heads", 1806, 7, 2, 2, 3, 5),
    ]


def _tokens(x):
    return math.prod(x.shape[:-1])


def _linear_with(g_x=None, g_weight=None, g_bias=None):
    """Return the backward pass where one of the three results is another one."""

    def function(g_y, x, weight):
        parts = zip((g_x, g_weight, g_bias), linear_backward(g_y, x, weight), strict=True)
        return tuple(part(g_y, x, weight) if part else right for part, right in parts)

    return function


def _divided(count):
    def function(g_y, x, weight):
        g_x, g_weight, g_bias = linear_backward(g_y, x, weight)
        return g_x, g_weight / count(x), g_bias / count(x)

    return function


EXERCISE_1 = Exercise(
    "18.1",
    "A linear map, backwards",
    10,
    2,
    linear_backward,
    _linear_cases,
    (
        Mistake(
            "weight transposed",
            _linear_with(g_x=lambda g, x, w: g @ w.T),
            "g_x is g_y @ weight: the forward pass transposed the matrix, so the way back does not.",
        ),
        Mistake(
            "g_weight transposed",
            _linear_with(g_weight=lambda g, x, w: x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, g.shape[-1])),
            "Your g_weight is transposed: its rows belong to the outputs, as those of weight do.",
        ),
        Mistake(
            "mean over tokens",
            _divided(_tokens),
            "You took the mean over the tokens for g_weight and g_bias. Each token asks for its own change, and they "
            "add up (the loss has done its own averaging).",
        ),
        Mistake(
            "mean over the batch",
            _divided(lambda x: len(x) if x.ndim > 1 else 1),
            "You divided g_weight and g_bias by the length of the first axis; the gradients of all tokens add up.",
        ),
        Mistake(
            "bias over the batch",
            _linear_with(g_bias=lambda g, x, w: g.sum(axis=0) if g.ndim > 1 else g),
            "For g_bias you added up over the first axis alone; every axis but the last one holds tokens.",
        ),
        Mistake(
            "bias over the first axis",
            _linear_with(g_bias=lambda g, x, w: g.sum(0)),
            "For g_bias add up over every axis but the last, however many there are: reshape(-1, d_out).sum(0).",
        ),
        Mistake(
            "bias over two axes",
            _linear_with(g_bias=lambda g, x, w: g.sum((0, 1))),
            "For g_bias you added up over two axes; there may be one or three of tokens: reshape(-1, d_out).sum(0).",
        ),
        Mistake(
            "bias in one number",
            _linear_with(g_bias=lambda g, x, w: g.sum()),
            "Your g_bias is a single number: add up over the tokens, not over the outputs (the last axis).",
        ),
        Mistake(
            "bias over the features",
            _linear_with(g_bias=lambda g, x, w: g.sum(axis=-1)),
            "For g_bias you added up over the last axis, the outputs; every other axis holds tokens.",
        ),
        Mistake(
            "bias not summed",
            _linear_with(g_bias=lambda g, x, w: g),
            "You returned g_y as g_bias. The same bias is added to every token, so it gets the sum over the tokens.",
        ),
        Mistake(
            "last token",
            _linear_with(
                g_weight=lambda g, x, w: np.outer(g.reshape(-1, len(w))[-1], x.reshape(-1, w.shape[1])[-1]),
                g_bias=lambda g, x, w: g.reshape(-1, len(w))[-1],
            ),
            "Your g_weight and g_bias hold only what the last token asks for: add, do not overwrite.",
        ),
        Mistake(
            "outer of all",
            _linear_with(g_weight=lambda g, x, w: np.outer(g, x)),
            "np.outer flattens its arguments, so every token meets every other. Make tables with a row per token, and "
            "multiply: rows.T @ rows_of_x.",
        ),
        Mistake(
            "batch not summed",
            _linear_with(g_weight=lambda g, x, w: g.swapaxes(-1, -2) @ x if g.ndim > 1 else np.outer(g, x)),
            "Right for one sentence, but with a batch your g_weight has one matrix per sentence: add them up.",
        ),
        Mistake(
            "weight for x",
            _linear_with(g_x=lambda g, x, w: x),
            "You returned x itself as g_x. The gradient of the input comes from g_y and the matrix.",
        ),
        Mistake(
            "order",
            lambda g, x, w: (lambda a, b, c: (b, a, c))(*linear_backward(g, x, w)),
            "g_x and g_weight have changed places: return (g_x, g_weight, g_bias).",
        ),
    ),
    returns=("g_x", "g_weight", "g_bias"),
    part="linear_backward",
)


# 18.2 A gradient check -----------------------------------------------------------------------------------------------


def numerical_gradient(loss, x, delta):
    """Return the gradient of `loss` at x with central differences, (loss(x + δ) - loss(x - δ)) / 2δ entry by entry.

    loss: a function of an array that returns a number; x: a NumPy array of any shape; delta: the step, to both sides.
    Returns an array of the shape of x. The array x must be exactly the same afterwards as before.
    """
    slopes = []
    for moved in np.eye(x.size).reshape(x.size, *x.shape):
        slopes.append((loss(x + delta * moved) - loss(x - delta * moved)) / (2 * delta))
    return np.array(slopes).reshape(x.shape)


def _loss_of(factors, mixing):
    """Return a loss that is no sum over entries, and bends: its slopes depend on the step and on all other entries."""

    def loss(x):
        mixed = mixing @ x.reshape(-1)
        return float((factors * (mixed**3 + np.sin(x.reshape(-1)))).sum())

    return loss


def _numerical_cases():
    def case(label, seed, h, *shape):
        size = math.prod(shape)
        x, factors, mixing = arrays(seed, shape, (size,), (size, size))
        return Case(label, (_loss_of(factors, mixing / math.sqrt(size)), x, h))

    return [
        case("3 numbers, δ = 0.1", 1811, 0.1, 3),
        case("a single number, δ = 0.5", 1812, 0.5, 1),
        case("a matrix, δ = 0.01", 1813, 0.01, 2, 3),
        case("a square matrix, δ = 0.2", 1814, 0.2, 3, 3),
        case("three axes, δ = 0.05", 1815, 0.05, 2, 3, 5),
    ]


def _moved_one_by_one(slope):
    """Return the slopes where `slope(loss, x, index, h)` is the one at an index."""

    def function(loss, x, h):
        x, g_x = x.copy(), np.zeros_like(x)
        for index in np.ndindex(x.shape):
            g_x[index] = slope(loss, x, index, h)
        return g_x

    return function


def _at(loss, x, index, value):
    moved = x.copy()
    moved[index] = value
    return loss(moved)


def _in_place(loss, x, h, back):
    """Move each entry of x itself, and then by `back` steps."""
    g_x = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        x[index] += h
        above = loss(x)
        x[index] -= 2 * h
        g_x[index] = (above - loss(x)) / (2 * h)
        x[index] += back * h
    return g_x


def _central(loss, x, index, h, width):
    return (_at(loss, x, index, x[index] + h) - _at(loss, x, index, x[index] - h)) / width


def _whole_rows(loss, x, h):
    g_x = np.zeros_like(x)
    for row in range(len(x)):
        ends = [_at(loss, x, row, x[row] + step) for step in (h, -h)]
        g_x[row] = (ends[0] - ends[1]) / (2 * h)
    return g_x


EXERCISE_2 = Exercise(
    "18.2",
    "A gradient check",
    10,
    2,
    numerical_gradient,
    _numerical_cases,
    (
        Mistake(
            "forward difference",
            _moved_one_by_one(lambda loss, x, i, h: (_at(loss, x, i, x[i] + h) - loss(x)) / h),
            "That is the slope from x to x + δ. Step to both sides: its error falls with δ², yours only with δ.",
        ),
        Mistake(
            "backward difference",
            _moved_one_by_one(lambda loss, x, i, h: (loss(x) - _at(loss, x, i, x[i] - h)) / h),
            "That is the slope from x − δ to x. Step to both sides: its error falls with δ², yours only with δ.",
        ),
        Mistake(
            "divided by h",
            _moved_one_by_one(lambda loss, x, i, h: _central(loss, x, i, h, h)),
            "From x − δ to x + δ it is 2δ: every slope of yours is twice the right one.",
        ),
        Mistake(
            "times h",
            _moved_one_by_one(lambda loss, x, i, h: _central(loss, x, i, h, 2) * h),
            "In Python a / 2 * delta is (a / 2) * delta: write a / (2 * delta).",
        ),
        Mistake(
            "sign",
            _moved_one_by_one(lambda loss, x, i, h: _central(loss, x, i, -h, 2 * h)),
            "The sign is flipped: the loss at x + δ comes first.",
        ),
        Mistake(
            "half a step",
            _moved_one_by_one(lambda loss, x, i, h: _central(loss, x, i, h / 2, h)),
            "You step by δ / 2 to each side; the step δ goes to both sides.",
        ),
        Mistake(
            "not divided",
            _moved_one_by_one(lambda loss, x, i, h: _central(loss, x, i, h, 1)),
            "You returned the differences of the loss; divide them by the way between the two points, 2δ.",
        ),
        Mistake(
            "own step",
            _moved_one_by_one(lambda loss, x, i, h: _central(loss, x, i, 1e-5, 2e-5)),
            "You use a step of your own; take the one that is given, delta.",
        ),
        Mistake(
            "left moved",
            lambda loss, x, h: _in_place(loss, x, h, back=0),
            "Put each entry back before you move the next one: in your function those before it stay at x − δ.",
        ),
        Mistake(
            "added back",
            lambda loss, x, h: _in_place(loss, x, h, back=1),
            "Right values, but x is not exactly the same afterwards. Adding and subtracting δ leaves a rounding error: "
            "keep the entry before you move it, and put it back.",
        ),
        Mistake(
            "one step back",
            _moved_one_by_one(lambda loss, x, i, h: (_at(loss, x, i, x[i] + h) - loss(x)) / (2 * h)),
            "You compare x + δ with x, but divide by 2δ: from x + δ it is two steps back to x − δ.",
        ),
        Mistake(
            "one number",
            lambda loss, x, h: (loss(x + h) - loss(x - h)) / (2 * h),
            "You moved all entries at once, which gives one slope. Move one at a time, and return a slope for each.",
        ),
        Mistake(
            "all at once",
            lambda loss, x, h: np.full_like(x, (loss(x + h) - loss(x - h)) / (2 * h)),
            "You moved all entries at once, and gave each the slope of them all. Move one entry at a time.",
        ),
        Mistake(
            "whole rows",
            _whole_rows,
            "Right for one axis, but with more you move whole rows: go through every index (np.ndindex).",
        ),
    ),
    rtol=1e-5,
)


# 18.3 The embedding table, backwards ---------------------------------------------------------------------------------


def embedding_backward(g_x, ids, vocab_size):
    """Return the gradient of the table, given that of x = table[ids] · √d_model.

    g_x: [batch, seq_len, d_model], a NumPy array; ids: [batch, seq_len], integers below vocab_size.
    Returns [vocab_size, d_model]; rows of words that do not occur are 0.
    """
    chosen = np.eye(vocab_size)[ids.reshape(-1)]  # [tokens, vocab_size], a 1 where token t is word v
    return chosen.T @ g_x.reshape(len(chosen), -1) * math.sqrt(g_x.shape[-1])


THE_MAN_SAW_THE_BANK = [[0, 1, 2, 0, 3]]


def _embedding_cases():
    def case(label, seed, ids, d_model, vocab_size):
        ids = np.array(ids)
        return Case(label, (*arrays(seed, (*ids.shape, d_model)), ids, vocab_size))

    drawn = [integers(seed, shape, 0, 5).numpy() for seed, shape in ((1826, (2, 5)), (1827, (3, 7)))]
    return [
        case("the man saw the bank", 1821, THE_MAN_SAW_THE_BANK, 3, 4),
        case("no word twice", 1822, [[2, 0, 1]], 2, 5),
        case("one word again and again", 1823, [[1, 1, 1]], 3, 3),
        case("a word in both sentences", 1824, [[3, 1], [0, 3]], 5, 4),
        case("words at random", 1825, drawn[0], 7, 5),
        case("more words at random, unused ones", 1826, drawn[1], 11, 13),
    ]


def _written(g_x, ids, vocab_size):
    g_table = np.zeros((vocab_size, g_x.shape[-1]))
    g_table[ids] = g_x
    return g_table * math.sqrt(g_x.shape[-1])


def _by_sentence(g_x, ids, vocab_size):
    g_table = np.zeros((vocab_size, g_x.shape[-1]))
    for rows, words in zip(g_x, ids, strict=True):
        own = embedding_backward(rows[None], words[None], vocab_size)
        g_table[words] = own[words]
    return g_table


def _meaned(g_x, ids, vocab_size):
    counts = np.bincount(ids.reshape(-1), minlength=vocab_size)
    return embedding_backward(g_x, ids, vocab_size) / np.maximum(counts, 1)[:, None]


def _times(factor):
    return lambda g, ids, v: embedding_backward(g, ids, v) * factor(g.shape[-1], v)


EXERCISE_3 = Exercise(
    "18.3",
    "The embedding table, backwards",
    8,
    2,
    embedding_backward,
    _embedding_cases,
    (
        Mistake(
            "last place wins",
            _written,
            "A word that stands in several places gets only what the last of them asks for: g_table[ids] += … reads "
            "the old row once and writes it again and again. np.add.at adds every place.",
        ),
        Mistake(
            "last place wins, no root",
            lambda g, ids, v: _written(g, ids, v) / math.sqrt(g.shape[-1]),
            "Two things: g_table[ids] += … keeps one of a word's places (np.add.at adds them all), and the factor "
            "√d_model is missing.",
        ),
        Mistake(
            "last sentence wins",
            _by_sentence,
            "Right within a sentence, but a word of several sentences gets only what the last of them asks for: add.",
        ),
        Mistake(
            "no root",
            _times(lambda d, v: d**-0.5),
            "The factor √d_model is missing: the forward pass multiplied by it, so the backward pass does, too.",
        ),
        Mistake(
            "divided by the root",
            _times(lambda d, v: 1 / d),
            "You divided by √d_model; the gradient of a · √d_model is √d_model times that of the product.",
        ),
        Mistake(
            "d_model",
            _times(lambda d, v: d**0.5),
            "You multiplied by d_model; the factor of the forward pass is its root.",
        ),
        Mistake(
            "root of the vocabulary",
            _times(lambda d, v: (v / d) ** 0.5),
            "You multiplied by the root of vocab_size; the factor is √d_model, the root of the last axis.",
        ),
        Mistake(
            "mean over places",
            _meaned,
            "You took the mean over a word's places; each place asks for its own change, and they add up.",
        ),
        Mistake(
            "mean over the batch",
            lambda g, ids, v: embedding_backward(g, ids, v) / len(ids),
            "You divided by the number of sentences; each place asks for its own change, and they add up.",
        ),
        Mistake(
            "word 0 left out",
            lambda g, ids, v: embedding_backward(g, ids, v) * (np.arange(v) > 0)[:, None],
            "Your row 0 is empty, as if it were padding; here id 0 is a word like any other.",
        ),
        Mistake(
            "a table for each sentence",
            lambda g, ids, v: np.stack([embedding_backward(g[b : b + 1], ids[b : b + 1], v) for b in range(len(g))]),
            "You returned a table for each sentence; all of them use the same table, so they add up.",
        ),
        Mistake(
            "words at hand",
            lambda g, ids, v: embedding_backward(g, ids, v)[: ids.max() + 1],
            "Your table ends with the largest id that occurs; it must have vocab_size rows, 0 for words that do not.",
        ),
        Mistake(
            "first sentence",
            lambda g, ids, v: embedding_backward(g[:1], ids[:1], v),
            "Right for one sentence, but you leave out all sentences of a batch but the first.",
        ),
        Mistake(
            "transposed",
            lambda g, ids, v: embedding_backward(g, ids, v).T,
            "Your table is transposed: it has a row for each word.",
        ),
        Mistake(
            "a row for each token",
            lambda g, ids, v: g.reshape(-1, g.shape[-1]) * math.sqrt(g.shape[-1]),
            "You returned a row for each token; the table has a row for each word, where the tokens meet.",
        ),
    ),
    part="embedding_backward",
)


# 18.4 A decoder layer, backwards -------------------------------------------------------------------------------------


def decoder_layer_backward(g_y, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    """Return (g_x, g_memory) of a post-norm decoder layer, given g_y, the gradient of its output.

    g_y: [batch, tgt_len, d_model], a NumPy array. The others are the backward functions of the layer's parts; each
    takes the gradient of its output. The norms and feed_forward return that of their input; cross_attention
    returns two, for the decoder's side and for the memory; self_attention two, for its input as queries, and for its
    input as keys and values. g_x: [batch, tgt_len, d_model]; g_memory: [batch, src_len, d_model].
    """
    g_sum_3 = norm_3(g_y)  # of x_2 + FF(x_2)
    g_2 = g_sum_3 + feed_forward(g_sum_3)
    g_sum_2 = norm_2(g_2)  # of x_1 + Cross(x_1, M)
    of_queries, g_memory = cross_attention(g_sum_2)
    g_sum_1 = norm_1(g_sum_2 + of_queries)  # of x + Self(x)
    as_queries, as_keys_and_values = self_attention(g_sum_1)
    return g_sum_1 + as_queries + as_keys_and_values, g_memory


def _map(features, tokens=None):
    """Return a backward function: linear, as they all are, within tokens or between them."""
    return lambda g: g @ features if tokens is None else tokens @ g @ features


def _pair(first, second):
    return lambda g: (first(g), second(g))


def _layer_cases():
    def case(label, seed, batch, tgt_len, src_len, d_model):
        shapes = [(d_model, d_model)] * 8 + [(tgt_len, tgt_len)] * 2 + [(src_len, tgt_len)]
        g_y, *matrices = arrays(seed, (batch, tgt_len, d_model), *shapes)
        n_1, n_2, n_3, fed, q, k, cross_q, cross_k, mix_q, mix_k, mix_memory = matrices
        own = _pair(_map(q, mix_q), _map(k, mix_k))
        cross = _pair(_map(cross_q), _map(cross_k, mix_memory))
        return Case(label, (g_y, own, cross, _map(fed), _map(n_1), _map(n_2), _map(n_3)))

    return [
        case("one sentence, 2 tokens and 3 of memory", 1841, 1, 2, 3, 2),
        case("one token each", 1842, 1, 1, 1, 3),
        case("a batch of 2", 1843, 2, 3, 5, 7),
        case("memory as long as the target", 1844, 2, 5, 5, 3),
        case("a shorter memory", 1845, 3, 7, 2, 5),
    ]


def _layer(fork_3=None, fork_2=None, fork_1=None, norms=(0, 1, 2)):
    """Return the backward pass with what happens at one fork replaced, or the norms in another order."""

    def function(g_y, own, cross, fed, *given):
        norm_1, norm_2, norm_3 = (given[index] for index in norms)
        g = norm_3(g_y)
        g = norm_2((fork_3 or (lambda g, fed: g + fed(g)))(g, fed))
        of_queries, g_memory = cross(g)
        g = norm_1((fork_2 or (lambda g, of_queries, g_memory: g + of_queries))(g, of_queries, g_memory))
        return (fork_1 or (lambda g, as_queries, as_keys: g + as_queries + as_keys))(g, *own(g)), g_memory

    return function


def _without_around(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    of_queries, g_memory = cross(norm_2(fed(norm_3(g_y))))
    return sum(own(norm_1(of_queries))), g_memory


def _without_norms(g_y, own, cross, fed, *norms):
    return decoder_layer_backward(g_y, own, cross, fed, *[lambda g: g] * 3)


def _results_of_cross_swapped(g_y, own, cross, fed, *norms):
    return decoder_layer_backward(g_y, own, lambda g: cross(g)[::-1], fed, *norms)


def _stopped_early(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    g = norm_3(g_y)
    g = norm_2(g + fed(g))
    of_queries, g_memory = cross(g)
    return g + of_queries, g_memory


def _forward_order(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    g = norm_1(g_y)
    g = norm_2(g + sum(own(g)))
    of_queries, g_memory = cross(g)
    g = norm_3(g + of_queries)
    return g + fed(g), g_memory


def _pre_norm(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    g = g_y + norm_3(fed(g_y))
    of_queries, g_memory = cross(g)
    g = g + norm_2(of_queries)
    return g + norm_1(sum(own(g))), g_memory


def _norms_after_the_forks(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    of_queries, g_memory = cross(norm_3(g_y + fed(g_y)))
    g = norm_2(norm_3(g_y + fed(g_y)) + of_queries)
    return norm_1(g + sum(own(g))), g_memory


def _norm_through_only(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    g = g_y + fed(norm_3(g_y))
    of_queries, g_memory = cross(norm_2(g))
    g = g + of_queries
    return g + sum(own(norm_1(g))), g_memory


EXERCISE_4 = Exercise(
    "18.4",
    "A decoder layer, backwards",
    12,
    3,
    decoder_layer_backward,
    _layer_cases,
    (
        Mistake(
            "forward order",
            _forward_order,
            "You go through the layer in the order of the forward pass. Begin at its end, with norm_3.",
        ),
        Mistake(
            "no path around the feed-forward",
            _layer(fork_3=lambda g, fed: fed(g)),
            "The path around the feed-forward network is missing: x₂ + FF(x₂) uses x₂ twice.",
        ),
        Mistake(
            "no path through the feed-forward",
            _layer(fork_3=lambda g, fed: g),
            "Nothing comes back through the feed-forward network: x₂ + FF(x₂) uses x₂ twice.",
        ),
        Mistake(
            "no path around the cross-attention",
            _layer(fork_2=lambda g, of_queries, g_memory: of_queries),
            "The path around the cross-attention is missing: x₁ + Cross(x₁, M) uses x₁ twice.",
        ),
        Mistake(
            "no path through the cross-attention",
            _layer(fork_2=lambda g, of_queries, g_memory: g),
            "What the cross-attention returns for the decoder's side is missing: x₁ made its queries.",
        ),
        Mistake(
            "memory into the decoder",
            _layer(fork_2=lambda g, of_queries, g_memory: g + of_queries + g_memory),
            "The memory's gradient belongs to the encoder. You added it to the decoder's own, which may even have "
            "another length.",
        ),
        Mistake(
            "no path around the self-attention",
            _layer(fork_1=lambda g, as_queries, as_keys: as_queries + as_keys),
            "The path around the self-attention is missing: x + Self(x) uses x once more outside of it.",
        ),
        Mistake(
            "keys and values forgotten",
            _layer(fork_1=lambda g, as_queries, as_keys: g + as_queries),
            "The second result of self_attention is missing: x made the keys and values, too.",
        ),
        Mistake(
            "queries forgotten",
            _layer(fork_1=lambda g, as_queries, as_keys: g + as_keys),
            "The first result of self_attention is missing: x made the queries, too.",
        ),
        Mistake(
            "no path through the self-attention",
            _layer(fork_1=lambda g, as_queries, as_keys: g),
            "Nothing comes back through the self-attention: add both of its results to what goes around it.",
        ),
        Mistake(
            "pre-norm",
            _pre_norm,
            "You let only the sub-layers' results pass the norms. In this layer a norm comes after the sum, so on the "
            "way back the whole gradient passes it first, before the fork.",
        ),
        Mistake(
            "norms after the forks",
            _norms_after_the_forks,
            "You add before you go through the norm; the norm comes last on the way forward, so first on the way back.",
        ),
        Mistake(
            "norm on one branch",
            _norm_through_only,
            "The gradient that goes around a sub-layer must pass the norm as well: the norm comes after the sum.",
        ),
        Mistake(
            "no path around at all",
            _without_around,
            "The gradient goes through every sub-layer, but around none: each of the three sums uses its input twice.",
        ),
        Mistake(
            "no norm",
            _without_norms,
            "The norms are missing: each has a backward function, which comes before the fork below it.",
        ),
        Mistake(
            "norm_2 left out",
            lambda g, own, cross, fed, n_1, n_2, n_3: decoder_layer_backward(g, own, cross, fed, n_1, lambda g: g, n_3),
            "norm_2 is missing: the sum below the feed-forward network passes it on its way to the cross-attention.",
        ),
        Mistake(
            "stopped early",
            _stopped_early,
            "You stopped after the cross-attention: norm_1 and the self-attention come below it.",
        ),
        Mistake(
            "cross-attention's results swapped",
            _results_of_cross_swapped,
            "cross_attention returns the decoder's side first, and the memory second; you took them the other way.",
        ),
        Mistake(
            "norms reversed",
            _layer(norms=(2, 1, 0)),
            "norm_1 and norm_3 have changed places: the last norm of the forward pass is the first on the way back.",
        ),
        Mistake(
            "results reversed",
            lambda *args: decoder_layer_backward(*args)[::-1],
            "You returned (g_memory, g_x); the order is (g_x, g_memory).",
        ),
    ),
    returns=("g_x", "g_memory"),
    part="decoder_layer_backward",
)


# 18.5 A step of Adam -------------------------------------------------------------------------------------------------


def adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    """Return (parameter, mean, square) after a step of Adam with bias correction.

    parameter, g (its gradient), mean and square (the running means before the step): NumPy arrays of one shape;
    step: counted from 1. By default beta_1 = 0.9, beta_2 = 0.98 and eps = 1e-9.
    """
    mean = mean + (1 - beta_1) * (g - mean)
    square = square + (1 - beta_2) * (g * g - square)
    unbiased, spread = mean / (1 - beta_1**step), square / (1 - beta_2**step)
    return parameter - rate * unbiased / (spread**0.5 + eps), mean, square


def _adam_case(label, seed, shape, step, *, rate=0.01, betas=(0.9, 0.98), eps=1e-9):
    parameter, g, mean, root = arrays(seed, *[shape] * 4)
    if step == 1:
        mean, root = np.zeros(shape), np.zeros(shape)
    return Case(label, (parameter, g, mean / 2, root**2 + mean**2 / 4, step, rate, *betas, eps))


def _adam_cases():
    still = _adam_case("a gradient of 0", 1856, (3,), 1)
    still.args[1][1] = 0.0
    return [
        _adam_case("the first step", 1851, (3,), 1),
        _adam_case("the second step", 1852, (2,), 2),
        _adam_case("step 7, a matrix", 1853, (2, 3), 7, rate=0.3),
        _adam_case("step 1000", 1854, (5,), 1000, rate=0.1, betas=(0.95, 0.999)),
        _adam_case("a large ε", 1855, (2, 2), 3, rate=0.5, betas=(0.8, 0.9), eps=0.25),
        still,
    ]


def _adam(correct=(True, True), keep_corrected=False, size=lambda s, e: np.sqrt(s) + e, old=False, sign=-1):
    """Return the step with one thing done otherwise."""

    def function(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
        after = beta_1 * mean + (1 - beta_1) * g, beta_2 * square + (1 - beta_2) * g**2
        used = (mean, square) if old else after
        shares = (1 - beta**step if wanted else 1 for beta, wanted in zip((beta_1, beta_2), correct, strict=True))
        m, v = (array / share for array, share in zip(used, shares, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = parameter + sign * rate * m / size(v, eps)
        return (moved, m, v) if keep_corrected else (moved, *after)

    return function


def _with(change):
    """Return the step with other arguments."""
    names = ("parameter", "g", "mean", "square", "step", "rate", "beta_1", "beta_2", "eps")

    def function(*args):
        given = dict(zip(names, args, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            return adam_step(**given | change(given))

    return function


def _adam_corrected_late(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    _, mean, square = adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps)
    size = np.sqrt(square) / (1 - beta_2**step) + eps
    return parameter - rate * mean / (1 - beta_1**step) / size, mean, square


def _adam_in_one_rate(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    _, mean, square = adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps)
    rate *= math.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    return parameter - rate * mean / (np.sqrt(square) + eps), mean, square


def _adam_times_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    _, mean, square = adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps)
    with np.errstate(all="ignore"):
        size = np.sqrt(square / np.float64(1 - beta_2 * step)) + eps
        return parameter - rate * mean / np.float64(1 - beta_1 * step) / size, mean, square


def _shares_exchanged(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    mean, square = beta_1 * g + (1 - beta_1) * mean, beta_2 * g**2 + (1 - beta_2) * square
    size = np.sqrt(square / (1 - beta_2**step)) + eps
    return parameter - rate * mean / (1 - beta_1**step) / size, mean, square


def _adam_of_sums(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    mean, square = beta_1 * mean + g, beta_2 * square + g**2
    move = rate * mean / (1 - beta_1**step) / (np.sqrt(square / (1 - beta_2**step)) + eps)
    return parameter - move, mean, square


def _without_memory(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    _, mean, square = adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps)
    return parameter - rate * g / (np.sqrt(square / (1 - beta_2**step)) + eps), mean, square


def _unsquared(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    mean, square = beta_1 * mean + (1 - beta_1) * g, beta_2 * square + (1 - beta_2) * np.abs(g)
    size = np.sqrt(square / (1 - beta_2**step)) + eps
    return parameter - rate * mean / (1 - beta_1**step) / size, mean, square


EXERCISE_5 = Exercise(
    "18.5",
    "A step of Adam",
    8,
    2,
    adam_step,
    _adam_cases,
    (
        Mistake(
            "no correction",
            _adam(correct=(False, False)),
            "The correction is missing: for this step's move, divide each mean by 1 − β**step.",
        ),
        Mistake(
            "square not corrected",
            _adam(correct=(True, False)),
            "The mean of the squares is not corrected: it began at zero, too.",
        ),
        Mistake(
            "mean not corrected",
            _adam(correct=(False, True)),
            "The mean of the gradients is not corrected: it began at zero, too.",
        ),
        Mistake(
            "corrected means kept",
            _adam(keep_corrected=True),
            "You return the corrected means. The next step needs the running ones, or they are corrected twice.",
        ),
        Mistake(
            "ε under the root",
            _adam(size=lambda s, e: np.sqrt(s + e)),
            "You added ε under the root; it is added to the root.",
        ),
        Mistake(
            "no ε",
            _adam(size=lambda s, e: np.sqrt(s)),
            "ε is missing: where every gradient so far was 0, you divide 0 by 0.",
        ),
        Mistake(
            "no root",
            _adam(size=lambda s, e: s + e),
            "You divided by the mean of the squares; divide by its root.",
        ),
        Mistake(
            "uphill",
            _adam(sign=1),
            "You added the step; the parameter moves against its gradient.",
        ),
        Mistake(
            "old means",
            _adam(old=True),
            "You moved by the means from before this step; take its gradient into them first.",
        ),
        Mistake(
            "step from 0",
            _with(lambda given: {"step": given["step"] - 1}),
            "You corrected by the step before: `step` counts from 1, so the power is step itself.",
        ),
        Mistake(
            "step from 2",
            _with(lambda given: {"step": given["step"] + 1}),
            "You corrected by the step after: `step` counts from 1, so the power is step itself.",
        ),
        Mistake(
            "means swapped",
            lambda *args: (lambda parameter, mean, square: (parameter, square, mean))(*adam_step(*args)),
            "The two means are swapped: return (parameter, mean, square).",
        ),
        Mistake(
            "the change alone",
            lambda *args: (adam_step(*args)[0] - args[0], *adam_step(*args)[1:]),
            "You returned the change; return the parameter after it.",
        ),
        Mistake(
            "no power",
            _with(lambda given: {"step": 1}),
            "You divided by 1 − β in every step; the share that the means hold grows with the steps, 1 − β**step.",
        ),
        Mistake(
            "betas swapped",
            _with(lambda given: {"beta_1": given["beta_2"], "beta_2": given["beta_1"]}),
            "β₁ belongs to the mean of the gradients, β₂ to that of their squares; yours have changed places.",
        ),
        Mistake(
            "sums",
            _adam_of_sums,
            "The new gradient enters without its share: a running mean takes β of the old and 1 − β of the new.",
        ),
        Mistake(
            "shares exchanged",
            _shares_exchanged,
            "The shares have changed places: a running mean keeps β of the old, and takes 1 − β of the new.",
        ),
        Mistake(
            "corrected after the root",
            _adam_corrected_late,
            "You corrected the root; the mean of the squares is corrected first, under the root.",
        ),
        Mistake(
            "ε not corrected",
            _adam_in_one_rate,
            "Right but for ε: with both corrections in one rate, ε has to be multiplied by √(1 − β₂ to the power of "
            "step), as the square under the root is.",
        ),
        Mistake(
            "the move alone",
            lambda *args: (args[0] - adam_step(*args)[0], *adam_step(*args)[1:]),
            "You returned the move itself as the parameter: subtract it from the old parameter.",
        ),
        Mistake(
            "no rate",
            _with(lambda given: {"rate": 1.0}),
            "The learning rate is missing: the move is rate times the quotient.",
        ),
        Mistake(
            "times the step",
            _adam_times_step,
            "You corrected by 1 − β · step; it is β to the power of step, beta**step.",
        ),
        Mistake(
            "no momentum",
            _without_memory,
            "You moved by this step's gradient alone; Adam moves by the running mean of the gradients.",
        ),
        Mistake(
            "not squared",
            _unsquared,
            "You averaged the gradients' absolute values; average their squares.",
        ),
    ),
    returns=("parameter", "mean", "square"),
    part="adam_step",
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
