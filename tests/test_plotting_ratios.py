"""Ratios: a point for each candidate, its spread around it, on one logarithmic axis."""

from __future__ import annotations

import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

PANELS = {"training": {"theirs": (1.0, 1.0, 1.0), "ours": (1.5, 2.0, 3.0)}, "decoding": {"other": (0.4, 0.5, 0.7)}}


@pytest.fixture
def axes():
    axes = plotting.plot_ratios(PANELS, xlabel="times as fast")
    yield axes
    plotting.figure(axes, "closes it")


def test_points_lie_at_the_middle_and_whiskers_end_at_low_and_high(axes):
    for ax, rows in zip(axes, PANELS.values(), strict=True):
        points = [container[0].get_xydata()[0].tolist() for container in ax.containers]
        assert points == [[middle, row] for row, (_, middle, _) in enumerate(rows.values())]
        ends = [[cap.get_xdata()[0] for cap in container[1]] for container in ax.containers]
        for found, (low, _, high) in zip(ends, rows.values(), strict=True):
            assert found == pytest.approx([low, high])
        assert [note.get_text() for note in ax.texts] == [f"{middle:.2f}" for _, middle, _ in rows.values()]


def test_names_stand_from_top_to_bottom_beside_a_common_axis(axes):
    assert [[name.get_text() for name in ax.get_yticklabels()] for ax in axes] == [["theirs", "ours"], ["other"]]
    assert all(ax.get_ylim()[0] > ax.get_ylim()[1] for ax in axes)
    assert axes[0].get_xlim() == axes[1].get_xlim() and axes[0].get_xscale() == "log"
    assert axes[1].get_xlabel() == "times as fast" and set(axes[1].get_xticks()) == {0.5, 1, 2}
    assert [ax.get_title(loc="left") for ax in axes] == list(PANELS)


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        ({}, "at least one panel"),
        ({"a": {}}, "at least one panel"),
        ({"a": {"x": (2, 1, 3)}}, "low <= middle <= high"),
        ({"a": {"x": (0, 1, 3)}}, "low <= middle <= high"),
    ],
)
def test_bad_panels_are_refused(panels, message):
    with pytest.raises(ValueError, match=message):
        plotting.figure(plotting.plot_ratios(panels, xlabel="x"), "never drawn")
