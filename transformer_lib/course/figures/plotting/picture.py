"""How a matplotlib figure is shown: ``figure(fig, alt)``, in one style that changes no global setting."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from .base import MAX_WIDTH, checked_alt, picture_html
from .descriptions import described

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9", "#333333")
"""Colours of a figure's series, in order; each also has its own dash, marker and hatch."""

PIXELS_PER_INCH = 100
FULL_WIDTH = MAX_WIDTH / PIXELS_PER_INCH
_SAVED_DPI = 144  # sharper than it is shown at, for high-resolution screens and projectors
_STYLE = {
    "figure.dpi": PIXELS_PER_INCH,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "hatch.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


def style() -> Any:
    """Apply the course's look as a context manager (``with style(): …``); nothing outside it is changed."""
    return plt.rc_context(_STYLE)


@dataclass(frozen=True)
class Shown:
    """A finished picture: notebooks show ``html``; without a browser the alternative text stands for it."""

    html: str
    alt: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.alt}


def figure(
    fig: Figure | Axes | np.ndarray,
    alt: str,
    caption: str | None = None,
    *,
    table: Sequence[Sequence[object]] | None = None,
) -> Shown:
    """Close a figure and return it as a picture with alternative text; make it the last line of a cell.

    Args:
        fig: a figure, or the ``Axes`` (or array of them) that a ``plot_…`` function returned.
        alt: what a reader who cannot see it must know: kind, axes, the finding with its number. Or the name under
            which `notebooks/descriptions.md` has it, such as "00.cuts", so that a cell does not tell its result.
        caption: one visible line below the picture.
        table: the data as rows, the first being the headings, for a folded table below the picture.
    Raises:
        TypeError: ``fig`` is no figure or axes, or ``alt`` is no string.
        ValueError: ``alt`` is empty, or a name that is not there.
    """
    alt = described(checked_alt(alt))
    target = _figure_of(fig)
    png, pixels = _png(target)
    plt.close(target)
    width = min(MAX_WIDTH, round(pixels * PIXELS_PER_INCH / _SAVED_DPI))
    source = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    return Shown(picture_html(source, alt, width, caption, table), alt)


def _png(fig: Figure) -> tuple[bytes, int]:
    """Return the figure as a PNG of 128 colours, a quarter as large as in full colour, and its width in pixels."""
    drawn, saved = io.BytesIO(), io.BytesIO()
    with style():
        fig.savefig(drawn, format="png", dpi=_SAVED_DPI, bbox_inches="tight", pad_inches=0.08)
    image = Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(saved, format="PNG", optimize=True)
    return saved.getvalue(), image.width


def _figure_of(shown: Any) -> Figure:
    if isinstance(shown, np.ndarray) and shown.size:
        shown = shown.flat[0]
    if isinstance(shown, Axes):
        shown = shown.figure
    if not isinstance(shown, Figure):
        raise TypeError(f"fig must be a matplotlib figure or axes, got {type(shown).__name__}")
    return shown


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches."""
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
