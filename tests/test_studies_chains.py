"""The study of chains: how they are drawn, what the predictors count, short runs, and what is stored."""

from __future__ import annotations

import math

import pytest
import torch

from studies import chains as study
from transformer_lib.course.lab import chains as study_lab

KINDS = ("uniform", "unigram", "bigram")


STORED = study_lab.load_results()


def test_chains_follow_their_matrices():
    ids, matrices = study_lab.batch(4001, torch.Generator().manual_seed(1))
    torch.testing.assert_close(matrices.sum(dim=-1), torch.ones(4001, 3))
    # A flat Dirichlet distribution of three: means 1/3, variances 1/18; each entry is below x with 1 − (1 − x)².
    torch.testing.assert_close(matrices.mean(dim=0), torch.full((3, 3), 1 / 3), atol=0.02, rtol=0)
    torch.testing.assert_close(matrices.var(dim=0), torch.full((3, 3), 1 / 18), atol=0.005, rtol=0)
    assert (matrices < 0.2).float().mean().item() == pytest.approx(1 - 0.8**2, abs=0.02)
    assert ids.shape == (4001, 64) and torch.bincount(ids[:, 0]).min() > 1200
    for state in range(3):  # where the chance of going from `state` to 2 is p, it goes there with the share p
        here = ids[:, :-1] == state
        gone = ((ids[:, 1:] == 2) & here).sum(dim=1).double()
        expected = matrices[:, state, 2].double() * here.sum(dim=1)
        assert (gone - expected).sum().abs() < 4 * expected.sum().sqrt()
        assert torch.corrcoef(torch.stack((gone, expected)))[0, 1] > 0.9


def test_predictors_against_counting_in_loops():
    ids = torch.randint(5, (7, 13), generator=torch.Generator().manual_seed(2))
    found = {name: study_lab.PREDICTORS[name](ids, 5) for name in KINDS}
    for row, states in enumerate(ids.tolist()):
        for t, now in enumerate(states):
            pairs = list(zip(states[:t], states[1 : t + 1], strict=True))
            for state in range(5):
                wanted = {
                    "uniform": 1 / 5,
                    "unigram": (states[: t + 1].count(state) + 1) / (t + 1 + 5),
                    "bigram": (pairs.count((now, state)) + 1) / (sum(one == now for one, _ in pairs) + 5),
                }
                for name, p in wanted.items():
                    assert found[name][row, t, state].item() == pytest.approx(p, abs=1e-6), (name, row, t)
    with pytest.raises(ValueError, match="ids must hold ids in"):
        study_lab.bigram(ids, 4)


class Fixed(torch.nn.Module):
    """Returns the logarithm of a predictor's probabilities, with something added that the softmax removes."""

    def __init__(self, name):
        super().__init__()
        self.predict = study_lab.PREDICTORS[name]

    def forward(self, ids):
        return self.predict(ids, 3).log() + 7


@pytest.mark.parametrize("name", KINDS)
def test_distances_of_a_predictor(name):
    ids, _ = study_lab.tested()
    found = study.distances(Fixed(name), ids)
    assert found[name] == pytest.approx(0, abs=1e-6)
    for other in set(KINDS) - {name}:
        p, q = study_lab.PREDICTORS[other](ids, 3), study_lab.PREDICTORS[name](ids, 3)
        wanted = sum((p[..., a] * (p[..., a] / q[..., a]).log()).mean().item() for a in range(3))
        assert found[other] == pytest.approx(wanted, abs=1e-5) and wanted > 0.05


def test_no_predictor_is_better_than_counting_pairs():
    found = study_lab.losses_of_predictors()
    assert found["true matrix"] < found["bigram"] < found["unigram"] < found["uniform"] == round(math.log(3), 4)
    ids, _ = study_lab.batch(4001, torch.Generator().manual_seed(3))
    one_hot = torch.nn.functional.one_hot(ids, 3)
    losses = []
    for added in (0.5, 1.0, 2.0):  # other priors than the one the rows were drawn from
        pairs = (one_hot[:, :-1, :, None] * one_hot[:, 1:, None, :]).cumsum(dim=1)[torch.arange(4001), -2]
        counts = pairs[torch.arange(4001), ids[:, -2]] + added
        p = counts / counts.sum(dim=-1, keepdim=True)
        losses.append(-p.gather(1, ids[:, -1:]).log().mean().item())
    assert losses[1] < min(losses[0], losses[2])


def test_the_loss_is_of_the_next_state():
    torch.manual_seed(0)
    ids, logits = torch.randint(3, (5, 11)), torch.randn(5, 11, 3)
    each = [-logits[row, t].log_softmax(-1)[ids[row, t + 1]] for row in range(5) for t in range(10)]
    torch.testing.assert_close(study_lab.next_loss(logits, ids), torch.stack(each).mean())


def test_what_the_notebook_says_is_stored():
    for run in study_lab.runs_of(STORED, n_layers=2, steps=1500):
        nearest = [min(KINDS, key=lambda name, at=at: run[name][at]) for at in range(len(run["after"]))]
        phases = [name for at, name in enumerate(nearest) if at == 0 or name != nearest[at - 1]]
        assert phases == list(KINDS)
    two, one = ([run["bigram"][-1] for run in STORED["runs"] if run["n_layers"] == layers] for layers in (2, 1))
    assert max(two) < 0.06 < 0.09 < min(one)


def test_a_run_is_measured_often_at_first_and_at_its_end():
    for steps in (*study.STEPS, 300):
        at = study.measured_at(steps)
        assert at == sorted(set(at)) and at[:3] == [0, 5, 10] and at[-1] == steps


def test_the_nearest_predictors_come_in_their_order():
    run = {"after": [0, 5, 7, 11], "uniform": [1, 1, 4, 4], "unigram": [2, 3, 1, 5], "bigram": [3, 4, 5, 2]}
    assert study_lab.nearest(run) == {"uniform": 0, "unigram": 7, "bigram": 11}
    assert study_lab.curves([run, run])["unigram"] == ([5, 7, 11], [[3, 1, 5], [3, 1, 5]])
    with pytest.raises(ValueError, match="runs must have been measured after the same steps"):
        study_lab.curves([run, run | {"after": [0, 5, 7, 13]}])
