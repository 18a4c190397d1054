"""Frames around cells of a map."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.patches import Rectangle

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plotting.plot_scores(torch.arange(15.0).reshape(3, 5), list("abc"), list("vwxyz"))


def frames(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle) and not patch.get_fill()]


def test_each_cell_has_a_frame_around_it(ax):
    assert plotting.outline_cells(ax, [(0, 4), (2, 1)]) is ax
    found = [(*frame.get_xy(), frame.get_width(), frame.get_height()) for frame in frames(ax)]
    assert found == [(3.5, -0.5, 1, 1), (0.5, 1.5, 1, 1)]


def test_no_cells_no_frames(ax):
    assert not frames(plotting.outline_cells(ax, []))


@pytest.mark.parametrize("cell", [(3, 0), (0, 5), (-1, 0)])
def test_a_cell_lies_within_the_map(ax, cell):
    with pytest.raises(ValueError, match=r"cells must lie within \(3, 5\), got"):
        plotting.outline_cells(ax, [cell])


def test_there_must_be_a_map():
    with pytest.raises(ValueError, match="ax must show a map"):
        plotting.outline_cells(plt.subplots()[1], [(0, 0)])
