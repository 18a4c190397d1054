"""The extrapolation study: its schemes, what each can see, and a short run that must find what is stored."""

from __future__ import annotations

from statistics import mean

import pytest
import torch

from studies import extrapolation as study
from transformer_lib.course.lab import extrapolation as study_lab

POSITIONS = study_lab.TESTED - study_lab.BACK


STORED = study_lab.load_results()


@pytest.mark.parametrize("scheme", study_lab.SCHEMES)
def test_a_copier_answers_at_every_position_of_any_length(scheme):
    copier = study_lab.Copier(scheme)
    for length in (study_lab.TRAINED, 37, study_lab.TESTED):
        assert copier(torch.zeros(3, length, dtype=torch.long)).shape == (3, length, study_lab.SYMBOLS)


@pytest.mark.parametrize("scheme", study_lab.SCHEMES)
def test_a_copier_sees_its_window_and_nothing_later(scheme):
    torch.manual_seed(0)
    copier, ids = study_lab.Copier(scheme), torch.randint(study_lab.SYMBOLS, (5, 23))
    changed = ids.clone()
    changed[:, 11] = (ids[:, 11] + 1) % study_lab.SYMBOLS
    for window in (study_lab.TESTED, 5):
        before, after = copier(ids, window), copier(changed, window)
        moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5
        assert moved.nonzero().flatten().tolist() == list(range(11, min(23, 11 + window)))


def test_one_number_is_a_multiple_of_one_vector():
    x = torch.zeros(1, 7, study_lab.WIDTH)
    added = study_lab.Copier("one number").positions(x)[0]
    torch.testing.assert_close(added, torch.arange(7.0)[:, None] * added[1])
    assert added[1].any()


def test_in_degrees_position_180_has_half_a_turn_of_the_fastest_pair():
    added = study_lab.Copier("sinusoidal in degrees").positions(torch.zeros(1, 181, study_lab.WIDTH))[0]
    torch.testing.assert_close(added[[0, 90, 180], :2], torch.tensor([[0.0, 1], [1, 0], [0, -1]]), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("scheme", "heads"), [("sinusoidal", 2), ("sinusoidal, one head", 1)])
def test_the_number_of_heads(scheme, heads):
    assert study_lab.Copier(scheme).weights(torch.zeros(1, 5, dtype=torch.long)).shape == (1, heads, 5, 5)


@pytest.mark.parametrize(("clip", "untrained"), [(8, []), (16, [0])])
def test_training_reaches_every_entry_of_the_narrow_bias_and_all_but_one_of_the_wide(clip, untrained):
    copier = next(study_lab.train_copier(f"relative, clipped at {clip}", seed=3, budgets=(2,)))
    past = copier.attention.position.table[:, : clip + 1]  # offsets −clip to 0; the mask hides the others
    assert [c for c in range(clip + 1) if not past[:, c].any()] == untrained


def test_a_longer_training_begins_as_a_shorter_one():
    short = [copier.head.bias.clone() for copier in study_lab.train_copier("rotary", 5, (3,))]
    both = [copier.head.bias.clone() for copier in study_lab.train_copier("rotary", 5, (3, 7))]
    assert torch.equal(short[0], both[0]) and not torch.equal(both[0], both[1])


def test_what_is_stored_is_read_by_scheme_and_budget():
    found = study_lab.measured("accuracy", "rotary", 500)
    assert found.shape == (3, POSITIONS)
    (run,) = (run for run in STORED["runs"] if (run["scheme"], run["seed"], run["steps"]) == ("rotary", 1, 500))
    assert found[1].tolist() == run["accuracy"]


def test_a_short_run_finds_what_is_stored():
    (copier,) = study_lab.train_copier("relative, clipped at 8", 2, budgets=(500,))
    inside = study_lab.TRAINED - study_lab.BACK
    for name in ("accuracy", "windowed", "weight"):
        now, then = study.measure(copier)[name], study_lab.measured(name, "relative, clipped at 8", 500)[2].tolist()
        for part in (slice(inside), slice(inside, None)):
            assert mean(now[part]) == pytest.approx(mean(then[part]), abs=0.03)


def _bias_that_looks_back() -> study_lab.Copier:
    """Return a copier whose scores are the bias alone, and whose head 0 sees the token BACK before, nothing else."""
    torch.manual_seed(0)
    copier = study_lab.Copier("relative, clipped at 8")
    torch.nn.init.zeros_(copier.attention.w_q.weight)
    with torch.no_grad():
        copier.attention.position.table[0, 8 - study_lab.BACK] = 50.0
    return copier


def test_the_weight_on_the_answer_is_read_from_the_right_place():
    copier = _bias_that_looks_back()
    assert study.weight_on_answer(copier, 5) == [1.0] * POSITIONS
    torch.nn.init.zeros_(copier.attention.position.table)
    even = [round(1 / (position + 1), 3) for position in range(study_lab.BACK, study_lab.TESTED)]
    assert study.weight_on_answer(copier, 5) == even


def test_scores_are_compared_with_that_of_the_answer():
    scores = study.score_by_offset(_bias_that_looks_back(), 5)
    assert scores == [0.0 if back == study_lab.BACK else -50.0 for back in range(study_lab.TESTED)]


def test_chance_level_for_an_untrained_copier():
    torch.manual_seed(0)
    assert mean(study.accuracy(study_lab.Copier("sinusoidal"), 60)) == pytest.approx(study.CHANCE, abs=0.05)


def test_the_hands_add_up_to_the_scores_of_the_mean_letter():
    copier = next(study_lab.train_copier("rotary", 7, budgets=(5,)))
    with torch.no_grad():
        x, layer = copier.embedding.weight, copier.attention
        query, key = (w(x).mean(dim=0).chunk(study_lab.HEADS)[1] for w in (layer.w_q, layer.w_k))
        turned = layer.position.rotate(torch.stack([key] * study_lab.TESTED))  # the key at positions 0 to 63
        scores = turned @ layer.position.rotate(query[None], start=63)[0] / len(query) ** 0.5
        waves, back = copier.hands(1), torch.arange(study_lab.TESTED)[:, None]
        angles = back * 10000.0 ** (-torch.arange(len(waves)) / len(waves))
        mine = (waves[:, 0] * angles.cos() + waves[:, 1] * angles.sin()).sum(dim=1)
    torch.testing.assert_close(mine, scores.flip(0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("steps", study_lab.BUDGETS)
def test_the_stored_hands_give_back_the_stored_scores(steps):
    waves, score = study_lab.hands(steps), study_lab.measured("score", "rotary", steps)
    assert waves.shape == (3, 16, study_lab.TESTED)
    whole = waves.sum(dim=1)
    assert (whole - whole[:, 2:3] - score).abs().mean() < 0.15
