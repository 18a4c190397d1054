"""A map in which nearly every cell is alike: these are grey, and the few odd ones stand out with their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .base import as_array
from .heatmaps import _token_axes
from .picture import SERIES, style

_GREY, _ODD, _INK = "#e6e6e6", SERIES[1], "#000000"
_MOST = 9  # odd cells, of which a reader still sees each


def plot_highlight(
    values: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    cells: Sequence[tuple[int, int]] | None = None,
    text: Callable[[float], str] = "{:g}".format,
    title: str | None = None,
) -> Axes:
    """Draw values [q_len, k_len] with a few cells in colour, each with its text; the others are grey, without.

    Args:
        k_tokens: by default the `q_tokens`.
        cells: the (row, column) of those in colour; by default all that differ from the commonest value.
        text: what a cell says of its value, such as ``"{:g} of 12".format``.

    Raises:
        ValueError: the shape does not fit the tokens, a cell lies outside, or not 1 to 9 cells are in colour.
    """
    grid = as_array("values", values, 2)
    odd = _odd_cells(grid, cells)
    ax = _token_axes("values", grid.shape, q_tokens, k_tokens, ax, title)
    rest = grid[~odd]
    with style():
        for row, column in np.argwhere(~odd):
            ax.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, color=_GREY, linewidth=0))
        for row, column in np.argwhere(odd):
            _point_out(ax, row, column, text(grid[row, column]))
            for label in (ax.get_yticklabels()[row], ax.get_xticklabels()[column]):
                label.set_fontweight("bold")
        ends = dict.fromkeys((text(rest.min()), text(rest.max())))
        ax.text(
            0, -0.03, f"grey: {' to '.join(ends)} ({len(rest)} of {grid.size} cells)", transform=ax.transAxes, va="top"
        )
        ax.set(xlim=(-0.5, grid.shape[1] - 0.5), ylim=(grid.shape[0] - 0.5, -0.5))
    return ax


def _odd_cells(grid: np.ndarray, cells: Sequence[tuple[int, int]] | None) -> np.ndarray:
    if cells is None:
        found, counts = np.unique(grid, return_counts=True)
        odd = grid != found[counts.argmax()]
    else:
        odd = np.zeros(grid.shape, dtype=bool)
        for row, column in cells:
            if not (0 <= row < grid.shape[0] and 0 <= column < grid.shape[1]):
                raise ValueError(f"cells must lie within {grid.shape}, got {(row, column)}")
            odd[row, column] = True
    if not 1 <= odd.sum() <= min(_MOST, grid.size - 1):
        raise ValueError(f"cells must be 1 to {_MOST} of several, so that each is seen, got {odd.sum()} of {grid.size}")
    return odd


def _point_out(ax: Axes, row: int, column: int, text: str) -> None:
    """Fill a cell; its text has a line break after the first word, since cells are narrow."""
    ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=_ODD, edgecolor="black", linewidth=1.5, zorder=3))
    look = {"ha": "center", "va": "center", "fontsize": 8.5, "fontweight": "bold", "zorder": 4, "linespacing": 1.0}
    ax.text(column, row, text.replace(" ", "\n", 1), color=_INK, **look)
