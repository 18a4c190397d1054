"""Small multiples: a panel for each, in rows, labelled once, under one legend."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    plt.close("all")


def lines(values, ax):
    plotting.plot_lines(values, ax, xlabel="step", ylabel="loss", markers=False)


def test_every_panel_is_drawn_on_its_own_axes_under_its_title():
    panels = {name: {"a": [level, 2], "b": [3, 4]} for level, name in enumerate("vwxyz")}
    axes = plotting.plot_each(panels, lines, columns=3, height=2.5)
    assert [ax.get_title() for ax in axes] == list("vwxyz")
    assert [ax.lines[0].get_ydata()[0] for ax in axes] == [0, 1, 2, 3, 4]
    figure = axes[0].figure
    assert [ax.axison for ax in figure.axes] == [True] * 5 + [False]
    assert figure.get_figheight() == 5
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert all(ax.get_legend() is None for ax in axes)


def test_legends_that_differ_are_kept():
    axes = plotting.plot_each({"x": {"a": [1, 2], "b": [3, 4]}, "y": {"a": [1, 2], "c": [3, 4]}}, lines)
    assert axes[0].figure.legends == [] and all(ax.get_legend() for ax in axes)


def test_shared_axes_are_labelled_once():
    panels = {"x": {"a": [1, 2]}, "y": {"a": [30, 40]}, "z": {"a": [5, 6]}}
    axes = plotting.plot_each(panels, lines, share=True)
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert [ax.get_ylabel() for ax in axes] == ["loss", "", "loss"]
    assert [ax.get_xlabel() for ax in axes] == ["", "step", "step"]
    apart = plotting.plot_each(panels, lines)
    assert len({ax.get_ylim() for ax in apart}) == 3 and all(ax.get_xlabel() == "step" for ax in apart)


def test_there_must_be_a_panel():
    with pytest.raises(ValueError, match="panels must hold at least one panel, got none"):
        plotting.plot_each({}, lines)
