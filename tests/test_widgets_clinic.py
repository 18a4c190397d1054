"""W22, the patient chart: its line gives the instruments' numbers and never a diagnosis."""

from __future__ import annotations

import re

import pytest

import transformer_lib as tl
from transformer_lib.course.clinic import CATALOGUE, instruments, patients
from transformer_lib.course.clinic.patients import Recipe, trained
from transformer_lib.course.figures.svg import patient as svg
from transformer_lib.course.figures.widgets import clinic_panel as chart


@pytest.fixture(autouse=True)
def young_patients(monkeypatch):
    """Everybody after two steps of training; what is drawn does not depend on the number of steps."""

    def admit(letter):
        case = patients.case_of(letter)
        return patients.Patient(letter, *trained(case.name, 0, Recipe(steps=20)), case)

    monkeypatch.setattr(chart, "admit", admit)


LOOKS = ("curves", *chart.MAPS, *chart.PROBES)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("patient", ["control", "A", "D", "E"])
def test_the_line_measures_and_does_not_diagnose(patient, look):
    picture = chart.draw_chart(patient, look, 3)
    assert picture.says.startswith(patient)
    assert not any(name in picture.says + picture.body for name in CATALOGUE)


def test_a_probes_line_is_the_instruments_number():
    for probe in ("future", "padding", "order"):
        picture = chart.draw_chart("E", probe, 5)
        assert picture.says.endswith(f"the instrument “{probe}” reads {tl.clinic.read(probe, chart.admit('E')):.2f}")
        here = instruments.changes(chart.admit("E"), probe)[4].tolist()
        assert [row[1] for row in picture.table[1:]] == [f"{value:.2f}" for value in here]
    says = chart.draw_chart("control", "future", 2).says
    assert "token 4 of the target replaced. The positions before it do not move; from it on, they move by up to" in says
    assert (
        "3 more padding tokens behind. At most, the logits move by 0.00."
        in chart.draw_chart("control", "padding", 2).says
    )


def test_a_map_shows_real_queries_and_all_keys():
    src, tgt_in, _ = chart.admit("control").batch()
    row = next(i for i in range(chart.ROWS) if (src[i] == 0).any())
    real = int((tgt_in[row] != 0).sum())
    assert f"{real} queries (rows) by {src.shape[1]} keys" in chart.draw_chart("control", "cross", row + 1).alt
    assert "a query gives to padding 0.00" in chart.draw_chart("control", "encoder", row + 1).says


def test_bars_and_curves_are_drawn_to_scale():
    drawn = svg.bars("changes", [0.0, 2.0], [1.0, 4.0], ["1", "2"], "A")
    assert [float(h) for h in re.findall(r'height="([\d.]+)" fill', drawn)][:4] == [0.7, 50.0, 100.0, 200.0]
    one = {"loss": [4.0, 0.0], "accuracy": [0.0, 1.0]}
    assert svg.curves(one, one, "A").count("<polyline") == 4
    assert svg.curves(one, one, "control").count("<polyline") == 2
