"""Fast and slow memory: what each way to compute attention carries between them."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from .base import check_room
from .picture import FULL_WIDTH, SERIES, style

_STRIP, _SQUARE = (0.5, 1.7), (1.7, 1.7)  # width and height of a matrix [n, d], and of one [n, n]
_FAST, _SLOW = (3.65, 0.95), (0.0, 2.3)  # where the two memories begin, and their heights
_FLOOR = 0.42  # of the matrices, above the name of their memory
_UP = {"color": SERIES[0], "arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
_DOWN = {"color": SERIES[1], "arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "linestyle": "--"}
_FAST_NAME, _SLOW_NAME = "fast: cache, SRAM (MiB)", "slow: RAM, HBM (GiB)"
_WIDEST, _GAP = 6.0, 0.55  # of an arrow, in points; between matrices
Moves = Mapping[str, tuple[float, float]]


def plot_trips(
    ways: Mapping[str, Moves], square: tuple[str, ...] = ("S", "A"), working: Mapping[str, str] | None = None
) -> np.ndarray:
    """Draw for each way the matrices in slow memory, and how many numbers go up to fast memory and come down again.

    Arrows up are solid, arrows down dashed; the more numbers, the wider (in proportion to the largest of all ways).

    Args:
        ways: {title: {matrix: (numbers read, numbers written)}}, one to three ways of one to six matrices.
        square: the matrices that are drawn as squares, not as strips. working: {title: what is in the fast memory}.

    Returns the Axes.

    Raises:
        ValueError: there are too few or too many ways or matrices, or a number is negative.
    """
    check_room("the number of ways", len(ways), 1, 3)
    for title, moves in ways.items():
        check_room(f"the number of matrices of {title!r}", len(moves), 1, 6)
    counts = [count for moves in ways.values() for pair in moves.values() for count in pair]
    if min(counts) < 0:
        raise ValueError(f"ways must have no negative numbers, got {min(counts):g}")
    widths = [_room(moves, square) for moves in ways.values()]
    with style():
        figure, axes = plt.subplots(
            1, len(ways), figsize=(FULL_WIDTH, 3.5), width_ratios=widths, squeeze=False, layout="constrained"
        )
        for ax, width, (title, moves) in zip(axes[0], widths, ways.items(), strict=True):
            ax.set_title(title, loc="left")
            ax.set(xlim=(-0.05, width + 0.05), ylim=(-0.1, 4.7))
            ax.set_axis_off()
            _draw_memories(ax, width, (working or {}).get(title, ""))
            _draw_moves(ax, moves, square, max(counts) or 1.0)
        handles = [
            plt.Line2D([], [], color=SERIES[0], label="read"),
            plt.Line2D([], [], color=SERIES[1], linestyle="--", label="written"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return axes[0]


def short(count: float) -> str:
    """Write a count of numbers in a few letters: 6.4 M, 2,003 M; below a thousandth of a million, all of it."""
    millions = count / 1e6
    if millions < 0.1:
        return f"{count:,.0f}"
    return f"{millions:,.1f} M" if millions < 100 else f"{millions:,.0f} M"


def _room(moves: Moves, square: tuple[str, ...]) -> float:
    return sum(_size(name, square)[0] + _GAP for name in moves) + _GAP


def _size(name: str, square: tuple[str, ...]) -> tuple[float, float]:
    return _SQUARE if name in square else _STRIP


def _draw_memories(ax: Axes, width: float, working: str) -> None:
    for (bottom, height), colour, text in ((_FAST, "#FFF3C4", _FAST_NAME), (_SLOW, "#EEEEEE", _SLOW_NAME)):
        look = {"facecolor": colour, "edgecolor": "#777777", "linewidth": 1.0}
        ax.add_patch(FancyBboxPatch((0, bottom), width, height, "round,pad=0,rounding_size=0.12", **look))
        top = text is _FAST_NAME
        place = {"y": bottom + height - 0.08, "va": "top"} if top else {"y": bottom + 0.08, "va": "bottom"}
        ax.text(x=0.12, s=text, ha="left", fontsize=8.5, fontstyle="italic", **place)
    ax.text(width / 2, _FAST[0] + 0.3, working, ha="center", va="center", fontsize=8.5)


def _draw_moves(ax: Axes, moves: Moves, square: tuple[str, ...], most: float) -> None:
    left = _GAP
    for name, (read, written) in moves.items():
        width, height = _size(name, square)
        ax.add_patch(Rectangle((left, _FLOOR), width, height, facecolor="white", edgecolor="#333333", linewidth=1.2))
        ax.text(left + width / 2, _FLOOR + height / 2, name, ha="center", va="center", fontsize=11, fontweight="bold")
        both = bool(read) and bool(written)
        for count, look, side in ((read, _UP, -1), (written, _DOWN, 1)):
            if count:
                x = left + width / 2 + both * side * width / 4
                _draw_arrow(ax, x, count, look, most)
        left += width + _GAP


def _draw_arrow(ax: Axes, x: float, count: float, look: Mapping[str, object], most: float) -> None:
    low, high = _FLOOR + _STRIP[1] + 0.04, _FAST[0]
    start, end = (low, high) if look is _UP else (high, low)
    width = 1.0 + (_WIDEST - 1.0) * count / most
    ax.annotate("", (x, end), xytext=(x, start), arrowprops={**look, "linewidth": width, "mutation_scale": 9 + width})
    card = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.9}
    height = low + (0.72 if look is _UP else 0.28) * (high - low)  # so that a pair of arrows can be read
    ax.text(x, height, short(count), ha="center", va="center", fontsize=7.5, bbox=card)
