"""The study of copying: its sequences, its rules, what is measured, short runs, and what is stored."""

from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from studies import copying as study
from transformer_lib.course.lab import copying as study_lab

STORED = study_lab.load_results()


def copier() -> tl.circuits.AttentionOnly:
    """Two layers of one head that copy, set by hand: letters on 26 axes, positions on 32, who was before on 26 more."""
    torch.manual_seed(0)
    model = tl.circuits.AttentionOnly(26, 2, 110, 1, max_len=32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        letter, position, before, said = slice(0, 26), slice(26, 58), slice(58, 84), slice(84, 110)
        model.embedding.weight[:, letter] = model.unembedding.weight[:, said] = torch.eye(26)
        model.position.table[:, position] = torch.eye(32)
        first, second = model.layers
        first.w_q.weight[:31, 27:58] = 300 * torch.eye(31)  # position t asks for t − 1
        first.w_k.weight[:31, 26:57] = torch.eye(31)
        first.w_v.weight[letter, letter] = first.w_o.weight[before, letter] = torch.eye(26)
        second.w_q.weight[letter, letter] = 300 * torch.eye(26)  # asks for the letter before which this one stood
        second.w_k.weight[letter, before] = torch.eye(26)
        second.w_k.weight[letter, 26] = -1  # position 0 has read itself: not here
        second.w_v.weight[letter, letter] = torch.eye(26)
        second.w_o.weight[said, letter] = 20 * torch.eye(26)
    return model


@pytest.mark.parametrize("distinct", [False, True])
def test_letters_repeat_with_their_periods(distinct):
    ids, periods = study_lab.batch(301, torch.Generator().manual_seed(1), distinct=distinct)
    assert ids.shape == (301, 32) and set(periods.tolist()) == set(study_lab.PERIODS)
    assert not set(study_lab.PERIODS) & set(study_lab.UNSEEN)
    recurring = 0
    for row, period in zip(ids.tolist(), periods.tolist(), strict=True):
        assert all(row[t] == row[t - period] for t in range(period, 32))
        recurring += len(set(row[:period])) < period
    assert recurring == 0 if distinct else recurring > 250
    assert torch.bincount(ids[:, 0], minlength=26).min() > 0
    assert study_lab.batch(7, torch.Generator(), [5])[1].tolist() == [5] * 7


def test_the_loss_counts_what_can_be_known():
    torch.manual_seed(0)
    ids, periods = study_lab.batch(5, torch.Generator().manual_seed(2))
    logits = torch.randn(5, 32, 26, requires_grad=True)
    losses = [
        -logits[row].log_softmax(-1)[t, ids[row, t + 1]]
        for row, period in enumerate(periods.tolist())
        for t in range(period, 31)
    ]
    loss = study_lab.repeat_loss(logits, ids, periods)
    torch.testing.assert_close(loss, torch.stack(losses).mean())
    gradient = torch.autograd.grad(loss, logits)[0].abs().amax(dim=-1) > 0
    assert all(gradient[row].nonzero()[:, 0].tolist() == [*range(periods[row], 31)] for row in range(5))


def test_the_rules_against_loops():
    ids, periods = study_lab.tested()
    losses = {"letters so far": [], "after this letter": []}
    for row, period in zip(ids[:64].tolist(), periods[:64].tolist(), strict=True):
        for t in range(period, 31):
            so_far = row[: t + 1]
            after = [row[s + 1] for s in range(t) if row[s] == row[t]]
            for name, seen in (("letters so far", so_far), ("after this letter", after)):
                losses[name].append(-math.log(seen.count(row[t + 1]) / len(seen)))
    found = study.rules()
    assert found["any letter"] == round(math.log(26), 4)
    for name, each in losses.items():
        assert sum(each) / len(each) == pytest.approx(found[name], abs=0.05)
    assert study.rules(distinct=True)["after this letter"] == 0


def test_the_measure_of_a_copier_set_by_hand(monkeypatch):
    monkeypatch.setattr(study_lab, "TESTED", 61)
    model = copier()
    found = study.measure(model, distinct=True)
    assert found["right"] == 1 and found["loss"] < 1e-4 and max(found["unseen"].values()) < 1e-4
    assert found["previous"][0][0] == 1 and found["previous"][1][0] < 0.1
    ids, periods = study_lab.tested(distinct=True)
    third = [1 / (t // p) for p in periods.tolist() for t in range(p, 32)]  # shared by all that were there before
    assert found["induction"][1][0] == pytest.approx(sum(third) / len(third), abs=1e-3)
    lost = study.ablated(model, "zero")
    assert lost[0][0] > 2 and lost[1][0] == pytest.approx(math.log(26), abs=1e-3)
    assert [study.without_layer(model, layer) for layer in (0, 1)] == [lost[0][0], lost[1][0]]


def test_the_paths_of_a_copier_set_by_hand(monkeypatch):
    monkeypatch.setattr(study_lab, "TESTED", 61)
    model = copier()
    found, clean = study.paths(model), study_lab.loss_of(model, *study_lab.tested())
    assert found["queries"]["0.0"] == found["keys"]["token"] == found["values"]["0.0"] == clean
    assert min(found["queries"]["token"], found["keys"]["0.0"], found["values"]["token"]) > clean + 3


def test_the_watcher_sees_every_step_and_the_end():
    seen: list[int] = []
    losses = study_lab.fit(study_lab.new_model(1, 1, 0), 3, watch=lambda step, model: seen.append(step))
    assert seen == [0, 1, 2, 3] and len(losses) == 3
    assert study_lab.fit(study_lab.new_model(1, 1, 0), 3, distinct=True) != losses
    assert (
        study_lab.fit(study_lab.new_model(1, 1, 0), 3, seed=1)
        != losses
        == study_lab.fit(study_lab.new_model(1, 1, 0), 3)
    )


def test_what_the_notebook_says_is_stored():
    def of(what="loss", **fields):
        return [run[what] for run in study_lab.runs_of(STORED, **fields)]

    rules = STORED["rules"]
    two, one = of(n_layers=2, n_heads=1, steps=400), of(n_layers=1, n_heads=1, steps=400)
    assert max(two) < rules["after this letter"] < 1.5 < min(one) < rules["letters so far"]
    every = [run for run in STORED["runs"] if not run["distinct"] and run["loss"] < rules["letters so far"]]
    assert {run["rate"] for run in STORED["runs"]} - {run["rate"] for run in every} == {1e-1}  # too fast for any
    one_layer, two_layers = ([run["loss"] for run in every if run["n_layers"] == layers] for layers in (1, 2))
    assert max(two_layers) < rules["after this letter"] < 1 < min(one_layer)
    assert min(run["unseen"]["12"] for run in every if run["n_layers"] == 1) > rules["any letter"]
    assert max(run["unseen"]["12"] for run in every if run["n_layers"] == 2) < rules["letters so far"]
    for run in study_lab.runs_of(STORED, n_layers=2, n_heads=1, steps=400):
        for lost in run["ablated"].values():
            assert min(lost[0][0], lost[1][0]) > rules["letters so far"]
        paths = run["paths"]
        assert min(paths["queries"]["token"], paths["keys"]["0.0"], paths["values"]["token"]) > rules["any letter"]
        assert max(paths["queries"]["0.0"], paths["keys"]["token"], paths["values"]["0.0"]) < 0.5


def test_losses_are_those_of_each_seeds_best_rate():
    found = study_lab.losses_of(STORED, [(2, 1, 400), (1, 4, 2500)])
    assert list(found) == ["periods of the training", "period 12"]
    two, one = found["periods of the training"].items()
    assert (two[0], len(two[1])) == ("2 layers, 1 head, 400 steps", 5)
    assert (one[0], len(one[1])) == ("1 layer, 4 heads, 2,500 steps", 3)
    first = study_lab.runs_of(STORED, n_layers=1, n_heads=4, steps=2500, seed=0)
    assert len(first) > 1 and one[1][0] == min(run["loss"] for run in first)
    with pytest.raises(ValueError, match="setups must be stored ones, got 3 layers, 1 heads, 7 steps"):
        study_lab.losses_of(STORED, [(3, 1, 7)])
