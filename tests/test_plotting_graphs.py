"""The recorded graph: a box for each node, right of its parents, and arrows back where gradients are given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from transformer_lib.course.figures import plotting
from transformer_lib.course.lab import tape
from transformer_lib.course.lab.tape import Node

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def recorded():
    x, W = Node([[1.0, -2.0]]), Node([[3.0], [0.5]])
    y = x @ W
    return {"x": x, "W": W, "y": y, "L": y.sum()}


def texts(ax):
    return {text.get_text(): text for text in ax.texts if text.get_text()}


def test_every_node_is_written_with_its_value_to_the_right_of_its_parents():
    ax = plotting.plot_graph(recorded())
    found = texts(ax)
    assert set(found) == {"x\n(1, −2)", "W\n(3)\n(0.5)", "y\n(2)", "L\n2"}
    columns = {words[0]: text.get_position()[0] for words, text in found.items()}
    assert columns["x"] == columns["W"] < columns["y"] < columns["L"]
    assert sum(text.arrow_patch is not None for text in ax.texts if hasattr(text, "arrow_patch")) == 3


def test_gradients_are_written_below_and_arrows_lead_back():
    nodes = recorded()
    ax = plotting.plot_graph(nodes, tape.walk_back(nodes["L"]))
    assert {"gradient\n(3, 0.5)", "gradient\n(1)\n(−2)", "gradient\n1"} <= set(texts(ax))
    arrows = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 6


def test_what_is_missing_is_named():
    nodes = recorded()
    with pytest.raises(ValueError, match="nodes must hold at least one named node, got none"):
        plotting.plot_graph({})
    with pytest.raises(ValueError, match="nodes must name every parent, got 'y' without one of its parents"):
        plotting.plot_graph({name: node for name, node in nodes.items() if name != "W"})
    with pytest.raises(ValueError, match="gradients must have one for each node, got none for 'x'"):
        plotting.plot_graph(nodes, {})
