"""W28, the way back through a decoder layer: its bars are the study's lengths, and a slip says what it makes wrong."""

from __future__ import annotations

import numpy as np
import pytest

from svg_parts import assert_inside, number, parts
from transformer_lib.course.figures.svg import walking_back as drawing
from transformer_lib.course.figures.widgets.walking_back_panel import STOPS, draw_back
from transformer_lib.course.lab import walking_back


@pytest.mark.parametrize("step", range(1, STOPS + 1))
def test_bars_are_as_long_as_the_gradients(step):
    picture, stop = draw_back(step, 0), walking_back.walk()[step - 1]
    lengths = [np.linalg.norm(g) for g in stop.gradients.values()]
    bars = [number(bar, "width") for bar in parts(picture.body, "rect") if bar.get("height") == "11"]
    np.testing.assert_allclose(bars, np.array(lengths) / max(lengths) * max(bars), atol=0.06)
    assert [row[0] for row in picture.table[1:]] == list(stop.gradients)
    assert picture.says.startswith(f"step {step} of 7, {stop.title}: ")


def test_a_slip_is_spoken_and_counted():
    says = draw_back(5, 7).says
    assert "from layer 1 1.11, off by 100%" in says and "from layer 2 0.89;" in says
    assert says.endswith("Slip: memory: only the last layer's share, 25 of 63 arrays wrong")
    assert "off by" not in draw_back(4, 7).says


def test_the_current_stop_is_framed_once():
    for step in (1, 5, 7):
        framed = [box for box in parts(drawing.layer(step), "rect") if box.get("stroke-width") == "4"]
        assert len(framed) == 1


@pytest.mark.parametrize("step", range(1, STOPS + 1))
@pytest.mark.parametrize("slip", [0, 2, 3, 7, 9])
def test_everything_fits_the_picture(step, slip):
    picture = draw_back(step, slip)
    assert_inside(picture)
    for line in parts(picture.body, "text"):
        if line.get("font-size") == "11" and not line.get("class"):
            assert number(line, "x") + 5.8 * len(line.text) <= picture.width + 8, line.text
