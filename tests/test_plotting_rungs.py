"""Rungs: a row for each model, the seeds' mean and range in a panel for each measure."""

from __future__ import annotations

import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

NAMES = ("first", "second", "third")
PANELS = {
    "loss": {"long": ([], [0.02, 0.06], [3.0]), "short": ([], [0.04, 0.08], [4.0])},
    "right": {"long": ([0.1], [0.2, 0.4], [0.9])},
}


@pytest.fixture
def axes():
    axes = plotting.plot_rungs(NAMES, PANELS, marked="second", log=("loss",))
    yield axes
    plotting.figure(axes, "closes it")


def test_points_are_means_and_whiskers_the_range_of_the_seeds(axes):
    loss, right = axes
    points = [container[0].get_xydata().tolist() for container in loss.containers]
    assert [[[round(x, 6), y] for x, y in each] for each in points] == [[[0.04, 1], [3, 2]], [[0.06, 1], [4, 2]]]
    low, high = (cap.get_xdata() for cap in right.containers[0][1])
    assert low.tolist() == pytest.approx([0.1, 0.2, 0.9]) and high.tolist() == pytest.approx([0.1, 0.4, 0.9])
    assert [text.get_text() for text in loss.get_legend().get_texts()] == ["long", "short"]


def test_rows_stand_from_top_to_bottom_and_one_is_marked(axes):
    labels = axes[0].get_yticklabels()
    assert [(label.get_text(), label.get_fontweight() == "bold") for label in labels] == [
        ("first", False),
        ("second", True),
        ("third", False),
    ]
    assert axes[0].yaxis_inverted()
    for ax in axes:
        (band,) = ax.patches
        assert band.get_y() == 0.5 and band.get_height() == 1  # around row 1


def test_the_axes_end_at_whole_powers_of_ten_or_at_one(axes):
    loss, right = axes
    assert loss.get_xscale() == "log" and [tick.get_text() for tick in loss.get_xticklabels()] == [
        ".01",
        ".1",
        "1",
        "10",
    ]
    assert right.get_xscale() == "linear" and right.get_xticks().tolist() == [0, 0.5, 1]


def test_series_differ_in_more_than_colour(axes):
    looks = [(points.get_marker(), points.get_markerfacecolor()) for points, *_ in axes[0].containers]
    assert len({marker for marker, _ in looks}) == 2 and looks[1][1] == "none"


@pytest.mark.parametrize(
    ("marked", "panels", "message"),
    [
        ("fourth", PANELS, "marked must be one of 'first', 'second', 'third', got 'fourth'"),
        ("first", {"a": {"x": ([1],)}}, "series of 3 entries each, got other in 'a'"),
        ("first", {"a": dict.fromkeys("xyz", ([1], [1], [1]))}, "one or two series of 3 entries"),
    ],
)
def test_what_does_not_fit_is_refused(marked, panels, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_rungs(NAMES, panels, marked=marked)
    plotting.figure(plotting.plot_rungs(NAMES, PANELS, marked="first"), "the next one can be drawn")
