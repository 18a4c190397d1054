from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import default_dtype
from transformer_lib.model.positional import NoPosition, make_position, make_score_position, score_position

pytestmark = pytest.mark.fast


def rotation(position: int, d_k: int) -> torch.Tensor:
    """Return the block-diagonal matrix of one position: pair j is turned by position / 10000^(2j / d_k)."""
    matrix = torch.zeros(d_k, d_k, dtype=torch.float64)
    for j in range(d_k // 2):
        angle = position / 10000 ** (2 * j / d_k)
        block = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        matrix[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] = torch.tensor(block, dtype=torch.float64)
    return matrix


def test_show_me_the_money_in_radians():
    wanted = [
        [0.0, 1.0, 0.0, 1.0],
        [0.841471, 0.540302, 0.010000, 0.999950],
        [0.909297, -0.416147, 0.019999, 0.999800],
        [0.141120, -0.989992, 0.029996, 0.999550],
    ]
    torch.testing.assert_close(tl.sinusoidal_encoding(4, 4), torch.tensor(wanted), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("seq_len", "d_model"), [(1, 2), (37, 22), (211, 6)])
def test_the_table_equals_the_numpy_reference(seq_len, d_model):
    with default_dtype(torch.float64):
        table = tl.sinusoidal_encoding(seq_len, d_model)
    np.testing.assert_allclose(
        table.numpy(), tl.numpy_reference.sinusoidal_encoding(seq_len, d_model), rtol=0, atol=1e-10
    )


def test_far_positions_keep_their_phase():
    far = tl.sinusoidal_encoding(100_003, 2)[-1]
    torch.testing.assert_close(far, torch.tensor([math.sin(100_002), math.cos(100_002)]), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        ((0, 4), ValueError, "seq_len must be at least 1, got 0"),
        ((3, 0), ValueError, "d_model must be at least 2, got 0"),
        ((3, 7), ValueError, r"d_model must be even \(sine and cosine come in pairs\), got 7"),
        ((3.5, 4), TypeError, "seq_len must be an int, got 3.5"),
    ],
)
def test_bad_sizes_are_refused(size, error, message):
    with pytest.raises(error, match=message):
        tl.sinusoidal_encoding(*size)


def test_sinusoids_are_added_from_the_start_position():
    module, x = tl.SinusoidalPosition(13, 6), torch.randn(2, 5, 6)
    table = tl.sinusoidal_encoding(13, 6)
    torch.testing.assert_close(module(x), x + table[:5])
    torch.testing.assert_close(module(x, start=8), x + table[8:])
    assert not list(module.parameters()) and not module.state_dict()


def test_sinusoids_take_the_type_of_x():
    assert tl.SinusoidalPosition(13, 6)(torch.zeros(1, 5, 6, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_learned_vectors_are_added_from_the_start_position():
    module, x = tl.LearnedPosition(13, 7), torch.randn(2, 5, 7)
    torch.testing.assert_close(module(x, start=3), x + module.table[3:8])
    module(x, start=3).sum().backward()
    assert module.table.grad.sum(dim=1).tolist() == [0] * 3 + [14] * 5 + [0] * 5  # 2 sentences, 7 features


@pytest.mark.parametrize("module", [tl.SinusoidalPosition(13, 6), tl.LearnedPosition(13, 6)])
def test_positions_past_max_len_are_refused(module):
    module(torch.zeros(1, 5, 6), start=8)
    with pytest.raises(ValueError, match="x must end before max_len = 13, got .* tokens from position"):
        module(torch.zeros(1, 5, 6), start=9)


def test_no_position_changes_nothing():
    x = torch.randn(2, 5, 7)
    assert torch.equal(NoPosition()(x, start=3), x)


@pytest.mark.parametrize("start", [0, 17])
def test_rotary_equals_a_rotation_matrix(start):
    x = torch.randn(2, 3, 5, 6, dtype=torch.float64)
    turned = tl.RotaryPosition().rotate(x, start)
    for i in range(5):
        wanted = x[:, :, i] @ rotation(start + i, 6).T
        torch.testing.assert_close(turned[:, :, i], wanted, rtol=0, atol=1e-12)


def test_rotary_keeps_lengths_and_the_type():
    x = torch.randn(2, 5, 6)
    torch.testing.assert_close(tl.RotaryPosition().rotate(x, 7).norm(dim=-1), x.norm(dim=-1))
    assert tl.RotaryPosition().rotate(x.bfloat16()).dtype == torch.bfloat16


def test_rotary_refuses_what_it_cannot_pair():
    with pytest.raises(ValueError, match=r"d_k must be even \(sine and cosine come in pairs\), got 7"):
        tl.RotaryPosition().rotate(torch.zeros(5, 7))
    with pytest.raises(ValueError, match="x must have at least 2 axes, got 1"):
        tl.RotaryPosition().rotate(torch.zeros(6))


SCALING = {"factor": 3.0, "original_length": 31, "low": 0.5, "high": 2.0}


@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
def test_scaled_rotation_turns_each_pair_by_its_scaled_angle(pairs):
    """Pair by pair: fast hands as before, slow ones three times slower, one in between."""
    x = torch.randn(11, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scaled = tl.RotaryPosition(50.0, pairs, tl.RotaryScaling(**SCALING)).rotate(x, 37)
    linear = tl.RotaryPosition(50.0, pairs, tl.RotaryScaling(factor=3.0)).rotate(x, 37)
    kinds = set()
    for j in range(5):
        rate = 50.0 ** (-2 * j / 10)
        turns = 31 * rate / (2 * math.pi)
        kept = 1.0 if turns > 2 else 0.0 if turns < 0.5 else (turns - 0.5) / 1.5
        kinds.add(kept if kept in (0, 1) else "between")
        features = [j, j + 5] if pairs == "halves" else [2 * j, 2 * j + 1]
        for found, speed in ((scaled, kept * rate + (1 - kept) * rate / 3), (linear, rate / 3)):
            angle = torch.arange(37, 48, dtype=torch.float64) * speed
            turned = torch.view_as_real(
                torch.view_as_complex(x[:, features]) * torch.polar(torch.ones_like(angle), angle)
            )
            torch.testing.assert_close(found[:, features], turned, rtol=1e-12, atol=1e-12)
    assert kinds == {0, 1, "between"}


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"factor": 0}, ValueError, "factor must be positive, got 0"),
        ({"factor": "8"}, TypeError, "factor must be a number"),
        ({"original_length": 0}, ValueError, "original_length must be at least 1"),
        ({"original_length": 8.0}, TypeError, "original_length must be an int"),
        ({"low": -1.0}, ValueError, "low must be at least 0"),
        ({"low": 2.0}, ValueError, "low must be below high, got low=2.0, high=2.0"),
    ],
)
def test_a_scaling_that_makes_no_sense_is_refused(changes, error, match):
    with pytest.raises(error, match=match):
        tl.RotaryScaling(**SCALING | changes)
    with pytest.raises(TypeError, match="scaling must be a RotaryScaling or None, got 8"):
        tl.RotaryPosition(scaling=8)


