"""Heat maps over tokens: attention weights, scores, heads side by side, position encodings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from .base import (
    KEY_AXIS,
    QUERY_AXIS,
    as_array,
    check_weights,
    distinct_tokens,
    ink,
    shown_cells,
    signed_text,
    visible_cells,
    weight_text,
)
from .picture import FULL_WIDTH, PIXELS_PER_INCH, new_axes, style

_QUERY_AXIS_TURNED = QUERY_AXIS.replace("↓", "←")  # turned by 90° like every y label, this points down


def plot_attention(
    weights: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    mask: Any = None,
    title: str | None = None,
    show_values: bool = True,
) -> Axes:
    """Draw attention weights [q_len, k_len] in [0, 1] as a heat map; a row per query, cividis from 0 to 1.

    ``k_tokens`` defaults to ``q_tokens``. ``mask`` [q_len, k_len] is boolean, True = may attend; the cells it
    rules out are hatched. Up to 12 tokens every weight is printed, up to 24 only those ≥ .10 and row maxima.
    """
    grid = as_array("weights", weights, 2)
    check_weights("weights", grid)
    visible = visible_cells(mask, grid.shape)
    ax = _token_axes("weights", grid.shape, q_tokens, k_tokens, ax, title)
    short = max(grid.shape) > 12
    with style():
        image = _draw_grid(ax, grid, visible, "cividis", (0.0, 1.0))
        if show_values:
            _write_values(ax, image, grid, shown_cells(grid, visible), lambda w: weight_text(w, short))
    return ax


def plot_scores(
    scores: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    mask: Any = None,
    title: str | None = None,
    decimals: int = 2,
    largest: float | None = None,
) -> Axes:
    """Draw scores [q_len, k_len] before the softmax as a heat map; PuOr symmetric about 0; −inf counts as masked.

    Up to 12 tokens every score is printed with this many ``decimals``. The colours reach to ``largest``, by default the
    largest score without its sign; give several maps the same one to compare them.
    """
    grid = as_array("scores", scores, 2, allow_negative_infinity=True)
    visible = visible_cells(mask, grid.shape) & np.isfinite(grid)
    grid = np.where(visible, grid, 0.0)
    largest = largest or float(np.abs(grid).max(initial=0.0)) or 1.0
    ax = _token_axes("scores", grid.shape, q_tokens, k_tokens, ax, title)
    with style():
        image = _draw_grid(ax, grid, visible, "PuOr", (-largest, largest))
        if max(grid.shape) <= 12:
            _write_values(ax, image, grid, visible, lambda score: signed_text(score, decimals))
    return ax


def plot_tables(
    tables: Mapping[str, Any],
    rows: Sequence[str],
    columns: Mapping[str, Sequence[str]] | None = None,
    *,
    decimals: int = 2,
    largest: float | None = None,
) -> np.ndarray:
    """Draw tables of scores {title: [n_rows, n_columns]} side by side, as `plot_scores` does; returns the Axes.

    Args:
        rows: names of the rows, the same in all tables. columns: {title: names of the columns}, by default the `rows`.
        decimals, largest: as there; without `largest` each table has colours of its own.

    Raises:
        ValueError: there is no table, `columns` names one that is not there, or a shape does not fit the names.
    """
    names = {title: (columns or {}).get(title, rows) for title in tables}
    if not tables or not {*(columns or {})} <= tables.keys():
        raise ValueError(f"tables must be at least one, and all those of columns, got {list(tables)}")
    widths = [len(name) for name in names.values()]
    shape = {"figsize": (FULL_WIDTH, 1.5 + min(0.3, 3.1 / len(rows)) * len(rows)), "layout": "constrained"}
    with style():
        _, axes = plt.subplots(1, len(tables), width_ratios=widths, squeeze=False, **shape)
        for place, (ax, (title, scores)) in enumerate(zip(axes[0], tables.items(), strict=True)):
            look = {"title": title, "decimals": decimals, "largest": largest}
            plot_scores(scores, rows, names[title], ax, **look)
            if place:
                ax.set(ylabel="")
    return axes[0]


def plot_heads(
    weights: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    *,
    mask: Any = None,
    titles: Sequence[str] | None = None,
    show_values: bool = False,
) -> np.ndarray:
    """Draw one small heat map per head of weights [n_heads, q_len, k_len]; returns the Axes, one per head.

    ``titles`` defaults to "head 1", "head 2" …; with ``show_values`` the cells carry their numbers.
    """
    heads = as_array("weights", weights, 3)
    k_tokens = q_tokens if k_tokens is None else k_tokens
    titles = [f"head {i + 1}" for i in range(len(heads))] if titles is None else list(titles)
    if len(titles) != len(heads):
        raise ValueError(f"titles must hold one per head, {len(heads)}, got {len(titles)}")
    columns = min(len(heads), 4 if len(k_tokens) <= 10 else 2)
    rows = -(-len(heads) // columns)
    height = 0.9 + (FULL_WIDTH - 1.0) / columns * len(q_tokens) / max(1, len(k_tokens))
    size = (min(FULL_WIDTH, 3.6 * columns), rows * min(height, 4.2))
    with style():
        _, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        for index, ax in enumerate(axes.flat):
            if index >= len(heads):
                ax.set_axis_off()
                continue
            look = {"mask": mask, "title": titles[index], "show_values": show_values}
            plot_attention(heads[index], q_tokens, k_tokens, ax, **look)
            if index % columns:
                ax.set(ylabel="", yticklabels=[])
            if index >= columns:
                ax.set(xlabel="")
    return axes.ravel()[: len(heads)]


def plot_encoding(encoding: Any, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw a position encoding [seq_len, d_model] as a heat map: positions from left to right, a row for each feature.

    PuOr from −1 to 1, wider where the values are.
    """
    grid = as_array("encoding", encoding, 2)
    largest = max(1.0, float(np.abs(grid).max(initial=0.0)))
    with style():
        ax = new_axes(ax, (FULL_WIDTH, 3.4))
        image = ax.imshow(grid.T, cmap="PuOr", vmin=-largest, vmax=largest, aspect="auto")
        ax.figure.colorbar(image, ax=ax, label="value", fraction=0.04, pad=0.02)
        ax.set(xlabel="position →", ylabel="feature ↓", title=title or "")
    return ax


