"""Pictures of the plane: what a hidden layer folds, where a norm puts tokens, how the residual stream grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .base import as_array
from .picture import FULL_WIDTH, SERIES, style

_GREY = "#B0B0B0"
_SHAPES = "osD^v<>"
_ARROW = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}


def plot_fold(
    hidden: Callable[[Any], Any],
    points: Any,
    answers: Sequence[object],
    *,
    readout: Sequence[float] | None = None,
) -> np.ndarray:
    """Draw points of the plane with a grid, and beside them where two hidden units put both.

    Args:
        hidden: takes points [n, 2] to the values [n, 2] of two hidden units; float64 arrays or tensors.
        points: [n, 2]. answers: one for each point; each answer has a colour and a shape.
        readout: weights of the two units; the line on which they give ½ is drawn.

    Returns the two Axes.

    Raises:
        ValueError: the points are not in a plane, or there is not one answer for each.
    """
    before = as_array("points", points, 2)
    if before.shape[1] != 2 or len(before) != len(answers):
        raise ValueError(f"points must be [n, 2] with n answers, got shape {before.shape} and {len(answers)}")
    names = [f"({first:g}, {second:g})" for first, second in before]
    after = as_array("hidden(points)", hidden(before), 2)
    with style():
        _, axes = plt.subplots(1, 2, figsize=(FULL_WIDTH, 3.3), layout="constrained")
        for line in _grid(before):
            axes[0].plot(*line.T, color=_GREY, linewidth=0.7)
            axes[1].plot(*as_array("hidden(grid)", hidden(line), 2).T, color=_GREY, linewidth=0.7)
        for ax, places in zip(axes, (before, after), strict=True):
            _draw_answers(ax, places, names, answers)
        _draw_half(axes[1], readout)
        axes[0].legend(loc="upper left")
        axes[0].set(xlabel="first feature", ylabel="second feature", title="what the units read")
        axes[1].set(xlabel="first unit", ylabel="second unit", title="what they make of it")
    return axes


def _grid(points: np.ndarray) -> list[np.ndarray]:
    """Return the lines of a grid around the points, each as points [65, 2]; a fold bends them."""
    low, high = points.min() - 0.5, points.max() + 0.5
    along, lines = np.linspace(low, high, 65), np.linspace(low, high, 9)
    upright = [np.column_stack([np.full_like(along, at), along]) for at in lines]
    return [*upright, *(np.ascontiguousarray(line[:, ::-1]) for line in upright)]


def _draw_answers(ax: Axes, places: np.ndarray, names: Sequence[str], answers: Sequence[object]) -> None:
    """Draw each point in the colour and shape of its answer; points at the same place share a label."""
    kinds = list(dict.fromkeys(answers))
    labels: dict[tuple[float, ...], list[str]] = {}
    for place, name, answer in zip(places, names, answers, strict=True):
        kind = kinds.index(answer)
        ax.plot(*place, _SHAPES[kind], color=SERIES[kind], markersize=9, zorder=3, clip_on=False)
        labels.setdefault(tuple(place.round(6)), []).append(name)
    for place, same in labels.items():
        ax.annotate(" and ".join(same), place, xytext=(8, 6), textcoords="offset points", fontweight="bold")
    for kind, answer in enumerate(kinds):
        ax.plot([], [], _SHAPES[kind], color=SERIES[kind], label=f"answer {answer}")
    ax.margins(0.25, 0.3)


def _draw_half(ax: Axes, readout: Sequence[float] | None) -> None:
    """Draw where the readout of the two units is ½, within the limits that the axes have."""
    if readout is None:
        return
    first, second = readout
    limits = ax.get_xlim(), ax.get_ylim()
    across = np.array(limits[0])
    ax.plot(across, (0.5 - first * across) / second, "--", color="#333333", linewidth=1.2, label="readout ½")
    ax.legend(loc="upper left")
    ax.set(xlim=limits[0], ylim=limits[1])


def plot_norm(tokens: Any, names: Sequence[str]) -> np.ndarray:
    """Draw what LayerNorm does to tokens of three features.

    Left the features of each token. Right the tokens in space, seen along the diagonal (1, 1, 1), where adding the same
    to all features cannot be seen, and the circle of those whose deviation is 1.

    Args:
        tokens: [n, 3], none with three equal features. names: one for each.

    Returns the two Axes.

    Raises:
        ValueError: the shape is another, there is not a name for each, or the features of a token are all equal.
    """
    grid = as_array("tokens", tokens, 2)
    if grid.shape[1] != 3 or len(names) != len(grid):
        raise ValueError(f"tokens must be [n, 3] with n names, got shape {grid.shape} and {len(names)}")
    centred = grid - grid.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    if not deviation.all():
        raise ValueError("tokens must have features that differ, since those without deviation have no direction")
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(FULL_WIDTH, 3.8), layout="constrained")
        _draw_features(axes[0], grid)
        _draw_circle(axes[1], centred @ _PLANE.T, (centred / deviation) @ _PLANE.T)
        marks = [Line2D([], [], **_look(index), linestyle="") for index in range(len(names))]
        figure.legend(marks, names, loc="outside lower center", ncols=min(len(names), 3))
    return axes


_PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])  # two directions across the diagonal (1, 1, 1)


def _look(index: int) -> dict[str, Any]:
    """Return a token's colour, shape and size; a later one is smaller, so that both are seen at the same place."""
    return {
        "color": SERIES[index % len(SERIES)],
        "marker": _SHAPES[index % len(_SHAPES)],
        "markersize": max(5, 13 - 3 * index),
    }


