"""The exercises of notebook 18: the whole Transformer by hand. Its arrays are NumPy's."""

from __future__ import annotations

import math

import numpy as np

from .model import Case, Exercise, Mistake, arrays, integers
from .slips import slips

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


EXERCISE_1 = Exercise(
    "18.1", "A linear map, backwards", 10, 2, linear_backward, _linear_cases,
    slips(
        "g_y, x, weight", """
            rows, x_rows = g_y.reshape(-1, g_y.shape[-1]), x.reshape(-1, x.shape[-1])
            return g_y @ weight, rows.T @ x_rows, rows.sum(axis=0)
        """,
        ("weight transposed", "@ weight", "@ weight.T",
         "g_x is g_y @ weight: the forward pass transposed the matrix, so the way back does not."),
        ("g_weight transposed", "rows.T @ x_rows", "x_rows.T @ rows",
         "Your g_weight is transposed: its rows belong to the outputs, as those of weight do."),
        ("mean over tokens", "x_rows, rows.sum(axis=0)", "x_rows / len(rows), rows.mean(axis=0)",
         "You took the mean over the tokens for g_weight and g_bias. Each token asks for its own change, and they "
         "add up (the loss has done its own averaging)."),
        ("bias over the first axis", "rows.sum(axis=0)", "g_y.sum(axis=0)",
         "For g_bias add up over every axis but the last, however many there are: reshape(-1, d_out).sum(0)."),
        ("bias over two axes", "rows.sum(axis=0)", "g_y.sum(axis=(0, 1))",
         "For g_bias you added up over two axes; there may be one or three of tokens: reshape(-1, d_out).sum(0)."),
        ("outer of all", "rows.T @ x_rows", "np.outer(g_y, x)",
         "np.outer flattens its arguments, so every token meets every other. Make tables with a row per token, and "
         "multiply: rows.T @ rows_of_x."),
        ("batch not summed", "rows.T @ x_rows", "g_y.swapaxes(-1, -2) @ x",
         "Right for one sentence. With a batch your g_weight has one matrix per sentence, and a single token has no "
         "second axis to swap: make tables with a row per token, and multiply."),
    ),
    returns=("g_x", "g_weight", "g_bias"),
    part="linear_backward",
)  # fmt: skip


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


EXERCISE_2 = Exercise(
    "18.2", "A gradient check", 10, 2, numerical_gradient, _numerical_cases,
    slips(
        "loss, x, delta", """
            g_x = np.zeros_like(x)
            for index in np.ndindex(x.shape):
                step = np.zeros_like(x)
                step[index] = delta
                g_x[index] = (loss(x + step) - loss(x - step)) / (2 * delta)
            return g_x
        """,
        ("forward difference", "loss(x - step)) / (2 * delta)", "loss(x)) / delta",
         "That is the slope from x to x + δ. Step to both sides: its error falls with δ², yours only with δ."),
        ("divided by h", "(2 * delta)", "delta",
         "From x − δ to x + δ it is 2δ: every slope of yours is twice the right one."),
        ("times h", "(2 * delta)", "2 * delta", "In Python a / 2 * delta is (a / 2) * delta: write a / (2 * delta)."),
        ("all at once", "step[index]", "step[...]",
         "You moved all entries at once, and gave each the slope of them all. Move one entry at a time."),
        ("whole rows", "np.ndindex(x.shape)", "range(len(x))",
         "Right for one axis, but with more you move whole rows: go through every index (np.ndindex)."),
    )
    + slips(
        "loss, x, delta", """
            g_x = np.zeros_like(x)
            for index in np.ndindex(x.shape):
                kept = x[index]
                x[index] += delta
                above = loss(x)
                x[index] -= 2 * delta
                g_x[index] = (above - loss(x)) / (2 * delta)
                x[index] = kept
            return g_x
        """,
        ("left moved", "    x[index] = kept\n", "",
         "Put each entry back before you move the next one: in your function those before it stay at x − δ."),
        ("added back", "x[index] = kept", "x[index] += delta",
         "Right values, but x is not exactly the same afterwards. Adding and subtracting δ leaves a rounding error: "
         "keep the entry before you move it, and put it back."),
    ),
    rtol=1e-5,
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "18.3", "The embedding table, backwards", 8, 2, embedding_backward, _embedding_cases,
    slips(
        "g_x, ids, vocab_size", """
            d_model = g_x.shape[-1]
            g_table = np.zeros((vocab_size, d_model))
            np.add.at(g_table, ids, g_x)
            return g_table * math.sqrt(d_model)
        """,
        ("last place wins", "np.add.at(g_table, ids, g_x)", "g_table[ids] += g_x",
         "A word that occurs in several places gets only what the last of them asks for: g_table[ids] += … reads "
         "the old row once and writes it again and again. np.add.at adds every place."),
        ("last place wins, no root", "np.add.at(g_table, ids, g_x)\nreturn g_table * math.sqrt(d_model)",
         "g_table[ids] += g_x\nreturn g_table",
         "Two things: g_table[ids] += … keeps one of a word's places (np.add.at adds them all), and the factor "
         "√d_model is missing."),
        ("no root", " * math.sqrt(d_model)", "",
         "The factor √d_model is missing: the forward pass multiplied by it, so the backward pass does, too."),
        ("mean over places", "return g_table",
         "counts = np.bincount(ids.reshape(-1), minlength=vocab_size)\nreturn g_table / counts.clip(1)[:, None]",
         "You took the mean over a word's places; each place asks for its own change, and they add up."),
        ("words at hand", "(vocab_size, d_model)", "(ids.max() + 1, d_model)",
         "Your table ends with the largest id that occurs; it must have vocab_size rows, 0 for words that do not."),
    ),
    part="embedding_backward",
)  # fmt: skip


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


