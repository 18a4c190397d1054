"""The translator of the ladder: every rung has its part, and those already learned are in colour."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting
from transformer_lib.course.lab.ladder import RUNGS

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def outlines(ax):
    """Return {rung: the outlines of its boxes}; each box holds the number that is written in it."""
    numbers = {text.get_position(): text.get_text() for text in ax.texts if re.fullmatch(r"\d\d", text.get_text())}
    found: dict[str, set[str]] = {}
    for box in ax.patches:
        x, y, width, height = box.get_bbox().bounds
        [rung] = [rung for (a, b), rung in numbers.items() if x < a < x + width and y < b < y + height]
        found.setdefault(rung, set()).add(box.get_linestyle())
    return found


def test_every_rung_has_a_part():
    assert set(outlines(plotting.plot_translator("02"))) == {rung.id for rung in RUNGS}


@pytest.mark.parametrize("reached", ["02", "07", "14"])
def test_what_is_to_come_is_dashed(reached):
    for rung, looks in outlines(plotting.plot_translator(reached)).items():
        assert looks == ({"-"} if rung <= reached else {"--"}), rung


def test_boxes_and_words_do_not_cover_each_other():
    ax = plotting.plot_translator("14")
    ax.figure.draw_without_rendering()
    boxes = [box.get_window_extent() for box in ax.patches]
    texts = [text.get_window_extent() for text in ax.texts if text.get_text()]
    assert all(not a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(not a.overlaps(b) for i, a in enumerate(texts) for b in texts[:i])
    for text in texts:
        assert all(not box.overlaps(text) or (box.x0 <= text.x0 and text.x1 <= box.x1) for box in boxes)
