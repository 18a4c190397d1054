"""Stacked bars: how the parts of several groups add up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from .base import ink
from .curves import HATCHES, legend_below, shared_groups
from .picture import FULL_WIDTH, new_axes, style


def plot_stacks(
    parts: Mapping[str, Mapping[str, float]],
    ax: Axes | None = None,
    *,
    colours: Mapping[str, str],
    xlabel: str,
    title: str | None = None,
) -> Axes:
    """Draw horizontal bars, one per group from top to bottom, each made of one part per series.

    Args:
        parts: {series: {group: value}}; all series have the same groups, and no value is negative.
        colours: the colour of each series, as "#rrggbb".
        xlabel: what is counted.

    Raises:
        ValueError: if the groups differ, or a value is negative.
    """
    groups = shared_groups(parts)
    left = np.zeros(len(groups))
    with style():
        ax = new_axes(ax, (FULL_WIDTH, 1.2 + 0.25 * len(groups)))
        for index, (name, values) in enumerate(parts.items()):
            widths = np.array([float(values[group]) for group in groups])
            if widths.min() < 0:
                raise ValueError(f"parts must not be negative, got {widths.min():g} in series {name!r}")
            look = {"color": colours[name], "hatch": HATCHES[index % 7], "edgecolor": "white", "linewidth": 0.5}
            ax.barh(groups, widths, 0.8, left=left, label=name, **look)
            _write_counts(ax, left, widths, colours[name])
            left += widths
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.set(xlabel=xlabel, title=title or "")
        legend_below(ax)
    return ax


def _write_counts(ax: Axes, left: np.ndarray, widths: np.ndarray, colour: str) -> None:
    """Write each value on a card of the bar's colour, so that no hatching crosses it; skip parts without width."""
    text = ink(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    card = {"facecolor": colour, "edgecolor": "none", "pad": 1.5}
    for row, (start, width) in enumerate(zip(left, widths, strict=True)):
        if width:
            look = {"ha": "center", "va": "center", "fontsize": 8, "color": text, "bbox": card}
            ax.text(start + width / 2, row, f"{width:g}", **look)
