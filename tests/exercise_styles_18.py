"""Right answers to the exercises of notebook 18 in another style: loops, einsum, one-hot tables, single precision."""

from __future__ import annotations

import math

import numpy as np


def linear_backward(g_y, x, weight):
    g_weight, g_bias = np.zeros(weight.shape), np.zeros(len(weight))
    for token in np.ndindex(x.shape[:-1]):
        g_weight += np.outer(g_y[token], x[token])
        g_bias += g_y[token]
    return [g_y @ weight, g_weight, g_bias]


def linear_backward_in_single_precision(g_y, x, weight):
    g, tokens = g_y.reshape(-1, len(weight)), x.reshape(-1, weight.shape[1])
    parts = (g @ weight).reshape(x.shape), np.einsum("to,ti->oi", g, tokens), np.ones(len(g)) @ g
    return tuple(part.astype(np.float32) for part in parts)


def numerical_gradient(loss, x, delta):
    moved, slopes = x.copy(), np.empty(x.size)
    flat = moved.reshape(-1)
    for index, value in enumerate(x.reshape(-1)):
        flat[index] = value + delta
        above = loss(moved)
        flat[index] = value - delta
        slopes[index] = (above - loss(moved)) / (2 * delta)
        flat[index] = value
    return slopes.reshape(x.shape)


def embedding_backward_in_a_product(g_x, ids, vocab_size):
    one_hot = (ids[..., None] == np.arange(vocab_size)).astype(g_x.dtype)
    return np.einsum("btv,btd->vd", one_hot, g_x) * g_x.shape[-1] ** 0.5


def decoder_layer_backward(g_y, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    g_sum = norm_3(g_y)
    g_b = feed_forward(g_sum)
    g_b = g_b + g_sum
    g_sum = norm_2(g_b)
    g_a, g_memory = cross_attention(g_sum)
    g_sum = norm_1(g_a + g_sum)
    return np.sum([*self_attention(g_sum), g_sum], axis=0), g_memory


def adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps):
    mean, square = mean - (1 - beta_1) * (mean - g), square - (1 - beta_2) * (square - np.square(g))
    effective = (
        rate * math.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    )  # as Kingma and Ba put it at the end of section 2
    return [parameter - effective * mean / (np.sqrt(square) + eps * math.sqrt(1 - beta_2**step)), mean, square]


class Recorded:
    """A node in another style: its parents, and one function for all their shares."""

    def __init__(self, value, parents=(), shares=lambda g: ()):
        self.value, self.parents, self.shares = np.asarray(value, dtype=float), parents, shares

    def __add__(self, other):
        return Recorded(self.value + other.value, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        return Recorded(self.value * other.value, (self, other), lambda g: (g * other.value, g * self.value))

    def __matmul__(self, other):
        return Recorded(self.value @ other.value, (self, other), lambda g: (g @ other.value.T, self.value.T @ g))

    def relu(self):
        return Recorded(self.value.clip(0), (self,), lambda g: (np.where(self.value > 0, g, 0),))

    def sum(self):
        return Recorded(self.value.sum(), (self,), lambda g: (np.full(self.value.shape, g),))


def gradients_by_counting(f, arrays):
    """Wait by counting: a node is taken when all of its uses have been (Kahn's order, from the end)."""
    nodes = [Recorded(array) for array in arrays]
    last = f(*nodes)
    uses, queue, seen = {}, [last], {last}
    while queue:
        for parent in queue.pop().parents:
            uses[parent] = uses.get(parent, 0) + 1
            if parent not in seen:
                seen.add(parent)
                queue.append(parent)
    found, ready = {last: 1.0}, [last]
    while ready:
        node = ready.pop()
        for parent, share in zip(node.parents, node.shares(found[node]), strict=True):
            shape = parent.value.shape
            padded = (1,) * (np.ndim(share) - len(shape)) + shape
            axes = tuple(axis for axis, size in enumerate(padded) if size == 1)
            share = np.asarray(share).sum(axis=axes, keepdims=True).reshape(shape)
            found[parent] = found[parent] + share if parent in found else share
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)
    return [np.array(found.get(node, np.zeros_like(node.value))) for node in nodes]


class Taped(Recorded):
    """A node that writes itself on a list: the order of writing is an order with parents first."""

    tape = []

    def __init__(self, *args):
        super().__init__(*args)
        Taped.tape.append(self)
        self.g = np.zeros_like(self.value)


def _taped(name):
    def operation(self, *others):
        node = getattr(Recorded, name)(self, *others)
        return Taped(node.value, node.parents, node.shares)

    return operation


for _name in ("__add__", "__mul__", "__matmul__", "relu", "sum"):
    setattr(Taped, _name, _taped(_name))


