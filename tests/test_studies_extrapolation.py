"""The extrapolation study: its schemes, what each can see, and a short run that must find what is stored."""

from __future__ import annotations

import sys
from statistics import mean

import pytest
import torch

from transformer_lib.course.studies import extrapolation as study


@pytest.fixture(scope="module")
def stored():
    return study.load_results()


@pytest.mark.parametrize("scheme", study.SCHEMES)
def test_a_copier_answers_at_every_position_of_any_length(scheme):
    copier = study.Copier(scheme)
    for length in (study.TRAINED, 37, study.TESTED):
        assert copier(torch.zeros(3, length, dtype=torch.long)).shape == (3, length, study.SYMBOLS)


@pytest.mark.parametrize("scheme", study.SCHEMES)
def test_no_copier_sees_the_future(scheme):
    torch.manual_seed(0)
    copier, ids = study.Copier(scheme), torch.randint(study.SYMBOLS, (5, 23))
    changed = ids.clone()
    changed[:, 11:] = (ids[:, 11:] + 1) % study.SYMBOLS
    torch.testing.assert_close(copier(ids)[:, :11], copier(changed)[:, :11])


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match=r"scheme must be one of 'none', .*, got 'alibi'"):
        study.Copier("alibi")


@pytest.mark.parametrize(("clip", "untrained"), [(8, []), (16, [0])])
def test_training_reaches_every_entry_of_the_narrow_bias_and_all_but_one_of_the_wide(clip, untrained):
    trained = study.train_copier(f"relative, clipped at {clip}", seed=3, steps=2)
    past = trained.attention.position.table[:, : clip + 1]  # offsets −clip to 0; the mask hides the others
    assert [c for c in range(clip + 1) if not past[:, c].any()] == untrained


def test_the_stored_run_is_complete_and_says_how_it_was_made(stored):
    assert stored["command"] == "python -m transformer_lib.course.studies.extrapolation --seeds 0 1 2"
    assert (stored["trained"], stored["tested"], stored["steps"]) == (study.TRAINED, study.TESTED, study.STEPS)
    for measure in ("accuracy", "weight"):
        assert list(stored[measure]) == list(study.SCHEMES)
        for rows in stored[measure].values():
            assert [len(row) for row in rows] == [study.TESTED - study.BACK] * 3


def test_a_short_run_finds_what_is_stored(stored):
    scheme = "relative, clipped at 8"
    found = study.run([2], schemes=(scheme,))
    inside = study.TRAINED - study.BACK
    for measure in ("accuracy", "weight"):
        for part in (slice(inside), slice(inside, None)):
            now, then = (mean(results[measure][scheme][i][part]) for results, i in ((found, 0), (stored, 2)))
            assert now == pytest.approx(then, abs=0.03)


def test_the_command_writes_what_is_loaded(tmp_path, monkeypatch):
    path = tmp_path / "extrapolation.json"
    monkeypatch.setattr(study, "run", lambda seeds: {"accuracy": {"none": [[0.5] for _ in seeds]}})
    monkeypatch.setattr(sys, "argv", ["extrapolation", "--seeds", "4", "5", "--results", str(path)])
    study.main()
    content = study.load_results(path)
    assert content["command"] == "python -m transformer_lib.course.studies.extrapolation --seeds 4 5"
    assert (content["seeds"], content["accuracy"]) == ([4, 5], {"none": [[0.5], [0.5]]})


def test_the_weight_on_the_answer_is_read_from_the_right_place():
    torch.manual_seed(0)
    copier = study.Copier("relative, clipped at 8")
    torch.nn.init.zeros_(copier.attention.w_q.weight)  # no scores but the bias
    weights = study.weight_on_answer(copier, 5)
    assert weights == [round(1 / (position + 1), 3) for position in range(study.BACK, study.TESTED)]
    with torch.no_grad():
        copier.attention.position.table[0, 8 - study.BACK] = 50.0  # head 0 sees the token two back, and nothing else
    assert study.weight_on_answer(copier, 5) == [1.0] * (study.TESTED - study.BACK)


def test_chance_level_for_an_untrained_copier():
    torch.manual_seed(0)
    assert mean(study.accuracy(study.Copier("sinusoidal"), 60)) == pytest.approx(study.CHANCE, abs=0.05)
