"""Each seed at two budgets, or under two conditions: a slope for each, and a thick one for their median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from .base import as_array
from .picture import SERIES, new_axes, style

_SHAPES = "os^Dv*P"
_LINE = 0.075  # the height of a label, as a share of the axes
Values = Sequence[float]


def plot_slopes(
    arms: Mapping[str, tuple[Values, Values]],
    ends: tuple[str, str],
    ax: Axes | None = None,
    *,
    ylabel: str,
    log_y: bool = False,
    title: str | None = None,
) -> Axes:
    """Draw for each arm {name: (values before, values after)} a thin line per seed and a thick one for the median.

    Args:
        arms: the two values of a seed have the same place in both.
        ends: what is on the left and on the right, such as ("4 passes", "8 passes").

    Raises:
        ValueError: there is no arm, or one has not as many values before as after.
    """
    if not arms:
        raise ValueError("arms must hold at least one named arm, got none")
    with style():
        ax = new_axes(ax, (6.4, 3.6))
        levels = {}
        for index, (name, pair) in enumerate(arms.items()):
            seeds, colour = _paired(name, pair), SERIES[index % len(SERIES)]
            ax.plot([0, 1], seeds, color=colour, linewidth=0.9, alpha=0.6)
            median = np.median(seeds, axis=1)
            look = {"marker": _SHAPES[index % len(_SHAPES)], "markersize": 8, "markeredgecolor": "white"}
            ax.plot([0, 1], median, color=colour, linewidth=3, label=name, **look)
            levels[name] = (float(median[1]), colour)
        ax.set_yscale("log" if log_y else "linear")
        ax.set(xlim=(-0.08, 1.04), xlabel="thin: a seed, thick: their median", ylabel=ylabel, title=title or "")
        ax.set_xticks([0, 1], ends)
        _label_ends(ax, levels)
    return ax


def _paired(name: str, pair: tuple[Values, Values]) -> np.ndarray:
    """Return the values of an arm as [2, n_seeds]."""
    before, after = (as_array(name, values, 1) for values in pair)
    if len(before) != len(after) or not len(before):
        raise ValueError(
            f"arms must hold as many values before as after, got {len(before)} and {len(after)} in {name!r}"
        )
    return np.stack([before, after])


def _label_ends(ax: Axes, levels: Mapping[str, tuple[float, str]]) -> None:
    """Write each arm's name and last median at the right, beside its end or as near as the other labels allow."""
    to_axes = ax.transData + ax.transAxes.inverted()
    ranked = sorted(levels, key=lambda name: levels[name][0])
    heights = [float(to_axes.transform((1, levels[name][0]))[1]) for name in ranked]
    for name, height in zip(ranked, _apart(heights), strict=True):
        level, colour = levels[name]
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkB": 5}
        look = {"va": "center", "fontsize": 8.5, "arrowprops": line}
        ax.annotate(f"{name}: {level:.3g}", (1, level), xytext=(1.05, height), textcoords="axes fraction", **look)


def _apart(heights: Sequence[float]) -> list[float]:
    """Move ascending heights as far as a label needs: upwards first, then down again from the top of the axes."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + _LINE) if moved else height)
    top = max(1.0, *heights)
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], top)
        top = moved[index] - _LINE
    return moved
