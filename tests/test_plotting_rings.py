"""A grid of readings: the ones that ring are in colour, and their text is bold."""

from __future__ import annotations

import math

import matplotlib.colors
import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

READINGS = {"sound": {"a": 0.0, "b": 0.1, "loss": 2.0}, "broken": {"a": 3.5, "b": 0.0, "loss": math.nan}}


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def loud(ax):
    """Return {(across, down): text} of the cells in colour."""
    colour = matplotlib.colors.to_hex(plotting.SERIES[1])
    middles = [
        (round(patch.get_x() + patch.get_width() / 2, 3), round(patch.get_y() + patch.get_height() / 2, 3))
        for patch in ax.patches
        if matplotlib.colors.to_hex(patch.get_facecolor()) == colour
    ]
    texts = {tuple(round(part, 3) for part in text.get_position()): text for text in ax.texts}
    assert {place for place, text in texts.items() if text.get_fontweight() == "bold"} == set(middles)
    return {place: texts[place].get_text() for place in middles}


def test_what_rings_is_in_colour_and_bold():
    ax = plotting.plot_rings(READINGS, lambda name, value: value > (1 if name == "a" else 5), apart=1)
    assert loud(ax) == {(0.0, 1.0): "3.50", (2.35, 1.0): "NaN"}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["sound", "broken"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "loss"]
    assert [text.get_text() for text in ax.texts] == ["0.00", "0.10", "2.00", "3.50", "0.00", "NaN"]


def test_the_text_can_be_another_and_the_limits_belong_to_columns():
    ax = plotting.plot_rings(READINGS, lambda name, value: name == "b", text="{:.0f} of 3".format)
    assert loud(ax) == {(1.0, 0.0): "0 of 3", (1.0, 1.0): "0 of 3", (2.0, 1.0): "NaN"}


@pytest.mark.parametrize(
    ("readings", "says"),
    [
        ({}, "readings must have 1 to 12 columns, got 0"),
        ({"x": {str(i): 0.0 for i in range(13)}}, "1 to 12 columns, got 13"),
        ({"x": {"a": 0.0}, "y": {"b": 0.0}}, "each row must have the columns a, got b in 'y'"),
    ],
)
def test_bad_readings_are_refused(readings, says):
    with pytest.raises(ValueError, match=says):
        plotting.plot_rings(readings, lambda name, value: False)
