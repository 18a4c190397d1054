"""Curves, or points, in several panels side by side, under one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from .base import as_array
from .curves import plot_curves, said_once
from .picture import FULL_WIDTH, SERIES, style

_SHAPES = "o^sDv*P"


def plot_panels(
    panels: Mapping[str, Mapping[str, Any]],
    *,
    ylabel: str = "",
    xlabel: str = "step",
    log_x: bool = False,
    log_y: bool = False,
    share_y: bool = False,
) -> np.ndarray:
    """Draw panels {title: runs} side by side, each like `plot_curves`, with one legend below; returns the Axes.

    All panels show the same names in the same order. Only the first panel has the `ylabel`. Raises ValueError when
    there is no panel, or when the panels do not share their names.
    """
    names = _shared_names(panels)
    with style():
        figure, axes = plt.subplots(
            1, len(panels), figsize=(FULL_WIDTH, 3.2), sharey=share_y, squeeze=False, layout="constrained"
        )
        for ax, (title, runs) in zip(axes[0], panels.items(), strict=True):
            words = {"ylabel": ylabel if ax is axes[0, 0] else "", "xlabel": xlabel, "title": title}
            plot_curves(runs, ax=ax, log_x=log_x, log_y=log_y, **words)
            if ax.get_legend() is not None:
                ax.get_legend().remove()
        if len(names) > 1:
            handles, labels = axes[0, 0].get_legend_handles_labels()
            short, shared = said_once(labels)
            figure.legend(handles, short, title=shared, loc="outside lower center", ncols=2)
    return axes[0]


def plot_points(panels: Mapping[str, Any], kinds: Sequence[str]) -> np.ndarray:
    """Draw panels {title: points [n, 2]} side by side, the marks by the kind of each point; returns the Axes.

    The legend below lists the kinds in the order in which they occur. Raises ValueError when there is no panel, or
    when a panel does not have a point for each of the `kinds`.
    """
    grids = {title: as_array("points", points, 2) for title, points in panels.items()}
    if not grids or any(grid.shape != (len(kinds), 2) for grid in grids.values()):
        shapes = [grid.shape for grid in grids.values()]
        raise ValueError(f"panels must hold points [{len(kinds)}, 2], one for each of the kinds, got {shapes}")
    names, marked = list(dict.fromkeys(kinds)), np.array(kinds)
    with style():
        figure, axes = plt.subplots(1, len(grids), figsize=(FULL_WIDTH, 3.0), squeeze=False, layout="constrained")
        for ax, (title, grid) in zip(axes[0], grids.items(), strict=True):
            for index, name in enumerate(names):
                look = {"marker": _SHAPES[index % len(_SHAPES)], "color": SERIES[index % len(SERIES)], "s": 26}
                ax.scatter(*grid[marked == name].T, label=name, alpha=0.75, **look)
            ax.set(title=title, xlabel="direction 1", ylabel="direction 2" if ax is axes[0, 0] else "")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names))
    return axes[0]


def plot_scatter(
    panels: Mapping[str, Mapping[str, tuple[Any, Any]]], *, xlabel: str, ylabel: str, linear_below: float | None = None
) -> np.ndarray:
    """Draw panels {title: {name: (x, y)}} of points side by side, on the same y axis; returns the Axes.

    With `linear_below` the y axis is logarithmic from there on. All panels show the same names in the same order.
    Raises ValueError when there is no panel, or when the panels do not share their names.
    """
    names = _shared_names(panels)
    with style():
        figure, axes = plt.subplots(
            1, len(panels), figsize=(FULL_WIDTH, 3.2), sharey=True, squeeze=False, layout="constrained"
        )
        for ax, (title, groups) in zip(axes[0], panels.items(), strict=True):
            for index, (name, (x, y)) in enumerate(groups.items()):
                look = {"marker": _SHAPES[index % len(_SHAPES)], "color": SERIES[index % len(SERIES)], "s": 16}
                ax.scatter(as_array(f"{name} (x)", x, 1), as_array(name, y, 1), label=name, alpha=0.6, **look)
            ax.set(title=title, xlabel=xlabel, ylabel=ylabel if ax is axes[0, 0] else "")
            if linear_below is not None:
                ax.set_yscale("symlog", linthresh=linear_below)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names))
    return axes[0]


def _shared_names(panels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what all panels name in the same order; raises ValueError when they do not, or when there is none."""
    names = [list(shown) for shown in panels.values()]
    if not names or any(other != names[0] for other in names):
        raise ValueError(f"panels must hold at least one panel, all with the same names, got {names}")
    return names[0]
