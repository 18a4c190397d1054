"""W13, residual and norm: the panel's numbers are those of the study; its table is that of the stored runs."""

from __future__ import annotations

import re

import pytest

from svg_parts import assert_inside, parts, points
from transformer_lib.course import progress
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import signals
from transformer_lib.course.figures.widgets.residuals_panel import draw_signals, spoken
from transformer_lib.course.lab import depth


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("norm", depth.NORMS)
def test_the_line_says_what_the_study_measures(residual, norm):
    picture = draw_signals(residual, norm, 5, 1.0, 3)
    found = depth.signals(5, residual, norm, gain=1.0, seed=3)
    assert f"gradient first/last {spoken(found.gradient[0] / found.gradient[-1])}," in picture.says
    assert picture.says.endswith(f"spread of the rows {found.spread[-1]:.2f}")
    assert picture.says.startswith(f"5 blocks, {'with' if residual else 'no'} residual")
    assert picture.says in picture.alt
    assert [row[0] for row in picture.table[1:]] == [str(i) for i in range(6)]


def test_the_table_counts_the_seeds_that_reached_the_goal():
    stored = depth.load_results()["runs"]
    body = draw_signals(True, "pre", 2, 1.0, 0).body
    plain = [run for run in stored if not run["detached"] and not run["warmup"]]
    chosen = [run["steps"] for run in plain if (run["residual"], run["norm"]) == (True, "pre")]
    counts = [sum(step is not None for step in steps) for steps in chosen]
    drawn = [int(cell) for cell in re.findall(r'class="mid" font-size="11">(\d)<', body)]
    assert len(counts) == 10
    assert sorted(drawn) == sorted(counts)
    assert "12 blocks, 0.003" in body
    assert "not live" in body


def test_what_was_not_trained_says_so():
    assert "(This set-up was not trained.)" in draw_signals(False, "pre", 2, 1.0, 0).body


@pytest.mark.parametrize(("value", "expected"), [(0.344, "0.34"), (99.4, "99.40"), (3.42e8, "3.4e+08")])
def test_sizes_are_spoken_in_two_digits(value, expected):
    assert spoken(value) == expected


@pytest.mark.parametrize(("exponents", "expected"), [((0.3, -1.9), 2), ((2.1, 0), 5), ((-12, 3), 15)])
def test_the_axis_reaches_far_enough(exponents, expected):
    assert signals.reach(exponents) == expected


def test_powers_of_ten_are_raised():
    assert [signals.power(k) for k in (-30, 0, 2)] == ["10⁻³⁰", "1", "10²"]


def test_a_chart_keeps_its_lines_inside():
    drawn = signals.block_chart({"a": [-9, 0, 9]}, (10, 20, 100, 60), {-2: "low", 0: "mid", 2: "high"})
    [line] = parts(drawn, "polyline")
    (left, bottom), middle, (right, top) = points(line)
    assert (left, right) == (10, 10 + 100) and (top, bottom) == (20, 20 + 60)  # ±9 are held at the edges
    assert middle == ((left + right) / 2, (top + bottom) / 2)
    written = [text.text for text in parts(drawn, "text")]
    assert {"low", "mid", "high", "0", "1", "2", "a"} <= set(written)


@pytest.mark.parametrize("norm", depth.NORMS)
@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_everything_fits_the_picture(norm, n_blocks):
    picture = draw_signals(True, norm, n_blocks, 1.5, 0)
    assert_inside(picture)
    assert len(picture.saved_html) < 50_000


def test_a_switch_by_hand_is_remembered():
    panel = widgets.residual_and_norm(n_blocks=2)
    panel.set(seed=1)
    assert "W13" not in progress.state()["widget"]
    panel.controls["residual"].value = False
    assert "W13" in progress.state()["widget"]


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="norm must be one of 'none', 'post', 'pre', got 'batch'"):
        widgets.residual_and_norm(norm="batch")
    with pytest.raises(ValueError, match="value must lie between 1 and 24, got 25"):
        widgets.residual_and_norm(n_blocks=25)
