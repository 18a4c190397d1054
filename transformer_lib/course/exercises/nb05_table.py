"""Exercises of notebook 05, continued: the gradient of a lookup, and neighbours in an embedding table."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, integers, normal


def embedding_gradient(ids, grad_output, vocab_size):
    """Return the gradient of the loss with respect to the embedding table.

    ids: [..., seq_len], which row of the table each token is; grad_output: [..., seq_len, d_model], the gradient
    with respect to the vectors that were looked up. Returns [vocab_size, d_model].
    """
    one_hot = torch.nn.functional.one_hot(ids, vocab_size).to(grad_output.dtype).reshape(-1, vocab_size)
    return one_hot.T @ grad_output.reshape(-1, grad_output.shape[-1])


def nearest_neighbours(table, token_id, k):
    """Return the ids of the k rows most similar to row token_id by cosine, the most similar first, without itself.

    table: [vocab_size, d_model], no row is zero. Returns a list of k ids.
    """
    unit = table / table.norm(dim=1, keepdim=True)
    order = torch.argsort(unit @ unit[token_id], descending=True).tolist()
    return [i for i in order if i != token_id][:k]


def _gradient_cases():
    def case(label, seed, shape, d_model, vocab_size):
        return Case(label, (integers(seed, shape, 0, vocab_size), normal(seed, (*shape, d_model))[0], vocab_size))

    return [
        Case("three tokens, one of them twice", (torch.tensor([3, 1, 3]), normal(60, (3, 2))[0], 5)),
        Case("all different", (torch.tensor([4, 0, 2]), normal(61, (3, 3))[0], 5)),
        case("7 tokens, 5 words", 62, (7,), 3, 5),
        case("a batch of 2", 63, (2, 5), 3, 11),
        case("square", 64, (7,), 7, 7),
    ]


def _neighbour_cases():
    long = torch.tensor([[1.0, 0.2], [0.9, 0.1], [5.0, 5.0], [-1.0, 0.0], [2.0, 0.3], [0.1, 1.0], [-3.0, -2.0]])
    tables = normal(65, (11, 5), (7, 7), (13, 2))
    return [
        Case("a long row that points elsewhere", (long, 0, 2)),
        Case("the same, another row", (long, 5, 3)),
        Case("11 rows of 5", (tables[0], 3, 5)),
        Case("7 rows of 7", (tables[1], 6, 1)),
        Case("all others", (tables[2], 0, 12)),
    ]


def _scattered(ids, grad_output, vocab_size, mean=False, reduce=True):
    rows, flat = ids.reshape(-1), grad_output.reshape(-1, grad_output.shape[-1])
    grad = torch.zeros(vocab_size, flat.shape[1], dtype=flat.dtype)
    for row, g in zip(rows.tolist(), flat, strict=True):
        grad[row] = grad[row] + g if reduce else g
    if mean:
        grad = grad / torch.bincount(rows, minlength=vocab_size).clamp(min=1)[:, None]
    return grad


def _first_wins(ids, grad_output, vocab_size):
    return _scattered(
        ids.reshape(-1).flip(0), grad_output.reshape(-1, grad_output.shape[-1]).flip(0), vocab_size, reduce=False
    )


def _ranked(score, itself=False, largest=True):
    def function(table, token_id, k):
        order = torch.argsort(score(table, token_id), descending=largest).tolist()
        return [i for i in order if itself or i != token_id][:k]

    return function


def _cosine(table, i):
    return torch.nn.functional.normalize(table, dim=1) @ torch.nn.functional.normalize(table[i], dim=0)


def _by_column(table, i):
    unit = torch.nn.functional.normalize(table, dim=0)
    return unit @ unit[i]


EXERCISES = (
    Exercise(
        "05.5",
        "The gradient of a lookup",
        12,
        3,
        embedding_gradient,
        _gradient_cases,
        (
            Mistake(
                "last wins",
                lambda i, g, v: _scattered(i, g, v, reduce=False),
                "A row used twice kept only its last gradient; contributions of all occurrences are added.",
            ),
            Mistake(
                "first wins",
                _first_wins,
                "A row used twice kept only its first gradient; contributions of all occurrences are added.",
            ),
            Mistake(
                "mean",
                lambda i, g, v: _scattered(i, g, v, mean=True),
                "You averaged over a row's occurrences; gradients of several uses add up.",
            ),
            Mistake(
                "transposed",
                lambda i, g, v: _scattered(i, g, v).T,
                "The result is transposed: the gradient has the shape of the table, [vocab_size, d_model].",
            ),
            Mistake(
                "used rows",
                lambda i, g, v: _scattered(i, g, v)[i.unique()],
                "You returned the used rows only; the others belong to the gradient too, as zeros.",
            ),
            Mistake(
                "looked up",
                lambda i, g, v: _scattered(i, g, v)[i],
                "You looked rows up again: the gradient has one row per word of the vocabulary, not per token.",
            ),
            Mistake(
                "counts",
                lambda i, g, v: _scattered(i, torch.ones_like(g), v),
                "You counted the uses; add up the rows of grad_output.",
            ),
            Mistake(
                "shared",
                lambda i, g, v: (_scattered(i, g, v) != 0) * g.reshape(-1, g.shape[-1]).sum(dim=0),
                "Every used row got the sum over all tokens; it gets only that of its own occurrences.",
            ),
        ),
    ),
    Exercise(
        "05.6",
        "Nearest neighbours",
        10,
        2,
        nearest_neighbours,
        _neighbour_cases,
        (
            Mistake(
                "dot product",
                _ranked(lambda table, i: table @ table[i]),
                "You ranked by dot product, which favours long rows; divide by the lengths.",
            ),
            Mistake(
                "distance",
                _ranked(lambda table, i: (table - table[i]).norm(dim=1), largest=False),
                "You ranked by distance, in which lengths count; the cosine compares directions only.",
            ),
            Mistake(
                "itself",
                _ranked(_cosine, itself=True),
                "The list begins with the token itself, which is always nearest; leave it out.",
            ),
            Mistake(
                "farthest", _ranked(_cosine, largest=False), "These are the least similar rows; sort by falling cosine."
            ),
            Mistake(
                "absolute",
                _ranked(lambda table, i: _cosine(table, i).abs()),
                "You ranked by the size of the cosine; a row that points the opposite way is not similar.",
            ),
            Mistake(
                "columns", _ranked(_by_column), "You normalised the columns of the table; a token is a row: dim=1."
            ),
            Mistake(
                "too few",
                lambda table, i, k: nearest_neighbours(table, i, k)[: k - 1] or [i],
                "You cut to k before leaving out the token itself: one neighbour is missing.",
            ),
        ),
    ),
)
