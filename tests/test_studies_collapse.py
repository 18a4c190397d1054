"""The collapse study: its rounds, how it measures, a short run that must repeat the stored one, and what is stored."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import transformer_lib as tl
from studies import collapse as study
from transformer_lib.course.lab import collapse as study_lab

STORED = study_lab.load_results()


def test_a_round_is_attention_without_weights():
    X = study_lab.tokens(3, [5, 7])
    query = torch.from_numpy(X) * math.sqrt(study_lab.FEATURES)  # undoes the library's division
    wanted, _ = tl.scaled_dot_product_attention(query, torch.from_numpy(X), torch.from_numpy(X))
    np.testing.assert_allclose(study_lab.one_round(X), wanted.numpy(), atol=1e-12)


def test_tokens_have_the_length_asked_for():
    squares = np.square(study_lab.tokens(9, range(200))).sum(axis=-1)
    assert squares.shape == (200, study_lab.TOKENS) and squares.mean() == pytest.approx(9, rel=0.03)
    np.testing.assert_array_equal(study_lab.tokens(9, [3, 4])[1], study_lab.tokens(9, [4])[0])


def test_the_spread_is_0_for_equal_tokens_and_1_for_tokens_around_zero():
    row = np.random.default_rng(2).standard_normal(5)
    assert study_lab.spread(np.stack([row, row, row])) == pytest.approx(0, abs=1e-12)
    assert study_lab.spread(np.stack([row, -row])) == pytest.approx(1)
    assert study_lab.spread(7 * study_lab.tokens(1, [3])) == pytest.approx(study_lab.spread(study_lab.tokens(1, [3])))


def test_groups_are_tokens_closer_than_a_hundredth():
    X = np.zeros((2, 5, 3))
    X[0, :, 0] = 0, 0.001, 1, 2, 2.001
    X[1, :, 0] = 0, 1, 2, 3, 4
    assert study_lab.groups(X) == [3, 5]


def test_the_proof_holds_in_every_round():
    """The longest token never grows, no weight is below its bound, and the range of every component shrinks."""
    (X,) = study_lab.tokens(2, [11])
    bound = math.exp(-2 * np.square(X).sum(axis=-1).max()) / len(X)
    for _, (now, after) in zip(range(7), itertools.pairwise(rows for _, rows in study.after_rounds(X)), strict=False):
        weights = np.exp(now @ now.T) / np.exp(now @ now.T).sum(axis=-1, keepdims=True)
        assert weights.min() >= bound
        assert np.linalg.norm(after, axis=-1).max() <= np.linalg.norm(now, axis=-1).max() + 1e-12
        assert (np.ptp(after, axis=0) <= (1 - 2 * bound) * np.ptp(now, axis=0) + 1e-12).all()


@pytest.mark.parametrize("cosine", [0.0, -0.5, 0.7])
def test_two_tokens_of_equal_length_follow_the_formula_at_any_angle(cosine):
    X = 2 * np.array([[1.0, 0.0, 0.0], [cosine, math.sqrt(1 - cosine**2), 0.0]])
    for _ in range(5):
        after = study_lab.one_round(X)
        distance = np.linalg.norm(X[0] - X[1])
        assert np.linalg.norm(after[0] - after[1]) == pytest.approx(distance * math.tanh(distance**2 / 4), abs=1e-12)
        X = after


def test_two_tokens_take_the_rounds_that_a_simulation_takes():
    X = np.sqrt(6) * np.eye(2, 3)
    rounds = next(n for n, (a, b) in study.after_rounds(X) if np.linalg.norm(a - b) < study.COLLAPSED)
    assert study.two_tokens(6) == rounds and study.two_tokens(6, limit=rounds - 1) is None


def test_repeating_is_rounds_and_a_residual_adds_the_token_itself():
    X = study_lab.tokens(4, [2, 3])
    once = study_lab.one_round(X)
    np.testing.assert_allclose(study_lab.repeat(X, 2), study_lab.one_round(once))
    np.testing.assert_allclose(study_lab.repeat(X, 1, residual=1), once + X)
    np.testing.assert_allclose(study_lab.repeat(X, 1, residual=3, growth=2), 2 * (once + 3 * X))
    np.testing.assert_array_equal(study_lab.repeat(X, 0, residual=1), X)


def test_tokens_with_the_lengths_of_a_run_have_them():
    X = study_lab.tokens(4, [2, 3])
    lengths = study_lab.lengths_of(X, 3, residual=1)
    np.testing.assert_allclose(lengths[2][..., 0], np.linalg.norm(study_lab.repeat(X, 3, residual=1), axis=-1))
    given = study_lab.repeat(X, 3, lengths=lengths)
    np.testing.assert_allclose(np.linalg.norm(given, axis=-1, keepdims=True), lengths[2])
    np.testing.assert_allclose(study_lab.repeat(X, 3, lengths=study_lab.lengths_of(X, 3)), study_lab.repeat(X, 3))


def test_following_ends_at_the_limit_or_when_all_are_one():
    found = study.follow(16, [0, 1], limit=3)
    assert found["rounds"] == [None, None] and len(found["groups"]) == sum(look <= 3 for look in study.LOOKS)
    found = study.follow(1, [0, 1])
    assert all(1 <= number <= 4 for number in found["rounds"])


@pytest.mark.parametrize("squared_length", [4, 6, 8])
def test_a_short_run_repeats_the_stored_one(squared_length):
    found, wanted = study.follow(squared_length, STORED["seeds"]), STORED["found"][str(squared_length)]
    assert found["rounds"] == pytest.approx(wanted["rounds"], rel=0.01, abs=1)
    np.testing.assert_allclose(found["spread"][:10], wanted["spread"][:10], atol=1e-3)
    assert study.two_tokens(squared_length) == wanted["two tokens"]


def test_what_the_notebook_says_of_the_table():
    two = {int(length): found["two tokens"] for length, found in STORED["found"].items()}
    for short, long in itertools.pairwise(length for length in two if length >= 8):
        assert 2.25 < (two[long] / two[short]) ** (1 / (long - short)) < 2.55
