"""A tape: arrays that remember how they were made, the walk back along it, and a Transformer recorded on it (18).

`Node` is the class of the notebook with a dozen more operations. `gradients` is what exercise 18.6 asks for, as plain
as it can be. `loss` is the model of `by_hand`, made of nothing but these operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ... import by_hand
from ...by_hand import Array, Ids, Parameters, Sizes

Rule = Callable[[Array], Array]


class Node:
    """An array that remembers what it was made from.

    Args:
        value: a number or an array; single precision stays single, anything else becomes double.
        made_from: pairs (parent, rule); a rule takes the gradient of this node and returns the parent's share of it,
            shaped like this node or like the parent: what was stretched on the way forward, the walk adds up.
    """

    __array_ufunc__ = None  # so that array + node is the node's affair

    def __init__(self, value: Any, *made_from: tuple[Node, Rule]) -> None:
        array = np.asarray(value)
        self.value: Array = array if array.dtype == np.float32 else array.astype(float)
        self.made_from = made_from

    def _other(self, other: Any) -> Node:
        return other if isinstance(other, Node) else Node(np.asarray(other, dtype=self.value.dtype))

    def __add__(self, other: Any) -> Node:
        """Return self + other; each gets the gradient as it is."""
        other = self._other(other)
        return Node(self.value + other.value, (self, lambda g: g), (other, lambda g: g))

    def __mul__(self, other: Any) -> Node:
        """Return self · other, entry by entry."""
        other = self._other(other)
        a, b = self.value, other.value
        return Node(a * b, (self, lambda g: g * b), (other, lambda g: g * a))

    def __matmul__(self, other: Any) -> Node:
        """Return the product of matrices, or of stacks of them; both have two axes at least."""
        other = self._other(other)
        a, b = self.value, other.value
        return Node(a @ b, (self, lambda g: g @ b.swapaxes(-1, -2)), (other, lambda g: a.swapaxes(-1, -2) @ g))

    def __sub__(self, other: Any) -> Node:
        """Return self - other."""
        other = self._other(other)
        return Node(self.value - other.value, (self, lambda g: g), (other, lambda g: -g))

    def __truediv__(self, other: Any) -> Node:
        """Return self / other, entry by entry."""
        other = self._other(other)
        a, b = self.value, other.value
        return Node(a / b, (self, lambda g: g / b), (other, lambda g: -g * a / b**2))

    __radd__, __rmul__ = __add__, __mul__

    def relu(self) -> Node:
        """Return max(0, self)."""
        positive = self.value > 0
        return Node(self.value * positive, (self, lambda g: g * positive))

    def exp(self) -> Node:
        """Return e to the power of self."""
        power = np.exp(self.value)
        return Node(power, (self, lambda g: g * power))

    def log(self) -> Node:
        """Return the natural logarithm."""
        return Node(np.log(self.value), (self, lambda g: g / self.value))

    def sqrt(self) -> Node:
        """Return the root."""
        root = np.sqrt(self.value)
        return Node(root, (self, lambda g: g / (2 * root)))

    def sum(self, axis: int | None = None) -> Node:
        """Return the sum over all entries, or over an axis, which stays as an axis of length 1."""
        shape = self.value.shape
        total = self.value.sum(axis=axis, keepdims=axis is not None)
        return Node(total, (self, lambda g: np.broadcast_to(g, shape)))

    def mean(self, axis: int) -> Node:
        """Return the mean over an axis, which stays as an axis of length 1."""
        return self.sum(axis) * (1 / self.value.shape[axis])

    def reshape(self, *shape: int) -> Node:
        """Return the same entries in another shape."""
        before = self.value.shape
        return Node(self.value.reshape(shape), (self, lambda g: g.reshape(before)))

    def swapaxes(self, first: int, second: int) -> Node:
        """Return the array with two axes exchanged."""
        return Node(self.value.swapaxes(first, second), (self, lambda g: g.swapaxes(first, second)))

    def __getitem__(self, chosen: Any) -> Node:
        """Return the chosen rows or entries; one that was chosen several times gets the sum."""

        def rule(g: Array) -> Array:
            share = np.zeros_like(self.value)
            np.add.at(share, chosen, g)
            return share

        return Node(self.value[chosen], (self, rule))

    def hide(self, mask: Any) -> Node:
        """Return -inf where the mask is False; no gradient goes there."""
        return Node(np.where(mask, self.value, -np.inf), (self, lambda g: np.where(mask, g, 0)))


# The walk back -------------------------------------------------------------------------------------------------------
def in_order(last: Node) -> list[Node]:
    """Return all nodes that `last` was made from, and itself, each of them after its parents."""
    order: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for parent, _ in node.made_from:
                visit(parent)
            order.append(node)

    visit(last)
    return order


def walk_back(last: Node) -> dict[Node, Array]:
    """Return the gradient of `last`, a node without axes, with respect to every node that it was made from.

    Raises:
        ValueError: last has axes.
    """
    if last.value.ndim:
        raise ValueError(f"last must have no axes, got shape {list(last.value.shape)}")
    found = {last: np.ones_like(last.value)}
    for node in reversed(in_order(last)):
        for parent, rule in node.made_from:
            share = added_up(rule(found[node]), parent.value.shape)
            found[parent] = found[parent] + share if parent in found else share
    return found


def added_up(g: Array, shape: tuple[int, ...]) -> Array:
    """Return g summed to this shape, which broadcasting had stretched."""
    if g.ndim > len(shape):
        g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size < g.shape[axis])
    return g.sum(axis=stretched, keepdims=True) if stretched else g


def gradients(f: Callable[..., Node], arrays: Sequence[Array]) -> list[Array]:
    """Return the gradient of f(*nodes), a node without axes, with respect to each array, shaped like it."""
    nodes = [Node(array) for array in arrays]
    found = walk_back(f(*nodes))
    return [found.get(node, np.zeros_like(node.value)) for node in nodes]


# Random graphs -------------------------------------------------------------------------------------------------------
def random_function(seed: int, n_nodes: int = 12) -> Callable[..., Any]:
    """Return a function of three arrays, [3, 5], [5] and [3, 1], that adds and multiplies at random down to a number.

    It takes tensors of PyTorch as well as nodes. What it has made may be used again, by any later step.
    """
    picks = np.random.default_rng(seed).integers(1000, size=(n_nodes, 3)).tolist()

    def f(*inputs: Any) -> Any:
        made = list(inputs)
        for first, second, kind in picks:
            a, b = made[first % len(made)], made[second % len(made)]
            made.append((a + b, a * b, a.relu() + b, a.relu() * b)[kind % 4])
        last = made[-1].sum()
        for other in made[-5:-1]:
            last = last + other.sum()
        return last

    return f


def by_autograd(f: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
    """Return what `gradients` should, from PyTorch; f must be a function that takes tensors, too."""
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    found = torch.autograd.grad(f(*tensors), tensors, materialize_grads=True)
    return [gradient.numpy() for gradient in found]


def random_arrays(seed: int) -> list[Array]:
    """Return arrays for `random_function`, in double precision."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in ((3, 5), (5,), (3, 1))]


