"""Lines, training curves and bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from .base import as_array, plain_number
from .picture import FULL_WIDTH, SERIES, new_axes, style

_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = "os^Dv*P"
_BAND = " (mean and range of "
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")
"""Hatches of bars, so that the series can be told apart without colour."""


def plot_lines(
    lines: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    markers: bool = True,
    reference: Mapping[str, float] | None = None,
) -> Axes:
    """Draw labelled lines {name: y} or {name: (x, y)}; without x the points count from 1.

    ``reference`` draws named levels across, such as {"stopped": 1250}. Raises ValueError when there is no line.
    """
    if not lines:
        raise ValueError("lines must hold at least one named line, got none")
    with style():
        ax = new_axes(ax, (6.0, 3.4))
        for index, (name, data) in enumerate(lines.items()):
            x, y = _xy(name, data, 1)
            ax.plot(x, y, label=name, **_line_look(index, markers and len(x) <= 40))
        _finish(ax, xlabel, ylabel, title, log_x, log_y, reference or {})
    return ax


def plot_curves(
    runs: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    ylabel: str = "loss",
    xlabel: str = "step",
    title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> Axes:
    """Draw training curves {name: values}, each [n_steps] or [n_seeds, n_steps] (mean and min–max band).

    A pair ``(steps, values)`` gives the steps; without them they count from 1.
    """
    if not runs:
        raise ValueError("runs must hold at least one named run, got none")
    with style():
        ax = new_axes(ax, (6.0, 3.4))
        for index, (name, data) in enumerate(runs.items()):
            x, values = _xy(name, data, 2)
            values = np.atleast_2d(values)
            look = _line_look(index, False)
            if len(values) > 1:
                ax.fill_between(x, values.min(0), values.max(0), color=look["color"], alpha=0.2, linewidth=0)
                name = f"{name}{_BAND}{len(values)} seeds)"
            ax.plot(x, values.mean(0), label=name, **look)
        _finish(ax, xlabel, ylabel, title, log_x, log_y)
    return ax


def mark_phases(ax: Axes, starts: Mapping[str, float]) -> Axes:
    """Mark phases {name: where it begins} in order: a dotted line at each start, with the name at its right.

    What begins at or before the left end of the axis has its name there, and no line.

    Raises:
        ValueError: there is no phase, or they do not begin one after the other.
    """
    places = list(starts.values())
    if not places or any(one >= other for one, other in zip(places, places[1:], strict=False)):
        raise ValueError(f"starts must be at least one phase, each later than the one before, got {dict(starts)}")
    with style():
        left = ax.get_xlim()[0]
        for name, start in starts.items():
            if start > left:
                ax.axvline(start, color="#333333", linestyle=":", linewidth=1.2, zorder=1)
            look = {"transform": ax.get_xaxis_transform(), "va": "top", "ha": "left", "color": "#333333"}
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
            ax.text(max(start, left), 0.98, f" {name}", bbox=paper, **look)
    return ax


def plot_bars(
    scores: Mapping[str, Mapping[str, float]],
    ax: Axes | None = None,
    *,
    ylabel: str,
    intervals: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
    reference: Mapping[str, float] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw grouped bars {series: {group: value}}, for scores beside baselines.

    ``intervals`` holds (low, high) in the same nesting, drawn as whiskers; ``reference`` draws named
    levels such as {"chance": 0.5}. Raises ValueError when the series do not share their groups.
    """
    groups = shared_groups(scores)
    width = 0.8 / len(scores)
    with style():
        ax = new_axes(ax, (min(FULL_WIDTH, 2.4 + 0.45 * len(groups) * len(scores)), 3.4))
        for index, (name, values) in enumerate(scores.items()):
            x = np.arange(len(groups)) + (index - (len(scores) - 1) / 2) * width
            heights = [float(values[group]) for group in groups]
            look = {"color": SERIES[index % 7], "hatch": HATCHES[index % 7], "edgecolor": "white"}
            ax.bar(x, heights, width * 0.92, label=name, **look)
            tops = _whiskers(ax, x, heights, (intervals or {}).get(name, {}), groups)
            _name_bars(ax, x, heights, tops)
        for index, (name, level) in enumerate((reference or {}).items()):
            look = {"color": "#333333", "linestyle": _DASHES[1 + index % 6], "linewidth": 1.2}
            ax.axhline(level, label=f"{name} ({level:.3g})", **look)
        ax.set_xticks(range(len(groups)), groups)
        ax.margins(y=0.12)
        ax.set(ylabel=ylabel, title=title or "")
        legend_below(ax, 1 + max(group.count("\n") for group in groups))
    return ax


