"""The exercises of notebook 06: positional encoding."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, normal

# 06.1 The table of sinusoids -----------------------------------------------------------------------------------------


def sinusoidal_table(seq_len, d_model):
    """Return the encodings of positions 0 to seq_len − 1, one per row: sine and cosine of pos · ω_j side by side.

    d_model is even; ω_j = 10000^(−2j/d_model); angles in radians. Returns [seq_len, d_model], in torch's default type.
    """
    rows = [[angle(p, j, d_model) for j in range(d_model // 2) for angle in (_sine, _cosine)] for p in range(seq_len)]
    return torch.tensor(rows)


def _sine(position, j, d_model):
    return math.sin(position * 10000.0 ** (-2 * j / d_model))


def _cosine(position, j, d_model):
    return math.cos(position * 10000.0 ** (-2 * j / d_model))


def _table_cases():
    sizes = [(4, 4), (5, 2), (7, 6), (13, 10), (1, 4), (101, 22)]
    return [Case(f"seq_len {seq_len}, d_model {d_model}", (seq_len, d_model)) for seq_len, d_model in sizes]


def _tables(angle=None, arrange=None):
    """Return the table with another rule for the angle of (positions, pairs, d_model), or another arrangement."""

    def function(seq_len, d_model):
        positions, j = torch.arange(seq_len).double()[:, None], torch.arange(d_model // 2)
        angles = angle(positions, j, d_model) if angle else positions * 10000.0 ** (-2 * j / d_model)
        return (arrange or _interleaved)(angles).float()

    return function


def _interleaved(angles):
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


def _by_feature(factor):
    """Give every feature f a frequency of its own, 10000^(−factor · f / d_model)."""

    def function(seq_len, d_model):
        features = torch.arange(d_model)
        angles = torch.arange(seq_len).double()[:, None] * 10000.0 ** (-factor * features / d_model)
        return torch.where(features % 2 == 0, angles.sin(), angles.cos()).float()

    return function


EXERCISE_1 = Exercise(
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
            "exponent without minus",
            lambda n, d: _interleaved(torch.arange(n)[:, None] * 10000.0 ** (2 * torch.arange(d // 2).float() / d)),
            "The exponent has lost its minus: ω_j = 10000^(−2j/d_model) falls with j.",
        ),
        Mistake(
            "scaled",
            lambda n, d: d**0.5 * sinusoidal_table(n, d),
            "Your table is multiplied by √d_model; that factor belongs to the embedding of the tokens.",
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
        Mistake(
            "sine everywhere",
            _tables(arrange=lambda a: a.sin().repeat_interleave(2, 1)),
            "Both features of a pair hold the sine; feature 2j + 1 is the cosine of the same angle.",
        ),
        Mistake(
            "angles alone",
            _tables(arrange=lambda a: a.repeat_interleave(2, 1)),
            "These are the angles; take their sine in feature 2j and their cosine in 2j + 1.",
        ),
        Mistake(
            "turns for radians",
            _tables(lambda p, j, d: 2 * math.pi * p * 10000.0 ** (-2 * j / d)),
            "Your angles have a factor 2π too much: ω_j is in radians per position, not in turns.",
        ),
        Mistake(
            "thousand",
            _tables(lambda p, j, d: p * 1000.0 ** (-2 * j / d)),
            "The constant is 10000; yours is 1000.",
        ),
        Mistake(
            "last wavelength full",
            _tables(lambda p, j, d: p * 10000.0 ** (-2 * j / max(d - 2, 1))),
            "You divide by d_model − 2, so that the last pair has 10000 itself; the exponent is −2j/d_model.",
        ),
    ),
    part="sinusoidal_table",
)


# 06.2 Add the positions ----------------------------------------------------------------------------------------------


def add_positions(X, table, start):
    """Return the token vectors plus the encodings of their positions.

    X: [batch, seq_len, d_model]; table: [max_len, d_model], row p for position p. The first token of every sentence
    stands at position start. Returns [batch, seq_len, d_model].
    """
    return torch.stack([X[:, i] + table[start + i] for i in range(X.shape[1])], dim=1)


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


EXERCISE_2 = Exercise(
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
            "You always start at position 0; the first token stands at position start.",
        ),
        Mistake(
            "from one",
            lambda X, table, start: X + table.roll(-1, 0)[start : start + X.shape[1]],
            "You are one row too late: the first token gets row start itself.",
        ),
        Mistake(
            "a row early",
            lambda X, table, start: X + table[max(start - 1, 0) : max(start - 1, 0) + X.shape[1]],
            "You are one row too early: the first token gets row start itself, counted from 0.",
        ),
        Mistake(
            "slice up to the length",
            lambda X, table, start: X + table[start : X.shape[1]],
            "A slice ends before its second number: write table[start : start + seq_len].",
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
            "batch for length",
            lambda X, table, start: X + table[start : start + X.shape[0]],
            "You took as many rows as there are sentences (axis 0); take one for each token of a sentence (axis 1).",
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
        Mistake(
            "table alone",
            lambda X, table, start: table[start : start + X.shape[1]].expand(X.shape),
            "You returned the rows of the table; add them to the tokens.",
        ),
    ),
    gradients=("X", "table"),
)


# 06.3 A shift is a rotation ------------------------------------------------------------------------------------------


def shift_matrix(offset, d_model):
    """Return the matrix R with R PE(p) = PE(p + offset) for every p, where PE(p) is a column of d_model features.

    offset: an integer, negative too; d_model: even. Returns [d_model, d_model], in torch's default type.
    """
    blocks = []
    for j in range(d_model // 2):
        c, s = _cosine(offset, j, d_model), _sine(offset, j, d_model)
        blocks.append(torch.tensor([[c, s], [-s, c]]))
    return torch.block_diag(*blocks)


def _shift_cases():
    pairs = [(1, 2), (3, 4), (-2, 6), (7, 10), (0, 4), (101, 4)]
    return [Case(f"offset {offset}, d_model {d_model}", (offset, d_model)) for offset, d_model in pairs]


def _shifts(angle=None, block=None, whole=None):
    """Return the shift matrix with another angle of (offset, pair, d_model), other 2×2 blocks, or a last change."""

    def function(offset, d_model):
        angles = [
            (angle or (lambda k, j, d: k * 10000.0 ** (-2 * j / d)))(offset, j, d_model) for j in range(d_model // 2)
        ]
        make = block or (lambda c, s: [[c, s], [-s, c]])
        matrix = torch.block_diag(*(torch.tensor(make(math.cos(a), math.sin(a))) for a in angles))
        return whole(matrix) if whole else matrix

    return function


def _halves(matrix):
    """Return the same map for features ordered as all sines, then all cosines."""
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    return matrix[order][:, order]


EXERCISE_3 = Exercise(
    "06.3",
    "A shift is a rotation",
    10,
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
            "minus twice",
            _shifts(block=lambda c, s: [[c, -s], [-s, c]]),
            "Both sines have a minus sign; in sin(A + B) = sin A cos B + cos A sin B there is none.",
        ),
        Mistake(
            "blocks everywhere",
            lambda offset, d_model: torch.tensor(
                [[_cosine(offset, 0, 2), _sine(offset, 0, 2)], [-_sine(offset, 0, 2), _cosine(offset, 0, 2)]]
            ).repeat(d_model // 2, d_model // 2),
            "Your matrix is full: no pair meets another, so everything outside the blocks on the diagonal is 0.",
        ),
        Mistake(
            "frequency alone",
            _shifts(lambda k, j, d: 10000.0 ** (-2 * j / d)),
            "The offset does not enter: your matrix always shifts by 1.",
        ),
        Mistake(
            "without the sign",
            lambda offset, d_model: shift_matrix(abs(offset), d_model),
            "You dropped the sign of the offset: a negative one turns the other way.",
        ),
    ),
)


# 06.4 How far apart? -------------------------------------------------------------------------------------------------


def recover_offset(pe_a, pe_b, max_offset):
    """Return the offset k of two sinusoidal encodings, pe_b = PE(p + k) and pe_a = PE(p), without knowing p.

    pe_a, pe_b: [d_model]; k is an integer from −max_offset to max_offset. Returns k as a number.
    """
    sine_a, cosine_a, sine_b, cosine_b = pe_a[0::2], pe_a[1::2], pe_b[0::2], pe_b[1::2]
    turned = torch.atan2(sine_b * cosine_a - cosine_b * sine_a, cosine_b * cosine_a + sine_b * sine_a)  # k ω_j mod 2π
    candidates = torch.arange(-max_offset, max_offset + 1)
    agreement = torch.cos(candidates[:, None] * _frequencies(len(pe_a)) - turned.double()).sum(dim=1)
    return int(candidates[agreement.argmax()])


def _frequencies(width):
    return 10000.0 ** (-2 * torch.arange(width // 2, dtype=torch.float64) / width)


def _encoding(position, width):
    angles = position * _frequencies(width)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten().float()


def _offset_cases():
    def case(d_model, p, offset, max_offset):
        label = f"d_model {d_model}, offset {offset}, at most {max_offset}"
        label += f", from position {p:,}" if p > 10_000 else ""
        return Case(label, (_encoding(p, d_model), _encoding(p + offset, d_model), max_offset))

    return [
        case(4, 5, 3, 7),
        case(4, 13, -2, 11),
        case(6, 7, 29, 47),
        case(4, 1013, -397, 401),
        case(10, 101, -61, 211),
        case(4, 3, 0, 5),
        case(4, 2, 359, 401),
        case(6, 17, 13, 13),
        case(6, 23, -13, 13),
        case(8, 30000, 5, 11),
    ]


def _turned(pe_a, pe_b):
    """Return the angle by which each pair has turned, mod 2π."""
    first, second = (torch.atan2(part[0::2], part[1::2]).double() for part in (pe_a, pe_b))
    return torch.remainder(second - first + math.pi, 2 * math.pi) - math.pi


def _one_pair(pair):
    def function(pe_a, pe_b, max_offset):
        return round(float(_turned(pe_a, pe_b)[pair] / _frequencies(len(pe_a))[pair]))

    return function


def _search(low=None, score=None):
    """Return the candidate that agrees best, from ``low`` on; ``score`` rates [candidates, pairs] of angles."""

    def function(pe_a, pe_b, max_offset):
        candidates = torch.arange(-max_offset if low is None else low, max_offset + 1)
        angles = candidates[:, None] * _frequencies(len(pe_a))
        rated = score(angles, pe_a, pe_b) if score else torch.cos(angles - _turned(pe_a, pe_b)).sum(dim=1)
        return int(candidates[rated.argmax()])

    return function


def _by_dot_product(angles, pe_a, pe_b):
    """Rate each offset by how close its dot product would be to the one found; the first of two equals wins."""
    return -(torch.cos(angles).sum(dim=1) - (pe_a.double() @ pe_b.double())).abs().round(decimals=5)


def _by_degrees(angles, pe_a, pe_b):
    return torch.cos(torch.deg2rad(angles) - _turned(pe_a, pe_b)).sum(dim=1)


EXERCISE_4 = Exercise(
    "06.4",
    "How far apart?",
    15,
    3,
    recover_offset,
    _offset_cases,
    (
        Mistake(
            "reversed",
            lambda a, b, most: -recover_offset(a, b, most),
            "The sign is reversed: pe_b stands at p + k, so k is positive when b comes later.",
        ),
        Mistake(
            "dot product",
            _search(low=0, score=_by_dot_product),
            "The sign of k is lost: you return how far, not on which side. (Dot products are the same for k and −k.)",
        ),
        Mistake(
            "dot product, both sides",
            _search(score=_by_dot_product),
            "You compared dot products, which are the same for k and −k: they give no side.",
        ),
        Mistake(
            "fast pair, not wrapped",
            lambda a, b, most: round(math.atan2(b[0], b[1]) - math.atan2(a[0], a[1])),
            "You took the angle of the first pair alone; it comes round every 6.28 positions. Use all pairs.",
        ),
        Mistake(
            "fast pair",
            _one_pair(0),
            "You read the first pair alone; it comes round every 6.28 positions and cannot tell 3 from 47.",
        ),
        Mistake(
            "slow pair",
            _one_pair(-1),
            "You read the last pair alone: at d_model 4 it comes round after 628 positions. Use all pairs.",
        ),
        Mistake("forward only", _search(low=0), "You tried no negative offset; k runs from −max_offset to max_offset."),
        Mistake(
            "forward, no last",
            lambda a, b, most: _search(low=0)(a, b, most - 1),
            "You tried the offsets 0 to max_offset − 1; k runs from −max_offset to max_offset, both included.",
        ),
        Mistake(
            "forward, no zero",
            _search(low=1),
            "You tried the offsets 1 to max_offset; k runs from −max_offset to max_offset.",
        ),
        Mistake(
            "index",
            lambda a, b, most: recover_offset(a, b, most) + most,
            "You returned the index of the best candidate; the first candidate is −max_offset.",
        ),
        Mistake(
            "degrees", _search(score=_by_degrees), "Your candidates turn by degrees; sine and cosine mean radians."
        ),
        Mistake(
            "no last",
            lambda a, b, most: -_search(low=-most + 1)(b, a, most),
            "The largest offset is missing: range(-max_offset, max_offset) ends one before.",
        ),
        Mistake(
            "no first",
            lambda a, b, most: _search(low=-most + 1)(a, b, most),
            "The smallest offset, −max_offset, is missing from your candidates.",
        ),
    ),
)


# 06.5 Rotary positions -----------------------------------------------------------------------------------------------


def rotary(x, positions):
    """Return x with the feature pair (2j, 2j + 1) of each token turned by the angle position · ω_j.

    x: [..., seq_len, d_k], queries or keys, d_k even; positions: [seq_len], integers; ω_j = 10000^(−2j/d_k).
    The turn takes (1, 0) to (cos, sin). Returns [..., seq_len, d_k].
    """
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    angles = positions[:, None] * _frequencies(x.shape[-1])
    turned = pairs * torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)
    return torch.view_as_real(turned).flatten(-2)


def _rotary_cases():
    def case(label, seed, shape, positions):
        return Case(label, (*normal(seed, shape), torch.tensor(positions)))

    return [
        case("2 tokens, d_k = 2", 71, (2, 2), [0, 1]),
        case("5 tokens, d_k = 6", 72, (5, 6), [0, 1, 2, 3, 4]),
        case("positions that start at 7", 73, (3, 4), [7, 8, 9]),
        case("a batch of 2 with 3 heads", 74, (2, 3, 5, 4), [0, 1, 2, 3, 4]),
        case("positions in another order", 75, (3, 10), [11, 2, 5]),
        case("as many tokens as features", 76, (4, 4), [0, 1, 2, 3]),
        Case("numbers in float64", (normal(95, (3, 4), dtype=torch.float64)[0], torch.tensor([0, 5, 2]))),
    ]


def _rotations(angle=None, combine=None, halves=False):
    """Return rotary positions with another angle of (positions, pairs, d_k), combination of pairs, or pairing."""

    def function(x, positions):
        width = x.shape[-1]
        j = torch.arange(width // 2)
        angles = angle(positions[:, None].double(), j, width) if angle else positions[:, None] * _frequencies(width)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1) if halves else (x[..., 0::2], x[..., 1::2])
        first, second = combine(a, b, cos, sin) if combine else (a * cos - b * sin, a * sin + b * cos)
        return torch.cat((first, second), -1) if halves else torch.stack((first, second), -1).flatten(-2)

    return function


def _overwritten(x, positions):
    angles = positions[:, None] * _frequencies(x.shape[-1])
    c, s, x = angles.cos().to(x.dtype), angles.sin().to(x.dtype), x.clone()
    x[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
    x[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
    return x


def _row_numbers(x, positions):
    omega = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])  # in float32, as learners write it
    angles = torch.arange(x.shape[-2])[:, None] * omega
    c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2)


EXERCISE_5 = Exercise(
    "06.5",
    "Rotary positions",
    12,
    2,
    rotary,
    _rotary_cases,
    (
        Mistake(
            "other way",
            _rotations(combine=lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
            "You turn the other way: (1, 0) must become (cos, sin). Scores would not notice, this check does.",
        ),
        Mistake(
            "halves",
            _rotations(halves=True),
            "You paired feature j with feature j + d_k/2; here the pairs are neighbours, 2j and 2j + 1.",
        ),
        Mistake(
            "one frequency",
            _rotations(lambda p, j, d: p.expand(-1, len(j))),
            "Every pair turns at the same speed; pair j has the frequency 10000^(−2j/d_k).",
        ),
        Mistake(
            "j for 2j",
            _rotations(lambda p, j, d: p * 10000.0 ** (-j / d)),
            "Your exponent is −j/d_k; pair j has the exponent −2j/d_k.",
        ),
        Mistake(
            "degrees",
            _rotations(lambda p, j, d: torch.deg2rad(p * 10000.0 ** (-2 * j / d))),
            "Your angles are taken as degrees; sine and cosine mean radians.",
        ),
        Mistake(
            "added",
            lambda x, p: (
                x
                + torch.stack(
                    (
                        (p[:, None] * _frequencies(x.shape[-1])).sin(),
                        (p[:, None] * _frequencies(x.shape[-1])).cos(),
                    ),
                    -1,
                )
                .flatten(1)
                .to(x.dtype)
            ),
            "You added the sinusoids; rotary positions multiply each pair by a rotation.",
        ),
        Mistake(
            "no minus",
            _rotations(combine=lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
            "One sign is missing: the first feature of the pair becomes x cos − y sin.",
        ),
        Mistake(
            "overwritten",
            _overwritten,
            "You wrote the new even features first and then used them for the odd ones: keep a and b apart.",
        ),
        Mistake(
            "row numbers",
            _row_numbers,
            "You counted the rows from 0; use the positions that are given.",
        ),
    ),
    gradients=("x",),
)


# 06.6 A bias for each offset -----------------------------------------------------------------------------------------


def relative_bias(scores, table, max_distance):
    """Return the scores plus one learned number per offset; offsets beyond ±max_distance share the outermost ones.

    scores: [..., seq_len, seq_len]; table: [2 · max_distance + 1], entry c for the offset c − max_distance of a
    key from its query, positive for a later key. Returns [..., seq_len, seq_len].
    """
    seq_len = scores.shape[-1]
    bias = [
        [table[max(-max_distance, min(max_distance, j - i)) + max_distance] for j in range(seq_len)]
        for i in range(seq_len)
    ]
    return scores + torch.stack([torch.stack(row) for row in bias])


def _bias_cases():
    def case(label, seed, shape, max_distance):
        return Case(label, (*normal(seed, shape, (2 * max_distance + 1,)), max_distance))

    return [
        case("2 tokens, at most 1 apart", 77, (2, 2), 1),
        case("5 tokens, offsets clipped at 2", 78, (5, 5), 2),
        case("7 tokens, clipped at 3", 79, (7, 7), 3),
        case("3 tokens, room for offsets up to 5", 80, (3, 3), 5),
        case("a batch of 2 with 3 heads", 81, (2, 3, 5, 5), 2),
        case("one token", 82, (1, 1), 3),
    ]


def _biased(index=None, result=None):
    """Return the bias with another index of (offsets, max_distance), or another use of it."""

    def function(scores, table, max_distance):
        n = scores.shape[-1]
        offsets = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        plain = offsets.clamp(-max_distance, max_distance) + max_distance
        bias = table[index(offsets, max_distance) if index else plain]
        return result(scores, bias) if result else scores + bias

    return function


def _no_bias_outside(scores, table, max_distance):
    places = torch.arange(scores.shape[-1])
    inside = (places[None, :] - places[:, None]).abs() <= max_distance
    return torch.where(inside, relative_bias(scores, table, max_distance), scores)


EXERCISE_6 = Exercise(
    "06.6",
    "A bias for each offset",
    10,
    2,
    relative_bias,
    _bias_cases,
    (
        Mistake(
            "turned",
            _biased(lambda o, most: (-o).clamp(-most, most) + most),
            "Your offset is the query's position minus the key's; it must be positive for a later key.",
        ),
        Mistake(
            "no middle",
            _biased(lambda o, most: o.clamp(-most, most)),
            "You index with the offset itself, and a negative index counts from the end: "
            "add max_distance, so that offset 0 is the middle.",
        ),
        Mistake(
            "not clipped",
            _biased(lambda o, most: o + most),
            "Offsets beyond ±max_distance leave the table, or wrap round in it: clip them first.",
        ),
        Mistake(
            "wrapped",
            _biased(lambda o, most: (o + most) % (2 * most + 1)),
            "Far offsets come round to the other end of the table; they must share its outermost entries.",
        ),
        Mistake(
            "distance",
            _biased(lambda o, most: o.abs().clamp(max=most) + most),
            "You took the distance without its sign; earlier and later keys have entries of their own.",
        ),
        Mistake(
            "bias alone",
            _biased(result=lambda s, b: b.expand(s.shape)),
            "You returned the bias; add it to the scores.",
        ),
        Mistake(
            "softmax",
            _biased(result=lambda s, b: (s + b).softmax(dim=-1)),
            "You applied the softmax; return the scores with the bias, as they are.",
        ),
        Mistake("grid alone", _biased(result=lambda s, b: b), "You returned the grid of biases; add it to the scores."),
        Mistake("multiplied", _biased(result=lambda s, b: s * b), "You multiplied; the bias is added to the scores."),
        Mistake(
            "transposed",
            _biased(result=lambda s, b: s.mT + b),
            "The scores came out transposed: rows stay queries, columns stay keys.",
        ),
        Mistake(
            "nothing outside",
            _no_bias_outside,
            "Offsets beyond ±max_distance get no bias in your result; they share the outermost entries.",
        ),
    ),
    gradients=("scores", "table"),
)

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6)
