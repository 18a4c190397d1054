"""Steps until a goal is reached: every run has its mark, and a stopped one is told apart."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting


@pytest.fixture
def axes():
    panels = {
        "slow": {"a": [10, None, 30], "b": [90, 80, 70]},
        "fast": {"a": [1, 2, 3], "b": [None, None, None]},
    }
    found = plotting.plot_reached(panels, limit=90, xlabel="steps")
    yield found
    plt.close(found[0].figure)


def marks(ax):
    """Return (steps, height, marker) of each run."""
    lines = [line for line in ax.get_lines() if line.get_marker() in ("o", ">")]
    return [(line.get_xdata()[0], line.get_ydata()[0], line.get_marker()) for line in lines]


def test_every_run_has_its_mark(axes):
    slow, fast = (marks(ax) for ax in axes)
    assert [steps for steps, _, _ in slow] == [10, 90, 30, 90, 80, 70]
    assert [marker for _, _, marker in slow] == ["o", ">", "o", "o", "o", "o"]
    assert [(steps, marker) for steps, _, marker in fast[3:]] == [(90, ">")] * 3
    assert [round(height) for _, height, _ in slow] == [0, 0, 0, 1, 1, 1]
    assert len({height for _, height, _ in slow}) == 6


def test_rows_titles_and_axis_are_named(axes):
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "b"]
    assert [ax.get_title(loc="left") for ax in axes] == ["slow", "fast"]
    assert axes[0].get_xlim()[1] > 90
    assert list(axes[0].get_xticks()) == [0, 30, 60, 90]
    [legend] = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "a run that reached the goal",
        "a run stopped after 90 steps",
    ]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="panels must hold at least one panel, all with the same names"):
        plotting.plot_reached({}, limit=3, xlabel="steps")
    with pytest.raises(ValueError, match="panels must hold at least one panel, all with the same names"):
        plotting.plot_reached({"a": {"x": [1]}, "b": {"y": [1]}}, limit=3, xlabel="steps")
    with pytest.raises(ValueError, match="steps must be at most the limit 3, got 4"):
        plotting.plot_reached({"a": {"x": [4]}}, limit=3, xlabel="steps")
    plt.close("all")
