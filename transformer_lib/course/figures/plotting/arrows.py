"""The vector that moves: where attention takes the vectors of one word, in the plane of the word's two senses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .base import as_array, signed_text
from .picture import SERIES, new_axes, style

_SHAPES = "os"
_FLAT = 0.3  # of its width, at least the height of what is shown
_HEIGHTS = (0.98, 0.79)  # of the names of the senses, as a share of the axes


@dataclass(frozen=True)
class Plane:
    """A plane in the space of the vectors.

    Args:
        senses: the two; the first axis leads from one to the other.
        origin: [d_model], halfway between the means of the senses. axes: [2, d_model], orthonormal.
    """

    senses: tuple[str, str]
    origin: np.ndarray
    axes: np.ndarray

    def project(self, vectors: Any) -> np.ndarray:
        """Return vectors [n, d_model] as points [n, 2] of the plane."""
        grid = as_array("vectors", vectors, 2)
        if grid.shape[1] != len(self.origin):
            raise ValueError(f"vectors must have {len(self.origin)} features, got shape {grid.shape}")
        return (grid - self.origin) @ self.axes.T


def sense_plane(vectors: Any, senses: Iterable[str]) -> Plane:
    """Return the plane in which two senses lie apart, found from vectors [n, d_model] with the sense of each.

    The first axis is the difference of the means of the senses; the second is the direction of greatest variance that
    is left when the first is taken away. For an honest picture, find the plane with other sentences than those drawn:
    in 96 dimensions, some direction separates any two handfuls of vectors.

    Raises:
        ValueError: there are not two senses, not one for each vector, or the vectors do not span a plane.
    """
    grid, said = as_array("vectors", vectors, 2), np.array([str(sense) for sense in senses])
    names = tuple(dict.fromkeys(said.tolist()))
    if len(said) != len(grid) or len(names) != 2:
        raise ValueError(f"senses must name two, one for each of {len(grid)} vectors, got {len(said)} of {list(names)}")
    means = [grid[said == name].mean(0) for name in names]
    size = float(np.linalg.norm(means[1] - means[0]))
    across = (means[1] - means[0]) / (size or 1.0)
    spread = grid - grid.mean(0)
    _, sizes, directions = np.linalg.svd(spread - np.outer(spread @ across, across), full_matrices=False)
    if min(size, sizes[0]) < 1e-9 * max(1.0, float(np.abs(grid).max())):
        raise ValueError("vectors must differ between the senses and within them, to span a plane")
    along = directions[0] * np.sign(directions[0][np.abs(directions[0]).argmax()])  # either sign would do
    return Plane((names[0], names[1]), (means[0] + means[1]) / 2, np.stack([across, along]))


def plot_arrows(
    *steps: Any,
    plane: Plane,
    senses: Iterable[str],
    ax: Axes | None = None,
    names: Sequence[str] = ("before", "after"),
    title: str | None = None,
) -> Axes:
    """Draw where the vectors of a word go, as arrows from step to step: before and after, or layer by layer.

    Args:
        steps: two or more times vectors [n, d_model], a row for each of n sentences, always in the same order.
        plane: of `sense_plane`, on which they are seen. senses: that of each sentence, two as those of the plane.
        names: of the steps.

    Raises:
        ValueError: there are fewer than two steps, they differ in shape, or the names or senses do not fit.
    """
    said = np.array([str(sense) for sense in senses])
    paths = _paths(steps, plane, said, names)
    with style():
        ax = new_axes(ax, (6.8, 3.6))
        ax.axvline(0, color="#999999", linestyle=":", linewidth=1, zorder=0)
        for index, sense in enumerate(plane.senses):
            _draw_sense(ax, paths[:, said == sense], index)
            _name_sense(ax, paths[-1, said == sense], sense, index)
        ax.plot(*paths[0].T, "D", color="#333333", markersize=6, zorder=4)
        _frame(ax, paths)
        first, second = plane.senses
        ax.set(xlabel=f"← {first}      between the senses      {second} →", title=title or "")
        ax.set_ylabel("largest other variance")
        _explain(ax, names)
    return ax


def _paths(steps: Sequence[Any], plane: Plane, said: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return the steps in the plane, as points [n_steps, n, 2]."""
    if len(steps) < 2 or len(names) != len(steps):
        raise ValueError(f"steps must be two or more, each with a name, got {len(steps)} and names {list(names)}")
    points = [plane.project(step) for step in steps]
    if any(len(each) != len(said) for each in points):
        raise ValueError(f"steps must have a row for each of {len(said)} senses, got {[len(each) for each in points]}")
    if set(said.tolist()) - set(plane.senses) or not len(said):
        raise ValueError(f"senses must be of the plane's, {list(plane.senses)}, got {sorted(set(said.tolist()))}")
    return np.stack(points)