def _without_around(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    of_queries, g_memory = cross(norm_2(fed(norm_3(g_y))))
    return sum(own(norm_1(of_queries))), g_memory


def _forward_order(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    g = norm_1(g_y)
    g = norm_2(g + sum(own(g)))
    of_queries, g_memory = cross(g)
    g = norm_3(g + of_queries)
    return g + fed(g), g_memory


def _norm_through_only(g_y, own, cross, fed, norm_1, norm_2, norm_3):
    g = g_y + fed(norm_3(g_y))
    of_queries, g_memory = cross(norm_2(g))
    g = g + of_queries
    return g + sum(own(norm_1(g))), g_memory


EXERCISE_4 = Exercise(
    "18.4", "A decoder layer, backwards", 12, 3, decoder_layer_backward, _layer_cases,
    slips(
        "g_y, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3", """
            g = norm_3(g_y)
            g = norm_2(g + feed_forward(g))
            of_queries, g_memory = cross_attention(g)
            g = norm_1(g + of_queries)
            as_queries, as_keys = self_attention(g)
            return g + as_queries + as_keys, g_memory
        """,
        ("no path around the feed-forward", "g + feed_forward(g)", "feed_forward(g)",
         "The path around the feed-forward network is missing: x₂ + FF(x₂) uses x₂ twice."),
        ("no path around the cross-attention", "g + of_queries", "of_queries",
         "The path around the cross-attention is missing: x₁ + Cross(x₁, M) uses x₁ twice."),
        ("memory into the decoder", "g + of_queries", "g + of_queries + g_memory",
         "The memory's gradient belongs to the encoder. You added it to the decoder's own, which may even have "
         "another length."),
        ("keys and values forgotten", " + as_keys", "",
         "The second result of self_attention is missing: x made the keys and values, too."),
        ("cross-attention's results swapped", "of_queries, g_memory =", "g_memory, of_queries =",
         "cross_attention returns the decoder's side first, and the memory second; you took them the other way round."),
        ("norms reversed", "g = norm_3(g_y)", "norm_1, norm_3 = norm_3, norm_1\ng = norm_3(g_y)",
         "norm_1 and norm_3 have changed places: the last norm of the forward pass is the first on the way back."),
    )
    + (
        Mistake("forward order", _forward_order,
                "You go through the layer in the order of the forward pass. Begin at its end, with norm_3."),
        Mistake("norm on one branch", _norm_through_only,
                "The gradient that goes around a sub-layer must pass the norm as well: the norm comes after the sum."),
        Mistake("no path around at all", _without_around,
                "The gradient goes through every sub-layer, but around none: each of the three sums uses its input "
                "twice."),
    ),
    returns=("g_x", "g_memory"),
    part="decoder_layer_backward",
)  # fmt: skip


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


EXERCISE_5 = Exercise(
    "18.5", "A step of Adam", 8, 2, adam_step, _adam_cases,
    slips(
        "parameter, g, mean, square, step, rate, beta_1, beta_2, eps", """
            with np.errstate(all="ignore"):  # two slips divide by 0
                new_mean = beta_1 * mean + (1 - beta_1) * g
                new_square = beta_2 * square + (1 - beta_2) * g**2
                m, v = new_mean / (1 - beta_1**step), new_square / (1 - beta_2**step)
                return parameter - rate * m / (np.sqrt(v) + eps), new_mean, new_square
        """,
        ("no correction", "new_mean / (1 - beta_1**step), new_square / (1 - beta_2**step)", "new_mean, new_square",
         "The correction is missing: for this step's move, divide each mean by 1 − β**step."),
        ("corrected means kept", "eps), new_mean, new_square", "eps), m, v",
         "You return the corrected means. The next step needs the running ones, or they are corrected twice."),
        ("ε under the root", "np.sqrt(v) + eps", "np.sqrt(v + eps)",
         "You added ε under the root; it is added to the root."),
        ("no ε", " + eps", "", "ε is missing: where every gradient so far was 0, you divide 0 by 0."),
        ("old means", "new_mean / (1 - beta_1**step), new_square /", "mean / (1 - beta_1**step), square /",
         "You moved by the means from before this step; update them with its gradient first."),
        ("step from 0", "m, v =", "step -= 1\n    m, v =",
         "You corrected by the step before: `step` counts from 1, so the power is step itself."),
        ("no power", "beta_1**step), new_square / (1 - beta_2**step)", "beta_1), new_square / (1 - beta_2)",
         "You divided by 1 − β in every step; the share that the means hold grows with the steps, 1 − β**step."),
        ("ε not corrected", "rate * m / (np.sqrt(v)", "rate * math.sqrt(1 - beta_2**step) * m / (np.sqrt(new_square)",
         "Right but for ε: with both corrections in one rate, ε has to be multiplied by √(1 − β₂ to the power of "
         "step), as the square under the root is."),
    ),
    returns=("parameter", "mean", "square"),
    part="adam_step",
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