def _xy(name: str, data: Any, most_axes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (x, y) of one line, given as a pair or as y alone, whose points are then counted from 1."""
    pair = isinstance(data, tuple) and len(data) == 2 and np.ndim(data[0]) == 1
    y = as_array(name, data[1] if pair else data, *range(1, most_axes + 1))
    x = as_array(f"{name} (x)", data[0], 1) if pair else np.arange(1.0, y.shape[-1] + 1)
    if len(x) != y.shape[-1]:
        raise ValueError(f"{name} must have as many x as y, got {len(x)} and {y.shape[-1]}")
    return x, y


def _line_look(index: int, markers: bool) -> dict[str, Any]:
    """Return colour, dash and marker of the index-th line, so that lines differ without colour too."""
    look = {"color": SERIES[index % 7], "linestyle": _DASHES[index % 7]}
    return look | {"marker": _MARKERS[index % 7]} if markers else look


def _plain_log_x(ax: Axes) -> None:
    """Give the x axis a logarithmic scale that writes 64, not 10^1.8, with ticks at the points if they are few.

    Of points such as 0.001, 0.003, 0.01 only the powers of ten are written: the others would run into them.
    """
    points = sorted({float(x) for line in ax.lines for x in line.get_xdata()})
    powers = [x for x in points if math.isclose(math.log10(x), round(math.log10(x)), abs_tol=1e-9)]
    if len(powers) > 2:  # and those between
        powers = [10.0**k for k in range(round(math.log10(powers[0])), round(math.log10(powers[-1])) + 1)]
        powers = powers[:: -(-len(powers) // 7)]
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain_number(x)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    if len(points) <= 10:
        ax.set_xticks(powers if len(powers) > 2 else points)


def _finish(
    ax: Axes,
    xlabel: str,
    ylabel: str,
    title: str | None,
    log_x: bool,
    log_y: bool,
    reference: Mapping[str, float] = MappingProxyType({}),
) -> None:
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title or "")
    if log_x:
        _plain_log_x(ax)
    if log_y:
        ax.set_yscale("log")
    for index, (name, level) in enumerate(reference.items()):
        look = {"color": "#333333", "linestyle": _DASHES[1 + index % 6], "linewidth": 1.2, "zorder": 1}
        ax.axhline(level, label=name, **look)
    handles, names = ax.get_legend_handles_labels()
    short, shared = said_once(names)
    if len(names) > 3 and shared:  # too large to lie on the lines
        ax.legend(handles, short, title=shared, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)
    elif len(names) > 1:
        ax.legend()


def said_once(names: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the names of a legend without what all of them add, such as the number of seeds; and that, or None."""
    short, _, notes = zip(*(name.partition(_BAND) for name in names), strict=True) if names else ((), (), ())
    if len(set(notes)) == 1 and notes[0]:
        return list(short), f"mean and range of {notes[0].strip(')')}"
    return list(names), None


def legend_below(ax: Axes, lines: int = 1) -> None:
    """Put the legend under the axes, where it can hide no bar; `lines` is the height of the names of the groups."""
    names = ax.get_legend_handles_labels()[1]
    if len(names) > 1:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04 - 0.06 * lines), ncols=min(4, len(names)))


def shared_groups(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the groups that all series have, in order.

    Raises:
        ValueError: if there is no series, or two have different groups.
    """
    if not scores:
        raise ValueError("scores must hold at least one named series, got none")
    groups = list(next(iter(scores.values())))
    for name, values in scores.items():
        if list(values) != groups:
            raise ValueError(f"scores must have the groups {groups} in series {name!r}, got {list(values)}")
    return groups


def _name_bars(ax: Axes, x: np.ndarray, heights: list[float], tops: list[float]) -> None:
    look = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 8.5}
    for centre, height, top in zip(x, heights, tops, strict=True):
        ax.annotate(f"{height:.3g}", (centre, top), xytext=(0, 2), **look)


def _whiskers(
    ax: Axes, x: np.ndarray, heights: list[float], bounds: Mapping[str, Any], groups: list[str]
) -> list[float]:
    """Draw (low, high) whiskers where there are any; returns the top of each bar with its whisker."""
    tops = []
    for centre, height, group in zip(x, heights, groups, strict=True):
        low, high = bounds.get(group, (height, height))
        if not low <= height <= high:
            raise ValueError(f"intervals of {group!r} must hold {height:.3g}, got ({low:.3g}, {high:.3g})")
        if low < high:
            ends = [[height - low], [high - height]]
            ax.errorbar(centre, height, yerr=ends, color="#111111", capsize=3, linewidth=1.2)
        tops.append(high)
    return tops
