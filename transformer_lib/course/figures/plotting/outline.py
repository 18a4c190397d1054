"""A frame around the cells of a map that the text speaks of."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

_FRAME = {"fill": False, "edgecolor": "#D55E00", "linewidth": 2.2, "zorder": 3, "clip_on": False}


def outline_cells(ax: Axes, cells: Iterable[tuple[int, int]]) -> Axes:
    """Draw a frame around each of these cells, (row, column) from 0, of a map such as that of `plot_scores`.

    Raises:
        ValueError: there is no map, or a cell lies outside it.
    """
    if not ax.images:
        raise ValueError("ax must show a map, such as that of plot_scores, got none")
    height, width = ax.images[0].get_array().shape[:2]
    for row, column in cells:
        if not (0 <= row < height and 0 <= column < width):
            raise ValueError(f"cells must lie within {(height, width)}, got {(row, column)}")
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **_FRAME))
    return ax
