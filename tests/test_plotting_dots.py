"""Dots: every seed has its place, two budgets are told apart without colour, panels share their names."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

LATE = {"first": [0.2, 0.5, 0.3], "second": [1.0, 1.0], "none": []}
EARLY = {"first": [0.1, 0.1, 0.4], "second": [0.7, 0.9], "none": []}


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def dots(ax):
    """Return (values, heights, marker, filling) of every set of dots."""
    lines = [line for line in ax.lines if line.get_marker() != "None"]
    return [(*line.get_data(), line.get_marker(), line.get_markerfacecolor()) for line in lines]


def ranges(ax):
    """Return (lowest, highest) of every line over a set."""
    return [tuple(path.vertices[:, 0]) for each in ax.collections for path in each.get_paths()]


def legend(ax):
    return [text.get_text() for each in ax.figure.legends for text in each.get_texts()]


def test_every_seed_has_a_dot_in_its_row_and_every_row_its_range():
    ax = plotting.plot_dots(LATE, xlabel="share")
    assert [list(values) for values, *_ in dots(ax)] == [[0.2, 0.5, 0.3], [1, 1]]
    for row, (_, heights, *_) in enumerate(dots(ax)):
        assert len(set(heights)) == len(heights) and all(abs(height - row) < 0.2 for height in heights)
    assert ranges(ax) == [(0.2, 0.5), (1, 1)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "second", "none"]
    assert ax.yaxis_inverted() and ax.get_xlabel() == "share" and legend(ax) == []


def test_means_are_of_the_filled_dots_and_look_like_them():
    ax = plotting.plot_dots({"a": [-0.5, -0.3], "b": []}, {"a": [0.1], "b": []})
    assert [text.get_text() for text in ax.texts] == ["mean", "−.4"]
    assert {text.get_color() for text in ax.texts} == {ax.lines[1].get_color()}


def test_a_single_value_is_no_mean():
    assert [text.get_text() for text in plotting.plot_dots({"a": [2.0], "b": [3.0]}).texts] == ["2", "3"]


def test_few_rows_have_their_mean_beside_them():
    assert [text.get_text() for text in plotting.plot_dots(LATE).texts] == ["mean", ".333", "1"]
    assert list(plotting.plot_dots({f"row {row}": [row] for row in range(13)}).texts) == []


def test_two_budgets_are_hollow_above_and_filled_below():
    ax = plotting.plot_dots(LATE, EARLY, budgets=("4 passes", "8 passes"))
    early, late = dots(ax)[:2]
    assert (list(early[0]), list(late[0])) == ([0.1, 0.1, 0.4], [0.2, 0.5, 0.3])
    assert max(early[1]) < 0 < min(late[1])  # the axis leads downwards
    assert early[2] != late[2] and early[3] == "white" != late[3]
    assert legend(ax) == ["4 passes", "8 passes"]
    assert [handle.get_marker() for handle in ax.figure.legends[0].legend_handles] == [early[2], late[2]]


def test_references_limits_and_the_marked_row_are_drawn():
    ax = plotting.plot_dots(LATE, reference={"guessing": 0.25}, limits=(0, 1), marked="second")
    assert [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "--"] == [[0.25, 0.25]]
    assert legend(ax) == ["guessing"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", ".5", "1"]
    assert ax.get_xlim()[0] < 0 and ax.get_xlim()[1] > 1
    (band,) = ax.patches
    assert (band.get_y(), band.get_height()) == (0.5, 1)
    assert [label.get_fontweight() for label in ax.get_yticklabels()] == ["normal", "bold", "normal"]


def test_panels_have_their_own_scales_and_one_legend():
    axes = plotting.plot_dots(
        {"loss": {"a": [0.002, 3], "b": [0.4]}, "right": {"a": [0.1], "b": [0.9]}},
        {"loss": {"a": [5], "b": [5]}, "right": {"a": [0.2], "b": [0.3]}},
        log=("loss",),
        limits={"right": (0, 1)},
        reference={"right": {"guessing": 0.5}},
    )
    assert [ax.get_title(loc="left") for ax in axes] == ["loss", "right"]
    assert [ax.get_xscale() for ax in axes] == ["log", "linear"]
    assert [sum(line.get_linestyle() == "--" for line in ax.lines) for ax in axes] == [0, 1]
    assert legend(axes[0]) == ["first", "second", "guessing"]
    assert all(list(ax.texts) == [] for ax in axes)  # there is no room for means


@pytest.mark.parametrize(
    ("values", "limits", "written"),
    [
        ([0.002, 3], None, [".01", ".1", "1"]),
        ([1e-9, 1e3], None, ["$10^{-9}$", "$10^{-5}$", ".1", "1,000"]),
        ([2.3, 2.4], None, ["1", "3"]),
        ([20, 30], (10, 40), ["10", "30"]),
    ],
)
def test_logarithmic_axes_have_two_to_four_plain_numbers(values, limits, written):
    ax = plotting.plot_dots({"a": values}, log=True, limits=limits)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == written
    assert limits is None or ax.get_xlim() == pytest.approx(limits)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({}, {}, r"rows must have the same names everywhere, at least one, got \[\[\]\]"),
        ({"x": {"a": [1]}, "y": {"b": [1]}}, {}, "rows must have the same names everywhere"),
        ({"a": [1]}, {"first": {"b": [1]}}, "rows must have the same names everywhere"),
        ({"x": {"a": [1]}}, {"first": {"y": {"a": [1]}}}, "rows must have the same names everywhere"),
        ({"a": [1]}, {"marked": "b"}, "marked must be one of 'a', got 'b'"),
        ({"a": [[1]]}, {}, "a must be an array with 1 axes, got shape"),
    ],
)
def test_what_cannot_be_drawn_is_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_dots(rows, **options)
