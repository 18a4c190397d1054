"""Steps until a goal is reached, run by run; a run that was stopped before is drawn at the limit, hollow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .picture import FULL_WIDTH, SERIES, style

_DONE = {"marker": "o", "markersize": 5.5, "linestyle": "", "color": SERIES[0]}
_STOPPED = {"marker": ">", "markersize": 7, "linestyle": "", "color": SERIES[1], "markerfacecolor": "white"}
_APART = 0.2  # between the seeds of one row
Steps = Sequence["int | None"]


def plot_reached(panels: Mapping[str, Mapping[str, Steps]], *, limit: int, xlabel: str) -> np.ndarray:
    """Draw panels {title: {name: steps of each seed}} side by side, a row for each name; returns the Axes.

    Args:
        panels: None among the steps is a run that had not reached the goal after `limit` steps.

    Raises:
        ValueError: there is no panel, the panels differ in their names, or a step is beyond the limit.
    """
    if not panels or len({tuple(rows) for rows in panels.values()}) > 1:
        raise ValueError(f"panels must hold at least one panel, all with the same names, got {panels}")
    names = list(next(iter(panels.values())))
    with style():
        size = (FULL_WIDTH, 1.7 + 0.4 * len(names))
        figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
        for ax, (title, rows) in zip(axes[0], panels.items(), strict=True):
            for row, steps in enumerate(rows.values()):
                _draw(ax, row, steps, limit)
            ax.set_title(title, loc="left")
            ax.axvline(limit, color="#333333", linestyle=":", linewidth=1)
            ax.set_xlim(0, limit * 1.12)
            ax.set_xticks([0, limit // 3, 2 * limit // 3, limit])
            ax.set_xlabel(xlabel)
            ax.tick_params(axis="y", length=0)
        axes[0, 0].set_yticks(range(len(names)), names)
        axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
        looks = [plt.Line2D([], [], **look) for look in (_DONE, _STOPPED)]
        labels = ["a run that reached the goal", f"a run stopped after {limit} steps"]
        figure.legend(looks, labels, loc="outside lower center", ncols=2)
    return axes[0]


def _draw(ax: Axes, row: int, steps: Steps, limit: int) -> None:
    for seed, reached in enumerate(steps):
        if reached is not None and reached > limit:
            raise ValueError(f"steps must be at most the limit {limit}, got {reached}")
        height = row + _APART * (seed - (len(steps) - 1) / 2)
        ax.plot(
            limit if reached is None else reached, height, clip_on=False, **(_STOPPED if reached is None else _DONE)
        )
    ax.axhline(row + 0.5, color="#dddddd", linewidth=0.8)
