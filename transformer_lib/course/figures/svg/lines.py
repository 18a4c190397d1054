"""One head as lines: queries on the left, keys on the right, a line as thick as its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..plotting.base import KEY, QUERY, as_array, check_weights, weight_text
from .cells import row_label, short_labels
from .elements import Picture, circle, escape, hover_rules, number, rect, text, text_width

_TOP, _SPAN = 26, 260
_DRAWN = 0.02  # lighter lines would only be a haze
_FADE = ".tl:has(.row:hover) .ray,.tl:has(.row:focus) .ray{opacity:.06}"


def token_lines(
    weights: Any,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str] | None = None,
    *,
    query: int | None = None,
    alt: str | None = None,
) -> Picture:
    """Draw the weights [q_len, k_len] of one head as lines from each query to the keys that it reads.

    Lines below 0.02 are left out. With ``query`` the others are faint and its weights are written beside the keys;
    pointing at a query, or reaching it with Tab, does the same.
    """
    grid = as_array("weights", weights, 2)
    check_weights("weights", grid)
    q_labels = short_labels(q_tokens)
    k_labels = short_labels(q_tokens if k_tokens is None else k_tokens)
    if grid.shape != (len(q_labels), len(k_labels)) or 0 in grid.shape:
        wanted = (len(q_labels), len(k_labels))
        raise ValueError(f"weights must have shape {wanted} for these tokens, got {grid.shape}")
    step = 24 if max(grid.shape) <= 16 else 15
    left = max(text_width(label) for label in [*q_labels, "query (reads)"]) + 14
    right = left + _SPAN
    width = int(right + max(text_width(label) for label in [*k_labels, "key (is read)"]) + 60)
    height = _TOP + step * max(grid.shape) + 24
    spoken = [row_label(label, grid[i : i + 1], k_labels, [""]) for i, label in enumerate(q_labels)]
    body = _labels(q_labels, k_labels, left, right, step)
    body += "".join(_rays(grid[i], i, left, right, step, query in (None, i)) for i in range(len(q_labels)))
    if query is not None:
        body += _numbers(grid[query], width, step, "idle")
    live = "".join(_row(i, label, left, step) for i, label in enumerate(spoken))
    live += "".join(_numbers(grid[i], width, step, f"say s{i}") for i in range(len(q_labels)))
    live += text(6, height - 6, "Point at a query, or press Tab, to read its weights.", "soft idle", size=11)
    css = _FADE + hover_rules(len(q_labels), "display:inline;opacity:1")
    says = "" if query is None else spoken[query]
    return Picture(body, min(width, 720), height, alt or _alt(grid, q_labels, k_labels), says, css, live)


def _middle(i: int, step: int) -> float:
    return _TOP + (i + 0.5) * step


def _labels(q_labels: list[str], k_labels: list[str], left: float, right: float, step: int) -> str:
    parts = [text(left - 10, 14, "query (reads)", "soft end", size=11)]
    parts.append(text(right + 10, 14, "key (is read)", "soft", size=11))
    for i, label in enumerate(q_labels):
        parts.append(text(left - 10, _middle(i, step) + 4, label, "end"))
        parts.append(circle(left, _middle(i, step), 3.5, QUERY))
    for j, label in enumerate(k_labels):
        parts.append(text(right + 10, _middle(j, step) + 4, label))
        parts.append(rect(right - 3, _middle(j, step) - 3, 6, 6, KEY))
    return "".join(parts)


def _rays(weights: np.ndarray, i: int, left: float, right: float, step: int, strong: bool) -> str:
    """Draw the lines of query i; the opacity of the whole group tells the chosen query from the others."""
    x1, x2, y1 = number(left + 4), number(right - 4), number(_middle(i, step))
    drawn = [
        f'<path d="M{x1} {y1}L{x2} {number(_middle(j, step))}" stroke-width="{0.4 + 5 * weight:.1f}" '
        f'opacity="{0.35 + 0.65 * weight:.2f}"/>'
        for j, weight in enumerate(weights)
        if weight >= _DRAWN
    ]
    faint = "" if strong else ' opacity=".12"'
    return f'<g class="ray s{i}" stroke="{QUERY}" fill="none"{faint}>{"".join(drawn)}</g>'


def _row(i: int, label: str, left: float, step: int) -> str:
    reach = f'class="row q{i}" tabindex="0" role="img" aria-label="{escape(label)}"'
    return rect(2, _middle(i, step) - step / 2 + 1, left + 4, step - 2, "none", reach)


def _numbers(weights: np.ndarray, width: int, step: int, kind: str) -> str:
    """Write one query's weights as a column at the right edge."""
    words = [weight_text(float(weight)) for weight in weights]
    return "".join(text(width - 8, _middle(j, step) + 4, word, f"end {kind}") for j, word in enumerate(words))


def _alt(grid: np.ndarray, q_labels: list[str], k_labels: list[str]) -> str:
    i, j = np.unravel_index(int(grid.argmax()), grid.shape)
    largest = f"{q_labels[i]} reads {k_labels[j]} {grid[i, j]:.2f}"
    return f"Lines from {len(q_labels)} queries to the {len(k_labels)} keys they read. Thickest: {largest}."