# A Transformer on the tape -------------------------------------------------------------------------------------------
def loss(parameters: Mapping[str, Node], sizes: Sizes, src: Ids, tgt: Ids, label_smoothing: float = 0.0) -> Node:
    """Return what `by_hand.loss_and_gradients` calls the loss, recorded on a tape.

    Args:
        parameters: nodes under the names of `by_hand.new_parameters`. src: [batch, src_len]. tgt: [batch, 1 + tgt_len].
    """
    src_mask = by_hand.padding_mask(src, sizes.pad_id)
    tgt_in, labels = tgt[:, :-1], tgt[:, 1:]
    tgt_mask = by_hand.causal_mask(tgt_in.shape[1]) & by_hand.padding_mask(tgt_in, sizes.pad_id)
    memory = _embed(src, parameters[by_hand.model.SRC_TABLE])
    for layer in range(sizes.n_layers):
        memory = _layer(memory, None, parameters, f"encoder.layers.{layer}", sizes.n_heads, src_mask, src_mask)
    x = _embed(tgt_in, parameters[sizes.tgt_table])
    for layer in range(sizes.n_layers):
        x = _layer(x, memory, parameters, f"decoder.layers.{layer}", sizes.n_heads, tgt_mask, src_mask)
    return _cross_entropy(_linear(x, parameters[sizes.head]), labels, sizes.pad_id, label_smoothing)


def _embed(ids: Ids, table: Node) -> Node:
    positions, _ = by_hand.embed(ids[:1], np.zeros_like(table.value))  # of rows of zeros nothing else is left
    return table[ids] * math.sqrt(table.value.shape[1]) + positions


