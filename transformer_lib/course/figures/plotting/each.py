"""Small multiples: the same kind of picture for each of several things, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .curves import said_once
from .picture import FULL_WIDTH, style

Shown = TypeVar("Shown")


def plot_each(
    panels: Mapping[str, Shown],
    draw: Callable[[Shown, Axes], Any],
    *,
    columns: int = 2,
    height: float = 2.8,
    share: bool = False,
) -> np.ndarray:
    """Draw panels {title: what is shown} with `draw(what is shown, ax)`; returns the Axes, one for each.

    Args:
        draw: such as ``lambda lines, ax: tl.plotting.plot_lines(lines, ax, xlabel="step", ylabel="loss")``.
        columns: panels in a row. height: of a row, in inches.
        share: whether all panels have the same axes, which then are labelled once.

    A legend that all panels share is shown once, below them. Raises ValueError when there is no panel.
    """
    if not panels:
        raise ValueError("panels must hold at least one panel, got none")
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with style():
        size = (FULL_WIDTH, rows * height)
        look = {"sharex": share, "sharey": share, "squeeze": False, "layout": "constrained"}
        _, grid = plt.subplots(rows, columns, figsize=size, **look)
        axes = grid.ravel()[: len(panels)]
        for ax, (title, shown) in zip(axes, panels.items(), strict=True):
            draw(shown, ax)
            ax.set_title(title)
        for unused in grid.ravel()[len(panels) :]:
            unused.set_axis_off()
        if share:
            _label_once(axes, columns)
        _one_legend(axes)
    return axes


def _label_once(axes: np.ndarray, columns: int) -> None:
    """Keep the labels at the left, and below each column's last panel."""
    for index, ax in enumerate(axes):
        if index % columns:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        last = index + columns >= len(axes)
        ax.tick_params(labelbottom=last)
        if not last:
            ax.set_xlabel("")


def _one_legend(axes: np.ndarray) -> None:
    legends = [ax.get_legend() for ax in axes]
    names = [[text.get_text() for text in legend.get_texts()] if legend else [] for legend in legends]
    if not names[0] or any(other != names[0] for other in names):
        return
    handles = legends[0].legend_handles
    for legend in legends:
        legend.remove()
    short, shared = said_once(names[0])
    look = {"loc": "outside lower center", "ncols": min(4, len(names[0]))}
    axes[0].figure.legend(handles, short, title=shared, **look)
