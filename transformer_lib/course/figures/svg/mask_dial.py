"""A mask between causal and full: its grid, how far each layer's rows moved, and the next words of one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .colours import PUOR, ink_kind
from .elements import FOCUS, LINE, TEXT, fit, line, rect, text

CELL, LEFT, TOP, MOST = 27, 84, 84, 11  # px; MOST tokens fit the page
_MOVED, _BAR = 46, 90  # width of a layer's column, and of the longest bar
OLD, NEW = "#0072b2", "#e69f00"  # what the causal mask permits, and what the prefix adds
WIDTH = 720


def height(n_tokens: int) -> int:
    """Return the height of the picture in px."""
    return max(TOP + CELL * n_tokens + 34, 310)


def grid(mask: np.ndarray, labels: Sequence[str], row: int) -> str:
    """Draw the mask [n, n]: blue what a causal mask permits, orange what the prefix adds; frame the chosen row."""
    parts = [text(LEFT, 16, "who may see whom", "bold")]
    for i, j in np.ndindex(*mask.shape):
        fill = (OLD if j <= i else NEW) if mask[i, j] else "none"
        outline = f'stroke="{LINE}" stroke-width="0.5"'
        parts.append(rect(LEFT + j * CELL, TOP + i * CELL, CELL - 1, CELL - 1, fill, outline))
    for i, label in enumerate(labels):
        kind = "end bold" if i == row else "end"
        parts.append(text(LEFT - 6, TOP + (i + 0.5) * CELL + 4, fit(label, LEFT - 12), kind))
        parts.append(text(LEFT + (i + 0.5) * CELL + 4, TOP - 6, fit(label, LEFT - 12), turn=-55))
    frame = f'stroke="{FOCUS}" stroke-width="2.5"'
    parts.append(rect(LEFT - 1, TOP + row * CELL - 1, CELL * len(labels) + 1, CELL + 1, "none", frame))
    y = TOP + CELL * len(labels) + 22
    parts += [rect(LEFT, y - 10, 12, 12, OLD), text(LEFT + 18, y, "causal", size=11)]
    parts += [rect(LEFT + 76, y - 10, 12, 12, NEW), text(LEFT + 94, y, "added by the prefix", size=11)]
    return "".join(parts)


def moves(moved: np.ndarray) -> str:
    """Draw how far the rows moved, [n_layers, n] in shares of their lengths, a column for each layer."""
    left = LEFT + CELL * moved.shape[1] + 22
    parts = [text(left, 16, "how far each row moved", "bold")]
    parts.append(text(left, 34, "1 = as far as the row is long", "soft", size=11))
    middle = len(PUOR) // 2
    for layer, column in enumerate(moved):
        x = left + layer * _MOVED
        parts.append(text(x + _MOVED / 2, TOP - 6, f"layer {layer + 1}", "mid soft", size=11))
        for i, share in enumerate(column):
            fill = PUOR[round(middle * (1 - 0.9 * min(float(share), 1.0)))]
            box = f'stroke="{LINE}" stroke-width="0.5"'
            parts.append(rect(x, TOP + i * CELL, _MOVED - 1, CELL - 1, fill, box))
            shown = "0" if share == 0 else "<.01" if share < 0.01 else f"{share:.2f}".lstrip("0")
            parts.append(text(x + _MOVED / 2, TOP + (i + 0.5) * CELL + 4, shown, f"mid {ink_kind(fill)}", size=11))
    return "".join(parts)


def next_words(
    title: str, words: Sequence[tuple[str, float]], n_layers: int, n_tokens: int, y: float, colour: str
) -> str:
    """Draw the likeliest next words with their probabilities as bars, below a title."""
    left = LEFT + CELL * n_tokens + 22 + n_layers * _MOVED + 26
    room = WIDTH - left - _BAR - 46
    parts = [text(left, y, title, "bold")]
    for i, (word, p) in enumerate(words):
        base = y + 22 + 20 * i
        parts.append(text(left + room - 6, base, fit(word, room), "end"))
        parts.append(rect(left + room, base - 11, max(1.0, p * _BAR), 14, colour))
        parts.append(text(left + room + p * _BAR + 6, base, f"{p:.2f}".lstrip("0"), size=11))
    return "".join(parts) + line(left + room, y + 8, left + room, y + 22 + 20 * len(words) - 14, TEXT)
