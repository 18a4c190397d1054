"""The exercises of notebook 06: positional encoding."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, normal
from .slips import slips

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


EXERCISE_1 = Exercise(
    "06.1", "The table of sinusoids", 10, 1, sinusoidal_table, _table_cases,
    slips(
        "seq_len, d_model", """
            p, j = torch.arange(seq_len).double()[:, None], torch.arange(d_model // 2)
            angles = p * 10000.0 ** (-2 * j / d_model)
            return torch.stack((angles.sin(), angles.cos()), -1).flatten(1).float()
        """,
        ("degrees", "p * 10000.0 ** (-2 * j / d_model)", "torch.deg2rad(p * 10000.0 ** (-2 * j / d_model))",
         "Your angles are taken as degrees: sin(1) is 0.84 in radians, which the formula means."),
        ("j for 2j", "-2 * j", "-j", "Your exponent is −j/d_model; pair j has the exponent −2j/d_model."),
        ("feature for pair", "torch.arange(d_model // 2)", "torch.arange(0, d_model, 2)",
         "Your exponent is −4j/d_model: 2j is the even feature already, so do not double it."),
        ("exponent without minus", "p * 10000.0 ** (-2 * j", "p.float() * 10000.0 ** (2 * j.float()",
         "The exponent has lost its minus: ω_j = 10000^(−2j/d_model) falls with j."),
        ("halves", "torch.stack((angles.sin(), angles.cos()), -1).flatten(1)",
         "torch.cat((angles.sin(), angles.cos()), 1)",
         "All sines come before all cosines; here they alternate: sine in feature 2j, cosine in 2j + 1."),
        ("cosine first", "angles.sin(), angles.cos()", "angles.cos(), angles.sin()",
         "Sine and cosine are swapped: the sine is the even feature, 2j."),
        ("from one", "torch.arange(seq_len)", "torch.arange(1, seq_len + 1)",
         "Your positions start at 1; the first token is at position 0, encoded (0, 1, 0, 1, …)."),
    )
    + slips(
        "seq_len, d_model", """
            f = torch.arange(d_model)
            angles = torch.arange(seq_len).double()[:, None] * 10000.0 ** (-2 * (f // 2) / d_model)
            return torch.where(f % 2 == 0, angles.sin(), angles.cos()).float()
        """,
        ("feature as j", "(f // 2)", "f",
         "You took j for the feature; it is the pair: features 2j and 2j + 1 share the frequency ω_j."),
        ("cosine's own frequency", "2 * (f // 2)", "f",
         "The sines are right; the cosine in feature 2j + 1 has the same exponent, −2j/d_model."),
    ),
    part="sinusoidal_table",
)  # fmt: skip


# 06.2 Add the positions ----------------------------------------------------------------------------------------------


def add_positions(X, table, start):
    """Return the token vectors plus the encodings of their positions.

    X: [batch, seq_len, d_model]; table: [max_len, d_model], row p for position p. The first token of every sentence
    has the position start. Returns [batch, seq_len, d_model].
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
    "06.2", "Add the positions", 5, 1, add_positions, _add_cases,
    slips(
        "X, table, start", "return X + table[start : start + X.shape[1]]",
        ("no start", "start : start + X", ": X",
         "You always start at position 0; the first token is at position start."),
        ("from one", "start : start", "start + 1 : start + 1",
         "You are one row too late: the first token gets row start itself."),
        ("slice up to the length", "start + X", "X",
         "A slice ends before its second number: write table[start : start + seq_len]."),
        ("one row", "start : start + X.shape[1]", "start",
         "Every token gets the same encoding; token i is at position start + i."),
        ("batch for length", "shape[1]", "shape[0]",
         "You took as many rows as there are sentences (axis 0); take one for each token of a sentence (axis 1)."),
        ("by sentence", "shape[1]", "shape[0], None",
         "The position counts sentences (axis 0); it must count the tokens within each (axis 1)."),
        ("scaled", "return X", "return X * X.shape[-1] ** 0.5",
         "You multiplied the tokens by √d_model; that belongs to the embedding, here only add."),
    ),
    gradients=("X", "table"),
)  # fmt: skip


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


EXERCISE_3 = Exercise(
    "06.3", "A shift is a rotation", 10, 2, shift_matrix, _shift_cases,
    slips(
        "offset, d_model", """
            blocks = []
            for j in range(d_model // 2):
                angle = offset * 10000.0 ** (-2 * j / d_model)
                c, s = math.cos(angle), math.sin(angle)
                blocks.append(torch.tensor([[c, s], [-s, c]]))
            return torch.block_diag(*blocks)
        """,
        ("transposed", "[c, s], [-s, c]", "[c, -s], [s, c]",
         "This is the transpose: it takes PE(p) to PE(p − offset). "
         "Sine comes first, so the block is [[cos, sin], [−sin, cos]]."),
        ("one frequency", " * 10000.0 ** (-2 * j / d_model)", "",
         "Every block turns by the same angle; pair j turns by offset · ω_j."),
        ("j for 2j", "-2 * j", "-j", "Your exponent is −j/d_model; pair j has the exponent −2j/d_model."),
        ("degrees", "offset * 10000.0 ** (-2 * j / d_model)", "math.radians(offset * 10000.0 ** (-2 * j / d_model))",
         "Your angles are taken as degrees; sine and cosine take radians."),
        ("no minus", "-s", "s", "The lower left entry needs a minus sign: cos(A + B) = cos A cos B − sin A sin B."),
        ("halves", "return torch.block_diag(*blocks)",
         "order = [*range(0, d_model, 2), *range(1, d_model, 2)]\nreturn torch.block_diag(*blocks)[order][:, order]",
         "Your matrix fits a table with all sines first; here the pair j is features 2j and 2j + 1."),
        ("without the sign", "offset * ", "abs(offset) * ",
         "You dropped the sign of the offset: a negative one turns the other way."),
    ),
)  # fmt: skip


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


EXERCISE_4 = Exercise(
    "06.4", "How far apart?", 15, 3, recover_offset, _offset_cases,
    slips(
        "pe_a, pe_b, max_offset", """
            omega = 10000.0 ** (-2 * torch.arange(len(pe_a) // 2).double() / len(pe_a))
            turned = torch.atan2(pe_b[0::2], pe_b[1::2]) - torch.atan2(pe_a[0::2], pe_a[1::2])
            offsets = torch.arange(-max_offset, max_offset + 1)
            agreement = torch.cos(offsets[:, None] * omega - turned).sum(dim=1)
            return int(offsets[agreement.argmax()])
        """,
        ("reversed", "omega - turned", "omega + turned",
         "The sign is reversed: pe_b is at p + k, so k is positive when b comes later."),
        ("dot product", "return int(offsets[agreement.argmax()])", "return abs(int(offsets[agreement.argmax()]))",
         "The sign of k is lost: you return how far, not on which side. (Dot products are the same for k and −k.)"),
        ("dot product, both sides", "torch.cos(offsets[:, None] * omega - turned).sum(dim=1)",
         "-(torch.cos(offsets[:, None] * omega).sum(dim=1) - pe_a @ pe_b).abs().round(decimals=5)",
         "You compared dot products, which are the same for k and −k: they give no side."),
        ("fast pair", "return int(offsets[agreement.argmax()])", "return round(math.remainder(turned[0], 2 * math.pi))",
         "You read the first pair alone; it comes round every 6.28 positions and cannot tell 3 from 47."),
        ("slow pair", "return int(offsets[agreement.argmax()])",
         "return round(math.remainder(turned[-1], 2 * math.pi) / float(omega[-1]))",
         "You read the last pair alone: at d_model 4 it comes round after 628 positions. Use all pairs."),
        ("forward only", "-max_offset, max", "0, max",
         "You tried no negative offset; k runs from −max_offset to max_offset."),
        ("index", "offsets[agreement.argmax()]", "agreement.argmax()",
         "You returned the index of the best candidate; the first candidate is −max_offset."),
        ("no last", "max_offset + 1", "max_offset",
         "The largest offset is missing: range(-max_offset, max_offset) ends one before."),
    ),
)  # fmt: skip


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


EXERCISE_5 = Exercise(
    "06.5", "Rotary positions", 12, 2, rotary, _rotary_cases,
    slips(
        "x, positions", """
            omega = 10000.0 ** (-2 * torch.arange(x.shape[-1] // 2).double() / x.shape[-1])
            angles = positions[:, None] * omega
            c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
        """,
        ("other way", "a * c - b * s, a * s + b * c", "a * c + b * s, b * c - a * s",
         "You turn the other way: (1, 0) must become (cos, sin). Scores would not notice; this check does."),
        ("halves", "x[..., 0::2], x[..., 1::2]\nreturn torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)",
         "x.chunk(2, -1)\nreturn torch.cat((a * c - b * s, a * s + b * c), -1)",
         "You paired feature j with feature j + d_k/2; here the pairs are neighbours, 2j and 2j + 1."),
        ("j for 2j", "-2 * torch", "-torch", "Your exponent is −j/d_k; pair j has the exponent −2j/d_k."),
        ("no minus", "- b", "+ b", "One sign is missing: the first feature of the pair becomes x cos − y sin."),
        ("overwritten", "return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)",
         "a = a * c - b * s\nreturn torch.stack((a, a * s + b * c), -1).flatten(-2)",
         "You wrote the new even features first and then used them for the odd ones: keep a and b apart."),
        ("row numbers", ".double() / x.shape[-1])\nangles = positions",
         " / x.shape[-1])\nangles = torch.arange(x.shape[-2])",
         "You counted the rows from 0; use the positions that are given."),
    ),
    gradients=("x",),
)  # fmt: skip


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


EXERCISE_6 = Exercise(
    "06.6", "A bias for each offset", 10, 2, relative_bias, _bias_cases,
    slips(
        "scores, table, max_distance", """
            places = torch.arange(scores.shape[-1])
            offsets = places[None, :] - places[:, None]
            bias = table[offsets.clamp(-max_distance, max_distance) + max_distance]
            return scores + bias
        """,
        ("turned", "places[None, :] - places[:, None]", "places[:, None] - places[None, :]",
         "Your offset is the query's position minus the key's; it must be positive for a later key."),
        ("no middle", " + max_distance]", "]",
         "You index with the offset itself, and a negative index counts from the end: "
         "add max_distance, so that offset 0 is the middle."),
        ("not clipped", ".clamp(-max_distance, max_distance)", "",
         "Offsets beyond ±max_distance leave the table, or wrap round in it: clip them first."),
        ("distance", "offsets.clamp(-max_distance, max_distance)", "offsets.abs().clamp(max=max_distance)",
         "You took the distance without its sign; earlier and later keys have entries of their own."),
        ("grid alone", "scores + bias", "bias", "You returned the grid of biases; add it to the scores."),
        ("nothing outside", "scores + bias", "torch.where(offsets.abs() <= max_distance, scores + bias, scores)",
         "Offsets beyond ±max_distance get no bias in your result; they share the outermost entries."),
    ),
    gradients=("scores", "table"),
)  # fmt: skip


# 06.7 Ask for the one three back -------------------------------------------------------------------------------------


def asking_queries(key, back):
    """Return queries that look back[i] positions back, where all keys are the same vector and positions are rotary.

    key: [d_k], d_k even, what every key is before it is turned by its position; back: [n_queries], integers. Query i,
    before it is turned by its own position, is as long as the key, and of all such vectors it scores highest with the
    key back[i] positions before. Frequencies and direction are those of 06.5. Returns [n_queries, d_k].
    """
    pairs = torch.view_as_complex(key.unflatten(-1, (-1, 2)).contiguous())
    angles = -back[:, None] * _frequencies(len(key))
    turned = pairs * torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)
    return torch.view_as_real(turned).flatten(-2)


def _asking_cases():
    def case(label, seed, d_k, back):
        return Case(label, (*normal(seed, (d_k,)), torch.tensor(back)))

    return [
        case("one query, 1 back, d_k = 2", 601, 2, [1]),
        case("2 and 5 back, d_k = 4", 602, 4, [2, 5]),
        case("its own position", 603, 6, [0]),
        case("7 queries, d_k = 10", 604, 10, [1, 2, 3, 5, 7, 11, 13]),
        case("far back", 605, 6, [101, 1009]),
        case("3 positions ahead", 606, 4, [-3]),
        case("as many queries as features", 607, 4, [4, 3, 2, 1]),
    ]


EXERCISE_7 = Exercise(
    "06.7", "Ask for the one three back", 8, 3, asking_queries, _asking_cases,
    slips(
        "key, back", """
            omega = 10000.0 ** (-torch.arange(0, len(key), 2).double() / len(key))
            angles = -back[:, None] * omega
            c, s = angles.cos().to(key.dtype), angles.sin().to(key.dtype)
            a, b = key[0::2], key[1::2]
            return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
        """,
        ("ahead", "-back[:, None]", "back[:, None]",
         "Your queries look ahead: they fit the key back[i] positions later. Turn the other way."),
        ("unturned", "-back[:, None]", "0 * back[:, None]",
         "Your queries are the key itself, which fits best at offset 0: each would look at its own position."),
        ("one too far", "-back[:, None]", "-(back[:, None] + 1)",
         "Your queries look one position too far back: 1 back is the token just before."),
        ("by the number of the query", "-back[:, None]", "-torch.arange(len(back))[:, None]",
         "Query i looks i positions back; it must look back[i] positions back."),
        ("all pairs alike", "-back[:, None] * omega", "-back[:, None] * torch.ones_like(omega)",
         "You turned every pair by the same angle; pair j turns by ω_j for each position."),
        ("j for 2j", "0, len(key), 2).double()", "len(key) // 2).double()",
         "Your exponent is −j/d_k; pair j has the exponent −2j/d_k."),
        ("halves", "key[0::2], key[1::2]\nreturn torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)",
         "key.chunk(2)\nreturn torch.cat((a * c - b * s, a * s + b * c), -1)",
         "You paired feature j with feature j + d_k/2; here the pairs are neighbours, 2j and 2j + 1."),
        ("for every key", "return torch", "a, b = torch.ones_like(a), torch.zeros_like(b)\nreturn torch",
         "Your queries do not depend on the key: turn the key that is given."),
    ),
    gradients=("key",),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7)
