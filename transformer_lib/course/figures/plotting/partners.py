"""Words in a plane with lines between partners: who lies beside whom, in tables trained for different jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .base import as_array
from .picture import FULL_WIDTH, SERIES, style

_SHAPES = "os"
_LINE = {"color": "#999999", "linewidth": 1.3, "zorder": 1}


def plot_partners(
    panels: Mapping[str, Any],
    partners: Sequence[tuple[str, str]],
    *,
    kinds: tuple[str, str],
    labelled: Collection[str] = (),
) -> np.ndarray:
    """Draw panels {title: vectors [2n, d]} of n pairs of words, each in the plane in which its directions differ most.

    Only the direction of a vector is shown: all are brought to length 1 first, as a cosine does.

    Args:
        panels: the rows are the first and the second word of each pair in turn.
        partners: the words of each pair, joined by a line. kinds: what the first and the second words are.
        labelled: the words whose names are written.

    Returns the Axes, one for each panel.

    Raises:
        ValueError: there is no panel, a panel has not two rows for each pair, or no such word is there to be labelled.
    """
    words = [word for pair in partners for word in pair]
    if not panels or not words:
        raise ValueError(f"panels and partners must hold at least one each, got {len(panels)} and {len(partners)}")
    if strange := sorted(set(labelled) - set(words)):
        raise ValueError(f"labelled must be among the partners, got {', '.join(strange)}")
    places = {title: _in_plane(title, vectors, len(words)) for title, vectors in panels.items()}
    with style():
        size = (FULL_WIDTH, 3.5 if len(panels) < 3 else 2.9)
        figure, axes = plt.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
        for ax, (title, points) in zip(axes[0], places.items(), strict=True):
            _draw(ax, points, words, labelled)
            ax.set_title(title)
        look = {"linestyle": "", "markersize": 6, "markeredgecolor": "white"}
        handles = [Line2D([], [], marker=_SHAPES[kind], color=SERIES[kind], **look) for kind in (0, 1)]
        handles.append(Line2D([], [], **_LINE))
        figure.legend(handles, [*kinds, "partners"], loc="outside lower center", ncols=3)
    return axes[0]


def _in_plane(title: str, vectors: Any, n: int) -> np.ndarray:
    """Return the directions as points [n, 2], along the two in which they vary most, with signs not left to chance."""
    grid = as_array(title, vectors, 2)
    if len(grid) != n:
        raise ValueError(f"{title!r} must have a row for each of {n} words, got shape {grid.shape}")
    unit = grid / np.linalg.norm(grid, axis=1, keepdims=True)
    _, _, axes = np.linalg.svd(unit - unit.mean(0), full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal())[:, None]
    return (unit - unit.mean(0)) @ axes.T


def _draw(ax: Axes, points: np.ndarray, words: Sequence[str], labelled: Collection[str]) -> None:
    for pair in points.reshape(-1, 2, 2):
        ax.plot(*pair.T, **_LINE)
    for kind in (0, 1):
        look = {"color": SERIES[kind], "markersize": 6, "markeredgecolor": "white", "zorder": 3}
        ax.plot(*points[kind::2].T, _SHAPES[kind], **look)
    middle = points.mean(0)
    for word, point in zip(words, points, strict=True):
        if word in labelled:
            side = 1 if point[0] >= middle[0] else -1
            look = {"ha": "left" if side > 0 else "right", "va": "center", "fontweight": "bold", "zorder": 4}
            ax.annotate(word, point, xytext=(side * 7, 0), textcoords="offset points", **look)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.22, 0.12)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#cccccc")
