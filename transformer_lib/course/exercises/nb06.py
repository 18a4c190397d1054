"""Exercises of notebook 06: the table of sinusoids, adding it, and the rotation that shifts it."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal


def sinusoidal_table(seq_len, d_model):
    """Return the encodings of positions 0 to seq_len − 1, one per row: sine and cosine of pos · ω_j side by side.

    d_model is even; ω_j = 10000^(−2j/d_model); angles in radians. Returns [seq_len, d_model], in torch's default type.
    """
    rows = [[angle(p, j, d_model) for j in range(d_model // 2) for angle in (_sine, _cosine)] for p in range(seq_len)]
    return torch.tensor(rows)


def add_positions(X, table, start):
    """Return the token vectors plus the encodings of their places.

    X: [batch, seq_len, d_model]; table: [max_len, d_model], row p for position p. The first token of every sentence
    stands at position start. Returns [batch, seq_len, d_model].
    """
    return torch.stack([X[:, i] + table[start + i] for i in range(X.shape[1])], dim=1)


def shift_matrix(offset, d_model):
    """Return the matrix M with M PE(p) = PE(p + offset) for every p, where PE(p) is a column of d_model features.

    offset: an integer, negative too; d_model: even. Returns [d_model, d_model], in torch's default type.
    """
    blocks = []
    for j in range(d_model // 2):
        c, s = _cosine(offset, j, d_model), _sine(offset, j, d_model)
        blocks.append(torch.tensor([[c, s], [-s, c]]))
    return torch.block_diag(*blocks)


def _sine(position, j, d_model):
    return math.sin(position * 10000.0 ** (-2 * j / d_model))


def _cosine(position, j, d_model):
    return math.cos(position * 10000.0 ** (-2 * j / d_model))


def _table_cases():
    sizes = [(4, 4), (5, 2), (7, 6), (13, 10), (1, 4), (101, 22)]
    return [Case(f"seq_len {seq_len}, d_model {d_model}", (seq_len, d_model)) for seq_len, d_model in sizes]


def _add_cases():
    def case(label, seed, shape, max_len, start):
        return Case(label, (*normal(seed, shape, (max_len, shape[-1])), start))

    return [
        case("one sentence of 2 tokens from position 0", 61, (1, 2, 2), 5, 0),
        case("3 sentences of 5 tokens from position 0", 62, (3, 5, 7), 11, 0),
        case("one sentence of 5 tokens from position 3", 67, (1, 5, 3), 11, 3),
        case("2 sentences of 5 tokens from position 3", 63, (2, 5, 3), 13, 3),
        case("as many sentences as tokens", 64, (5, 5, 2), 17, 2),
        case("one token at position 7", 65, (3, 1, 5), 11, 7),
        case("up to the last row", 66, (2, 7, 3), 11, 4),
    ]


def _shift_cases():
    pairs = [(1, 2), (3, 4), (-2, 6), (7, 10), (0, 4), (101, 4)]
    return [Case(f"offset {offset}, d_model {d_model}", (offset, d_model)) for offset, d_model in pairs]


def _tables(angle=None, arrange=None):
    """The table with another rule for the angle of (positions, pairs, d_model), or another arrangement."""

    def function(seq_len, d_model):
        positions, j = torch.arange(seq_len).double()[:, None], torch.arange(d_model // 2)
        angles = angle(positions, j, d_model) if angle else positions * 10000.0 ** (-2 * j / d_model)
        parts = arrange(angles) if arrange else torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
        return parts.float()

    return function


def _by_feature(factor):
    """Every feature f with a frequency of its own, 10000^(−factor · f / d_model)."""

    def function(seq_len, d_model):
        features = torch.arange(d_model)
        angles = torch.arange(seq_len).double()[:, None] * 10000.0 ** (-factor * features / d_model)
        return torch.where(features % 2 == 0, angles.sin(), angles.cos()).float()

    return function


def _shifts(angle=None, block=None, whole=None):
    """The shift matrix with another angle of (offset, pair, d_model), other 2×2 blocks, or a last change."""

    def function(offset, d_model):
        angles = [
            (angle or (lambda k, j, d: k * 10000.0 ** (-2 * j / d)))(offset, j, d_model) for j in range(d_model // 2)
        ]
        make = block or (lambda c, s: [[c, s], [-s, c]])
        matrix = torch.block_diag(*(torch.tensor(make(math.cos(a), math.sin(a))) for a in angles))
        return whole(matrix) if whole else matrix

    return function


def _halves(matrix):
    """The same map for features ordered as all sines, then all cosines."""
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    return matrix[order][:, order]


EXERCISES = (
    Exercise(
        "06.1",
        "The table of sinusoids",
        10,
        1,
        sinusoidal_table,
        _table_cases,
        (
            Mistake(
                "degrees",
                _tables(lambda p, j, d: torch.deg2rad(p * 10000.0 ** (-2 * j / d))),
                "Your angles are taken as degrees: sin(1) is 0.84 in radians, which the formula means.",
            ),
            Mistake(
                "j for 2j",
                _tables(lambda p, j, d: p * 10000.0 ** (-j / d)),
                "Your exponent is −j/d_model; pair j has the exponent −2j/d_model.",
            ),
            Mistake(
                "feature for pair",
                _tables(lambda p, j, d: p * 10000.0 ** (-4 * j / d)),
                "Your exponent is −4j/d_model: 2j already stands for the even feature, do not double it again.",
            ),
            Mistake(
                "feature as j",
                _by_feature(2),
                "You took j for the feature; it is the pair: features 2j and 2j + 1 share the frequency ω_j.",
            ),
            Mistake(
                "cosine's own frequency",
                _by_feature(1),
                "The sines are right; the cosine in feature 2j + 1 has the same exponent, −2j/d_model.",
            ),
            Mistake(
                "multiplied",
                _tables(lambda p, j, d: p * 10000.0 ** (2 * j / d)),
                "You multiply by 10000^(2j/d_model); the frequency falls with j, so divide.",
            ),
            Mistake(
                "halves",
                _tables(arrange=lambda a: torch.cat((a.sin(), a.cos()), 1)),
                "All sines stand before all cosines; here they alternate: sine in feature 2j, cosine in 2j + 1.",
            ),
            Mistake(
                "cosine first",
                _tables(arrange=lambda a: torch.stack((a.cos(), a.sin()), -1).flatten(1)),
                "Sine and cosine are swapped: the sine is the even feature, 2j.",
            ),
            Mistake(
                "from one",
                _tables(lambda p, j, d: (p + 1) * 10000.0 ** (-2 * j / d)),
                "Your positions start at 1; the first token stands at position 0, encoded (0, 1, 0, 1, …).",
            ),
            Mistake(
                "one frequency",
                _tables(lambda p, j, d: p.expand(-1, len(j))),
                "Every pair turns at the same speed; pair j has the frequency 10000^(−2j/d_model).",
            ),
            Mistake(
                "position and pair swapped",
                _tables(lambda p, j, d: j * 10000.0 ** (-2 * p / d)),
                "Position and pair index have changed places: the position is multiplied, j sets the frequency.",
            ),
        ),
        any_float=True,
    ),
    Exercise(
        "06.2",
        "Add the positions",
        5,
        1,
        add_positions,
        _add_cases,
        (
            Mistake(
                "no start",
                lambda X, table, start: X + table[: X.shape[1]],
                "You start at position 0 always; the first token stands at position start.",
            ),
            Mistake(
                "from one",
                lambda X, table, start: X + table.roll(-1, 0)[start : start + X.shape[1]],
                "You are one row too late: the first token gets row start itself.",
            ),
            Mistake(
                "last rows",
                lambda X, table, start: X + table[-X.shape[1] :],
                "You took the last rows of the table; take those from start on.",
            ),
            Mistake(
                "one row",
                lambda X, table, start: X + table[start],
                "Every token gets the same encoding; token i stands at position start + i.",
            ),
            Mistake(
                "by sentence",
                lambda X, table, start: X + table[start : start + X.shape[0], None],
                "The position counts sentences (axis 0); it must count the tokens within each (axis 1).",
            ),
            Mistake(
                "multiplied",
                lambda X, table, start: X * table[start : start + X.shape[1]],
                "You multiplied; the encoding is added.",
            ),
            Mistake(
                "scaled",
                lambda X, table, start: X * X.shape[-1] ** 0.5 + table[start : start + X.shape[1]],
                "You multiplied the tokens by √d_model; that belongs to the embedding, here only add.",
            ),
            Mistake(
                "joined",
                lambda X, table, start: torch.cat((X, table[start : start + X.shape[1]].expand(X.shape)), -1),
                "You put the encoding beside the token; it is added, and the width stays d_model.",
            ),
        ),
        gradients=("X", "table"),
    ),
    Exercise(
        "06.3",
        "A shift is a rotation",
        12,
        2,
        shift_matrix,
        _shift_cases,
        (
            Mistake(
                "transposed",
                _shifts(block=lambda c, s: [[c, -s], [s, c]]),
                "This is the transpose: it takes PE(p) to PE(p − offset). Sine comes first, so the block is "
                "[[cos, sin], [−sin, cos]].",
            ),
            Mistake(
                "one frequency",
                _shifts(lambda k, j, d: k),
                "Every block turns by the same angle; pair j turns by offset · ω_j.",
            ),
            Mistake(
                "j for 2j",
                _shifts(lambda k, j, d: k * 10000.0 ** (-j / d)),
                "Your exponent is −j/d_model; pair j has the exponent −2j/d_model.",
            ),
            Mistake(
                "degrees",
                _shifts(lambda k, j, d: math.radians(k * 10000.0 ** (-2 * j / d))),
                "Your angles are taken as degrees; sine and cosine mean radians.",
            ),
            Mistake(
                "no minus",
                _shifts(block=lambda c, s: [[c, s], [s, c]]),
                "The lower left entry needs a minus sign: cos(A + B) = cos A cos B − sin A sin B.",
            ),
            Mistake(
                "halves",
                _shifts(whole=_halves),
                "Your matrix fits a table with all sines first; here the pair j is features 2j and 2j + 1.",
            ),
            Mistake(
                "swapped",
                _shifts(block=lambda c, s: [[s, c], [c, -s]]),
                "Sine and cosine are swapped in the blocks: a shift by 0 must be the identity.",
            ),
            Mistake(
                "frequency alone",
                _shifts(lambda k, j, d: 10000.0 ** (-2 * j / d)),
                "The offset does not enter: your matrix always shifts by 1.",
            ),
        ),
        any_float=True,
    ),
)
