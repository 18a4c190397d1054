"""Slopes: a thin line for each seed, a thick one for the median, and labels that do not cover each other."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

ARMS = {"up": ([0.1, 0.2, 0.6], [0.4, 0.9, 0.5]), "flat": ([0.5, 0.51], [0.5, 0.51])}


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def test_seeds_keep_their_partner_and_the_median_is_thick():
    ax = plotting.plot_slopes(ARMS, ("4 passes", "8 passes"), ylabel="share", title="both")
    thin = [list(line.get_ydata()) for line in ax.lines if line.get_linewidth() < 1]
    thick = {line.get_label(): list(line.get_ydata()) for line in ax.lines if line.get_linewidth() > 2}
    assert thin == [[0.1, 0.4], [0.2, 0.9], [0.6, 0.5], [0.5, 0.5], [0.51, 0.51]]
    assert thick == {"up": [0.2, 0.5], "flat": pytest.approx([0.505, 0.505])}
    assert len({line.get_marker() for line in ax.lines if line.get_linewidth() > 2}) == 2
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["4 passes", "8 passes"]
    assert (ax.get_ylabel(), ax.get_title(), ax.get_yscale()) == ("share", "both", "linear")


@pytest.mark.parametrize(("before", "place"), [(0, 0.8), (5, 0.227)])
def test_labels_say_the_last_median_and_keep_their_distance(before, place):
    arms = {name: ([before], [level]) for name, level in (("b", 1.0), ("a", 1.0), ("c", 0.999), ("low", 0))}
    ax = plotting.plot_slopes(arms, ("before", "after"), ylabel="share")
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    ordered = sorted(heights.values())
    assert set(heights) == {"b: 1", "a: 1", "c: 0.999", "low: 0"}
    assert all(upper - lower > 0.07 for lower, upper in zip(ordered, ordered[1:], strict=False)) and ordered[-1] <= 1
    assert heights["low: 0"] == pytest.approx(0.045, abs=0.01)
    assert heights["c: 0.999"] == ordered[1] == pytest.approx(place, abs=0.06)  # its own place, or as far as needed
    assert [text.xy for text in ax.texts if text.get_text() == "c: 0.999"] == [(1, 0.999)]


def test_losses_can_have_a_logarithmic_axis_of_given_axes():
    ax = plt.figure().add_subplot()
    assert plotting.plot_slopes({"a": ([1], [0.01])}, ("x", "y"), ax, ylabel="loss", log_y=True) is ax
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({}, "arms must hold at least one named arm, got none"),
        ({"a": ([1, 2], [1])}, "arms must hold as many values before as after, got 2 and 1 in 'a'"),
        ({"a": ([], [])}, "arms must hold as many values before as after, got 0 and 0 in 'a'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arms, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_slopes(arms, ("x", "y"), ylabel="share")
