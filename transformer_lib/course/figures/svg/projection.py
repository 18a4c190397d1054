"""One token on its way through a head: its vector, its projections, the table of keys and values, the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plotting.base import KEY, QUERY, VALUE, signed_text, weight_text
from .colours import ink_kind, signed_colour, weight_colour
from .elements import LINE, arrow, fit, line, rect, text

CELL, HIGH = 46, 24  # one number, in px
_VECTORS, _TABLE, _ROW = 96, 190, 30  # y of q, k, v; of the table's headings; height of a row
_KEYS, _GAP = 110, 20


def vector(values: np.ndarray, x: float, y: float, shown: bool, largest: float) -> str:
    """Draw a row of numbers in cells, PuOr about 0; the cells are empty where nothing is computed yet."""
    parts = []
    for i, value in enumerate(values):
        left = x + i * CELL
        if not shown:
            parts.append(rect(left, y, CELL - 2, HIGH, "none", f'stroke="{LINE}" stroke-dasharray="3 3"'))
            continue
        fill = signed_colour(value, largest)
        parts.append(rect(left, y, CELL - 2, HIGH, fill, f'stroke="{LINE}"'))
        parts.append(text(left + CELL / 2 - 1, y + 16, signed_text(float(value)), f"mid {ink_kind(fill)}"))
    return "".join(parts)


def _weight(value: float, x: float, y: float, shown: bool) -> str:
    if not shown:
        return vector(np.zeros(1), x, y, False, 1.0)
    fill = weight_colour(value)
    label = text(x + CELL / 2 - 1, y + 16, weight_text(value), f"mid {ink_kind(fill)}")
    return rect(x, y, CELL - 2, HIGH, fill) + label


def top_part(token: str, x: np.ndarray, projected: Sequence[np.ndarray], shown: bool, largest: float) -> str:
    """Draw the token's vector, and below it ● q, ■ k and ◆ v, each under an arrow with its matrix."""
    parts = [text(10, 24, "x of", "bold"), text(10, 40, fit(token, 84)), vector(x, _KEYS, 16, True, largest)]
    parts.append(text(_KEYS + len(x) * CELL + 8, 32, f"[d_model {len(x)}]", "soft"))
    left = float(_KEYS)
    names = (("● q", "W_Q", "d_k", QUERY), ("■ k", "W_K", "d_k", KEY), ("◆ v", "W_V", "d_v", VALUE))
    for values, (name, matrix, width, colour) in zip(projected, names, strict=True):
        middle = left + len(values) * CELL / 2
        parts.append(arrow(middle, 50, middle, _VECTORS - 6, colour if shown else "#bbb", 1.5))
        parts.append(text(middle + 8, 74, f"× {matrix}"))
        parts.append(vector(values, left, _VECTORS, shown, largest))
        parts.append(text(left, _VECTORS + HIGH + 16, f"{name} = x {matrix}  [{width} {len(values)}]", "bold"))
        left += max(len(values) * CELL, 150) + _GAP
    return "".join(parts)


def columns(d_k: int) -> tuple[float, float, float]:
    """Return the x of score, weight and value in the table."""
    score = _KEYS + d_k * CELL + _GAP
    return score, score + CELL + _GAP, score + 2 * (CELL + _GAP) + 10


def table_part(
    tokens: Sequence[str],
    keys: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray,
    values: np.ndarray,
    *,
    current: int,
    step: int,
    largest: float,
) -> str:
    """Draw one row per token: key [d_k], score, weight, value [d_v]; what ``step`` has not reached is empty."""
    score_x, weight_x, value_x = columns(keys.shape[1])
    heads = {"token j": 10, "■ k_j": _KEYS, "score": score_x, "weight": weight_x, "◆ v_j": value_x}
    parts = [text(x, _TABLE, label, "bold") for label, x in heads.items()]
    for j, token in enumerate(tokens):
        y = _TABLE + 10 + j * _ROW
        parts.append(text(10, y + 16, fit(token, 90), "bold" if j == current else ""))
        parts.append(vector(keys[j], _KEYS, y, step >= 2, largest))
        parts.append(vector(scores[j : j + 1], score_x, y, step >= 3, max(1.0, float(np.abs(scores).max()))))
        parts.append(_weight(float(weights[j]), weight_x, y, step >= 4))
        parts.append(vector(values[j], value_x, y, step >= 2, largest))
    return "".join(parts)


def output_part(output: np.ndarray, d_k: int, n_tokens: int, shown: bool, largest: float) -> str:
    """Draw the blend of the values below their column."""
    value_x, y = columns(d_k)[2], _TABLE + 10 + n_tokens * _ROW
    parts = [line(10, y + 2, value_x + len(output) * CELL, y + 2)]
    parts.append(text(value_x - 8, y + 26, "output = sum of weight × v_j", "end bold"))
    parts.append(vector(output, value_x, y + 10, shown, largest))
    parts.append(text(value_x + len(output) * CELL + 8, y + 26, f"[d_v {len(output)}]", "soft"))
    return "".join(parts)


def height(n_tokens: int) -> int:
    """Return the height of the picture in px."""
    return _TABLE + 10 + n_tokens * _ROW + 46