def _layer(
    x: Node, memory: Node | None, parameters: Mapping[str, Node], name: str, n_heads: int, mask: Any, memory_mask: Any
) -> Node:
    def norm(y: Node, part: str) -> Node:
        inside = f"{name}.{part}_residual.norm"
        return layer_norm(y, parameters[f"{inside}.weight"], parameters[f"{inside}.bias"])

    x = norm(x + _attention(x, x, parameters, f"{name}.self_attention", n_heads, mask), "self_attention")
    if memory is not None:
        fetched = _attention(x, memory, parameters, f"{name}.cross_attention", n_heads, memory_mask)
        x = norm(x + fetched, "cross_attention")
    inside = f"{name}.feed_forward"
    hidden = _linear(x, parameters[f"{inside}.expand.weight"], parameters[f"{inside}.expand.bias"]).relu()
    fed = _linear(hidden, parameters[f"{inside}.contract.weight"], parameters[f"{inside}.contract.bias"])
    return norm(x + fed, "feed_forward")


def _linear(x: Node, weight: Node, bias: Node | None = None) -> Node:
    rows = x.reshape(-1, x.value.shape[-1]) @ weight.swapaxes(0, 1)  # all tokens in one product
    y = rows.reshape(*x.value.shape[:-1], len(weight.value))
    return y if bias is None else y + bias


def _attention(x: Node, memory: Node, parameters: Mapping[str, Node], name: str, n_heads: int, mask: Any) -> Node:
    def heads(of: Node, matrix: str) -> Node:  # [batch, n_heads, seq_len, d_k]
        y = _linear(of, parameters[f"{name}.{matrix}.weight"])
        batch, seq_len, width = y.value.shape
        return y.reshape(batch, seq_len, n_heads, width // n_heads).swapaxes(1, 2)

    query, key, value = heads(x, "w_q"), heads(memory, "w_k"), heads(memory, "w_v")
    scores = query @ key.swapaxes(-1, -2) * (1 / math.sqrt(query.value.shape[-1]))
    together = (softmax(scores.hide(mask)) @ value).swapaxes(1, 2).reshape(*x.value.shape)
    return _linear(together, parameters[f"{name}.w_o.weight"])


def softmax(scores: Node) -> Node:
    """Return the softmax over the last axis, of five operations; the largest score is taken off as a constant."""
    powers = (scores - scores.value.max(axis=-1, keepdims=True)).exp()
    return powers / powers.sum(-1)


def layer_norm(x: Node, gain: Node, bias: Node, eps: float = 1e-5) -> Node:
    """Return γ ⊙ (x - μ) / √(σ² + ε) + β over the last axis, operation by operation."""
    centred = x - x.mean(-1)
    size = ((centred * centred).mean(-1) + eps).sqrt()
    return centred / size * gain + bias


def _cross_entropy(logits: Node, labels: Ids, pad_id: int, label_smoothing: float) -> Node:
    chosen = logits[np.nonzero(labels != pad_id)]  # [labels, vocab_size]
    shifted = chosen - chosen.value.max(axis=-1, keepdims=True)
    log_p = shifted - shifted.exp().sum(-1).log()
    wanted = np.full_like(log_p.value, label_smoothing / log_p.value.shape[-1])
    wanted[np.arange(len(wanted)), labels[labels != pad_id]] += 1 - label_smoothing
    return (log_p * (-wanted / len(wanted))).sum()


Gradients = Callable[[Callable[..., Node], Sequence[Array]], Sequence[Array]]


def loss_and_gradients(
    find: Gradients, parameters: Parameters, sizes: Sizes, src: Ids, tgt: Ids, label_smoothing: float = 0.0
) -> tuple[float, Parameters]:
    """Do what `by_hand.loss_and_gradients` does, with a function like `gradients` that walks the tape."""
    names, losses = list(parameters), []

    def recorded(*nodes: Node) -> Node:
        last = loss(dict(zip(names, nodes, strict=True)), sizes, src, tgt, label_smoothing)
        losses.append(float(last.value))
        return last

    found = find(recorded, list(parameters.values()))
    return losses[0], dict(zip(names, found, strict=True))


def train(
    find: Gradients,
    parameters: Parameters,
    sizes: Sizes,
    batches: Iterable[tuple[Ids, Ids]],
    rate: Callable[[int], float],
    label_smoothing: float = 0.0,
) -> list[float]:
    """Do what `by_hand.train` does, with gradients that `find` walks back to; replaces the arrays in `parameters`."""
    adam, losses = by_hand.Adam(parameters), []
    for step, (src, tgt) in enumerate(batches, start=1):
        found_loss, found = loss_and_gradients(find, parameters, sizes, src, tgt, label_smoothing)
        adam.step(by_hand.clip(found), rate(step))
        losses.append(found_loss)
    return losses
