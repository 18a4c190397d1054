"""The exercises of notebook 18: the whole Transformer by hand. Its arrays are NumPy's."""

from __future__ import annotations

import math

import numpy as np
import torch

from .model import Case, Endless, Exercise, Mistake, arrays, integers
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
        ("mean for the bias", "rows.sum(axis=0)", "rows.mean(axis=0)",
         "You took the mean over the tokens for g_bias. The same bias was added to every token, and what they ask for "
         "adds up, as it does in your g_weight."),
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

# 18.6 The walk back --------------------------------------------------------------------------------------------------


def gradients(f, arrays):
    """Return the gradients of f with respect to each of the arrays, a list of arrays of the same shapes.

    f: a function of as many nodes as there are arrays, which returns a node whose value has no axes; arrays: a list of
    NumPy arrays. Make a Node of each array, let f record what it does, and walk back from what it returns.
    """
    tensors = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in arrays]
    found = torch.autograd.grad(f(*tensors), tensors, materialize_grads=True)
    return [gradient.numpy() for gradient in found]


class _Node:
    """The notebook's Node."""

    def __init__(self, value, *made_from):
        self.value, self.made_from = np.asarray(value, dtype=float), made_from

    def __add__(self, other):
        return _Node(self.value + other.value, (self, lambda g: g), (other, lambda g: g))

    def __mul__(self, other):
        a, b = self.value, other.value
        return _Node(a * b, (self, lambda g: g * b), (other, lambda g: g * a))

    def __matmul__(self, other):
        a, b = self.value, other.value
        return _Node(a @ b, (self, lambda g: g @ b.T), (other, lambda g: a.T @ g))

    def relu(self):
        positive = self.value > 0
        return _Node(self.value * positive, (self, lambda g: g * positive))

    def sum(self):
        a = self.value
        return _Node(a.sum(), (self, lambda g: g * np.ones_like(a)))


def _ordered(last):
    """Return the nodes that `last` was made from, and itself, each after its parents."""
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for parent, _ in node.made_from:
                visit(parent)
            order.append(node)

    visit(last)
    return order


def _as_reached(last):
    """Return the nodes in the order in which a walk back reaches them, the last one first."""
    reached = [last]
    for node in reached:
        reached += [parent for parent, _ in node.made_from if parent not in reached]
    return reached


def _doublings(a):
    for _ in range(30):
        a = a + a
    return a.sum()


def _at_random(seed, n_nodes=9):
    """Return a function of arrays [3, 5], [5] and [3, 1] that adds and multiplies at random what it has made so far."""
    picks = integers(seed, (n_nodes, 3), 0, 1000).tolist()

    def f(*inputs):
        made = [*inputs]
        for first, second, kind in picks:
            a, b = made[first % len(made)], made[second % len(made)]
            made.append((a + b, a * b, a.relu() + b)[kind % 3])
        return (made[-1] + made[-2] * made[-3]).sum() + inputs[0].sum()

    return f


def _tape_cases():
    def case(label, seed, f, *shapes):
        return Case(label, (f, arrays(seed, *shapes)))

    def arms(a, b):
        below = a * b
        return (below + (below * a + b).relu()).sum()

    def layer(x, w, bias, u):
        return ((x @ w + bias).relu() * u).sum()

    return [
        case("(a · b).sum()", 1861, lambda a, b: (a * b).sum(), (2,), (2,)),
        case("(a · a + a).sum()", 1862, lambda a: (a * a + a).sum(), (3,)),
        case("two arms of different length", 1863, arms, (5,), (5,)),
        case("a layer, its bias for every token", 1864, layer, (5, 3), (3, 7), (7,), (5, 7)),
        case("[3, 1] times [5]", 1865, lambda a, b: (a * b).relu().sum(), (3, 1), (5,)),
        case("a number for all", 1866, lambda a, b: (a * b + a).sum(), (), (2, 3)),
        case("the second is not used", 1867, lambda a, b: a.sum(), (3,), (2,)),
        case("a = a + a, 30 times", 1868, _doublings, (2,)),
        *(case(f"at random ({seed})", seed, _at_random(seed), (3, 5), (5,), (3, 1)) for seed in (1869, 1870, 1871)),
    ]


_TAPE = """
    nodes = [Node(array) for array in arrays]
    last = f(*nodes)
    found = {node: np.zeros_like(node.value) for node in [*nodes, *ordered(last)]}
    found[last] = np.ones_like(last.value)
    for node in reversed(ordered(last)):
        for parent, rule in node.made_from:
            share, shape = rule(found[node]), parent.value.shape
            while share.ndim > len(shape):
                share = share.sum(axis=0)
            for axis, size in enumerate(shape):
                if size == 1:
                    share = share.sum(axis=axis, keepdims=True)
            found[parent] = found[parent] + share
    return [found[node] for node in nodes]
"""


