"""The study of steps: stored counts agree with each other and are found again."""

from __future__ import annotations

from studies import rounds as study
from transformer_lib.course.lab import rounds as study_lab

STORED = study_lab.load_results()


def steps(stored, kind, seed=None):
    rows = [row for row in stored["rows"] if row["kind"] == kind and row.get("seed") == seed]
    return {(row["capacity"], row["way"]): row for row in rows}


def kinds(stored):
    return [(study_lab.SENTENCES, None), *((study_lab.DRAWN, seed) for seed in stored["seeds"])]


def test_joined_batches_need_the_fewest_steps_and_never_less_than_the_least():
    assert len(STORED["seeds"]) == 3
    for kind, seed in kinds(STORED):
        rows = steps(STORED, kind, seed)
        tokens = STORED["sets"][kind if seed is None else f"{kind} {seed}"]["tokens"]
        assert len(rows) == 3 * len(study.CAPACITIES)
        for capacity in study.CAPACITIES:
            in_order, by_length, joined = (rows[capacity, way] for way in (study.IN_ORDER, study.SORTED, study.JOINED))
            assert joined["least"] <= joined["steps"] <= by_length["steps"] <= in_order["steps"]
            for row in (in_order, by_length, joined):
                assert row["used"] == round(tokens / row["steps"] / capacity, 4)
            if capacity == 1:
                assert in_order["steps"] == joined["steps"] == tokens


def test_what_joining_gains_depends_on_how_much_lengths_differ():
    for kind, seed in kinds(STORED):
        rows = steps(STORED, kind, seed)
        gain = rows[32, study.IN_ORDER]["steps"] / rows[32, study.JOINED]["steps"]
        assert (1.2 < gain < 1.4) if kind == study_lab.SENTENCES else gain > 3


def test_the_run_said_the_same_in_as_many_steps_as_counted():
    run, rows = STORED["run"], steps(STORED, study_lab.SENTENCES)
    for way in (study.IN_ORDER, study.JOINED):
        assert run[way]["same"] == run["sentences"] == 1064
        assert run[way]["steps"] == rows[run["capacity"], way]["steps"]
        assert run[way]["used"] == rows[run["capacity"], way]["used"]


def test_a_short_run_agrees_with_itself_and_draws_the_same_lengths():
    found = study.measure([0], every=38)
    assert found["run"]["sentences"] == 28
    for way in (study.IN_ORDER, study.JOINED):
        assert found["run"][way]["same"] == 28
        assert found["run"][way]["steps"] == steps(found, study_lab.SENTENCES)[study.RUN_AT, way]["steps"]
    drawn, whole = (one["sets"][f"{study_lab.DRAWN} 0"] for one in (found, STORED))
    assert drawn["requests"] == 28 and drawn["longest"] <= whole["longest"]