@pytest.mark.parametrize(("q_len", "k_len"), [(11, 11), (1, 11), (4, 7)])
def test_relative_bias_against_a_loop(q_len, k_len):
    module = tl.RelativeBias(3, max_offset=2)
    torch.nn.init.normal_(module.table)
    bias = module(q_len, k_len)
    assert bias.shape == (3, q_len, k_len)
    for head in range(3):
        for i in range(q_len):
            for j in range(k_len):
                offset = j - (k_len - q_len + i)  # the queries are the last q_len positions
                assert bias[head, i, j] == module.table[head, min(max(offset, -2), 2) + 2]


def test_relative_bias_starts_at_zero_and_learns():
    module = tl.RelativeBias(3, max_offset=2)
    assert module.table.shape == (3, 5) and not module.table.any()
    module(4, 4).sum().backward()
    assert module.table.grad.tolist() == [[3, 3, 4, 3, 3]] * 3  # offsets ≤ −2, −1, 0, 1, ≥ 2 in a 4 × 4 grid


def test_relative_bias_refuses_bad_sizes():
    with pytest.raises(ValueError, match="max_offset must be at least 1, got 0"):
        tl.RelativeBias(3, max_offset=0)
    with pytest.raises(ValueError, match="n_heads must be at least 1, got 0"):
        tl.RelativeBias(0)


@pytest.mark.parametrize(
    ("kind", "at_embeddings", "at_scores"),
    [
        ("sinusoidal", tl.SinusoidalPosition, type(None)),
        ("learned", tl.LearnedPosition, type(None)),
        ("rotary", NoPosition, tl.RotaryPosition),
        ("relative", NoPosition, tl.RelativeBias),
        ("none", NoPosition, type(None)),
    ],
)
def test_each_kind_acts_in_one_place(kind, at_embeddings, at_scores):
    assert type(make_position(kind, 13, 6)) is at_embeddings
    assert type(make_score_position(score_position(kind), 3)) is at_scores


@pytest.mark.parametrize(("kind", "name"), [("sinusoidal", "SinusoidalPosition"), ("learned", "LearnedPosition")])
@pytest.mark.parametrize("stack", [tl.Encoder, tl.Decoder, tl.EncoderLayer, tl.DecoderLayer])
def test_a_stack_refuses_positions_that_are_added_outside_it(stack, kind, name):
    sizes = (6, 3, 5) if stack in (tl.EncoderLayer, tl.DecoderLayer) else (2, 6, 3, 5)
    with pytest.raises(ValueError, match=f"'rotary', 'relative', 'none' in a layer or stack, got '{kind}'.*{name}"):
        stack(*sizes, position=kind)
    with pytest.raises(ValueError, match="position must be one of 'rotary', 'relative', 'none', got 'odd'"):
        stack(*sizes, position="odd")
