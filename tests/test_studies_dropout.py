"""The study of dropout: what a run measures, which rate is chosen, and that the command goes on where it stopped."""

from __future__ import annotations

import json
import sys
from statistics import mean

import pytest

from studies import dropout as study
from transformer_lib.course.lab import dropout as study_lab
from transformer_lib.course.lab import translators
from transformer_lib.data.corpora import Corpus, load_corpus


@pytest.fixture(scope="module")
def stored() -> dict:
    return study_lab.load_results()


@pytest.fixture
def tiny() -> Corpus:
    few = load_corpus("context")["train"][:64]
    return Corpus("context", {"train": few, "validation": few[:9]})


def test_a_rate_is_chosen_by_the_mean_over_the_seeds():
    def runs(*losses: float) -> list[dict]:
        return [{"validation": loss} for loss in losses]

    passes = f"{translators.TRAINING['epochs']} passes"
    assert study.chosen({"runs": {passes: {"0": runs(1.0, 4.0), "0.1": runs(2.0, 2.0), "0.2": runs(3.0, 2.5)}}}) == 0.1


def test_the_losses_are_of_the_model_as_it_ends(tiny):
    run = study.run_rate(tiny, 0.3, 5, epochs=1, warmup_steps=2)
    translator = translators.new_translator(tiny["train"], seed=5, dropout=0.3)
    translators.train_translator(translator, tiny["train"], seed=5, epochs=1, warmup_steps=2, progress=False)
    log_probs = translator.log_probabilities([p.src for p in tiny["validation"]], [p.tgt for p in tiny["validation"]])
    assert run["validation, not smoothed"] == pytest.approx(-log_probs[log_probs != 0].mean().item(), abs=1e-3)
    assert run["validation"] > run["validation, not smoothed"] * 0.5 and 0 <= run["exact match"] <= 1


def test_the_command_goes_on_where_it_stopped(tiny, tmp_path, monkeypatch, capsys):
    path = tmp_path / "dropout.json"
    monkeypatch.setattr(study, "load_corpus", lambda name: tiny)
    monkeypatch.setattr(study, "RATES", (0.0, 0.1))
    monkeypatch.setattr(study, "PASSES", (1,))
    monkeypatch.setattr(
        study, "run_rate", lambda *run, **options: {"seed": run[2], "validation": 2.0, "exact match": 0}
    )
    for seeds in (["7"], ["7", "11"]):
        monkeypatch.setattr(sys, "argv", ["dropout", "--seeds", *seeds, "--results", str(path)])
        study.main()
    content = json.loads(path.read_text(encoding="utf-8"))
    assert {rate: [run["seed"] for run in runs] for rate, runs in content["runs"]["1 passes"].items()} == {
        "0": [7, 11],
        "0.1": [7, 11],
    }
    assert capsys.readouterr().out.count("1 0.1 7") == 1  # not again in the second call
    assert mean(run["validation"] for run in content["runs"]["1 passes"]["0"]) == 2.0


def test_the_course_takes_the_rate_that_the_validation_split_chose(stored):
    assert study.chosen(stored) == translators.SIZES["dropout"]


def test_every_run_is_stored_with_its_curve(stored):
    assert stored["command"] == "python -m studies.dropout --seeds 0 1 2"
    assert list(stored["runs"]) == [f"{passes} passes" for passes in study.PASSES]
    for rates in stored["runs"].values():
        assert list(rates) == [f"{rate:g}" for rate in study.RATES]
        for runs in rates.values():
            assert [run["seed"] for run in runs] == [0, 1, 2]
            for run in runs:
                assert len(run["curve"]["steps"]) == len(run["curve"]["loss"]) > 5
                assert run["curve"]["loss"][0] > run["validation"] > 0
