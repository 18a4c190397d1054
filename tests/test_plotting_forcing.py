"""Training beside writing: what each row reads, what it says, and where that goes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures.plotting import plot_forcing

pytestmark = pytest.mark.fast

TARGET = ["<bos>", "not", "on", "your", "life", "<eos>"]
SAID = ["not", "on", "the", "money", "<eos>"]


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def rows(ax, n):
    """Return, for each row, the words in its boxes from left to right."""
    found = [[] for _ in range(n)]
    words = [text for text in ax.texts if text.get_ha() == "center" and text.get_text()]
    for text in sorted(words, key=lambda text: text.get_position()):
        found[round(text.get_position()[1])].append(text.get_text())
    return found


def boxes(ax):
    """Return {(column, row): box} of the words."""
    small = [patch for patch in ax.patches if patch.get_bbox().width < 1]
    return {(round(box.get_bbox().x0 + 0.42), round((box.get_bbox().y0 + box.get_bbox().y1) / 2)): box for box in small}


def test_a_row_has_what_it_reads_and_then_what_it_says():
    training, writing = plot_forcing(TARGET, SAID)
    assert rows(training, 5) == [TARGET[: t + 2] for t in range(5)]
    assert rows(writing, 5) == [["<bos>", *SAID][: t + 2] for t in range(5)]
    for ax in (training, writing):
        dashed = {place for place, box in boxes(ax).items() if box.get_linestyle() == "--"}
        assert dashed == {(t + 1, t) for t in range(5)}


def test_only_words_that_differ_from_the_target_have_a_thick_frame():
    training, writing = plot_forcing(TARGET, SAID)
    thick = [{place for place, box in boxes(ax).items() if box.get_linewidth() > 1.5} for ax in (training, writing)]
    assert thick == [set(), {(3, 3), (3, 4), (4, 4)}]


def test_what_is_said_goes_down_into_the_next_pass_when_writing():
    training, writing = plot_forcing(TARGET, SAID)
    arrows = [text for text in writing.texts if text.get_text() == ""]
    assert [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows] == [(t + 1, t + 1) for t in range(4)]
    assert all(arrow.xyann[1] < arrow.xy[1] for arrow in arrows)
    assert not [text for text in training.texts if text.get_text() == ""]
    assert [text.get_text() for text in writing.texts if text.get_text().startswith("pass")] == [
        f"pass {n}" for n in range(1, 6)
    ]
    assert len([patch for patch in training.patches if patch.get_bbox().width > 1]) == 1  # one frame around all rows


@pytest.mark.parametrize("n", [3, 7])
def test_short_and_long_sentences_fit(n):
    axes = plot_forcing(["a"] * n, ["a"] * (n - 1))
    for ax in axes:
        left, right = ax.get_xlim()
        assert all(left < box.get_bbox().x0 and box.get_bbox().x1 < right for box in ax.patches)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="said must have a word for each of 5 steps, got 4"):
        plot_forcing(TARGET, SAID[:4])
    for n in (2, 8):
        with pytest.raises(ValueError, match=f"number of tokens in target must be between 3 and 7 .* got {n}"):
            plot_forcing(["a"] * n, ["a"] * (n - 1))
