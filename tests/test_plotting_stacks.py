"""Stacked bars: parts lie end to end, in order, with their counts."""

from __future__ import annotations

import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast

PARTS = {"right": {"first": 3, "second": 0}, "wrong": {"first": 5, "second": 7}, "open": {"first": 2, "second": 1}}
COLOURS = {"right": "#9ecae1", "wrong": "#c1272d", "open": "#8c8c8c"}


@pytest.fixture
def ax():
    ax = plotting.plot_stacks(PARTS, colours=COLOURS, xlabel="claims", title="All")
    yield ax
    plotting.figure(ax, "closes it")


def test_parts_lie_end_to_end(ax):
    bars = [[(bar.get_x(), bar.get_width()) for bar in container] for container in ax.containers]
    assert bars == [[(0, 3), (0, 0)], [(3, 5), (0, 7)], [(8, 2), (7, 1)]]
    assert [name.get_text() for name in ax.get_yticklabels()] == ["first", "second"]
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_title()) == ("claims", "All")


def test_counts_stand_in_the_middle_of_their_part_in_readable_ink(ax):
    written = [(note.get_text(), note.get_position(), note.get_color()) for note in ax.texts]
    assert written == [
        ("3", (1.5, 0), "#000"),
        ("5", (5.5, 0), "#fff"),
        ("7", (3.5, 1), "#fff"),
        ("2", (9.0, 0), "#000"),
        ("1", (7.5, 1), "#000"),
    ]


def test_series_differ_in_more_than_colour(ax):
    assert len({container[0].get_hatch() for container in ax.containers}) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(PARTS)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"a": {"x": 1}, "b": {"y": 1}}, "scores must have the groups"),
        ({"a": {"x": -1}}, "parts must not be negative"),
        ({}, "at least one named series"),
    ],
)
def test_bad_parts_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_stacks(parts, colours={"a": "#000000", "b": "#000000"}, xlabel="x")
