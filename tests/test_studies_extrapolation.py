"""The extrapolation study: its schemes, what each can see, and a short run that must find what is stored."""

from __future__ import annotations

import itertools
import sys
from statistics import mean

import pytest
import torch

from transformer_lib.course.studies import extrapolation as study

POSITIONS = study.TESTED - study.BACK


@pytest.fixture(scope="module")
def stored():
    return study.load_results()


@pytest.mark.parametrize("scheme", study.SCHEMES)
def test_a_copier_answers_at_every_position_of_any_length(scheme):
    copier = study.Copier(scheme)
    for length in (study.TRAINED, 37, study.TESTED):
        assert copier(torch.zeros(3, length, dtype=torch.long)).shape == (3, length, study.SYMBOLS)


@pytest.mark.parametrize("scheme", study.SCHEMES)
def test_a_copier_sees_its_window_and_nothing_later(scheme):
    torch.manual_seed(0)
    copier, ids = study.Copier(scheme), torch.randint(study.SYMBOLS, (5, 23))
    changed = ids.clone()
    changed[:, 11] = (ids[:, 11] + 1) % study.SYMBOLS
    for window in (study.TESTED, 5):
        before, after = copier(ids, window), copier(changed, window)
        moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5
        assert moved.nonzero().flatten().tolist() == list(range(11, min(23, 11 + window)))


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match=r"scheme must be one of 'none', .*, got 'alibi'"):
        study.Copier("alibi")


def test_one_number_is_a_multiple_of_one_vector():
    x = torch.zeros(1, 7, study.WIDTH)
    added = study.Copier("one number").positions(x)[0]
    torch.testing.assert_close(added, torch.arange(7.0)[:, None] * added[1])
    assert added[1].any()


def test_in_degrees_position_180_has_half_a_turn_of_the_fastest_pair():
    added = study.Copier("sinusoidal in degrees").positions(torch.zeros(1, 181, study.WIDTH))[0]
    torch.testing.assert_close(added[[0, 90, 180], :2], torch.tensor([[0.0, 1], [1, 0], [0, -1]]), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("scheme", "heads"), [("sinusoidal", 2), ("sinusoidal, one head", 1)])
def test_the_number_of_heads(scheme, heads):
    assert study.Copier(scheme).weights(torch.zeros(1, 5, dtype=torch.long)).shape == (1, heads, 5, 5)


@pytest.mark.parametrize(("clip", "untrained"), [(8, []), (16, [0])])
def test_training_reaches_every_entry_of_the_narrow_bias_and_all_but_one_of_the_wide(clip, untrained):
    copier = next(study.train_copier(f"relative, clipped at {clip}", seed=3, budgets=(2,)))
    past = copier.attention.position.table[:, : clip + 1]  # offsets −clip to 0; the mask hides the others
    assert [c for c in range(clip + 1) if not past[:, c].any()] == untrained


def test_a_longer_training_begins_as_a_shorter_one():
    short = [copier.head.bias.clone() for copier in study.train_copier("rotary", 5, (3,))]
    both = [copier.head.bias.clone() for copier in study.train_copier("rotary", 5, (3, 7))]
    assert torch.equal(short[0], both[0]) and not torch.equal(both[0], both[1])


def test_the_stored_run_is_complete_and_says_how_it_was_made(stored):
    assert stored["command"] == "python -m transformer_lib.course.studies.extrapolation --seeds 0 1 2"
    assert (stored["trained"], stored["tested"]) == (study.TRAINED, study.TESTED)
    assert stored["budgets"] == list(study.BUDGETS) and study.BUDGETS[1] == 5 * study.BUDGETS[0]
    names = [(run["scheme"], run["seed"], run["steps"]) for run in stored["runs"]]
    assert sorted(names) == sorted(itertools.product(study.SCHEMES, stored["seeds"], study.BUDGETS))
    for run in stored["runs"]:
        assert [len(run[name]) for name in study.MEASURES] == [POSITIONS, POSITIONS, POSITIONS, study.TESTED]


def test_what_is_stored_is_read_by_scheme_and_budget(stored):
    found = study.measured("accuracy", "rotary", 500)
    assert found.shape == (3, POSITIONS)
    (run,) = (run for run in stored["runs"] if (run["scheme"], run["seed"], run["steps"]) == ("rotary", 1, 500))
    assert found[1].tolist() == run["accuracy"]


def test_a_short_run_finds_what_is_stored():
    (copier,) = study.train_copier("relative, clipped at 8", 2, budgets=(500,))
    inside = study.TRAINED - study.BACK
    for name in ("accuracy", "windowed", "weight"):
        now, then = study.measure(copier)[name], study.measured(name, "relative, clipped at 8", 500)[2].tolist()
        for part in (slice(inside), slice(inside, None)):
            assert mean(now[part]) == pytest.approx(mean(then[part]), abs=0.03)


def test_the_command_adds_what_is_missing(tmp_path, monkeypatch, capsys):
    path = tmp_path / "extrapolation.json"
    monkeypatch.setattr(study, "BUDGETS", (1, 2))
    monkeypatch.setattr(study, "measure", lambda copier: {"accuracy": [0.5]})
    study.run([4], path, ("none",))
    study.run([4, 5], path, ("none", "rotary"))
    assert capsys.readouterr().out.splitlines() == ["none seed 4", "rotary seed 4", "none seed 5", "rotary seed 5"]
    content = study.load_results(path)
    assert content["command"] == "python -m transformer_lib.course.studies.extrapolation --seeds 4 5"
    assert len(content["runs"]) == 8


def test_the_command_line_names_seeds_and_file(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(study, "run", lambda *args: called.append(args))
    monkeypatch.setattr(sys, "argv", ["extrapolation", "--seeds", "4", "--results", str(tmp_path / "x.json")])
    study.main()
    assert called == [([4], tmp_path / "x.json")]


def _bias_that_looks_back() -> study.Copier:
    """Return a copier whose scores are the bias alone, and whose head 0 sees the token BACK before, nothing else."""
    torch.manual_seed(0)
    copier = study.Copier("relative, clipped at 8")
    torch.nn.init.zeros_(copier.attention.w_q.weight)
    with torch.no_grad():
        copier.attention.position.table[0, 8 - study.BACK] = 50.0
    return copier


def test_the_weight_on_the_answer_is_read_from_the_right_place():
    copier = _bias_that_looks_back()
    assert study.weight_on_answer(copier, 5) == [1.0] * POSITIONS
    torch.nn.init.zeros_(copier.attention.position.table)
    even = [round(1 / (position + 1), 3) for position in range(study.BACK, study.TESTED)]
    assert study.weight_on_answer(copier, 5) == even


def test_scores_are_compared_with_that_of_the_answer():
    scores = study.score_by_offset(_bias_that_looks_back(), 5)
    assert scores == [0.0 if back == study.BACK else -50.0 for back in range(study.TESTED)]


def test_chance_level_for_an_untrained_copier():
    torch.manual_seed(0)
    assert mean(study.accuracy(study.Copier("sinusoidal"), 60)) == pytest.approx(study.CHANCE, abs=0.05)