def _draw_features(ax: Axes, tokens: np.ndarray) -> None:
    for index, token in enumerate(tokens):
        ax.plot((1, 2, 3), token, **_look(index))
    ax.set(xticks=(1, 2, 3), xlabel="feature", title="the tokens")


def _draw_circle(ax: Axes, shadows: np.ndarray, normed: np.ndarray) -> None:
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.sqrt(3) * np.cos(turn), np.sqrt(3) * np.sin(turn), color="#333333", linewidth=1)
    for index, (shadow, place) in enumerate(zip(shadows, normed, strict=True)):
        look = _look(index)
        ax.annotate("", place, shadow, arrowprops={**_ARROW, "color": look["color"], "linewidth": 1.3})
        ax.plot(*shadow, **look, markeredgecolor="white", zorder=3)
    ax.plot(0, 0, "+", color="#333333")
    ax.set(aspect="equal", title="seen along the diagonal,\nand onto the circle of deviation 1")
    ax.set_axis_off()
    ax.margins(0.12)


def plot_stream(streams: Mapping[str, Any], *, kinds: Sequence[str] = ("attention", "feed-forward")) -> np.ndarray:
    """Draw how the vector of a token walks from sub-layer to sub-layer, an arrow for what each adds.

    Each stream is seen in the plane of its own two greatest directions, at the same scale as the others.

    Args:
        streams: {title: [n + 1, d_model]}, the token before the first sub-layer and after each.
        kinds: of sub-layers, which take turns.

    Returns an array of Axes.

    Raises:
        ValueError: there is no stream, or one has fewer than two states.
    """
    paths = {title: _flat(title, stream) for title, stream in streams.items()}
    if not paths:
        raise ValueError("streams must hold at least one, got none")
    with style():
        figure, axes = plt.subplots(1, len(paths), figsize=(FULL_WIDTH, 3.4), layout="constrained", squeeze=False)
        for ax, (title, (path, sizes)) in zip(axes[0], paths.items(), strict=True):
            _draw_walk(ax, path, len(kinds))
            ax.set(title=f"{title}\nlength {sizes[0]:.0f} → {sizes[-1]:.0f}", xticks=[], yticks=[])
        _share_scale(axes[0], [path for path, _ in paths.values()])
        marks = [axes[0, 0].plot([], [], color=SERIES[kind], linewidth=2)[0] for kind in range(len(kinds))]
        figure.legend(marks, [f"{kind} adds" for kind in kinds], loc="outside lower center", ncols=len(kinds))
    return axes[0]


