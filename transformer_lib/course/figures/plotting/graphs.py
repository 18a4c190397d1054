"""A recorded computation as a graph: a box for each array, with its value and, on the way back, its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .base import as_array
from .picture import FULL_WIDTH, SERIES, new_axes, style

_FORWARD = {"arrowstyle": "-|>", "color": "#767676", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
_BACK = {**_FORWARD, "color": SERIES[1], "linewidth": 1.8, "linestyle": "--"}


def plot_graph(nodes: Mapping[str, Any], gradients: Mapping[Any, Any] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the nodes {name: node}, each to the right of what it was made from.

    Args:
        nodes: objects with a `value`, of two axes at most, and `made_from`, pairs of a node and a rule.
        gradients: {node: its gradient}, written below the value; dashed arrows then run back along the graph.

    Raises:
        ValueError: there is no node, one was made from a node without a name, or one has no gradient.
    """
    if not nodes:
        raise ValueError("nodes must hold at least one named node, got none")
    names = {node: name for name, node in nodes.items()}
    for name, node in nodes.items():
        if any(parent not in names for parent, _ in node.made_from):
            raise ValueError(f"nodes must name every parent, got {name!r} without one of its parents")
        if gradients is not None and node not in gradients:
            raise ValueError(f"gradients must have one for each node, got none for {name!r}")
    places = _places(nodes)
    columns = 1 + max(x for x, _ in places.values())
    rows = 1 + max(y for _, y in places.values())
    with style():
        ax = new_axes(ax, (FULL_WIDTH, 0.4 + (0.95 if gradients is None else 1.35) * rows))
        ax.set(xlim=(-0.55, columns - 0.45), ylim=(0.4 - rows if gradients is None else 0.15 - rows, 0.45))
        ax.set_axis_off()
        boxes = {node: _box(ax, name, node, gradients, places[node]) for name, node in nodes.items()}
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]  # lays the boxes out
        ends = {node: _sides(ax, box) for node, box in boxes.items()}
        for node in nodes.values():
            for parent, _ in node.made_from:
                _arrows(ax, ends[parent], ends[node], gradients is not None)
    return ax


def _places(nodes: Mapping[str, Any]) -> dict[Any, tuple[float, float]]:
    """Return (column, minus row) of each node: the column follows the longest way from an input."""
    column: dict[Any, int] = {}

    def of(node: Any) -> int:
        if node not in column:
            column[node] = 1 + max((of(parent) for parent, _ in node.made_from), default=-1)
        return column[node]

    for node in nodes.values():
        of(node)
    used = {
        node: min((column[other] for other in nodes.values() if _uses(other, node)), default=None) for node in column
    }
    for node in nodes.values():  # an input stands just before its first use
        if not node.made_from and used[node] is not None:
            column[node] = used[node] - 1
    count: dict[int, int] = {}
    places = {}
    for node in sorted(nodes.values(), key=lambda node: not node.made_from):  # what was computed is in the first row
        row = count.get(column[node], 0)
        count[column[node]] = row + 1
        places[node] = column[node], row
    return places


def _uses(node: Any, parent: Any) -> bool:
    return any(other is parent for other, _ in node.made_from)


def _box(ax: Axes, name: str, node: Any, gradients: Mapping[Any, Any] | None, place: tuple[float, float]) -> Any:
    x, row = place
    words = f"{name}\n{_written(node.value)}"
    look = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#767676"}
    box = ax.text(x, -row, words, ha="center", va="center", fontsize=9, bbox=look, zorder=3, linespacing=1.2)
    if gradients is not None:
        below = {"xycoords": box, "xytext": (0, -6), "textcoords": "offset points", "ha": "center", "va": "top"}
        look = {"fontsize": 9, "color": SERIES[1], "fontweight": "bold", "zorder": 4, "linespacing": 1.2}
        ax.annotate(f"gradient\n{_written(gradients[node])}", (0.5, 0), **below, **look)
    return box


def _written(value: Any) -> str:
    """Return a number, or the rows of an array one below the other, with three digits at most."""
    array = as_array("value", value, 0, 1, 2)
    if not array.ndim:
        return _number(array)
    rows = np.atleast_2d(array)
    return "\n".join("(" + ", ".join(map(_number, row)) + ")" for row in rows)


def _number(value: Any) -> str:
    return f"{float(value) + 0:.3g}".replace("-", "−")


def _sides(ax: Axes, box: Any) -> tuple[float, float, float, float]:
    """Return (left, right, bottom, top) of a box in data coordinates."""
    window = box.get_bbox_patch().get_window_extent()
    (left, bottom), (right, top) = ax.transData.inverted().transform([(window.x0, window.y0), (window.x1, window.y1)])
    return left, right, bottom, top


def _arrows(ax: Axes, parent: tuple[float, ...], node: tuple[float, ...], back: bool) -> None:
    (start, low, high), (end, bottom, top) = parent[1:], (node[0], *node[2:])
    apart = 0.2 if back else 0.0  # of a box's height, to each side of its middle
    y, z = (low + high) / 2, (bottom + top) / 2
    ax.annotate("", (end, z + apart * (top - bottom)), (start, y + apart * (high - low)), arrowprops=_FORWARD)
    if back:
        ax.annotate("", (start, y - apart * (high - low)), (end, z - apart * (top - bottom)), arrowprops=_BACK)
