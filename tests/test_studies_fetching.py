"""The fetching study: its task, what cutting and hiding do, short runs that repeat the stored ones, what is stored."""

from __future__ import annotations

import pytest
import torch

from studies import fetching as study
from transformer_lib.course.lab import fetching as study_lab

STORED = study_lab.load_results()


def test_a_token_has_to_name_the_letters_one_and_three_back():
    models = study_lab.Fetchers(2, [3, 5])
    ids = models.batch(7)
    answers = models.answers(ids)
    assert answers.shape == (2, 7, 9, 2)
    for position in range(3, 12):
        assert torch.equal(answers[:, :, position - 3, 0], ids[:, :, position - 1])
        assert torch.equal(answers[:, :, position - 3, 1], ids[:, :, position - 3])


def test_training_goes_on_where_it_stopped():
    twice, once = study_lab.Fetchers(1, [3], hidden=5).train(4).train(3), study_lab.Fetchers(1, [3], hidden=5).train(7)
    assert all(torch.equal(weight, once.weights[name]) for name, weight in twice.weights.items())


def test_a_cut_head_adds_nothing_and_comes_back():
    models = study_lab.Fetchers(2, [3, 5])
    ids = models.batch(4)
    output = models.attend(ids)[0]
    before = models.right()
    models.off[1] = 0
    alone = models.attend(ids)[0]
    models.weights["w_o"][:, 16:] = 0
    models.off[1] = 1
    torch.testing.assert_close(models.attend(ids)[0], alone)
    assert not torch.allclose(output, alone)
    models = study_lab.Fetchers(2, [3, 5])
    assert not torch.equal(models.right_without(0), before) and torch.equal(models.right(), before)


def test_what_is_hidden_is_not_read():
    models = study_lab.Fetchers(1, [3])
    ids, seen = models.batch(4), []
    models.right_blind(3)
    assert torch.equal(models.may, torch.ones(12, 12).tril().bool())
    right = models.right
    models.right = lambda: seen.append(models.attend(ids)[1]) or right()
    models.right_blind(3)
    assert (seen[0].diagonal(-3, 3, 4) == 0).all() and (seen[0].diagonal(-2, 3, 4) > 0).all()
    torch.testing.assert_close(seen[0].sum(dim=-1), torch.ones(1, 4, 1, 12))


def test_mean_weights_are_those_of_the_diagonals():
    models = study_lab.Fetchers(4, [3, 5])
    reads = models.reads(0, 1, 2)
    weights = models.attend(models._test())[1]
    assert reads.shape == (2, 4, 3) and models.reads().shape == (2, 4, 2)
    by_hand = torch.stack([weights[1, :, 2, i, i - 2] for i in range(3, 12)]).mean()
    torch.testing.assert_close(reads[1, 2, 2], by_hand)


def test_clones_are_equal_and_nudged_clones_nearly():
    for nudge in study.NUDGES:
        models = study_lab.Fetchers(2, [3, 5]).clone(nudge)
        for name in ("w_q", "w_k", "w_v"):
            first, second = models.weights[name].chunk(2, dim=-1)
            assert torch.equal(first, second) == (nudge == 0) and (first - second).abs().max() <= 10 * nudge
        assert torch.equal(*models.weights["w_o"].chunk(2, dim=1)) and models.right().shape == (2, 2)


def test_a_short_run_repeats_the_stored_one():
    found = study_lab.Fetchers(1, [0]).train(study_lab.STEPS).right()
    row = next(run for run in STORED["setups"] if (run["setup"], run["rate"], run["steps"]) == ("1 head", 0.01, 300))
    assert found[0].tolist() == pytest.approx(row["right"][0], abs=0.02)


def test_splitting_x_repeats_the_stored_run():
    found = study.split_x(0, whole=False, mixed=True, budgets=[study_lab.STEPS])
    assert found == pytest.approx(STORED["split"][3]["right"][0][:1], abs=0.03)
    assert study_lab.most_frequent() == pytest.approx(0.437, abs=0.001)


def test_what_is_stored_is_sorted_for_the_figures():
    early, late = study_lab.right_by_setup(STORED)
    assert list(early) == list(late) == list(study_lab.SETUPS) and {
        len(row) for row in (*early.values(), *late.values())
    } == {9}
    slow = STORED["setups"][2 * len(study.RATES)]  # two heads at the smallest rate, after 300 steps
    assert (slow["setup"], slow["steps"]) == ("2 heads", 300) and early["2 heads"][:3] == [b for _, b in slow["right"]]
    early, late = study_lab.right_in_pieces(STORED)
    assert early["X split, mixed"] == [a for a, _ in STORED["split"][3]["right"]]
    assert late["X split, sorted"] == [b for _, b in STORED["split"][2]["right"]]
    early, late = study_lab.clones(STORED)
    assert early["heads differ by"]["exact clones"] == [0, 0, 0] and late["three back right"]["exact clones"] == [
        1,
        1,
        1,
    ]
    (one, other), *_ = STORED["clones"][3]["reads"]
    widest = max(abs(a - b) for a, b in zip(one, other, strict=True))
    assert late["heads differ by"]["nudged by a millionth"][0] == widest
    early, late = study_lab.spares(STORED)
    assert late["right without the head"]["model 3"] == [one for (one,) in STORED["spare"][1]["without"][2]]
    assert early["weight one back"]["model 2"] == [one for one, _ in STORED["spare"][0]["reads"][1]]
