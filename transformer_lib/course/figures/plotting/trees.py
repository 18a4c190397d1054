"""A search tree: prefixes of a sentence, each extending the one before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.text import Text

from .picture import FULL_WIDTH, SERIES, new_axes, style

Path = tuple[str, ...]


def plot_tree(
    probabilities: Mapping[Path, float],
    kept: Collection[Path],
    ax: Axes | None = None,
    *,
    best: Path = (),
    root: str = "<bos>",
    title: str | None = None,
) -> Axes:
    """Draw the tree of {("ask", "my"): 0.2, …}: one column per token, and at each node the path's probability.

    Args:
        probabilities: of every path; the prefix of every path must be there too (the empty one is `root`).
        kept: the paths that the search went on with (solid); the others are dashed and grey.
        best: the path to draw in another colour, wider.
    Raises:
        ValueError: no paths, or one whose prefix is missing.
    """
    if not probabilities:
        raise ValueError("probabilities must hold at least one path, got none")
    for path in probabilities:
        if path[:-1] and path[:-1] not in probabilities:
            raise ValueError(f"probabilities must hold the prefix of every path, got {path} without {path[:-1]}")
    heights = _heights(list(probabilities))
    with style():
        leaves = sum(1 for path in heights if not _children(path, heights))
        ax = new_axes(ax, (FULL_WIDTH, 0.7 + 0.5 * leaves))
        ax.set(xlim=(-0.05, max(map(len, heights)) + 0.8), ylim=(-leaves + 0.4, 0.6), title=title or "")
        ax.set_axis_off()
        looks = {path: _look(path, kept, best) for path in probabilities}
        labels = {(): ax.text(0, heights[()], root, va="center", ha="left")}
        for path, probability in probabilities.items():
            label = f"{path[-1]}  {probability:.2f}"
            labels[path] = ax.text(len(path), heights[path], label, color=looks[path]["color"], va="center")
        ends = _right_ends(ax, labels)
        for path, look in looks.items():
            x = [ends[path[:-1]] + 0.05, len(path) - 0.05]
            ax.plot(x, [heights[path[:-1]], heights[path]], **look)
    return ax


def _look(path: Path, kept: Collection[Path], best: Path) -> dict[str, Any]:
    """Return how the line to a node is drawn."""
    on_best = best[: len(path)] == path
    colour = SERIES[1] if on_best else SERIES[0] if path in kept else "#767676"
    return {"color": colour, "linestyle": "-" if path in kept else "--", "linewidth": 2.6 if on_best else 1.3}


def _right_ends(ax: Axes, labels: Mapping[Path, Text]) -> dict[Path, float]:
    """Return where each label ends, in data coordinates, so that no line crosses one."""
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]  # lays the axes out
    back = ax.transData.inverted()
    return {path: float(back.transform(label.get_window_extent())[1, 0]) for path, label in labels.items()}


def _children(path: Path, paths: Collection[Path]) -> list[Path]:
    return [other for other in paths if len(other) == len(path) + 1 and other[: len(path)] == path]


def _heights(paths: list[Path]) -> dict[Path, float]:
    """Return the height of each path: leaves one below the other from 0 down, a prefix midway between its children."""
    heights: dict[Path, float] = {}
    leaves = 0

    def place(path: Path) -> float:
        nonlocal leaves
        below = [place(child) for child in _children(path, paths)]
        if below:
            heights[path] = (below[0] + below[-1]) / 2
        else:
            heights[path] = -float(leaves)
            leaves += 1
        return heights[path]

    place(())
    return heights