def _token_axes(
    name: str,
    shape: tuple[int, ...],
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None,
    ax: Axes | None,
    title: str | None,
) -> Axes:
    """Return axes for a token-by-token map: whole tokens on both sides, keys on top, queries from top to bottom."""
    k_tokens = q_tokens if k_tokens is None else k_tokens
    wanted = (len(q_tokens), len(k_tokens))
    if shape != wanted:
        raise ValueError(f"{name} must have shape {wanted} for these tokens, got {shape}")
    fits = max(0.3, 4.5 / max(1, len(q_tokens)))  # on a laptop's screen, names of the keys included
    cell = min(0.62, fits, (FULL_WIDTH - 1.4) / max(1, len(k_tokens)))
    with style():
        ax = new_axes(ax, (max(3.2, 1.4 + cell * len(k_tokens)), max(1.8, 1.1 + cell * len(q_tokens))))
        labels = distinct_tokens(k_tokens)
        room = ax.get_window_extent().width / PIXELS_PER_INCH / max(1, len(k_tokens))
        steep = max(map(len, labels), default=0) * 0.09 > room
        turn = {"rotation": 60, "ha": "left", "rotation_mode": "anchor"} if steep else {}
        ax.set_xticks(range(len(k_tokens)), labels, **turn)
        ax.set_yticks(range(len(q_tokens)), distinct_tokens(q_tokens))
        ax.tick_params(top=False, bottom=False, left=False, labeltop=True, labelbottom=False)
        ax.xaxis.set_label_position("top")
        ax.set_xlabel(KEY_AXIS, labelpad=7)
        ax.set(ylabel=_QUERY_AXIS_TURNED, title=title or "")
        ax.spines[:].set_visible(False)
    return ax


def _draw_grid(ax: Axes, grid: np.ndarray, visible: np.ndarray, cmap: str, limits: tuple[float, float]) -> AxesImage:
    shown = np.ma.array(grid, mask=~visible)
    image = ax.imshow(shown, cmap=cmap, vmin=limits[0], vmax=limits[1], aspect="auto")
    grey = {"facecolor": "#e4e4e4", "edgecolor": "#b5b5b5", "hatch": "//", "linewidth": 0}
    for row, column in np.argwhere(~visible):
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **grey))
        ax.text(column, row, "×", ha="center", va="center", color="#333333")
    return image


def _write_values(
    ax: Axes, image: AxesImage, grid: np.ndarray, cells: np.ndarray, text: Callable[[float], str]
) -> None:
    for row, column in np.argwhere(cells):
        value = float(grid[row, column])
        colour = ink(*image.cmap(image.norm(value))[:3])
        ax.text(column, row, text(value), ha="center", va="center", color=colour, fontsize=8.5)
