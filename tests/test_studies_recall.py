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


def test_a_short_run_finds_what_is_stored():
    [[[found]]] = recall.at_lengths("attention", [1], (5,), budgets=recall.BUDGETS[:1])
    assert found == pytest.approx(STORED["accuracy"]["attention"][0][1][0], abs=0.01)


def test_a_larger_start_helps_an_rnn():
    named = {radius: (np.array(shares) > 0.5).sum(axis=1) for radius, shares in STORED["radii"].items()}
    assert (named["1.7"] >= 6).all()
    assert (named["1.1"] <= 4).all()
    assert (named["5"] <= 2).all()
    assert np.max(STORED["damped"]) < 0.5


def test_a_longer_budget_goes_on_from_a_shorter_one():
    (once,), (_, twice) = (
        [reader.head.bias.clone() for reader in recall.train_readers("attention", 5, 0, budgets)]
        for budgets in ((7,), (3, 7))
    )
    assert torch.equal(once, twice)


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
    ids, answers = recall.rows(50, 7, 7)
    assert ids.shape == (50, 8)
    assert ids[:, :7].max() < recall_lab.SYMBOLS <= ids[:, 7].min()
    assert [row[row[7] - recall_lab.SYMBOLS].item() for row in ids] == answers.tolist()


def test_a_reader_with_positions_adds_them_to_what_it_reads():
    torch.manual_seed(0)
    same = torch.full((1, 7), 3)
    plain, placed = recall_lab.Reader("RNN"), recall_lab.Reader("RNN + positions")
    placed.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(same), placed(same))


def test_accuracies_are_by_budget_seed_and_length(monkeypatch):
    monkeypatch.setattr(
        recall, "accuracies", lambda kind, n, seed, budgets, questions: [(b, seed, n, questions) for b in budgets]
    )
    assert recall.at_lengths("RNN", [3, 5], (7, 11), budgets=(1, 2)) == [
        [[(b, seed, n, 0) for n in (7, 11)] for seed in (3, 5)] for b in (1, 2)
    ]
    assert recall.at_lengths("RNN", [3], (7,), asked=True, budgets=(1,)) == [[[(1, 3, 7, 7)]]]


def test_chance_level_for_an_untrained_reader():
    torch.manual_seed(0)
    assert recall.accuracy(recall_lab.Reader("RNN"), 11) == pytest.approx(recall.CHANCE, abs=0.1)
