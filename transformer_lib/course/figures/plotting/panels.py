"""Curves in several panels side by side, under one legend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from .curves import plot_curves
from .picture import FULL_WIDTH, style


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
    names = [list(runs) for runs in panels.values()]
    if not names or any(other != names[0] for other in names):
        raise ValueError(f"panels must hold at least one panel, all with the same names, got {names}")
    with style():
        figure, axes = plt.subplots(
            1, len(panels), figsize=(FULL_WIDTH, 3.2), sharey=share_y, squeeze=False, layout="constrained"
        )
        for ax, (title, runs) in zip(axes[0], panels.items(), strict=True):
            words = {"ylabel": ylabel if ax is axes[0, 0] else "", "xlabel": xlabel, "title": title}
            plot_curves(runs, ax=ax, log_x=log_x, log_y=log_y, **words)
            if ax.get_legend() is not None:
                ax.get_legend().remove()
        if len(names[0]) > 1:
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return axes[0]