def _path_by_path(f, arrays):
    if f is _doublings:
        raise Endless
    nodes = [_Node(array) for array in arrays]
    found = {node: np.zeros_like(node.value) for node in nodes}

    def pass_on(node, g):
        while g.ndim > node.value.ndim:
            g = g.sum(axis=0)
        for axis, size in enumerate(node.value.shape):
            g = g.sum(axis=axis, keepdims=True) if size == 1 else g
        if node in found:
            found[node] = found[node] + g
        for parent, rule in node.made_from:
            pass_on(parent, rule(g))

    pass_on(f(*nodes), np.array(1.0))
    return [found[node] for node in nodes]


EXERCISE_6 = Exercise(
    "18.6", "The walk back", 15, 3, gradients, _tape_cases,
    slips(
        "f, arrays", _TAPE,
        ("overwritten", "found[parent] = found[parent] + share", "found[parent] = share",
         "A node that is used several times keeps only what the last of its uses sends back. The shares add up."),
        ("as reached", "reversed(ordered(last))", "as_reached(last)",
         "You take the nodes in the order in which you reach them, so some pass on before all their shares are in. "
         "Take a node only after every node that was made from it: reverse an order in which parents come first."),
        ("forwards", "reversed(ordered(last))", "ordered(last)",
         "You walk forwards, from the inputs. Begin with the last node, the only one whose gradient is known."),
        ("not added up", "while share.ndim > len(shape):\n            share = share.sum(axis=0)\n"
         "        for axis, size in enumerate(shape):\n            if size == 1:\n"
         "                share = share.sum(axis=axis, keepdims=True)\n        ", "",
         "Where broadcasting has stretched an array, its share comes back in the stretched shape. Add it up over what "
         "was stretched, so that a gradient has the shape of its node."),
        ("length 1 not added up", "if size == 1:", "if size == 0:",
         "New axes in front are added up, but an axis of length 1 can be stretched, too: add up over it, and keep it."),
        ("mean over the stretched", "share = share.sum(axis=0)", "share = share.mean(axis=0)",
         "You took the mean over a new axis. The same array was used at every place there, and shares add up."),
        ("zero at the end", "np.ones_like(last.value)", "np.zeros_like(last.value)",
         "Everything is 0: the gradient of the last node with respect to itself is 1, and the walk begins with it."),
        ("unused is None", "[found[node] for node in nodes]",
         "[found[node] if node in ordered(last) else None for node in nodes]",
         "An array that f does not use changes nothing: its gradient is zeros of its shape, not None."),
        Node=_Node, ordered=_ordered, as_reached=_as_reached,
    )
    + (
        Mistake("path by path", _path_by_path,
                "You pass each share on at once, so a node is visited once for every path that leads to it: right, but "
                "after thirty doublings there are a billion paths. Wait until all shares of a node are in, and visit "
                "it once."),
    ),
    rtol=1e-6,
)  # fmt: skip


# 18.7 LayerNorm, backwards -------------------------------------------------------------------------------------------


def layer_norm_backward(g_y, x, gain, eps):
    """Return (g_x, g_gain, g_bias) of y = gain * (x - mean) / sqrt(variance + eps) + bias, given g_y, that of y.

    g_y, x: [..., d_model]; gain: [d_model], NumPy arrays; mean and variance (divided by d_model) are those of a token.
    g_x: [..., d_model]; g_gain, g_bias: [d_model].
    """
    inputs = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in (x, gain, np.zeros_like(gain))]
    y = torch.nn.functional.layer_norm(inputs[0], gain.shape, inputs[1], inputs[2], eps)
    return tuple(found.numpy() for found in torch.autograd.grad(y, inputs, torch.tensor(g_y)))


def _norm_cases():
    def case(label, seed, d_model, *tokens, eps=1e-5, shift=0.0):
        g_y, x, gain = arrays(seed, (*tokens, d_model), (*tokens, d_model), (d_model,))
        return Case(label, (g_y, x + shift, gain, eps))

    return [
        case("one sentence of 2 tokens, 3 features", 1881, 3, 2),
        case("a single token", 1882, 7),
        case("5 tokens of 5 features", 1883, 5, 5),
        case("a batch of 2", 1884, 11, 2, 3),
        case("a batch of 3, far from 0", 1885, 5, 3, 2, shift=10.0),
        case("a large eps", 1886, 3, 5, eps=0.5),
    ]


