"""The scaling study: its task, its versions, a short run that must repeat the stored one, and what is stored."""

from __future__ import annotations

import math

import pytest
import torch

from studies import scaling as study
from transformer_lib.course.lab import scaling as study_lab

RAW, DIVIDED, SMALL = "not divided", "divided by √d_k", "small start"


STORED = study_lab.load_results()


def test_a_token_has_to_fetch_what_the_next_symbol_carries():
    models = study_lab.Lookup(7, RAW, [3, 5])
    tokens, target = models.batch()
    sums = models.symbols[:, :, None] + models.payloads[:, None, :]  # [models, symbol, payload, features]
    for model, batch in ((0, 2), (1, 3)):
        distance = (tokens[model, batch][:, None, None] - sums[model]).norm(dim=-1)  # [8, symbol, payload]
        found = distance.flatten(1).argmin(dim=1)
        symbol, payload = (found // study_lab.SYMBOLS).tolist(), (found % study_lab.SYMBOLS).tolist()
        wanted = [payload[symbol.index((one + 1) % study_lab.SYMBOLS)] for one in symbol]
        assert sorted(symbol) == list(range(study_lab.SYMBOLS)) and target[model, batch].tolist() == wanted


def test_versions_of_one_seed_differ_in_the_scores_alone():
    found = {version: study_lab.Lookup(13, version, [5]) for version in study_lab.VERSIONS}
    tokens = found[RAW].batch()[0]
    raw = found[RAW].scores(tokens)
    torch.testing.assert_close(found[DIVIDED].scores(tokens), raw / math.sqrt(13))
    torch.testing.assert_close(found[SMALL].scores(tokens), raw / math.sqrt(13))
    torch.testing.assert_close(found["divided by d_k"].scores(tokens), raw / 13)
    for name in ("w_k", "w_v", "readout"):
        assert all(torch.equal(models.weights[name], found[RAW].weights[name]) for models in found.values())


def test_one_step_moves_scores_as_derived():
    """With plain gradient descent by factor² · d_k, with Adam, which rescales gradients, by factor · d_k."""
    narrow, wide = (
        {
            (version, optimizer): sum(study_lab.score_change(d_k, version, optimizer, range(5)))
            for version in (DIVIDED, SMALL, "divided by d_k")
            for optimizer in study_lab.OPTIMIZERS
        }
        for d_k in (16, 256)
    )
    ratio = {name: wide[name] / narrow[name] for name in wide}
    assert ratio[SMALL, "SGD"] == pytest.approx(16, rel=0.5) and ratio[SMALL, "Adam"] == pytest.approx(16, rel=0.5)
    assert ratio[DIVIDED, "SGD"] == pytest.approx(1, rel=0.5) and ratio[DIVIDED, "Adam"] == pytest.approx(4, rel=0.5)
    assert ratio["divided by d_k", "Adam"] == pytest.approx(1, rel=0.5)


def test_where_tokens_grow_with_the_head_gradient_descent_moves_scores_divided_by_d_k_alike():
    def grows(features_of):
        narrow, wide = (
            sum(study_lab.score_change(d_k, "divided by d_k", "SGD", range(3), features=features_of(d_k)))
            for d_k in (67, 251)
        )
        return wide / narrow

    assert 0.6 < grows(lambda d_k: 2 * d_k) < 1.6
    assert grows(lambda d_k: 32) < 0.4
    with pytest.raises(ValueError, match="features must be at least 1, got 0"):
        study_lab.score_change(17, "divided by d_k", "SGD", range(3), features=0)


def test_twice_the_rate_moves_the_scores_twice_as_far():
    one, two = (study_lab.score_change(17, DIVIDED, "SGD", [2], rate) for rate in (1e-6, 2e-6))
    assert one == pytest.approx(two, rel=1e-4)


def test_the_division_is_a_small_start_and_small_steps_with_adam():
    wanted, found = (
        study_lab.curves(16, name, "Adam", 1e-2, [3, 5], steps=7)[0] for name in (DIVIDED, "small start, small steps")
    )
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    other = study_lab.curves(16, "not divided, small steps", "Adam", 1e-2, [3, 5], steps=7)[0]
    raw = study_lab.curves(16, RAW, "Adam", 1e-2, [3, 5], steps=7)[0]
    assert torch.equal(other[:, 0], raw[:, 0]) and (other[:, 1:] != raw[:, 1:]).all()


def test_what_does_not_learn_within_the_limit_is_none():
    assert study.steps_to_learn(16, DIVIDED, "Adam", 1e-4, [0, 1], limit=3) == [None, None]


def test_a_run_that_diverges_ends():
    assert study.steps_to_learn(256, RAW, "SGD", 1e30, [0], limit=10**9) == [None]


def test_a_short_run_repeats_the_stored_one():
    index = study.RATES["Adam"].index(1e-2)
    found = study.steps_to_learn(16, DIVIDED, "Adam", 1e-2, STORED["seeds"])
    assert found == pytest.approx(STORED["steps"]["Adam"]["16"][DIVIDED][index], abs=3)
