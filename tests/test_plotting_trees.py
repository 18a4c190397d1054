"""The search tree: every path is drawn from its prefix, kept ones look different, and leaves do not overlap."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting
from transformer_lib.course.figures.plotting import trees

pytestmark = pytest.mark.fast

PATHS = {("a",): 0.6, ("b",): 0.4, ("a", "c"): 0.3, ("a", "d"): 0.2, ("a", "e"): 0.1, ("b", "c"): 0.36}
KEPT = {("a",), ("b",), ("a", "c"), ("b", "c")}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_every_node_is_written_with_its_probability_and_joined_to_its_prefix():
    ax = plotting.plot_tree(PATHS, KEPT, title="two beams")
    texts = {text.get_text(): text.get_position() for text in ax.texts}
    assert set(texts) == {"<bos>", *(f"{path[-1]}  {p:.2f}" for path, p in PATHS.items())}
    assert texts["c  0.36"] == (2, texts["b  0.40"][1])  # an only child stands beside its parent
    assert texts["a  0.60"][1] == (texts["c  0.30"][1] + texts["e  0.10"][1]) / 2
    assert len(ax.lines) == len(PATHS)
    assert ax.get_title() == "two beams"


def test_kept_paths_are_solid_and_the_best_is_widest():
    ax = plotting.plot_tree(PATHS, KEPT, best=("b", "c"))
    look = {path: line for path, line in zip(PATHS, ax.lines, strict=True)}
    assert {path for path, line in look.items() if line.get_linestyle() == "-"} == KEPT
    widest = max(line.get_linewidth() for line in ax.lines)
    assert {path for path, line in look.items() if line.get_linewidth() == widest} == {("b",), ("b", "c")}
    assert look[("b",)].get_color() != look[("a",)].get_color() != look[("a", "d")].get_color()


def test_no_two_leaves_share_a_height():
    heights = trees._heights(list(PATHS))
    leaves = [height for path, height in heights.items() if len(path) == 2]
    assert sorted(leaves) == [-3.0, -2.0, -1.0, 0.0]


def test_a_tree_can_be_drawn_into_given_axes():
    _, ax = plt.subplots()
    assert plotting.plot_tree({("a",): 1.0}, {("a",)}, ax) is ax


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ({}, "probabilities must hold at least one path, got none"),
        ({("a",): 0.5, ("b", "c"): 0.2}, r"prefix of every path, got \('b', 'c'\) without \('b',\)"),
    ],
)
def test_what_is_no_tree_is_refused(paths, message):
    with pytest.raises(ValueError, match=message):
        plotting.plot_tree(paths, set())
