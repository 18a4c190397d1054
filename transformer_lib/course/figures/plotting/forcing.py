"""Training beside writing: all prefixes of a true sentence at once, or one after another from the model's own words."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from .base import check_room
from .picture import FULL_WIDTH, SERIES, style

_TRUE = {"facecolor": "#D6E8F5", "edgecolor": SERIES[0], "linewidth": 1.2}
_OTHER = {"facecolor": "#FBE3D2", "edgecolor": SERIES[1], "linewidth": 2.0}
_TOLD = {"facecolor": "white", "edgecolor": "#595959", "linewidth": 1.2, "linestyle": "--"}
_WIDTH, _HEIGHT = 0.84, 0.56  # of a box; columns and rows are 1 apart
_MOST = 7  # tokens that fit beside each other


def plot_forcing(target: Sequence[str], said: Sequence[str]) -> np.ndarray:
    """Draw what each row reads when a decoder is trained, and when it writes.

    Left all rows in one frame: each reads the true words before its label. Right a row for each pass: what it says goes
    down into the next one. A word that differs from the target's has a thick orange frame.

    Args:
        target: the true tokens, 3 to 7, from `<bos>` to `<eos>`. said: what the model writes, one fewer.

    Returns the two Axes.

    Raises:
        ValueError: the target is too short or too long, or there are not as many words as it has steps.
    """
    check_room("the number of tokens in target", len(target), 3, _MOST)
    if len(said) != len(target) - 1:
        raise ValueError(f"said must have a word for each of {len(target) - 1} steps, got {len(said)}")
    written = [target[0], *said]
    with style():
        size = (FULL_WIDTH, 0.75 + 0.41 * len(said))
        figure, axes = plt.subplots(1, 2, figsize=size, layout="constrained")
        for ax, title, words in zip(
            axes, ("Training reads the true words", "Writing reads its own"), (target, written), strict=True
        ):
            ax.set_title(title, loc="left")
            ax.set(xlim=(-0.95, len(target) - 0.4), ylim=(len(said) - 0.35, -0.75))
            ax.set_axis_off()
            _draw_rows(ax, words, target)
        _draw_frame(axes[0], len(target))
        _draw_passes(axes[1], len(said))
    return axes


def _draw_rows(ax: Axes, words: Sequence[str], target: Sequence[str]) -> None:
    """Row t has words 0 to t, which it reads, and word t + 1, dashed, which it is to say or says."""
    for row in range(len(words) - 1):
        for column in range(row + 2):
            same = words[column] == target[column]
            look = (_TRUE if same else _OTHER) if column <= row else _TOLD
            corner = (column - _WIDTH / 2, row - _HEIGHT / 2)
            ax.add_patch(FancyBboxPatch(corner, _WIDTH, _HEIGHT, "round,pad=0,rounding_size=0.12", **look))
            ax.text(column, row, words[column], ha="center", va="center", fontsize=8.5)


def _draw_frame(ax: Axes, n: int) -> None:
    """One frame around all rows."""
    look = {"facecolor": "none", "edgecolor": "#333333", "linewidth": 1.6}
    ax.add_patch(FancyBboxPatch((-0.6, -0.45), n + 0.15, n - 1.1, "round,pad=0,rounding_size=0.2", **look))
    ax.text(n - 0.6, -0.3, "one pass", ha="right", va="top", fontsize=9, fontstyle="italic")


def _draw_passes(ax: Axes, n: int) -> None:
    """A number for each pass, and an arrow from what it says into the next."""
    for row in range(n):
        ax.text(-0.6, row, f"pass {row + 1}", ha="right", va="center", fontsize=8.5, fontstyle="italic")
        if row + 1 < n:
            start, end = (row + 1, row + _HEIGHT / 2), (row + 1, row + 1 - _HEIGHT / 2)
            ax.annotate("", end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": "#333333", "linewidth": 1.2})