def _flat(title: str, stream: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the states as points [n + 1, 2] of the plane of their two greatest directions, and their lengths."""
    states = as_array(f"streams[{title!r}]", stream, 2)
    if len(states) < 2:
        raise ValueError(f"streams[{title!r}] must have at least two states, got {len(states)}")
    _, _, directions = np.linalg.svd(states, full_matrices=False)
    plane = directions[:2] * np.where(states[-1] @ directions[:2].T < 0, -1, 1)[:, None]  # either sign would do
    return states @ plane.T, np.linalg.norm(states, axis=1)


def _draw_walk(ax: Axes, path: np.ndarray, n_kinds: int) -> None:
    for number, (start, end) in enumerate(zip(path, path[1:], strict=False)):
        ax.annotate("", end, start, arrowprops={**_ARROW, "color": SERIES[number % n_kinds], "linewidth": 1.6})
    ax.plot(0, 0, "+", color="#333333", markersize=9)
    ax.plot(*path[0], "D", color="#333333", markersize=6, zorder=3)


def _share_scale(axes: Sequence[Axes], paths: Sequence[np.ndarray]) -> None:
    """Give all the same scale, each around its own path and the origin."""
    boxes = [(np.vstack([path, [[0, 0]]]).min(0), np.vstack([path, [[0, 0]]]).max(0)) for path in paths]
    half = max((high - low).max() for low, high in boxes) * 0.56
    for ax, (low, high) in zip(axes, boxes, strict=True):
        middle = (low + high) / 2
        ax.spines[:].set_color("#D0D0D0")
        ax.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half), aspect="equal")


def plot_valley(
    paths: Mapping[str, Any], loss: Callable[[Any], Any], *, limits: tuple[tuple[float, float], tuple[float, float]]
) -> np.ndarray:
    """Draw a loss over two numbers as lines of equal height, and in a panel each the paths {name: [steps, 2]} in it.

    Args:
        loss: takes places [..., 2] to their loss [...]. limits: (low, high) of each number.

    Returns the Axes, one for each path. What leaves the limits is cut off.

    Raises:
        ValueError: there is no path, or one is not in the plane.
    """
    if not paths:
        raise ValueError("paths must hold at least one named path, got none")
    walks = {name: as_array(name, path, 2) for name, path in paths.items()}
    for name, walk in walks.items():
        if walk.shape[1] != 2:
            raise ValueError(f"paths must be [steps, 2], got shape {walk.shape} for {name!r}")
    across, up = np.meshgrid(*(np.linspace(*ends, 161) for ends in limits))
    heights = np.asarray(loss(np.stack([across, up], axis=-1)))
    levels = heights.min() + np.ptp(heights) * np.linspace(0.06, 1, 9) ** 2
    with style():
        _, axes = plt.subplots(
            1, len(walks), figsize=(FULL_WIDTH, 2.9), sharey=True, squeeze=False, layout="constrained"
        )
        for index, (ax, (name, walk)) in enumerate(zip(axes[0], walks.items(), strict=True)):
            ax.contour(across, up, heights, levels=levels, colors=_GREY, linewidths=0.8)
            ax.plot(*walk.T, color=SERIES[index % len(SERIES)], linewidth=1.6, marker="o", markersize=3.5)
            ax.plot(*walk[0], marker="o", markersize=11, markerfacecolor="none", markeredgecolor="black")
            ax.plot(0, 0, marker="+", markersize=12, markeredgewidth=2, color="black")
            ax.set(xlim=limits[0], ylim=limits[1], xlabel="x", title=name)
        axes[0, 0].set_ylabel("y")
    return axes[0]
