"""W11, the training replay: its numbers are those of the stored runs."""

from __future__ import annotations

import pytest

from studies import ablations as study
from svg_parts import centre, parts, points
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import run_curves
from transformer_lib.course.figures.widgets.training_panel import (
    ANOTHER_SEED,
    NOTHING,
    draw_replay,
    logged,
    other_runs,
    run_called,
    translated,
)
from transformer_lib.course.lab import ablations as study_lab


@pytest.fixture(scope="module")
def stored():
    return study_lab.load_results()


def test_the_last_point_is_the_logs(stored):
    run = stored["trained"]["baseline"][0]
    last = run["curve"]["steps"][-1]
    panel = widgets.training_replay(step=last)
    assert logged(run, last) == (last, run["curve"]["loss"][-1], run["curve"]["rate"][-1])
    assert f"step {last:,}: loss {run['curve']['loss'][-1]:.2f} (baseline)" in panel.picture.says
    assert f"after step {last:,}" in panel.picture.says


def test_between_two_entries_the_earlier_holds(stored):
    run = stored["trained"]["no scaling"][0]
    assert run_called("no scaling") == run
    assert logged(run, 20)[0] == 11 and logged(run, 21)[0] == 21
    assert translated(run, 63) == (32, run["samples"]["32"]) and translated(run, 64)[0] == 64


@pytest.mark.parametrize("beside", [*(name for name in study.VARIANTS if name != "baseline"), ANOTHER_SEED])
@pytest.mark.parametrize("step", [1, 256])
def test_every_run_can_be_laid_beside_the_baseline(stored, beside, step):
    picture = draw_replay(step, beside)
    runs = [stored["trained"]["baseline"][0], run_called(beside)]
    right = [sum(map(str.__eq__, run["samples"][str(step)], stored["references"])) for run in runs]
    assert f"{right[0]} and {right[1]} of 4 sentences" in picture.says
    assert picture.body.count("✓") == sum(right)
    assert beside in picture.body
    assert picture.body.count("<polyline") == 4


def test_at_first_the_baseline_stands_alone(stored):
    panel = widgets.training_replay(step=64)
    assert other_runs()[0] == NOTHING and panel.picture.says.startswith("step 64")
    assert "0 of 4 sentences" in panel.picture.says and panel.picture.body.count("<polyline") == 2
    assert "Loss and learning rate of baseline over" in panel.picture.alt


def test_another_seed_is_another_run(stored):
    assert other_runs()[-1] == ANOTHER_SEED and len(other_runs()) <= 13
    assert run_called(ANOTHER_SEED)["seed"] == 1


def test_a_curve_is_cut_at_the_top_and_ringed_at_its_step():
    body = run_curves.curve_chart({"a": ([1, 11, 21], [9.0, 4.0, 2.0])}, (100, 10, 210, 80), high=4.0, step=11, last=21)
    [line] = parts(body, "polyline")
    start, ringed, end = points(line)
    assert start[1] == ringed[1] == 10  # 9.0 is held at 4.0, the top
    assert end[1] == 10 + 80 / 2 and ringed[0] - start[0] == end[0] - ringed[0] > 0
    assert [centre(ring) for ring in parts(body, "circle")] == [ringed]


def test_nothing_said_is_said():
    body = run_curves.sample_lines(["a b"], ["x y"], [[""], ["x y"]], 20, 400)
    assert "(nothing)" in body and body.count("✓") == 1
