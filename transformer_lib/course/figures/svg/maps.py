"""Attention as heat maps: one head with its numbers, or every head small; a line below for one token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..plotting.base import KEY_AXIS, MAX_WIDTH, QUERY_AXIS, as_array, check_weights, shown_cells, visible_cells
from .cells import cell_values, cells, read_out, row_label, short_labels, top_words
from .colours import CIVIDIS, weight_levels
from .elements import FOCUS, Picture, escape, hover_rules, rect, text, text_width

_READOUT = 56  # px below the maps: two lines about one token, and the hint
_MARGIN, _GAP = 6, 14
_SHORT, _LONG = 12, 24  # tokens that are named on up to eight maps, and on up to four, then two side by side


@dataclass(frozen=True)
class Layout:
    """Where the maps of ``n_heads`` heads are drawn: ``columns`` side by side, squares of ``cell`` px."""

    n_heads: int
    q_labels: list[str]
    k_labels: list[str]

    @property
    def labelled(self) -> bool:
        """Whether the axes name the tokens: of a single map, of up to eight maps of 12 tokens, up to four of 24."""
        if self.n_heads == 1:
            return len(self.k_labels) <= 48
        return self.n_heads <= 8 and self.n_tokens <= _SHORT or self.paired

    @property
    def n_tokens(self) -> int:
        """The larger number of tokens, of queries or keys."""
        return max(len(self.q_labels), len(self.k_labels))

    @property
    def paired(self) -> bool:
        """Whether two maps are side by side, so that there is room for the names of more tokens."""
        return 1 < self.n_heads <= 4 and _SHORT < self.n_tokens <= _LONG

    @property
    def columns(self) -> int:
        """Number of maps side by side."""
        if self.paired:
            return 2
        return min(self.n_heads, 4 if self.n_heads <= 8 else 8)

    @cached_property
    def left(self) -> float:
        """Room for the query labels, and for the axis title above them."""
        widest = max(map(text_width, self.q_labels), default=0) if self.labelled else 0
        return _MARGIN + max(widest + 8, text_width(QUERY_AXIS) if self.n_heads == 1 else 20)

    @cached_property
    def longest(self) -> float:
        """The widest key label, in px."""
        return max(map(text_width, self.k_labels), default=0)

    @cached_property
    def cell(self) -> float:
        """The side of a square, in px."""
        overhang = 0.6 * self.longest if self.labelled else 0
        room = MAX_WIDTH - self.left - _MARGIN - overhang - _GAP * (self.columns - 1)
        widest = 46 if self.n_heads == 1 else 15 if self.paired else 24
        return min(widest, int(10 * room / (self.columns * len(self.k_labels))) / 10)

    @property
    def turned(self) -> bool:
        """Whether key labels are written at a slant."""
        return self.longest > self.cell - 2

    @cached_property
    def top(self) -> float:
        """Room above each map: its title and its key labels."""
        upright = 0.92 if self.cell < 16 else 0.8
        labels = (upright * self.longest + 8 if self.turned else 16) if self.labelled else 4
        return labels + 18

    def corner(self, head: int) -> tuple[float, float]:
        """Return the upper left corner of a head's map."""
        row, column = divmod(head, self.columns)
        step = len(self.k_labels) * self.cell + _GAP
        return self.left + column * step, 4 + self.top + row * (self.top + len(self.q_labels) * self.cell + 8)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the whole picture."""
        y = self.corner(self.n_heads - 1)[1]
        x = max(self.corner(i)[0] for i in range(self.n_heads))
        overhang = 0.6 * self.longest if self.labelled else 0
        width = x + len(self.k_labels) * self.cell + overhang + _MARGIN
        height = y + len(self.q_labels) * self.cell + _READOUT + 8
        return min(MAX_WIDTH, max(int(width) + 1, 420)), int(height)


def attention_map(
    weights: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    *,
    mask: Any = None,
    titles: Sequence[str] | None = None,
    query: int | None = None,
    alt: str | None = None,
) -> Picture:
    """Draw attention weights as heat maps, cividis from 0 to 1: [q_len, k_len], or [h, q, k] for a map per head.

    Pointing at a row, or reaching it with Tab, shows that query's weights below. ``mask`` [q_len, k_len] is
    boolean, True = may attend. ``query`` is the row outlined throughout.
    """
    grid = as_array("weights", weights, 2, 3)
    check_weights("weights", grid)
    grid = grid[None] if grid.ndim == 2 else grid
    q_labels = short_labels(q_tokens)
    k_labels = short_labels(q_tokens if k_tokens is None else k_tokens)
    wanted = (len(q_labels), len(k_labels))
    if grid.shape[1:] != wanted or 0 in grid.shape:
        raise ValueError(f"weights must end in shape {wanted} for these tokens, got {grid.shape}")
    visible = visible_cells(mask, wanted)
    titles = _titles(titles, len(grid))
    layout = Layout(len(grid), q_labels, k_labels)
    read = [_read(layout, grid[:, i], label, visible[i], titles) for i, label in enumerate(q_labels)]
    spoken = [row_label(label, grid[:, i], k_labels, titles) for i, label in enumerate(q_labels)]
    body = "".join(_one_map(layout, head, grid[head], visible, title) for head, title in enumerate(titles))
    if query is not None:
        body += _outline(layout, query)
    if query is not None and len(grid) == 1:
        body += _say(read[query], layout, "idle")
    says = "" if query is None else spoken[query]
    live = _rows(layout, read, spoken)
    return Picture(body, *layout.size, alt or _alt(grid, layout), says, hover_rules(len(q_labels)), live)


def _titles(titles: Sequence[str] | None, n_heads: int) -> list[str]:
    if titles is None:
        return [f"head {i + 1}" for i in range(n_heads)] if n_heads > 1 else [""]
    if len(titles) != n_heads:
        raise ValueError(f"titles must hold one per head, {n_heads}, got {len(titles)}")
    return list(titles)


def _one_map(layout: Layout, head: int, weights: np.ndarray, visible: np.ndarray, title: str) -> str:
    x, y = layout.corner(head)
    total = layout.n_heads * weights.size
    step = 1 if total <= 1500 else 3 if total <= 4000 else 7  # fewer colours keep a large picture small
    parts = [cells(weight_levels(weights, step), CIVIDIS, visible, x, y, layout.cell)]
    if layout.n_heads == 1:
        parts.append(cell_values(weights, shown_cells(weights, visible), x, y, layout.cell))
        parts.append(text(_MARGIN, y - 6, QUERY_AXIS, "soft", size=11))
    over = y - layout.top + 10
    if title:
        parts.append(text(x, over, title, "bold"))
    if head == 0 and layout.labelled:
        parts.append(text(x + (text_width(title) + 14 if title else 0), over, KEY_AXIS, "soft", size=11))
    if layout.labelled:
        parts.append(_key_labels(layout, x, y))
    if layout.labelled and head % layout.columns == 0:
        middles = [y + (i + 0.5) * layout.cell + 4 for i in range(len(layout.q_labels))]
        labelled = zip(layout.q_labels, middles, strict=True)
        parts += [text(x - 6, middle, label, "end") for label, middle in labelled]
    return "".join(parts)


def _key_labels(layout: Layout, x: float, y: float) -> str:
    middles = [x + (j + 0.5) * layout.cell for j in range(len(layout.k_labels))]
    labelled = list(zip(layout.k_labels, middles, strict=True))
    if layout.turned:
        turn, size = (-90, 11) if layout.cell < 16 else (-55, None)
        return "".join(text(middle + 4, y - 5, label, turn=turn, size=size) for label, middle in labelled)
    return "".join(text(middle, y - 5, label, "mid") for label, middle in labelled)


def _outline(layout: Layout, query: int) -> str:
    extra = f'stroke="{FOCUS}" stroke-width="2"'
    boxes = [_row_box(layout, head, query) for head in range(layout.n_heads)]
    return "".join(rect(*box, "none", extra) for box in boxes)


def _row_box(layout: Layout, head: int, query: int) -> tuple[float, float, float, float]:
    x, y = layout.corner(head)
    return x, y + query * layout.cell, len(layout.k_labels) * layout.cell, layout.cell


def _rows(layout: Layout, read: list[list[str]], spoken: list[str]) -> str:
    """Draw what the live form adds: per query a row to point at, in every line of maps, and what it then shows."""
    hint = "Point at a row, or press Tab, to read its weights."
    parts = [text(_MARGIN, layout.size[1] - 5, hint, "soft idle", size=11)]
    for i, (lines, label) in enumerate(zip(read, spoken, strict=True)):
        for head in range(0, layout.n_heads, layout.columns):
            x, y, _, tall = _row_box(layout, head, i)
            last = _row_box(layout, min(head + layout.columns, layout.n_heads) - 1, i)
            reach = f' tabindex="0" role="img" aria-label="{escape(label)}"' if head == 0 else ""
            parts.append(rect(x, y, last[0] + last[2] - x, tall, "none", f'class="row q{i}"{reach}'))
        parts.append(_say(lines, layout, f"say s{i}"))
    return "".join(parts)


def _read(layout: Layout, rows: np.ndarray, label: str, visible: np.ndarray, titles: Sequence[str]) -> list[str]:
    """Return the two lines about one query: all of its weights on a single map, else the largest of each head."""
    if len(rows) == 1:
        lines = read_out(rows[0], layout.k_labels, visible)
    else:
        tops = [top_words(row, layout.k_labels, 1) for row in rows[:8]]
        words = [f"{title}: {top}" for title, top in zip(titles, tops, strict=False)]
        lines = [" · ".join(words[:4]), " · ".join(words[4:])]
    return [f"{label} → {lines[0]}", *lines[1:]]


def _say(lines: Sequence[str], layout: Layout, kind: str) -> str:
    start = layout.size[1] - _READOUT + 12
    return "".join(text(_MARGIN, start + 16 * n, line, kind) for n, line in enumerate(lines) if line)


def _alt(grid: np.ndarray, layout: Layout) -> str:
    """Describe kind, axes, and the largest weight of all."""
    n_heads, q_len, k_len = grid.shape
    head, i, j = np.unravel_index(int(grid.argmax()), grid.shape)
    kind = "Heat map" if n_heads == 1 else f"{n_heads} heat maps, one a head,"
    where = "" if n_heads == 1 else f" in head {head + 1}"
    largest = f"{layout.q_labels[i]} reads {layout.k_labels[j]} {grid[head, i, j]:.2f}{where}"
    axes = f"{q_len} queries (rows) by {k_len} keys (columns)"
    return f"{kind} of attention weights: {axes}. Largest: {largest}."
