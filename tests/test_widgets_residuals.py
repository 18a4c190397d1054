"""W13, residual and norm: the panel's numbers are those that notebook 09 measures."""

from __future__ import annotations

import pytest

from svg_parts import parts, points
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
    assert [row[0] for row in picture.table[1:]] == [str(i) for i in range(6)]


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
