"""A grid of readings in which those that ring an alarm are in colour: what is broken by what hears it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .picture import FULL_WIDTH, SERIES, new_axes, style

_GREY, _QUIET, _MOST = "#ececec", "#555555", 12


def plot_rings(
    readings: Mapping[str, Mapping[str, float]],
    rings: Callable[[str, float], bool],
    ax: Axes | None = None,
    *,
    text: Callable[[float], str] = "{:.2f}".format,
    apart: int = 0,
) -> Axes:
    """Draw readings {row: {column: value}} as a grid; a cell whose value rings is in colour, its text bold.

    Args:
        rings: called as rings(column, value). A value that is no number rings in any case.
        text: what a cell says of its value.
        apart: how many columns at the right end have a gap before them.

    Raises:
        ValueError: there is no row, a row has other columns than the first, or there are more than 12 columns.
    """
    columns = list(next(iter(readings.values()), {}))
    if not 1 <= len(columns) <= _MOST:
        raise ValueError(f"readings must have 1 to {_MOST} columns, got {len(columns)}")
    for name, row in readings.items():
        if list(row) != columns:
            raise ValueError(f"each row must have the columns {', '.join(columns)}, got {', '.join(row)} in {name!r}")
    places = [place + 0.35 * (place >= len(columns) - apart) for place in range(len(columns))]
    with style():
        ax = new_axes(ax, (FULL_WIDTH, 0.9 + 0.36 * len(readings)))
        for down, row in enumerate(readings.values()):
            for across, (column, value) in zip(places, row.items(), strict=True):
                loud = math.isnan(value) or rings(column, value)
                _cell(ax, across, down, "NaN" if math.isnan(value) else text(value), loud)
        ax.set_yticks(range(len(readings)), readings)
        ax.set_xticks(places, columns)
        ax.tick_params(top=False, bottom=False, left=False, labeltop=True, labelbottom=False)
        ax.spines[:].set_visible(False)
        ax.grid(visible=False)
        ax.set(xlim=(-0.5, places[-1] + 0.5), ylim=(len(readings) - 0.5, -0.5))
    return ax


def _cell(ax: Axes, across: float, down: int, text: str, loud: bool) -> None:
    edge = {"edgecolor": "black", "linewidth": 1.2} if loud else {"edgecolor": "none"}
    ax.add_patch(Rectangle((across - 0.47, down - 0.43), 0.94, 0.86, facecolor=SERIES[1] if loud else _GREY, **edge))
    look = {"color": "black", "fontweight": "bold"} if loud else {"color": _QUIET}
    ax.text(across, down, text, ha="center", va="center", fontsize=9, **look)