EXERCISE_7 = Exercise(
    "18.7", "LayerNorm, backwards", 12, 3, layer_norm_backward, _norm_cases,
    slips(
        "g_y, x, gain, eps", """
            centred = x - x.mean(axis=-1, keepdims=True)
            size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
            unit = centred / size
            g = gain * g_y
            g_x = (g - g.mean(axis=-1, keepdims=True) - unit * (g * unit).mean(axis=-1, keepdims=True)) / size
            rows, d_model = g_y.reshape(-1, g_y.shape[-1]), len(gain)
            return g_x, (g_y * unit).reshape(-1, d_model).sum(axis=0), rows.sum(axis=0)
        """,
        ("both constants", "g - g.mean(axis=-1, keepdims=True) - unit * (g * unit).mean(axis=-1, keepdims=True)", "g",
         "You treat mean and deviation as constants. Both depend on x, and each sends something back."),
        ("deviation constant", " - unit * (g * unit).mean(axis=-1, keepdims=True)", "",
         "The share that comes through the deviation is missing: it depends on every feature of the token."),
        ("mean constant", " - g.mean(axis=-1, keepdims=True)", "",
         "The share that comes through the mean is missing: every feature of the token went into it."),
        ("variance", ") / size\nrows", ") / size**2\nrows",
         "You divided by the variance; x̂ is divided by the deviation once."),
        ("gain forgotten", "g = gain * g_y", "g = g_y",
         "g_x lacks the gain: what reaches x̂ is gain * g_y."),
        ("gain of y", "(g_y * unit)", "(g * unit)",
         "For g_gain multiply g_y by x̂, without the gain: y is linear in it."),
        ("gain without x̂", "(g_y * unit)", "(g_y * x)",
         "The gain multiplies x̂, not x, so its gradient is the sum of g_y * x̂."),
        ("bias mean", "rows.sum(axis=0)", "rows.mean(axis=0)",
         "You took the mean over the tokens for g_bias; what they ask for adds up."),
        ("d - 1", "(centred**2).mean(axis=-1, keepdims=True)",
         "(centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)",
         "The variance of LayerNorm divides by d_model; yours divides by d_model − 1."),
        ("eps outside", "np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)",
         "np.sqrt((centred**2).mean(axis=-1, keepdims=True)) + eps",
         "eps is added to the variance, under the root; you added it to the root."),
        ("sums, not means", "unit * (g * unit).mean(axis=-1, keepdims=True)",
         "unit * (g * unit).sum(axis=-1, keepdims=True)",
         "In the share through the deviation you summed over the features; σ² is a mean, so a 1 / d_model is missing."),
    ),
    returns=("g_x", "g_gain", "g_bias"),
)  # fmt: skip


# 18.8 Which gradient is wrong? ---------------------------------------------------------------------------------------


def wrong_gradients(loss, arrays, gradients):
    """Return the list of the numbers, from 0, of those arrays whose gradient is wrong.

    loss: a function of a list of arrays that returns a number; arrays, gradients: lists of NumPy arrays in double
    precision, gradients[n] shaped like arrays[n]. Leave the arrays as they are. Right gradients are right up to
    rounding; a wrong one is off by 1 % of its length or more, or not a number. Arrays can have 100,000 entries.
    """
    rng, wrong = np.random.default_rng(0), set()
    for number, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        for _ in range(5):
            way = rng.normal(size=array.shape)
            way = way / np.linalg.norm(way)
            high, low = (loss([*arrays[:number], array + d * way, *arrays[number + 1 :]]) for d in (2e-6, -2e-6))
            slope, claimed = (high - low) / 4e-6, float((gradient * way).sum())
            if not math.isclose(slope, claimed, rel_tol=1e-4, abs_tol=1e-9):
                wrong.add(number)
    return sorted(wrong)


def _bending_loss(mixing, size=1.0, bend=1.0):
    """Return a loss of a list of arrays, and its gradients: every array has an influence on the others' slopes."""

    def of(tensors):
        mixed = [(tensor * factor).sum() for tensor, factor in zip(tensors, mixing, strict=True)]
        bent = sum(torch.sin(bend * tensor).sum() for tensor in tensors) / bend
        return size * (bent / 10 + torch.stack(mixed).sin().sum() * torch.tanh(torch.stack(mixed).sum() / 10 + 1))

    def loss(arrays):
        return float(of([torch.tensor(array) for array in arrays]))

    def gradients(arrays):
        tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
        return [found.numpy() for found in torch.autograd.grad(of(tensors), tensors)]

    return loss, gradients


