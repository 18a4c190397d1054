"""The study of a laptop: what is stored follows from the times in it, whatever machine they were measured on."""

from __future__ import annotations

import numpy as np
import pytest

import transformer_lib as tl
from studies import laptop as study
from transformer_lib.course.lab import laptop as study_lab
from transformer_lib.decoding import serving

WAYS = {study.SENTENCES: 4, study.MIXED: 3}


STORED = study_lab.load_results()


@pytest.fixture(scope="module")
def lengths() -> dict:
    return study.lengths_of(tl.load_trained())


def test_answers_of_both_kinds_have_the_same_mean(lengths):
    sentences, mixed = (np.array(lengths[mix]) for mix in (study.SENTENCES, study.MIXED))
    assert len(sentences) == len(mixed) == 1064
    assert abs(mixed.mean() / sentences.mean() - 1) < 0.05
    assert sentences.std() < 3 < 10 < mixed.std()


def test_what_is_possible_follows_from_the_times(lengths):
    for mix, ways in STORED["saturated"].items():
        assert len(ways) == WAYS[mix]
        for way, most in ways.items():
            assert study.saturated(STORED, way, lengths[mix]) == pytest.approx(most, abs=0.02)
    mixed = STORED["saturated"][study.MIXED]
    assert mixed[study.JOINED] > mixed[study.STATIC] > mixed[study.ALONE]


def test_a_queue_follows_from_the_times(lengths):
    rows = [row for row in STORED["queue"] if row["steady"] and row["way"] in (study.STATIC, study.ENGINE)]
    for row in (rows[0], rows[-1]):
        found = study.queue(STORED, row["mix"], row["way"], row["rate"], lengths[row["mix"]], STORED["seeds"][:1])
        assert found["load"] == row["load"]
        assert found["medians"][0] == pytest.approx(row["medians"][0], rel=1e-3)


def test_times_are_told_where_the_queue_settles_alone():
    queue = STORED["queue"]
    assert len(queue) == sum(n * n * len(study.LOADS) for n in WAYS.values())
    for row in queue:
        assert row["load"] == pytest.approx(row["rate"] / STORED["saturated"][row["mix"]][row["way"]], abs=1e-3)
        assert row["steady"] == (row["load"] < study.STEADY) == ("median" in row)
        if row["steady"]:
            assert 0 < row["median"] <= row["p95"]
            assert min(row["medians"]) <= row["median"] <= max(row["medians"])
    loads = {(row["mix"], row["way"], round(row["load"], 2)) for row in queue}
    for mix, ways in STORED["saturated"].items():
        assert {(mix, way, load) for way in ways for load in study.LOADS} <= loads


def test_costs_are_what_the_simulation_wants():
    ours, engine = study.costs_of(STORED, study.JOINED), study.costs_of(STORED, study.ENGINE)
    assert ours.step(32) == STORED["step"]["32"] and ours.read(1) == STORED["read"]["1"]
    assert engine.read(16) == STORED["engine"]["float32"]["16"] and engine.step(16) == 0
    all_at_once = study.latencies(STORED, study.ENGINE, np.zeros(32), [5] * 32)
    np.testing.assert_allclose(all_at_once, STORED["engine"]["float32"]["32"])
    assert isinstance(ours, serving.Costs)


def test_a_short_run_has_the_form_of_the_stored_one(monkeypatch):
    monkeypatch.setattr(study, "SIZES", (1, 3))
    monkeypatch.setattr(study, "CAPACITIES", dict.fromkeys(study.CAPACITIES, 3))
    monkeypatch.setattr(study, "_really", lambda *_: 1.0)
    found = study.measure([0], requests=211, rounds=1)
    assert set(found) == set(STORED) - {"command", "date", "seeds"}
    assert list(found["read"]) == list(found["step"]) == ["1", "3"]
    assert {key for row in found["queue"] for key in row} == {key for row in STORED["queue"] for key in row}


def test_every_size_was_timed():
    sizes = list(map(str, study.SIZES))
    for seconds in (STORED["read"], STORED["step"], *STORED["engine"].values()):
        assert list(seconds) == sizes and min(seconds.values()) > 0
    assert list(STORED["engine"]) == ["float32", "int8"]
    assert STORED["threads"] == 1 and STORED["capacity"] == study.CAPACITIES
