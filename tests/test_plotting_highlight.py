"""A map of cells that are all alike but a few: only these have colour and text."""

from __future__ import annotations

import matplotlib.colors
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer_lib.course.figures import plotting
from transformer_lib.course.figures.plotting.base import ink

pytestmark = pytest.mark.fast

QUERIES, KEYS = ["the", "cat", "the"], list("vwxyz")


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def filled(ax):
    """Return {colour: middles of the cells}."""
    cells: dict[str, set[tuple[float, float]]] = {}
    for patch in ax.patches:
        middle = patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2
        cells.setdefault(matplotlib.colors.to_hex(patch.get_facecolor()), set()).add(tuple(np.round(middle, 6)))
    return cells


def bold(labels):
    return [label.get_text() for label in labels if label.get_fontweight() == "bold"]


def test_the_odd_cell_is_found_coloured_and_named():
    values = torch.full((3, 5), 12.0)
    values[1, 4] = 6
    ax = plotting.plot_highlight(values, QUERIES, KEYS, text="{:g} of 12".format, title="right senses")
    rest, odd = sorted(filled(ax).values(), key=len, reverse=True)
    assert odd == {(4, 1)} and len(rest) == 14 and not odd & rest
    assert [text.get_text() for text in ax.texts] == ["6\nof 12", "grey: 12 of 12 (14 of 15 cells)"]
    assert ax.texts[0].get_position() == (4, 1)
    assert (bold(ax.get_yticklabels()), bold(ax.get_xticklabels())) == (["cat"], ["z"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["the₁", "cat", "the₂"]
    assert ax.yaxis_inverted() and ax.get_title() == "right senses"


def test_named_cells_stand_out_among_unequal_ones():
    values = np.linspace(0.9, 1, 15).reshape(3, 5)
    ax = plotting.plot_highlight(values, QUERIES, KEYS, cells=[(0, 0), (2, 3)], text="{:.2f}".format)
    assert min(filled(ax).values(), key=len) == {(0, 0), (3, 2)}
    assert [text.get_text() for text in ax.texts] == ["0.90", "0.99", "grey: 0.91 to 1.00 (13 of 15 cells)"]


def test_text_can_be_read_on_its_cell():
    values = np.eye(3)[:2]
    ax = plotting.plot_highlight(values, QUERIES[:2], KEYS[:3], cells=[(0, 0)])
    odd = min(filled(ax), key=lambda colour: len(filled(ax)[colour]))
    assert matplotlib.colors.to_hex(ax.texts[0].get_color()) == matplotlib.colors.to_hex(
        ink(*matplotlib.colors.to_rgb(odd))
    )


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.ones((3, 5)), {}, "cells must be 1 to 9 of several, so that each is seen, got 0 of 15"),
        (np.arange(15.0).reshape(3, 5), {}, "got 14 of 15"),
        (np.ones((3, 5)), {"cells": [(3, 0)]}, r"cells must lie within \(3, 5\), got \(3, 0\)"),
        (np.ones((3, 5)), {"cells": [(0, -1)]}, r"cells must lie within \(3, 5\), got \(0, -1\)"),
        (np.ones((3, 5)), {"cells": [(0, 0), (-1, 0)]}, r"cells must lie within \(3, 5\), got \(-1, 0\)"),
        (np.eye(5)[:1], {}, r"values must have shape \(3, 5\) for these tokens, got \(1, 5\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_highlight(values, QUERIES, KEYS, **options)
