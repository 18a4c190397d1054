"""Words in a plane: directions only, a line for each pair, and names where they are asked for."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer_lib.course.figures.plotting import figure, plot_partners

pytestmark = pytest.mark.fast

PAIRS = [("see", "saw"), ("draw", "drew"), ("find", "found")]
ROWS = np.random.default_rng(5).standard_normal((6, 7))
KINDS = ("base form", "past form")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(ax):
    return [line.get_xydata() for line in ax.lines if line.get_marker() in ("None", "")]


def test_partners_are_joined_and_named():
    first, second = plot_partners({"one": ROWS, "two": 2 * ROWS}, PAIRS, kinds=KINDS, labelled=["saw", "find"])
    assert len(lines(first)) == 3 and {text.get_text() for text in first.texts} == {"saw", "find"}
    for one, two in zip(lines(first), lines(second), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)  # lengths do not count
    assert [text.get_text() for text in first.figure.legends[0].get_texts()] == [*KINDS, "partners"]


def test_the_plane_is_that_of_the_largest_spread():
    flat = np.zeros((6, 5))
    angles = np.array([0.1, 0.9, 2.0, 2.5, 4.0, 5.5])
    flat[:, 1], flat[:, 3] = np.cos(angles), np.sin(angles)
    [ax] = plot_partners({"flat": torch.tensor(flat)}, PAIRS, kinds=KINDS)
    drawn = np.concatenate(lines(ax))
    gaps = np.linalg.norm(drawn[:, None] - drawn, axis=-1)
    np.testing.assert_allclose(gaps, np.linalg.norm(flat[:, None] - flat, axis=-1), atol=1e-9)
    assert figure(ax, "Six words in a plane.").html


@pytest.mark.parametrize(
    ("panels", "pairs", "labelled", "message"),
    [
        ({}, PAIRS, (), "panels and partners must hold at least one each, got 0 and 3"),
        ({"one": ROWS}, [], (), "panels and partners must hold at least one each, got 1 and 0"),
        ({"one": ROWS[:5]}, PAIRS, (), r"'one' must have a row for each of 6 words, got shape \(5, 7\)"),
        ({"one": ROWS}, PAIRS, ("seen",), "labelled must be among the partners, got seen"),
    ],
)
def test_what_does_not_fit_is_named(panels, pairs, labelled, message):
    with pytest.raises(ValueError, match=message):
        plot_partners(panels, pairs, kinds=KINDS, labelled=labelled)