def gradients_from_a_list(f, arrays):
    Taped.tape.clear()
    nodes = [Taped(array) for array in arrays]
    f(*nodes).g = np.array(1.0)
    for node in Taped.tape[::-1]:
        for parent, share in zip(node.parents, node.shares(node.g), strict=True):
            while share.ndim > parent.g.ndim:
                share = share.sum(0)
            for axis in range(share.ndim):
                if parent.g.shape[axis] == 1:
                    share = share.sum(axis, keepdims=True)
            parent.g = parent.g + share
    return tuple(node.g for node in nodes)


def gradients_by_slopes(f, arrays):
    """Forward mode: how fast f moves with each entry, the node carrying its own slope."""

    class Dual:
        def __init__(self, value, slope):
            self.value, self.slope = value, slope

        def __add__(self, other):
            return Dual(self.value + other.value, self.slope + other.slope)

        def __mul__(self, other):
            return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

        def __matmul__(self, other):
            return Dual(self.value @ other.value, self.slope @ other.value + self.value @ other.slope)

        def relu(self):
            return Dual(self.value * (self.value > 0), self.slope * (self.value > 0))

        def sum(self):
            return Dual(self.value.sum(), self.slope.sum())

    found = [np.zeros_like(array) for array in arrays]
    for number, array in enumerate(arrays):
        for index in np.ndindex(array.shape):
            slopes = [np.zeros_like(other) for other in arrays]
            slopes[number][index] = 1.0
            found[number][index] = f(*map(Dual, arrays, slopes)).slope
    return found


def layer_norm_backward_token_by_token(g_y, x, gain, eps):
    """With each token's Jacobian written out."""
    d_model = len(gain)
    g_x, g_gain, g_bias = np.zeros_like(x), np.zeros(d_model), np.zeros(d_model)
    for token in np.ndindex(x.shape[:-1]):
        centred = x[token] - x[token].mean()
        size = math.sqrt(centred @ centred / d_model + eps)
        unit = centred / size
        jacobian = (np.eye(d_model) - 1 / d_model - np.outer(unit, unit) / d_model) / size
        g_x[token] = jacobian.T @ (gain * g_y[token])
        g_gain += g_y[token] * unit
        g_bias += g_y[token]
    return g_x, g_gain, g_bias


def layer_norm_backward_step_by_step(g_y, x, gain, eps):
    """Walking back along the graph: y, the unit, the size, the variance, the centred token, the token."""
    c = x - x.mean(-1, keepdims=True)
    variance = np.mean(c * c, axis=-1, keepdims=True)
    inverse = (variance + eps) ** -0.5
    g_unit = g_y * gain
    g_inverse = np.sum(g_unit * c, axis=-1, keepdims=True)
    g_variance = -0.5 * g_inverse * inverse**3
    g_c = g_unit * inverse + 2 * c * g_variance / x.shape[-1]
    tokens = tuple(range(x.ndim - 1))
    return [g_c - g_c.mean(-1, keepdims=True), np.sum(g_y * c * inverse, axis=tokens), np.sum(g_y, axis=tokens)]


def wrong_gradients_by_one_sided_steps(loss, arrays, gradients):
    here, found = loss(arrays), []
    for number, gradient in enumerate(gradients):
        good = np.isfinite(gradient).all()
        for seed in range(7):
            v = np.random.default_rng(seed).choice([-1.0, 1.0], size=gradient.shape)
            moved = arrays[:number] + [arrays[number] + 1e-7 * v / math.sqrt(v.size)] + arrays[number + 1 :]
            slope, claimed = (loss(moved) - here) / 1e-7, np.sum(gradient * v) / math.sqrt(v.size)
            good &= abs(slope - claimed) < 1e-3 * max(abs(slope), abs(claimed)) + 1e-8 * abs(here) + 1e-12
        if not good:
            found.append(number)
    return np.array(found, dtype=int)


def wrong_gradients_in_numpy_types(loss, arrays, gradients):
    rng = np.random.default_rng(3)

    def disagree(number):
        v = rng.standard_normal(arrays[number].shape)
        v /= np.sqrt((v**2).sum())
        with_step = lambda d: loss([a + d * v if n == number else a for n, a in enumerate(arrays)])  # noqa: E731
        slope = (8 * (with_step(1e-4) - with_step(-1e-4)) - (with_step(2e-4) - with_step(-2e-4))) / 12e-4
        return not np.allclose(slope, np.vdot(gradients[number], v), rtol=1e-4, atol=1e-10)

    return tuple(n for n in range(len(arrays)) if any([disagree(n) for _ in range(10)]))


STYLES = [
    ("18.1", linear_backward),
    ("18.1", linear_backward_in_single_precision),
    ("18.2", numerical_gradient),
    ("18.3", embedding_backward_in_a_product),
    ("18.4", decoder_layer_backward),
    ("18.5", adam_step),
    ("18.6", gradients_by_counting),
    ("18.6", gradients_from_a_list),
    ("18.6", gradients_by_slopes),
    ("18.7", layer_norm_backward_token_by_token),
    ("18.7", layer_norm_backward_step_by_step),
    ("18.8", wrong_gradients_by_one_sided_steps),
    ("18.8", wrong_gradients_in_numpy_types),
]