def _draw_sense(ax: Axes, paths: np.ndarray, index: int) -> None:
    """Draw the arrows of one sense; the last step is filled, those between are hollow."""
    colour, shape = SERIES[index], _SHAPES[index]
    for start, end in zip(paths[:-1], paths[1:], strict=True):
        for tail, head in zip(start, end, strict=True):
            look = {"arrowstyle": "-|>", "color": colour, "alpha": 0.55, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 2}
            ax.annotate("", head, xytext=tail, arrowprops=look)
    for step, points in enumerate(paths[1:], 1):
        fill = colour if step == len(paths) - 1 else "white"
        ax.plot(*points.T, shape, color=colour, markerfacecolor=fill, markersize=6, zorder=3)


def _name_sense(ax: Axes, points: np.ndarray, sense: str, index: int) -> None:
    """Name a sense above its last points, with their mean along the first axis; the second lower, not to meet."""
    if len(points):
        mean = points[:, 0].mean()
        line = {"arrowstyle": "-", "color": SERIES[index], "linewidth": 1, "shrinkB": 6}
        card = {"facecolor": "white", "edgecolor": SERIES[index], "boxstyle": "round,pad=0.2"}
        look = {"ha": "center", "va": "top", "fontweight": "bold", "zorder": 5, "bbox": card, "arrowprops": line}
        place = {"xytext": (mean, _HEIGHTS[index]), "textcoords": ("data", "axes fraction")}
        ax.annotate(f"{sense} {signed_text(mean, 1)}", (mean, points[:, 1].max()), **place, **look)


def _frame(ax: Axes, paths: np.ndarray) -> None:
    """Let a step count the same in every direction, and leave room for the names even where all points lie in a row."""
    low, high = paths.min((0, 1)), paths.max((0, 1))
    half = max(high[1] - low[1], _FLAT * (high[0] - low[0])) / 2
    middle = (low + high) / 2
    ax.update_datalim([(middle[0], middle[1] - half), (middle[0], middle[1] + 1.7 * half)])
    ax.margins(0.1)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="box")


def _explain(ax: Axes, names: Sequence[str]) -> None:
    look = {"linestyle": "", "marker": "o", "color": "#333333", "markersize": 6}
    looks = [look | {"marker": "D"}, *[look | {"markerfacecolor": "white"}] * (len(names) - 2), look]
    ax.legend(
        [Line2D([], [], **each) for each in looks], names, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=4
    )


def plot_paths(
    paths: Any,
    names: Sequence[str],
    *,
    landmarks: Mapping[str, Sequence[float]] | None = None,
    ax: Axes | None = None,
    xlabel: str,
    ylabel: str,
) -> Axes:
    """Draw paths [n_steps, n, 2] of n points in the plane as arrows from step to step, each named at its end.

    Args:
        names: n, one for each path. landmarks: points {name: (x, y)} that do not move.

    Raises:
        ValueError: there are fewer than two steps, the points are not of the plane, or the names are not n.
    """
    grid = as_array("paths", paths, 3)
    if len(grid) < 2 or grid.shape[1:] != (len(names), 2):
        raise ValueError(f"paths must be [n_steps, {len(names)}, 2] with two steps or more, got {grid.shape}")
    with style():
        ax = new_axes(ax, (5.0, 3.6))
        for index, name in enumerate(names):
            look = {
                "arrowstyle": "-|>",
                "color": SERIES[index % len(SERIES)],
                "linewidth": 2,
                "shrinkA": 6,
                "shrinkB": 1,
            }
            for tail, head in zip(grid[:-1, index], grid[1:, index], strict=True):
                ax.annotate("", head, xytext=tail, arrowprops=look)
            ax.annotate(name, grid[-1, index], xytext=(7, 5), textcoords="offset points", color=look["color"])
        for name, place in (landmarks or {}).items():
            ax.plot(*place, "D", color="#333333", markersize=6)
            ax.annotate(name, place, xytext=(8, 4), textcoords="offset points")
        everything = [grid.reshape(-1, 2), *[np.reshape(place, (1, 2)) for place in (landmarks or {}).values()]]
        ax.update_datalim(np.concatenate(everything))
        ax.margins(0.25, 0.15)
        ax.autoscale_view()
        ax.set_aspect("equal", adjustable="datalim")
        ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax
