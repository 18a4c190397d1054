"""The study of a translator without a source: its pairs, a short run that repeats the stored one, what is stored."""

from __future__ import annotations

import json
import sys

import pytest

import transformer_lib as tl
from studies import blind as study
from transformer_lib.course.lab import blind as study_lab


@pytest.fixture(scope="module")
def stored() -> dict:
    return study_lab.load_results()


def test_a_blindfold_hides_the_source_and_nothing_else():
    pairs = tl.load_corpus("context")["validation"][:7]
    hidden = study.blindfold(pairs)
    assert {pair.src for pair in hidden} == {"."} and [pair.tgt for pair in hidden] == [pair.tgt for pair in pairs]


def test_a_short_run_repeats_the_stored_one(stored):
    assert study.short_run(tl.load_corpus("context")) == pytest.approx(stored["short"], abs=2e-3)


def test_the_stored_study_is_complete(stored):
    assert stored["command"] == "python -m studies.blind --seeds 0 1 2"
    assert tuple(stored["passes"]) == study.PASSES and len(stored["without the source"]) == len(stored["seeds"]) == 3
    for blind, sighted in zip(stored["without the source"], study_lab.sighted(stored), strict=True):
        assert len(blind) == len(sighted) == len(study.PASSES)
        assert blind[-1] < blind[0] and max(sighted) < 0.2 < 1 < min(blind)


def test_the_command_writes_what_it_measures(tmp_path, monkeypatch, capsys):
    path = tmp_path / "blind.json"
    monkeypatch.setattr(study, "short_run", lambda corpus: [6.3])
    monkeypatch.setattr(study, "curve", lambda corpus, seed: [2.0 + seed, 1.0 + seed])
    monkeypatch.setattr(sys, "argv", ["blind", "--seeds", "7", "--results", str(path)])
    study.main()
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["without the source"] == [[9.0, 8.0]] and content["command"].endswith("blind --seeds 7")
    assert capsys.readouterr().out == "7 [9.0, 8.0]\n"
