"""Exercises of notebook 04, continued: tokens as columns, and the backward pass by hand."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def column_attention(query, key, value):
    """Return scaled dot-product attention where every token is a column, not a row.

    query: [d_k, q_len]; key: [d_k, k_len]; value: [d_v, k_len]. Returns [d_v, q_len].
    The scores form a grid of keys (down) by queries (across).
    """
    output = torch.nn.functional.scaled_dot_product_attention(query.T[None], key.T[None], value.T[None])
    return output[0].T


def softmax_backward(weights, grad_weights):
    """Return the gradient with respect to the scores, given weights = softmax(scores) over the last axis.

    weights, grad_weights (the gradient with respect to the weights): [..., k_len]. Returns [..., k_len].
    """
    rows = []
    for row, grad in zip(weights.flatten(0, -2), grad_weights.flatten(0, -2), strict=True):
        jacobian = torch.diag(row) - torch.outer(row, row)
        rows.append(jacobian @ grad)
    return torch.stack(rows).reshape(weights.shape)


def attention_backward(query, key, value, grad_output):
    """Return (grad_query, grad_key, grad_value) of softmax(query key' / √d_k) value, without autograd.

    query: [..., q_len, d_k]; key: [..., k_len, d_k]; value: [..., k_len, d_v]; grad_output: [..., q_len, d_v].
    """
    inputs = [part.detach().clone().requires_grad_() for part in (query, key, value)]
    scores = inputs[0] @ inputs[1].transpose(-2, -1) / query.shape[-1] ** 0.5
    output = torch.softmax(scores, dim=-1) @ inputs[2]
    return torch.autograd.grad(output, inputs, grad_output)


def _column_cases():
    return [
        Case("2 tokens, d_k = 3", tuple(normal(1, (3, 2), (3, 2), (3, 2)))),
        Case("3 queries, 5 keys", tuple(normal(2, (2, 3), (2, 5), (7, 5)))),
        Case("5 tokens, d_k = d_v = 5", tuple(normal(3, (5, 5), (5, 5), (5, 5)))),
        Case("7 queries, 2 keys", tuple(normal(4, (5, 7), (5, 2), (3, 2)))),
        Case("one query, one key", tuple(normal(5, (3, 1), (3, 1), (2, 1)))),
    ]


def _softmax_cases():
    def case(label, seed, *shape):
        scores, grad = normal(seed, shape, shape, dtype=torch.float64)
        return Case(label, (torch.softmax(scores, -1), grad))

    certain = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], dtype=torch.float64)
    return [
        case("one row of 2", 6, 1, 2),
        case("2 rows of 3", 7, 2, 3),
        case("5 rows of 5", 8, 5, 5),
        case("a batch of 2", 9, 2, 3, 7),
        Case("one weight is exactly 1", (certain, normal(10, (2, 3), dtype=torch.float64)[0])),
        Case("equal gradients", (certain, torch.full((2, 3), 2.0, dtype=torch.float64))),
    ]


def _backward_cases():
    def case(label, seed, q_len, k_len, d_k, d_v, *batch):
        shapes = ((q_len, d_k), (k_len, d_k), (k_len, d_v), (q_len, d_v))
        return Case(label, tuple(normal(seed, *((*batch, *shape) for shape in shapes), dtype=torch.float64)))

    return [
        case("2 tokens, d = 2", 11, 2, 2, 2, 2),
        case("3 queries, 5 keys", 12, 3, 5, 2, 7),
        case("5 tokens, d = 5", 13, 5, 5, 5, 5),
        case("one key", 14, 3, 1, 2, 5),
        case("a batch of 2", 15, 3, 5, 7, 2, 2),
    ]


def _columns(softmax_axis=0, scale=lambda q: q.shape[0] ** 0.5):
    return lambda q, k, v: v @ torch.softmax(k.T @ q / scale(q), softmax_axis)


def _rows(q, k, v):
    """The row formula, used unchanged."""
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v


def _backward(jacobian=softmax_backward, swap=lambda m: m.mT, swap_weights=lambda m: m.mT, power=0.5, order=(0, 1, 2)):
    """The backward pass with one step exchanged for another."""

    def function(query, key, value, grad_output):
        scale = query.shape[-1] ** power
        weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
        grad_scores = jacobian(weights, grad_output @ value.mT) / scale
        gradients = (grad_scores @ key, swap(grad_scores) @ query, swap_weights(weights) @ grad_output)
        return tuple(gradients[index] for index in order)

    return function


EXERCISES = (
    Exercise(
        "04.4",
        "Attention with tokens as columns",
        5,
        1,
        column_attention,
        _column_cases,
        (
            Mistake(
                "axis",
                _columns(softmax_axis=-1),
                "Your weights sum to one over the queries. In the grid K' Q (keys down, queries across) the "
                "softmax runs down each column, axis 0; in Q' K it would be axis 1.",
            ),
            Mistake(
                "rows",
                _rows,
                "You used the row formula on columns: Q K' adds up over tokens. Here the scores are K' Q.",
            ),
            Mistake(
                "result in rows",
                lambda q, k, v: _columns()(q, k, v).T,
                "The result has the right values transposed: tokens stay columns, so return [d_v, q_len].",
            ),
            Mistake("unscaled", _columns(scale=lambda q: 1.0), "The scores are not scaled: divide by √d_k."),
            Mistake("d_k", _columns(scale=lambda q: q.shape[0]), "You divided by d_k; the formula divides by √d_k."),
            Mistake(
                "last axis",
                _columns(scale=lambda q: q.shape[-1] ** 0.5),
                "You divided by the root of the last axis, but here that counts tokens: d_k is query.shape[0].",
            ),
            Mistake(
                "weights turned",
                lambda q, k, v: v @ torch.softmax(k.T @ q / q.shape[0] ** 0.5, 0).T,
                "You multiplied by the transposed weights; with tokens as columns the output is V A, not V A'.",
            ),
        ),
        gradients=("query", "key", "value"),
    ),
    Exercise(
        "04.5",
        "The gradient of a softmax",
        20,
        3,
        softmax_backward,
        _softmax_cases,
        (
            Mistake(
                "diagonal",
                lambda w, g: w * g,
                "Raising one score lowers all other weights: the term that subtracts Σ weights · grad is missing.",
            ),
            Mistake(
                "sigmoid",
                lambda w, g: w * (1 - w) * g,
                "You used only the diagonal of the Jacobian, w (1 - w), as for a sigmoid; the entries -w_i w_j "
                "between different keys are missing.",
            ),
            Mistake(
                "unweighted",
                lambda w, g: w * (g - g.sum(-1, keepdim=True)),
                "Subtract the sum of the gradients each times its weight; yours adds them up without weights.",
            ),
            Mistake(
                "mean",
                lambda w, g: w * (g - g.mean(-1, keepdim=True)),
                "Subtract the mean of the gradients under the weights, not their plain mean.",
            ),
            Mistake(
                "axis",
                lambda w, g: w * (g - (w * g).sum(-2, keepdim=True)),
                "You added up over the rows (axis -2); each row is a softmax of its own, so sum over axis -1.",
            ),
            Mistake(
                "all",
                lambda w, g: w * (g - (w * g).sum()),
                "You added up over all rows; each row is a softmax of its own (sum over axis -1, keepdim=True).",
            ),
            Mistake("sign", lambda w, g: w * ((w * g).sum(-1, keepdim=True) - g), "The sign is flipped."),
            Mistake(
                "no front",
                lambda w, g: g - (w * g).sum(-1, keepdim=True),
                "The weight in front is missing: multiply the difference by the weights.",
            ),
        ),
    ),
    Exercise(
        "04.6",
        "Attention backwards",
        30,
        3,
        attention_backward,
        _backward_cases,
        (
            Mistake(
                "unscaled",
                _backward(power=0.0),
                "The scores were divided by √d_k, so grad_query and grad_key are too: the factor is missing.",
            ),
            Mistake("twice", _backward(power=1.0), "You divided by √d_k twice: once on the way back is enough."),
            Mistake(
                "key not turned",
                _backward(swap=lambda m: m),
                "grad_key collects over queries: multiply by the transposed gradient of the scores.",
            ),
            Mistake(
                "value not turned",
                _backward(swap_weights=lambda m: m),
                "grad_value collects over queries: it is weights' grad_output, with the weights transposed.",
            ),
            Mistake(
                "diagonal",
                _backward(lambda w, g: w * g),
                "Your softmax step lacks the term that subtracts Σ weights · grad (exercise 04.5).",
            ),
            Mistake(
                "sigmoid",
                _backward(lambda w, g: w * (1 - w) * g),
                "Your softmax step uses only the diagonal w (1 - w) of the Jacobian (exercise 04.5).",
            ),
            Mistake(
                "no softmax",
                _backward(lambda w, g: g),
                "You passed the gradient of the weights straight on to the scores: the softmax lies between.",
            ),
            Mistake(
                "axis",
                _backward(lambda w, g: w * (g - (w * g).sum(-2, keepdim=True))),
                "In the softmax step you added up over queries (axis -2); sum over keys (axis -1).",
            ),
            Mistake(
                "reversed",
                _backward(order=(2, 1, 0)),
                "You return them in the order in which they are found; return (grad_query, grad_key, grad_value).",
            ),
            Mistake(
                "order",
                _backward(order=(2, 0, 1)),
                "The three gradients are right but in another order: return (grad_query, grad_key, grad_value).",
            ),
        ),
        returns=("grad_query", "grad_key", "grad_value"),
    ),
)
