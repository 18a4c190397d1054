"""Measures of models that differ by one part each: a row for each model, a panel for each measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from .picture import FULL_WIDTH, SERIES, style

_LOOKS = (  # told apart without colour, and where they coincide: the second is larger and hollow
    {"marker": "o", "markersize": 5.5, "color": SERIES[0]},
    {"marker": "s", "markersize": 8, "color": SERIES[1], "markerfacecolor": "none"},
)
_DECADES = tuple(10.0**power for power in range(-4, 3))
_BELOW = -0.3  # inches from the axis to the legend
Seeds = Sequence[float]


def plot_rungs(
    names: Sequence[str], panels: Mapping[str, Mapping[str, Sequence[Seeds]]], *, marked: str, log: Sequence[str] = ()
) -> np.ndarray:
    """Draw panels {title: {series: the seeds' values for each name}} side by side, the row `marked` in bold.

    A point is the mean of the seeds, its whiskers are the least and the largest; a name without values has no point.

    Args:
        names: of the rows, from top to bottom. log: titles of the panels with a logarithmic axis; the rest are 0 to 1.

    Raises:
        ValueError: `marked` is not among the names, a series has not one entry for each name, or a panel more than two.
    """
    if marked not in names:
        raise ValueError(f"marked must be one of {', '.join(map(repr, names))}, got {marked!r}")
    for title, series in panels.items():
        if len(series) > len(_LOOKS) or any(len(values) != len(names) for values in series.values()):
            raise ValueError(f"panels must have one or two series of {len(names)} entries each, got other in {title!r}")
    with style():
        size = (FULL_WIDTH, 1.3 + 0.27 * len(names))
        figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
        for ax, (title, series) in zip(axes[0], panels.items(), strict=True):
            _draw(ax, title, series)
            _scale(ax, title in log)
            ax.axhspan(names.index(marked) - 0.5, names.index(marked) + 0.5, color="#FFE9A8", zorder=0)
        axes[0, 0].set_yticks(range(len(names)), names)
        axes[0, 0].set_ylim(len(names) - 0.4, -0.6)
        axes[0, 0].get_yticklabels()[names.index(marked)].set_fontweight("bold")
    return axes[0]


def _draw(ax: Axes, title: str, series: Mapping[str, Sequence[Seeds]]) -> None:
    for (name, rows), look in zip(series.items(), _LOOKS, strict=False):
        there = [(row, np.asarray(values, dtype=float)) for row, values in enumerate(rows) if len(values)]
        middle = np.array([values.mean() for _, values in there])
        ends = np.array([[values.min(), values.max()] for _, values in there]).reshape(-1, 2)
        spread = np.abs(ends.T - middle)
        ax.errorbar(middle, [row for row, _ in there], xerr=spread, linestyle="", capsize=2.5, label=name, **look)
    ax.set_title(title, loc="left")
    ax.grid(axis="y", color="#dddddd", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    below = ax.transAxes + ScaledTranslation(0, _BELOW, ax.figure.dpi_scale_trans)
    look = {"ncols": 2, "columnspacing": 0.8, "handletextpad": 0.3, "borderaxespad": 0}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below, **look)


def _scale(ax: Axes, log: bool) -> None:
    if not log:
        ax.set_xlim(-0.05, 1.05)
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        return
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    first, last = sum(tick <= low for tick in _DECADES), sum(tick < high for tick in _DECADES)
    ticks = _DECADES[max(0, first - 1) : last + 1]  # from the one below the points to the one above them
    ax.minorticks_off()
    ax.set_xticks(ticks, [f"{tick:g}".removeprefix("0") for tick in ticks])
    ax.set_xlim(ticks[0] * 0.9, ticks[-1] * 1.1)
