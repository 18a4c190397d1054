"""Static figures: functions that take arrays and return matplotlib ``Axes``, and ``figure`` to show them.

Every figure of the course goes through ``figure(fig, alt)``: a picture on its own white card, with the
alternative text that a screen reader reads and that the stored notebook keeps. Attention weights use
cividis from 0 to 1; signed quantities use PuOr symmetric about 0; a masked cell is hatched and marked ×.
Arrays may be NumPy arrays, nested lists or torch tensors on any device.
"""

from .arrows import Plane, plot_arrows, plot_paths, sense_plane
from .base import KEY, MAX_WIDTH, QUERY, VALUE
from .curves import mark_phases, plot_bars, plot_curves, plot_lines
from .descriptions import description
from .dots import plot_dots
from .each import plot_each
from .forcing import plot_forcing
from .graphs import plot_graph
from .heatmaps import plot_attention, plot_encoding, plot_heads, plot_scores, plot_tables
from .highlight import plot_highlight
from .outline import outline_cells
from .panels import plot_panels, plot_points, plot_scatter
from .partners import plot_partners
from .picture import SERIES, Shown, figure, style
from .planes import plot_fold, plot_norm, plot_stream, plot_valley
from .reached import plot_reached
from .rings import plot_rings
from .rungs import plot_translator
from .slopes import plot_slopes
from .stacks import plot_stacks
from .trees import plot_tree
from .trips import plot_trips

__all__ = [
    "KEY",
    "MAX_WIDTH",
    "Plane",
    "QUERY",
    "SERIES",
    "VALUE",
    "Shown",
    "description",
    "figure",
    "outline_cells",
    "mark_phases",
    "plot_arrows",
    "plot_attention",
    "plot_bars",
    "plot_curves",
    "plot_dots",
    "plot_each",
    "plot_encoding",
    "plot_fold",
    "plot_forcing",
    "plot_graph",
    "plot_heads",
    "plot_highlight",
    "plot_lines",
    "plot_norm",
    "plot_panels",
    "plot_paths",
    "plot_partners",
    "plot_points",
    "plot_scatter",
    "plot_reached",
    "plot_rings",
    "plot_scores",
    "plot_slopes",
    "plot_stacks",
    "plot_stream",
    "plot_tables",
    "plot_translator",
    "plot_tree",
    "plot_trips",
    "plot_valley",
    "sense_plane",
    "style",
]