def _checking_cases():
    def case(label, seed, shapes, change=lambda found: None, **options):
        drawn = arrays(seed, *shapes, *shapes)
        values = drawn[: len(shapes)]
        mixing = [torch.tensor(one / math.sqrt(one.size)) for one in drawn[len(shapes) :]]
        loss, gradients_of = _bending_loss(mixing, **options)
        found = [one.copy() for one in gradients_of(values)]
        change(found)
        return Case(label, (loss, values, found))

    def to(number, changed):
        def change(found):
            found[number] = changed(found[number])

        return change

    def one_entry(g):
        g = g.copy()
        g[2, 3] += 0.3 * np.linalg.norm(g)
        return g

    zero, turn = to(0, np.zeros_like), to(1, lambda g: -g)
    three, double, halve = [(3,), (2, 5), (7,)], to(0, lambda g: 2 * g), to(1, lambda g: g / 2)
    return [
        case("three arrays, all right", 1891, three),
        case("twice the first, half the second", 1892, three, lambda found: (double(found), halve(found))),
        case("the first is 2 % too large", 1893, three, to(0, lambda g: 1.02 * g)),
        case("the entries of the last are reversed", 1894, three, to(2, lambda g: g[::-1].copy())),
        case("a transposed square", 1895, [(5, 5), (3,)], to(0, lambda g: g.T.copy())),
        case("a single entry of 77 is off", 1896, [(2,), (7, 11)], to(1, one_entry)),
        case("the first is 0, the second turned round", 1897, three, lambda found: (zero(found), turn(found))),
        case("one is not a number", 1898, three, to(1, lambda g: g * np.nan)),
        case("a very small loss", 1899, three, to(2, lambda g: 1.1 * g), size=1e-5),
        case("a loss that bends sharply, all right", 1900, three, bend=50.0),
        case("100,000 entries, all right", 1901, [(250, 400), (3,)]),
    ]


def _entry_by_entry(loss, arrays, gradients):
    if max(array.size for array in arrays) > 10_000:
        raise Endless
    return wrong_gradients(loss, arrays, gradients)


_CHECKER = """
    rng, wrong, delta = np.random.default_rng(1), [], 1e-6
    for number, (array, gradient) in enumerate(zip(arrays, gradients)):
        right = True
        for _ in range(5):
            way = rng.normal(size=array.shape)
            way = way / np.linalg.norm(way)
            ends = []
            for step in (delta, -delta):
                moved = list(arrays)
                moved[number] = array + step * way
                ends.append(loss(moved))
            slope, claimed = (ends[0] - ends[1]) / (2 * delta), (gradient * way).sum()
            right = right and bool(abs(slope - claimed) <= 1e-4 * abs(slope) + 1e-9)
        if not right:
            wrong.append(number)
    return wrong
"""

EXERCISE_8 = Exercise(
    "18.8", "Which gradient is wrong?", 12, 2, wrong_gradients, _checking_cases,
    slips(
        "loss, arrays, gradients", _CHECKER,
        ("step too large", "delta = np.random.default_rng(1), [], 1e-6", "delta = np.random.default_rng(1), [], 0.1",
         "You call right gradients wrong: with so large a step, the loss bends between the two ends."),
        ("step too small", "delta = np.random.default_rng(1), [], 1e-6", "delta = np.random.default_rng(1), [], 1e-14",
         "You call right gradients wrong: with so small a step the two losses differ by little more than rounding."),
        ("all ones", "way = rng.normal(size=array.shape)", "way = np.ones(array.shape)",
         "You move all entries by the same amount. That looks only at the sum of a gradient's entries, which can be "
         "right although they are in each other's places: take random directions."),
        ("along the gradient", "way = rng.normal(size=array.shape)\n        way = way / np.linalg.norm(way)",
         "way = gradient / (np.linalg.norm(gradient) + 1e-300)\n        way = np.where(np.isnan(way), 1.0, way)",
         "You move along the claimed gradient only. Where it is zero you don't move, and call it right: take random "
         "directions."),
        ("NaN passes", "right and bool(abs(slope - claimed) <= 1e-4 * abs(slope) + 1e-9)",
         "right and not abs(slope - claimed) > 1e-4 * abs(slope) + 1e-9",
         "A gradient that is not a number passes as right: every comparison with NaN is False. Ask whether slope and "
         "claim agree, not whether they differ."),
        ("one absolute tolerance", "1e-4 * abs(slope) + 1e-9", "1e-4",
         "Where the loss is tiny, you let a wrong gradient pass: compare the difference with the slope's own size."),
        ("tolerance too wide", "1e-4 * abs(slope)", "0.05 * abs(slope)",
         "A gradient that is 2 % too large passes as right: your tolerance is too wide."),
        ("no two", "(2 * delta)", "delta",
         "From one end to the other it is twice the step: every slope of yours is twice too large."),
        ("left moved", "moved[number] = array + step * way", "moved[number] += step * way",
         "`+=` moves the entries of the given array itself, and it stays moved. Make a new array: array + step * way."),
    )
    + (
        Mistake("entry by entry", _entry_by_entry,
                "You move one entry after the other, which takes 200,000 losses for 100,000 entries. A random "
                "direction moves all of an array's entries at once: two losses, whatever its size."),
    ),
)  # fmt: skip

EXERCISES = (
    EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7, EXERCISE_8,
)  # fmt: skip
