"""Fast and slow memory: what is drawn of each way, how wide its arrows are, and what is refused."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures.plotting import plot_trips
from transformer_lib.course.figures.plotting.trips import short

pytestmark = pytest.mark.fast

WAYS = {"whole": {"Q": (7e6, 0), "S": (11e8, 13e8)}, "blocks": {"Q": (7e6, 0), "Z": (0, 5e6)}}


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def arrows(ax):
    return [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None) is not None]


def test_each_way_has_its_matrices_and_an_arrow_for_each_move():
    whole, blocks = plot_trips(WAYS)
    said = [[text.get_text() for text in ax.texts if text.get_text()] for ax in (whole, blocks)]
    assert {"Q", "S", "7.0 M", "1,100 M", "1,300 M"} <= set(said[0]) and {"Q", "Z", "5.0 M"} <= set(said[1])
    assert (len(arrows(whole)), len(arrows(blocks))) == (3, 2)
    assert [ax.get_title(loc="left") for ax in (whole, blocks)] == ["whole", "blocks"]


def test_more_numbers_make_a_wider_arrow_and_those_written_are_dashed():
    whole, blocks = plot_trips(WAYS)
    read, read_again, written = (arrow.get_linewidth() for arrow in arrows(whole))
    assert read < read_again < written == 6
    assert [arrow.get_linestyle() for arrow in arrows(blocks)] == ["solid", "--"]


def test_what_is_at_work_is_written_into_its_fast_memory():
    whole, blocks = plot_trips(WAYS, working={"blocks": "one block"})
    assert "one block" in [text.get_text() for text in blocks.texts]
    assert "one block" not in [text.get_text() for text in whole.texts]


@pytest.mark.parametrize(("count", "text"), [(31, "31"), (6.4e6, "6.4 M"), (1.254e9, "1,254 M"), (99_999, "99,999")])
def test_counts_are_short(count, text):
    assert short(count) == text


@pytest.mark.parametrize(
    ("ways", "message"),
    [
        ({}, "the number of ways"),
        ({"none": {}}, "the number of matrices of 'none'"),
        ({"odd": {"Q": (-1, 0)}}, "no negative numbers, got -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ways, message):
    with pytest.raises(ValueError, match=message):
        plot_trips(ways)
