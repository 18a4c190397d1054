"""A dot for each seed, in rows, with a line over their range; one set of dots or two, for two budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .base import as_array, plain_number
from .picture import FULL_WIDTH, SERIES, style

_FILLED = {"marker": "o", "markersize": 6, "color": SERIES[0], "markeredgecolor": "white", "markeredgewidth": 0.7}
_HOLLOW = {"marker": "s", "markersize": 5, "color": SERIES[1], "markerfacecolor": "white", "markeredgewidth": 1.2}
_REFERENCE = {"color": "#333333", "linestyle": "--", "linewidth": 1.2}
_BAND = "#FFE9A8"
_APART = 0.17  # of the two sets of a row, from its middle
_BETWEEN = 0.06  # of the seeds of a set, so that equal ones can be counted
_LABELLED = 12  # rows at most have their mean written beside them
Rows = Mapping[str, Sequence[float]]
Limits = tuple[float, float]


@dataclass(frozen=True)
class _Panel:
    title: str
    rows: Rows
    first: Rows | None
    reference: Mapping[str, float]
    log: bool
    limits: Limits | None


def plot_dots(
    rows: Rows | Mapping[str, Rows],
    first: Rows | Mapping[str, Rows] | None = None,
    *,
    budgets: tuple[str, str] = ("first", "second"),
    xlabel: str = "",
    reference: Mapping[str, Any] | None = None,
    log: bool | Sequence[str] = False,
    limits: Limits | Mapping[str, Limits] | None = None,
    marked: str | None = None,
) -> Axes | np.ndarray:
    """Draw rows {name: a value for each seed}: a dot for each seed, a line over their range.

    Panels {title: rows} are drawn side by side, and all have the same names. Up to 12 rows in a single panel have their
    mean beside them. A name without values has an empty row.

    Args:
        first: the same names after an earlier budget, hollow and above the filled ones; `budgets` names both.
        reference: levels such as {"guessing": 0.5}, drawn dashed; with panels {title: levels}.
        log: whether the axis is logarithmic; with panels also the titles of those where it is.
        limits: (lowest, highest) of the axis; with panels {title: limits}.
        marked: the name in bold, on a yellow band.

    Returns the Axes, or an array of them if there are panels.

    Raises:
        ValueError: there is no row, the panels or `first` have other names, or `marked` is none of them.
    """
    several = bool(rows) and all(isinstance(shown, Mapping) for shown in rows.values())
    options = (first, reference, log, limits)
    panels = _panels(cast(Mapping[str, Rows], rows), *options) if several else [_single(cast(Rows, rows), *options)]
    names = _names(panels)
    if marked is not None and marked not in names:
        raise ValueError(f"marked must be one of {', '.join(map(repr, names))}, got {marked!r}")
    with style():
        size = (FULL_WIDTH, 1.15 + (0.27 if first is None else 0.31) * len(names))
        figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
        for ax, panel in zip(axes[0], panels, strict=True):
            _draw(ax, panel)
            ax.set_xlabel(xlabel)
            _mark(ax, names, marked)
        _name_rows(axes[0, 0], names, marked)
        if not several and len(names) <= _LABELLED:
            _write_means(axes[0, 0], panels[0].rows, "black" if first is None else SERIES[0])
        _explain(figure, [] if first is None else [*budgets], [*dict.fromkeys(n for p in panels for n in p.reference)])
    return axes[0] if several else axes[0, 0]


def _single(rows: Rows, first: Any, reference: Any, log: bool | Sequence[str], limits: Any) -> _Panel:
    return _Panel("", rows, first, reference or {}, bool(log), limits)


def _panels(
    rows: Mapping[str, Rows], first: Any, reference: Any, log: bool | Sequence[str], limits: Any
) -> list[_Panel]:
    def of(title: str) -> _Panel:
        logarithmic = log if isinstance(log, bool) else title in log
        earlier = None if first is None else first.get(title, {})
        return _Panel(
            title, rows[title], earlier, (reference or {}).get(title, {}), logarithmic, (limits or {}).get(title)
        )

    return [of(title) for title in rows]


def _names(panels: Sequence[_Panel]) -> list[str]:
    """Return the names of the rows, the same in every panel and after either budget."""
    names = [list(rows) for panel in panels for rows in (panel.rows, panel.first) if rows is not None]
    if not names[0] or any(other != names[0] for other in names):
        raise ValueError(f"rows must have the same names everywhere, at least one, got {names}")
    return names[0]


def _draw(ax: Axes, panel: _Panel) -> None:
    ax.set_title(panel.title, loc="left")
    for row, (name, values) in enumerate(panel.rows.items()):
        if panel.first is not None:
            _draw_set(ax, name, panel.first[name], row - _APART, _HOLLOW)
        _draw_set(ax, name, values, row if panel.first is None else row + _APART, _FILLED)
    for level in panel.reference.values():
        ax.axvline(level, zorder=1, **_REFERENCE)
    _scale(ax, panel.log, panel.limits)


def _draw_set(ax: Axes, name: str, values: Sequence[float], height: float, look: Mapping[str, Any]) -> None:
    found = as_array(name, values, 1)
    if not len(found):
        return
    ax.hlines(height, found.min(), found.max(), color=look["color"], linewidth=1.2, alpha=0.6, zorder=2)
    step = min(_BETWEEN, 0.2 / len(found))
    heights = height + step * (np.arange(len(found)) - (len(found) - 1) / 2)
    ax.plot(found, heights, linestyle="", clip_on=False, zorder=3, **look)


def _scale(ax: Axes, log: bool, limits: Limits | None) -> None:
    ax.set_xscale("log" if log else "linear")
    if limits is not None:
        room = 0 if log else 0.04 * (limits[1] - limits[0])  # for the dots at the ends
        ax.set_xlim(limits[0] - room, limits[1] + room)
    if log:
        _number_decades(ax, widen=limits is None)
    elif limits == (0, 1):
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])


def _number_decades(ax: Axes, widen: bool) -> None:
    """Write at most four numbers below a logarithmic axis, plainly; `widen` lets it span a decade at least."""
    low, high = np.log10(ax.get_xlim())
    missing = max(0.0, 1 - (high - low)) / 2 * widen
    ax.set_xlim(10 ** (low - missing), 10 ** (high + missing))
    low, high = ax.get_xlim()
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = powers[(powers >= low) & (powers <= high)]
    if len(ticks) < 2:  # 1 and 3 of every decade, so that two numbers tell the scale
        ticks = np.sort(np.concatenate([powers, 3 * powers]))
        ticks = ticks[(ticks >= low) & (ticks <= high)]
    ticks = ticks[:: max(1, -(-len(ticks) // 4))]
    ax.minorticks_off()
    ax.set_xticks(ticks, [_plain(tick) for tick in ticks])


def _plain(number: float) -> str:
    """Write a number with three digits, without the 0 before the point: .317, 12; from 1,000 on, all of them."""
    if 0 < number < 9e-5 and math.isclose(math.log10(number), round(math.log10(number)), abs_tol=1e-9):
        return plain_number(number)
    if abs(number) >= 1000:
        return f"{number:,.0f}".replace("-", "−")
    short = f"{number:.3g}".replace("-", "−", 1) if abs(number) >= 1e-4 else f"{number:.3g}"
    return short.replace("0.", ".", 1) if 0 < abs(number) < 1 else short


def _mark(ax: Axes, names: Sequence[str], marked: str | None) -> None:
    ax.grid(axis="y", color="#dddddd", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    if marked is not None:
        ax.axhspan(names.index(marked) - 0.5, names.index(marked) + 0.5, color=_BAND, zorder=0, linewidth=0)


def _name_rows(ax: Axes, names: Sequence[str], marked: str | None) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if marked is not None:
        ax.get_yticklabels()[names.index(marked)].set_fontweight("bold")


def _write_means(ax: Axes, rows: Rows, color: str) -> None:
    """Write the means of the filled dots, in their colour where there are others, too."""
    look = {"textcoords": "offset points", "va": "center", "fontsize": 8.5, "color": color}
    if any(len(values) > 1 for values in rows.values()):
        ax.annotate("mean", (1, 1), xycoords="axes fraction", xytext=(10, 5), **look)
    for row, values in enumerate(rows.values()):
        if len(values):
            text = _plain(float(np.mean(values)))
            ax.annotate(text, (1, row), xycoords=("axes fraction", "data"), xytext=(10, 0), **look)


def _explain(figure: Any, budgets: Sequence[str], levels: Sequence[str]) -> None:
    looks = [{"linestyle": "", **look} for look in (_HOLLOW, _FILLED)][: len(budgets)] + [_REFERENCE] * len(levels)
    if looks:
        handles = [Line2D([], [], **look) for look in looks]
        figure.legend(handles, [*budgets, *levels], loc="outside lower center", ncols=len(looks))
