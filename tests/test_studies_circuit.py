"""The study of two heads: mistakes made on purpose, a copier set by hand, heads that count, what is stored."""

from __future__ import annotations

import pytest
import torch

from studies import circuit as study
from test_studies_copying import copier
from transformer_lib.course.lab import chains as chains_lab
from transformer_lib.course.lab import circuit as study_lab
from transformer_lib.course.lab import copying
from transformer_lib.model.circuits import AttentionOnly

STORED = study_lab.load_results()


def test_strings_are_shown_twice_without_a_letter_twice():
    ids = study_lab.strings()
    assert ids.shape == (256, 32) and torch.equal(ids[:, :16], ids[:, 16:])
    assert all(len(set(row[:16].tolist())) == 16 for row in ids)


def test_a_copier_set_by_hand_makes_every_predicted_mistake():
    ids = study_lab.strings()[:7]
    shares = study_lab.swap_map(copier(), ids)
    assert shares.shape == (16, 16)
    inside = ~torch.eye(15, dtype=torch.bool)
    assert shares[0].isnan().all() and shares[:, 0].isnan().all() and shares.diagonal().isnan().all()
    assert shares[1:, 1:][inside].min() == 1
    both = study_lab.both_made(shares)
    assert len(both) == 105 and both.min() == 1


def test_an_untrained_model_makes_hardly_any():
    both = study_lab.both_made(study_lab.swap_map(copying.new_model(2, 1, 0), study_lab.strings()[:61]))
    assert both.max() < 0.3


def test_the_smaller_share_of_a_pair_counts():
    shares = torch.full((3, 3), torch.nan)
    shares[1, 2], shares[2, 1] = 0.7, 0.2
    assert study_lab.both_made(shares).tolist() == [pytest.approx(0.2)]


def test_composition_against_numbers():
    a, b = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    assert study_lab.composition(a, a) == 1 and study_lab.composition(a, b) == 0
    torch.manual_seed(0)
    assert study_lab.composition(torch.randn(64, 64), torch.randn(64, 64)) == pytest.approx(0.125, abs=0.01)


def test_the_diagonal_counts_rows():
    assert study_lab.on_diagonal(torch.eye(5)) == 5
    assert study_lab.on_diagonal(torch.eye(5).roll(1, dims=0)) == 0


def test_what_is_read_of_a_copier_set_by_hand():
    found = study.read(copier())
    assert (found["asks"], found["says"], found["looks back"]) == (26, 26, 15)
    assert found["composition"]["keys"] > max(found["composition"]["queries"], found["composition"]["values"])


def test_where_heads_look_that_count_evenly():
    torch.manual_seed(0)
    model = AttentionOnly(chains_lab.STATES, 2, 30, 1, max_len=chains_lab.LENGTH)
    with torch.no_grad():
        for layer in model.layers:
            layer.w_q.weight.zero_()  # all weights equal
    found = study.counting(model)
    assert found["followed"] == pytest.approx(found["share"], abs=1e-4) and found["evenness"] == 1
    assert 0.02 < found["previous"] < 0.04


def test_strings_that_are_too_short_are_refused():
    with pytest.raises(ValueError, match="ids must be at least 32 long, twice the period, got 31"):
        study_lab.swap_map(copying.new_model(2, 1, 0), study_lab.strings()[:2, :31])


def test_what_the_notebook_says_is_stored():
    assert len(STORED["runs"]) == 8
    assert min(run["swaps"]["0.5"] for run in STORED["runs"]) == 86
    assert max(run["swaps"]["0.5"] for run in STORED["runs"]) == 105
    for run in STORED["runs"]:
        read = run["weights"]
        assert (read["asks"], read["says"], read["first says"], read["looks back"]) == (26, 26, 26, 15)
        assert read["composition"]["keys"] > 0.17 > 0.09 > read["composition"]["queries"]
    for run in STORED["untrained"].values():
        assert max(run["asks"], run["says"], run["first says"]) <= 4
