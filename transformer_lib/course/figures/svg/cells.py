"""The squares of a heat map, their numbers, and a query's weights in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..plotting.base import distinct_tokens, weight_text
from .colours import CIVIDIS, GREY, ink_kind, weight_levels
from .elements import fit, number, rect, text


def cells(levels: np.ndarray, table: Sequence[str], visible: np.ndarray, x: float, y: float, size: float) -> str:
    """Draw coloured squares of ``size`` px from (x, y) on, one path per colour; masked ones are hatched.

    ``levels`` [rows, columns] are indices into the colours of ``table``.
    """
    rows, columns = levels.shape
    most = int(np.bincount(levels.ravel(), minlength=len(table)).argmax())
    runs: dict[str, list[str]] = {}
    for i in range(rows):
        start = 0
        for j in range(1, columns + 1):
            here = (levels[i, start], visible[i, start])
            if j < columns and here == (levels[i, j], visible[i, j]):
                continue
            colour = table[here[0]] if here[1] else GREY
            if colour != table[most]:
                runs.setdefault(colour, []).append(f"M{start} {i}h{j - start}")
            start = j
    paths = [f'<path stroke="{colour}" d="{"".join(parts)}"/>' for colour, parts in runs.items()]
    back = rect(x, y, columns * size, rows * size, table[most])
    place = f'transform="translate({number(x)} {number(y + size / 2)})scale({number(size)})"'
    squares = f'<g {place} shape-rendering="crispEdges">{"".join(paths)}</g>'
    return back + squares + hatching(visible, x, y, size)


def hatching(visible: np.ndarray, x: float, y: float, size: float) -> str:
    """Draw diagonals over the masked cells, and a × where there is room for one."""
    masked = np.argwhere(~visible)
    if not len(masked):
        return ""
    apart = 1 if size >= 11 else 3  # small squares: every third diagonal, or the hatching would turn solid
    strokes = "".join(f"M{j} {i + 1}l{n}-{n}" for i, j, n in _diagonals(~visible) if (i + j) % apart == 0)
    place = f'transform="translate({number(x)} {number(y)})scale({number(size)})"'
    drawn = f'<path {place} stroke="#b0b0b0" stroke-width="{1 / size:.3g}" d="{strokes}"/>'
    if size >= 22:
        middle = [(x + (j + 0.5) * size, y + (i + 0.5) * size + 4) for i, j in masked]
        drawn += "".join(text(a, b, "×", "mid cross") for a, b in middle)
    return drawn


def _diagonals(masked: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield runs of masked cells that rise to the right: the lowest cell (i, j) of each, and their number."""
    cells_of = {(int(i), int(j)) for i, j in np.argwhere(masked)}
    for i, j in sorted(cells_of):
        if (i + 1, j - 1) not in cells_of:
            yield i, j, next(n for n in range(1, i + 2) if (i - n, j + n) not in cells_of)


def short_labels(tokens: Sequence[str]) -> list[str]:
    """Return tokens as axis labels: repeated ones numbered, those of more than 23 characters cut."""
    return [fit(label, 170) for label in distinct_tokens(tokens)]


def top_words(weights: np.ndarray, labels: Sequence[str], most: int = 3) -> str:
    """Return the largest weights of one query in words: "it 0.49, sat 0.34, the 0.12"; "nothing" if all are 0."""
    order = [j for j in np.argsort(-weights, kind="stable")[:most] if weights[j] > 0]
    return ", ".join(f"{labels[j]} {weight_text(float(weights[j]))}" for j in order) or "nothing"


def read_out(weights: np.ndarray, labels: Sequence[str], visible: np.ndarray) -> list[str]:
    """Return one query's visible weights on two lines, largest first: the first ten by name, the others summed."""
    order = [j for j in np.argsort(-weights, kind="stable") if visible[j]]
    words = [f"{fit(labels[j], 90)} {weight_text(float(weights[j]))}" for j in order[:10]]
    if len(order) > 10:
        words.append(f"{len(order) - 10} others {weight_text(float(weights[order[10:]].sum()))}")
    return [" · ".join(words[:5]), " · ".join(words[5:])] if words else ["masked: nothing to read", ""]


def cell_values(weights: np.ndarray, shown: np.ndarray, x: float, y: float, size: float) -> str:
    """Write the numbers into the cells, black or white depending on the colour behind them."""
    levels, parts, narrow = weight_levels(weights), [], size < 34
    for i, j in np.argwhere(shown):
        kind = f"mid {ink_kind(CIVIDIS[levels[i, j]])}"
        label = weight_text(float(weights[i, j]), short=narrow)
        middle = (x + (j + 0.5) * size, y + (i + 0.5) * size + 4)
        parts.append(text(*middle, label, kind, size=11 if narrow else None))
    return "".join(parts)


def row_label(token: str, rows: np.ndarray, labels: Sequence[str], titles: Sequence[str], most: int = 3) -> str:
    """Describe one query in words: its largest weights on a single map, or the largest of each head."""
    if len(rows) == 1:
        return f"query {token}: {top_words(rows[0], labels, most)}"
    parts = [f"{title} {top_words(row, labels, 1)}" for title, row in zip(titles, rows, strict=True)]
    return f"query {token}: {'; '.join(parts)}"
