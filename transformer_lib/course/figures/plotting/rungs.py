"""The translator of the ladder, drawn once: each part with the number of the notebook that brings it."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from .picture import FULL_WIDTH, SERIES, style

_THERE = {"facecolor": "#D6E8F5", "edgecolor": SERIES[0], "linestyle": "-"}
_TO_COME = {"facecolor": "white", "edgecolor": "#8a8a8a", "linestyle": "--"}
_HEIGHT = 0.36  # of a box, in inches as all places here
_LEFT, _RIGHT, _MIDDLE = 0.15, 4.15, 1.95  # where the English words, the German words, and what joins them begin


class _Part(NamedTuple):
    rung: str
    text: str
    x: float
    y: float  # of the middle
    width: float


_PARTS = (
    *(_Part("02", "vector of each word", x, 0.75, 1.65) for x in (_LEFT, _RIGHT)),
    *(_Part("05", "learned", x + 1.75, 0.75, 1.05) for x in (_LEFT, _RIGHT)),
    *(_Part("06", "+ positions", x, 1.35, 1.65) for x in (_LEFT, _RIGHT)),
    _Part("10", "encoder layer", _LEFT, 1.95, 1.65),
    _Part("12", "two layers", _LEFT + 1.75, 1.95, 1.05),
    _Part("03", "keys, values", _LEFT, 2.55, 1.65),
    _Part("07", "reads earlier ones", _RIGHT, 1.95, 1.65),
    _Part("11", "own layer", _RIGHT + 1.75, 1.95, 1.05),
    _Part("03", "query", _RIGHT, 2.55, 1.65),
    _Part("02", "attention: the query reads", _MIDDLE, 3.2, 2.85),
    _Part("04", "÷ √d_k", _MIDDLE - 1.15, 3.2, 1.05),
    _Part("08", "several heads", _MIDDLE + 2.95, 3.2, 1.5),
    _Part("09", "residuals, norms, feed-forward", _MIDDLE, 3.8, 2.85),
    _Part("02", "the next German word", _MIDDLE, 4.4, 2.85),
    _Part("13", "recipe of training", _LEFT, 4.4, 1.7),
    _Part("14", "beam search", _MIDDLE + 2.95, 4.4, 1.5),
)
_ARROWS = (  # (x, y) to (x, y)
    *(((x + 0.8, y), (x + 0.8, y + 0.24)) for x in (_LEFT, _RIGHT) for y in (0.93, 1.53, 2.13)),
    ((_LEFT + 1.65, 2.62), (_MIDDLE + 0.7, 3.02)),
    ((_RIGHT, 2.62), (_MIDDLE + 2.0, 3.02)),
    ((_MIDDLE + 1.4, 3.38), (_MIDDLE + 1.4, 3.62)),
    ((_MIDDLE + 1.4, 3.98), (_MIDDLE + 1.4, 4.22)),
)


def plot_translator(reached: str) -> Axes:
    """Draw the translator of the ladder; what the notebooks up to `reached` bring is in colour, the rest dashed."""
    with style():
        figure, ax = plt.subplots(figsize=(FULL_WIDTH, 4.75))
        figure.subplots_adjust(0, 0, 1, 1)
        ax.set(xlim=(0, FULL_WIDTH), ylim=(0, 4.75))
        ax.set_axis_off()
        for part in _PARTS:
            _draw_part(ax, part, part.rung <= reached)
        for start, end in _ARROWS:
            ax.annotate("", end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": "#333333", "linewidth": 1.2})
        for x, text in ((_LEFT, "the English words"), (_RIGHT, "the German words so far")):
            ax.text(x, 0.3, text, va="center", fontsize=9.5, fontstyle="italic")
        _draw_return(ax)
    return ax


def _draw_part(ax: Axes, part: _Part, there: bool) -> None:
    look = _THERE if there else _TO_COME
    corner = (part.x, part.y - _HEIGHT / 2)
    ax.add_patch(FancyBboxPatch(corner, part.width, _HEIGHT, "round,pad=0,rounding_size=0.07", linewidth=1.2, **look))
    colour = "#111111" if there else "#595959"
    ax.text(part.x + 0.08, part.y, part.rung, va="center", fontweight="bold", fontsize=9, color=colour)
    ax.text(part.x + 0.34, part.y, part.text, va="center", fontsize=9, color=colour)


def _draw_return(ax: Axes) -> None:
    """The line by which a word that was written becomes one of those so far."""
    end = FULL_WIDTH - 0.12
    ax.plot([_MIDDLE + 4.45, end, end], [4.4, 4.4, 0.3], color="#333333", linewidth=1.2)
    ax.annotate("", (_RIGHT + 1.75, 0.3), xytext=(end, 0.3), arrowprops={"arrowstyle": "-|>", "color": "#333333"})
