"""Exercises of notebook 10, continued: who reads whom."""

from __future__ import annotations

import torch

from .model import Case, Exercise, Mistake, normal


def influence(encode, x, amount):
    """Return which outputs change when one input changes: boolean [seq_len, seq_len], entry [i, j].

    Entry [i, j] is True when adding amount [d_model] to row j of x moves any number of row i of encode(x) by more
    than 1e-6. x: [seq_len, d_model]; encode: a function of one such tensor that returns one.
    """
    before, columns = encode(x), []
    for j in range(len(x)):
        changed = torch.cat([x[:j], (x[j] + amount)[None], x[j + 1 :]])
        columns.append(((encode(changed) - before).abs() > 1e-6).any(dim=1))
    return torch.stack(columns, dim=1)


def _encode(kind, seed, d_model):
    """A map on [seq_len, d_model] whose rows read all rows, none but themselves, earlier ones, or the next one."""
    matrix = normal(seed, (d_model, d_model))[0]

    def encode(x):
        n = len(x)
        seen = {
            "all": torch.ones(n, n),
            "self": torch.eye(n),
            "past": torch.ones(n, n).tril(),
            "next": torch.eye(n) + torch.eye(n).roll(1, dims=1).triu(),
        }[kind]
        return torch.tanh(seen.to(x) @ x @ matrix.to(x) / n)

    return encode


def _unchanged(x):
    return x.clone()


def _only_feature(place):
    """An encoder in which a change shows in one feature alone."""
    return lambda x: torch.eye(x.shape[1])[place].to(x) * x.cumsum(dim=0).sum(dim=1, keepdim=True)


def _opposite_features(x):
    """Two features move by opposite amounts, so that their sum stays."""
    moved = x.cumsum(dim=0).sum(dim=1, keepdim=True)
    return torch.cat([moved, -moved], dim=1)


def _influence_cases():
    def case(label, kind, seed, seq_len, d_model):
        x, amount = normal(seed, (seq_len, d_model), (d_model,))
        return Case(label, (_encode(kind, seed, d_model), x, amount))

    small = normal(145, (3, 2), (2,))
    return [
        case("2 tokens, each reads itself and the past", "past", 140, 2, 3),
        case("5 tokens, all read all", "all", 141, 5, 2),
        case("3 tokens, each alone", "self", 142, 3, 5),
        case("7 tokens, each reads itself and the next", "next", 143, 7, 3),
        case("one token", "all", 144, 1, 2),
        Case("3 tokens, an encoder that changes nothing", (_unchanged, *small)),
        Case("a change shows in the first feature only", (_only_feature(0), *small)),
        Case("a change shows in the last feature only", (_only_feature(-1), *small)),
        Case("two features move by opposite amounts", (_opposite_features, *small)),
    ]


def _perturb(encode, x, amount, spread):
    before = encode(x)
    return [encode(x + spread(j, x)[:, None] * amount) - before for j in range(len(x))]


def _one(j, x):
    return (torch.arange(len(x)) == j).to(x)


def _grid(encode, x, amount, spread=_one, reduce=torch.any):
    return torch.stack([reduce(d.abs() > 1e-6, dim=1) for d in _perturb(encode, x, amount, spread)], dim=1)


def _judged(moved):
    """The right grid, but for what is asked of each output's change."""
    return lambda e, x, a: torch.stack([moved(d) for d in _perturb(e, x, a, _one)], dim=1)


def _compared_with_x(encode, x, amount):
    changed = [encode(x + _one(j, x)[:, None] * amount) for j in range(len(x))]
    return torch.stack([((y - x).abs() > 1e-6).any(dim=1) for y in changed], dim=1)


def _kept_changes(encode, x, amount):
    return _grid(encode, x, amount, lambda j, x: (torch.arange(len(x)) <= j).to(x))


EXERCISES = (
    Exercise(
        "10.4",
        "Who reads whom?",
        12,
        3,
        influence,
        _influence_cases,
        (
            Mistake(
                "transposed",
                lambda e, x, a: _grid(e, x, a).T,
                "Your grid is transposed: row i is the output, column j the input that was changed.",
            ),
            Mistake(
                "keeps changes",
                _kept_changes,
                "Earlier changes stay in x while you make the next: begin each time from the given x.",
            ),
            Mistake(
                "all rows",
                lambda e, x, a: _grid(e, x, a, lambda j, x: torch.ones(len(x)).to(x)),
                "You changed every row at once; change one row j at a time.",
            ),
            Mistake(
                "diagonal",
                lambda e, x, a: _grid(e, x, a) & torch.eye(len(x), dtype=torch.bool),
                "Only the changed row itself is looked at; ask every output row.",
            ),
            Mistake(
                "not the diagonal",
                lambda e, x, a: _grid(e, x, a) & ~torch.eye(len(x), dtype=torch.bool),
                "A row may influence its own output too; the diagonal counts.",
            ),
            Mistake("unchanged", lambda e, x, a: ~_grid(e, x, a), "True must mean that the output changed."),
            Mistake(
                "compared with x",
                _compared_with_x,
                "You compared with x itself; compare with encode(x), the result before the change.",
            ),
            Mistake(
                "no abs",
                _judged(lambda d: (d > 1e-6).any(dim=1)),
                "A number may also move downwards: take the absolute value before you compare with 1e-6.",
            ),
            Mistake(
                "sum",
                _judged(lambda d: d.sum(dim=1).abs() > 1e-6),
                "Changes of different features can cancel in a sum; ask whether any feature has moved.",
            ),
            Mistake(
                "first feature",
                _judged(lambda d: d[:, 0].abs() > 1e-6),
                "You looked at the first feature alone; ask whether any feature of the row has moved.",
            ),
            Mistake(
                "last feature",
                _judged(lambda d: d[:, -1].abs() > 1e-6),
                "You looked at the last feature alone; ask whether any feature of the row has moved.",
            ),
            Mistake(
                "every feature",
                _judged(lambda d: (d.abs() > 1e-6).all(dim=1)),
                "You asked for every feature of the row to move; one is enough.",
            ),
            Mistake(
                "by feature",
                _judged(lambda d: d.abs() > 1e-6),
                "There is a value per feature; ask whether any feature of the row has moved.",
            ),
            Mistake(
                "how much",
                _judged(lambda d: d.abs().amax(dim=1)),
                "Those are the sizes of the changes; asked for is whether they exceed 1e-6.",
            ),
        ),
    ),
)
