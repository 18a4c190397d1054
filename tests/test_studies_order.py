"""The study of which head comes first: crossings, curves, and what is stored."""

from __future__ import annotations

import pytest
import torch

from studies import order as study
from transformer_lib.course.lab import copying
from transformer_lib.course.lab import order as study_lab

STORED = study_lab.load_results()


def test_crossings_of_straight_and_crooked_curves():
    assert study.crossings([0.0, 1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert study.crossings([0.0, 4.0], 0.25) == 0.25
    assert study.crossings([2.0, 1.0, 5.0, 0.0, 6.0], 0.25) == 1.5  # level 3, crossed between 1 and 5 first
    assert study.crossings([0.1, 0.1, 0.1, 0.5], 0.5) == 2.5
    with pytest.raises(ValueError, match=r"curve must rise by the share 0.5, got 3 … 1"):
        study.crossings([3, 2, 1], 0.5)


def test_the_curves_are_measured_on_the_right_layers():
    model = copying.new_model(2, 1, 0)
    ids, periods = (each[: study.TESTED] for each in copying.tested())
    run = study.circuits.trace(model, ids)
    found = study.curves(study.Setup(1e-3, norm_first=False, seed=0), 3, 3)
    assert [len(curve) for curve in found.values()] == [2] * 4
    rows = range(1, copying.LENGTH)
    previous = sum(run.weights[0][:, 0, t, t - 1].sum().item() for t in rows) / (len(rows) * len(ids))
    assert found["previous"][0] == pytest.approx(previous, abs=1e-4)
    first = [
        run.weights[0][row, 0, t, t - 1].item() for row, period in enumerate(periods.tolist()) for t in range(1, period)
    ]
    assert found["first time"][0] == pytest.approx(sum(first) / len(first), abs=1e-4)
    read = [
        run.weights[1][row, 0, t, t - period + 1].item()
        for row, period in enumerate(periods.tolist())
        for t in range(period, copying.LENGTH)
    ]
    assert found["induction"][0] == pytest.approx(sum(read) / len(read), abs=1e-4)


def test_crossings_are_those_of_the_stored_curves():
    for run in STORED["runs"]:
        assert len(run["previous"]) == study_lab.BUDGETS[run["rate"]] // run["every"] + 1 > study.MEASUREMENTS
        for name in study.SCORES:
            for share in study.SHARES:
                wanted = run["every"] * study.crossings(run[name], share)
                assert run[f"{name} crosses"][str(share)] == pytest.approx(wanted, abs=0.06)


def test_leads_are_differences_of_crossings():
    leads = study_lab.leads(STORED, 0.5, rate=3e-3, norm_first=False)
    runs = [run for run in STORED["runs"] if run["rate"] == 3e-3 and not run["norm_first"]]
    wanted = [run["previous crosses"]["0.5"] - run["induction crosses"]["0.5"] for run in runs]
    assert len(leads) == 3 and leads == pytest.approx(wanted, abs=0.06)
    assert len(study_lab.leads(STORED)) == 12
    last = STORED["runs"][-1]
    wanted = last["first time crosses"]["0.25"] - last["induction crosses"]["0.25"]
    assert study_lab.leads(STORED, 0.25, "first time")[-1] == pytest.approx(wanted, abs=0.06)


def test_the_first_time_counts_rows_before_the_repeat():
    weights = torch.rand(3, 2, 7, 7, generator=torch.Generator().manual_seed(0))
    counted = [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (1, 4), (2, 1)]
    wanted = [sum(weights[b, head, t, t - 1].item() for b, t in counted) / len(counted) for head in range(2)]
    assert study.first_time(weights, torch.tensor([3, 5, 2])).tolist() == pytest.approx(wanted)


def test_a_set_up_is_trained_and_measured(monkeypatch):
    monkeypatch.setattr(study, "curves", lambda setup, steps, every: {"loss": [1.0], **{
        "previous": [0.0, 0.0, 1.0], "first time": [0.0, 0.5, 1.0], "induction": [0.0, 1.0, 1.0]}})  # fmt: skip
    found = study.run_setup(study.Setup(1e-3, norm_first=False, seed=0))
    assert found["every"] == 6 and found["previous crosses"] == {"0.25": 7.5, "0.5": 9.0}
    assert found["first time crosses"] == {"0.25": 3.0, "0.5": 6.0}
    assert found["induction crosses"] == {"0.25": 1.5, "0.5": 3.0}
