"""The prefixes of a sentence as a tree, one column per token: what was kept, what ended, what was dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..plotting.base import signed_text
from .elements import LINE, fit, line, text, text_width
from .flow import CURRENT

COLUMNS = 6
"""Columns that fit into the picture; a longer tree shows its last ones."""

_LEFT, _COLUMN, _LABEL, _ROW = 10, 116, 84, 32


@dataclass(frozen=True)
class Node:
    """One beginning: the ids of its path, the word it ends in, and what became of it."""

    path: tuple[int, ...]
    label: str
    score: float  # summed log-probability
    state: str  # "kept", "ended" or "dropped"


def height(columns: Sequence[Sequence[Node]]) -> int:
    """Return how many px the tree takes, whichever of its columns are shown."""
    return _ROW * max(map(len, columns))


def alive(columns: Sequence[Sequence[Node]]) -> set[tuple[int, ...]]:
    """Return the paths that lead somewhere: to a sentence that ended, or to a prefix kept in the last column."""
    ends = [node.path for column in columns for node in column if node.state == "ended"]
    ends += [node.path for node in columns[-1] if node.state == "kept"]
    return {path[:n] for path in ends for n in range(1, len(path) + 1)}


def draw_tree(columns: Sequence[Sequence[Node]], y: float, best: Sequence[int]) -> str:
    """Draw the last COLUMNS columns from ``y`` down; the ``best`` path is heavy, dead ends are dashed and soft."""
    first, living, parts = max(0, len(columns) - COLUMNS), alive(columns), []
    places = {
        node.path: (_LEFT + k * _COLUMN, y + row * _ROW, node)
        for k, column in enumerate(columns[first:])
        for row, node in enumerate(column)
    }
    for x, top, node in places.values():
        on_best = tuple(best[: len(node.path)]) == node.path
        lost = node.state == "dropped" or node.path not in living
        if node.path[:-1] in places:
            parts.append(_edge(places[node.path[:-1]], x, top, on_best, lost))
        mark = "✓ " if node.state == "ended" else ""
        kind = "bold" if on_best else "soft" if lost else ""
        parts.append(text(x, top + 12, fit(mark + node.label, _LABEL), kind))
        parts.append(text(x, top + 25, signed_text(node.score), "soft", size=11))
    return "".join(parts)


def _edge(parent: tuple[float, float, Node], x: float, top: float, on_best: bool, lost: bool) -> str:
    """Draw the line from the end of the parent's label to the child's."""
    left, above, node = parent
    start = left + min(_LABEL, text_width(node.label) + (14 if node.state == "ended" else 0)) + 3
    look = 'stroke-width="1.2" stroke-dasharray="4 3"' if lost else f'stroke-width="{3.5 if on_best else 1.8}"'
    return line(start, above + 8, x - 5, top + 8, LINE if lost else CURRENT if on_best else "#777", look)
