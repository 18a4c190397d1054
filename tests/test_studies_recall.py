"""The recall study: its readers, its gradients, and a short run that must find what the stored one found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from studies import recall
from transformer_lib.course.lab import recall as recall_lab

ATTENDING = [kind for kind in recall_lab.KINDS if "attention" in kind]


STORED = recall_lab.load_results()


@pytest.mark.parametrize("kind", recall_lab.KINDS)
def test_a_reader_gives_one_row_of_logits_for_each_row_of_symbols(kind):
    assert recall_lab.Reader(kind)(torch.zeros(3, 7, dtype=torch.long)).shape == (3, recall_lab.SYMBOLS)


@pytest.mark.parametrize("kind", ATTENDING)
def test_an_attending_reader_also_returns_weights_that_sum_to_one(kind):
    torch.manual_seed(0)
    _, weights = recall_lab.Reader(kind).read(torch.randn(3, 7, recall_lab.WIDTH))
    assert weights.shape == (3, 7)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of 'RNN', .*, got 'GRU'"):
        recall_lab.Reader("GRU")


def test_an_open_gate_starts_with_a_forget_bias_of_three():
    bias = recall_lab.Reader("LSTM, open gate").recurrent.bias_hh_l0.view(4, recall_lab.WIDTH)
    torch.testing.assert_close(bias[1], torch.full((recall_lab.WIDTH,), 3.0))
    assert bias[[0, 2, 3]].abs().max() < 1


def test_the_gradient_ratio_is_that_of_finite_differences():
    torch.manual_seed(5)
    reader = recall_lab.Reader("RNN").double()
    x = torch.randn(1, 3, recall_lab.WIDTH, dtype=torch.float64)

    def slopes(position):
        steps = 1e-6 * torch.eye(recall_lab.WIDTH, dtype=torch.float64)
        moved = x.repeat(recall_lab.WIDTH, 1, 1)
        with torch.no_grad():
            moved[:, position] += steps
            above = reader.read(moved)[0].sum(-1)
            moved[:, position] -= 2 * steps
            return (above - reader.read(moved)[0].sum(-1)) / 2e-6

    expected = (slopes(0).norm() / slopes(2).norm()).item()
    assert recall_lab.gradient_ratio("RNN", 3, seed=5) == pytest.approx(expected, rel=1e-6)


def test_the_stored_run_is_complete_and_says_how_it_was_made():
    assert STORED["lengths"] == list(recall_lab.LENGTHS)
    assert STORED["steps"] == list(recall.BUDGETS)
    assert list(STORED["accuracy"]) == list(recall_lab.KINDS)
    for budgets in STORED["accuracy"].values():
        assert [[len(row) for row in rows] for rows in budgets] == 2 * [3 * [len(recall_lab.LENGTHS)]]
    assert [float(radius) for radius in STORED["radii"]] == list(recall.RADII)
    for budgets in (*STORED["radii"].values(), STORED["damped"]):
        assert [len(row) for row in budgets] == 2 * [recall.MORE_SEEDS]
    assert list(STORED["asked"]) == list(recall.ASKING)
    for budgets in STORED["asked"].values():
        assert [[len(row) for row in rows] for rows in budgets] == 2 * [3 * [len(recall.ASKED_LENGTHS)]]
    assert [float(rate) for rate in STORED["rates"]] == list(recall.OTHER_RATES)
    assert all([len(row) for row in lengths] == [3, 3] for lengths in STORED["rates"].values())


def test_a_short_run_finds_what_is_stored():
    found = recall.run([1], kinds=("attention",), lengths=(5,), budgets=recall.BUDGETS[:1])
    assert found == {"attention": [[[pytest.approx(STORED["accuracy"]["attention"][0][1][0], abs=0.01)]]]}


def test_positions_alone_do_not_help_an_rnn_and_a_larger_start_does():
    lengths = STORED["lengths"]
    for kind in ("RNN", "LSTM", "RNN + positions", "LSTM + positions"):
        rows = np.array(STORED["accuracy"][kind])[:, :, lengths.index(recall.RADIUS_LENGTH) :]
        assert rows.max() < 0.3, kind
    named = {radius: (np.array(shares) > 0.5).sum(axis=1) for radius, shares in STORED["radii"].items()}
    assert (named["1.7"] >= 6).all()
    assert (named["1.1"] <= 4).all()
    assert (named["5"] <= 2).all()
    assert np.max(STORED["damped"]) < 0.5


def test_a_longer_budget_goes_on_from_a_shorter_one():
    once = recall.run([0], kinds=("attention",), lengths=(5,), budgets=(7,))["attention"][0]
    twice = recall.run([0], kinds=("attention",), lengths=(5,), budgets=(3, 7))["attention"][1]
    assert once == twice


def test_a_start_has_the_spectral_radius_asked_for():
    matrix = recall_lab.Reader("RNN", radius=1.7).recurrent.weight_hh_l0
    assert torch.linalg.eigvals(matrix).abs().max().item() == pytest.approx(1.7, rel=1e-4)


def test_damping_changes_the_gradient_and_not_the_result():
    ids, grads, results = torch.randint(8, (2, 7), generator=torch.Generator().manual_seed(0)), [], []
    for damping in (None, 0.5):
        torch.manual_seed(0)
        reader = recall_lab.Reader("RNN", damping=damping).double()
        x = reader.embedding(ids).detach().requires_grad_()
        results.append(reader.read(x)[0])
        grads.append(torch.autograd.grad(results[-1].sum(), x)[0])
    torch.testing.assert_close(results[0], results[1])
    factors = 0.5 ** torch.arange(6, -1, -1, dtype=torch.float64)
    torch.testing.assert_close(grads[0] * factors[:, None], grads[1])


def test_a_question_asks_for_the_symbol_at_its_position():
    ids, answers = recall._rows(50, 7, 7)
    assert ids.shape == (50, 8)
    assert ids[:, :7].max() < recall_lab.SYMBOLS <= ids[:, 7].min()
    assert [row[row[7] - recall_lab.SYMBOLS].item() for row in ids] == answers.tolist()


def test_questions_and_rates_have_their_shapes():
    asked = recall.run_asked([0, 1], kinds=("attention",), lengths=(5, 7), budgets=(1, 2))["attention"]
    assert np.shape(asked) == (2, 2, 2)
    assert np.shape(recall.run_rates([0, 1], rates=(0.1,), lengths=(5,), steps=1)["0.1"]) == (1, 2)


def test_radii_are_trained_by_seed_and_budget():
    found = recall.run_radii([0, 1], radii=(1.7,), budgets=(1, 2))
    assert list(found) == ["1.7"]
    assert [len(row) for row in found["1.7"]] == [2, 2]


def test_a_reader_with_positions_adds_them_to_what_it_reads():
    torch.manual_seed(0)
    same = torch.full((1, 7), 3)
    plain, placed = recall_lab.Reader("RNN"), recall_lab.Reader("RNN + positions")
    placed.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(same), placed(same))


def test_starts_are_tried_with_more_seeds(monkeypatch):
    for name in ("run", "run_asked", "run_rates"):
        monkeypatch.setattr(recall, name, lambda seeds, name=name: {name: seeds})
    monkeypatch.setattr(recall, "run_radii", lambda seeds, *_, damping=1.0: {"1.7": [damping for _ in seeds]})
    found = recall.measured([4, 5])
    assert (found["accuracy"], found["asked"]) == ({"run": [4, 5]}, {"run_asked": [4, 5]})
    assert found["rates"] == {"run_rates": [4, 5]}
    assert found["radii"] == {"1.7": [1.0] * recall.MORE_SEEDS} and found["damped"] == [0.5] * recall.MORE_SEEDS


def test_training_is_the_same_twice():
    first, second = (recall.train_reader("RNN", 5, seed=3, steps=7) for _ in range(2))
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, dict(second.named_parameters())[name]), name


def test_chance_level_for_an_untrained_reader():
    torch.manual_seed(0)
    assert recall.accuracy(recall_lab.Reader("RNN"), 11) == pytest.approx(recall.CHANCE, abs=0.1)
