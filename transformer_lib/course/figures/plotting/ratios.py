"""Speed-ups: a point with its spread for each candidate, in panels one above the other."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import ScalarFormatter

from .picture import FULL_WIDTH, SERIES, style

_TICKS = (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32)


def plot_ratios(panels: Mapping[str, Mapping[str, tuple[float, float, float]]], *, xlabel: str) -> np.ndarray:
    """Draw panels {title: {name: (low, middle, high)}} on one logarithmic axis with a line at 1; returns the Axes.

    On the logarithmic axis, twice and half as much lie equally far from the line at 1.

    Raises:
        ValueError: there is no panel, one is empty, or three numbers are not positive and in order.
    """
    if not panels or not all(panels.values()):
        raise ValueError(f"panels must hold at least one panel, each with a name, got {panels}")
    sizes = [len(rows) for rows in panels.values()]
    with style():
        figure, axes = plt.subplots(
            len(panels),
            1,
            figsize=(FULL_WIDTH, 1.0 + 0.34 * sum(sizes) + 0.3 * len(sizes)),
            sharex=True,
            squeeze=False,
            layout="constrained",
            height_ratios=sizes,
        )
        for ax, (title, rows) in zip(axes[:, 0], panels.items(), strict=True):
            _draw(ax, rows)
            ax.set_title(title, loc="left")
        _mark(axes[-1, 0])
        axes[-1, 0].set_xlabel(xlabel)
    return axes[:, 0]


def _draw(ax: Axes, rows: Mapping[str, tuple[float, float, float]]) -> None:
    ax.axvline(1, color="#333333", linestyle=":", linewidth=1)
    for row, (name, (low, middle, high)) in enumerate(rows.items()):
        if not 0 < low <= middle <= high:
            raise ValueError(f"panels must hold 0 < low <= middle <= high, got {(low, middle, high)} for {name!r}")
        ax.errorbar(middle, row, xerr=[[middle - low], [high - middle]], fmt="o", color=SERIES[0], capsize=3)
        card = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # the line at 1 does not cross a number
        look = {"textcoords": "offset points", "ha": "center", "fontsize": 8.5, "bbox": card}
        ax.annotate(f"{middle:.2f}", (middle, row), (0, 6), **look)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.4, -0.8)  # the first on top, room for its number


def _mark(ax: Axes) -> None:
    """Give the axis a logarithmic scale that writes 0.5, 1, 2, 4."""
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.margins(x=0.1)
    low, high = ax.get_xlim()
    ax.set_xticks([tick for tick in _TICKS if low <= tick <= high])
    ax.xaxis.set_major_formatter(ScalarFormatter())
