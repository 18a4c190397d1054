"""Static figures: functions that take arrays and return matplotlib ``Axes``, and ``figure`` to show them.

Every figure of the course goes through ``figure(fig, alt)``: a picture on its own white card, with the
alternative text that a screen reader reads and that the stored notebook keeps. Attention weights use
cividis from 0 to 1; signed quantities use PuOr symmetric about 0; a masked cell is hatched and marked ×.
Arrays may be NumPy arrays, nested lists or torch tensors on any device.
"""

from .base import KEY, MAX_WIDTH, QUERY, VALUE
from .curves import plot_bars, plot_curves, plot_lines
from .heatmaps import plot_attention, plot_encoding, plot_heads, plot_scores
from .panels import plot_panels, plot_points, plot_scatter
from .picture import SERIES, Shown, figure, style
from .reached import plot_reached
from .rungs import plot_rungs
from .stacks import plot_stacks
from .trees import plot_tree

__all__ = [
    "KEY",
    "MAX_WIDTH",
    "QUERY",
    "SERIES",
    "VALUE",
    "Shown",
    "figure",
    "plot_attention",
    "plot_bars",
    "plot_curves",
    "plot_encoding",
    "plot_heads",
    "plot_lines",
    "plot_panels",
    "plot_points",
    "plot_scatter",
    "plot_reached",
    "plot_rungs",
    "plot_scores",
    "plot_stacks",
    "plot_tree",
    "style",
]
