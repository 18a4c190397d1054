"""A soft lookup as a table: key, score, weight, value, and the blend of the values below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plotting.base import KEY, VALUE, signed_text, weight_text
from .colours import ink_kind, signed_colour, weight_colour
from .elements import LINE, Picture, fit, line, rect, text

_WIDTH, _ROW, _TOP = 700, 30, 30
_KEY, _SCORE, _WEIGHT, _VALUE, _SHARE = 160, 286, 306, 568, 690  # px from the left edge
_BAR = 140


def lookup_table(
    names: Sequence[str],
    keys: Sequence[str],
    scores: np.ndarray,
    weights: np.ndarray,
    values: np.ndarray,
    *,
    alt: str,
    says: str = "",
) -> Picture:
    """Draw one row per entry: name, key in words, score, weight as a bar, value, weight × value; their sum last.

    ``scores``, ``weights`` and ``values`` are [n_keys]. Scores are PuOr about 0, weights cividis from 0 to 1.
    """
    heads = [(10, "entry", ""), (_KEY, "■ key", ""), (_SCORE, "score", "end")]
    heads += [(_WEIGHT + 10, "weight", ""), (_VALUE, "◆ value", "end"), (_SHARE, "weight × value", "end")]
    parts = [text(x, 16, label, f"bold {kind}".strip()) for x, label, kind in heads]
    largest = float(np.abs(scores).max(initial=0.0))
    for i, name in enumerate(names):
        y = _TOP + i * _ROW
        parts.append(text(10, y + 18, fit(name, 140)))
        parts.append(text(_KEY, y + 18, fit(keys[i], 90)))
        parts.append(_score(float(scores[i]), largest, y))
        parts.append(_weight(float(weights[i]), y))
        parts.append(text(_VALUE, y + 18, signed_text(float(values[i])), "end"))
        parts.append(text(_SHARE, y + 18, signed_text(float(weights[i] * values[i])), "end"))
    bottom = _TOP + len(names) * _ROW
    parts.append(line(10, bottom + 3, _WIDTH - 10, bottom + 3, LINE))
    parts.append(text(_WEIGHT + 10, bottom + 22, f"sum {signed_text(float(weights.sum()))}", "soft"))
    blended = signed_text(float(weights @ values))
    parts.append(text(_SHARE, bottom + 22, f"blended value {blended}", "end bold"))
    parts.append(rect(_KEY - 8, _TOP + 4, 3, len(names) * _ROW - 8, KEY))
    parts.append(rect(_VALUE - 62, _TOP + 4, 3, len(names) * _ROW - 8, VALUE))
    table = [["entry", "key", "score", "weight", "value"]]
    numbers = zip(names, keys, scores, weights, values, strict=True)
    table += [[n, k, f"{s:.2f}", f"{w:.3f}", f"{v:.2f}"] for n, k, s, w, v in numbers]
    return Picture("".join(parts), _WIDTH, bottom + 34, alt, says, table=table)


def _score(score: float, largest: float, y: float) -> str:
    colour = signed_colour(score, largest)
    cell = rect(_SCORE - 54, y + 2, 60, _ROW - 6, colour)
    return cell + text(_SCORE, y + 18, signed_text(score), f"end {ink_kind(colour)}")


def _weight(weight: float, y: float) -> str:
    frame = rect(_WEIGHT + 10, y + 4, _BAR, _ROW - 10, "none", f'stroke="{LINE}"')
    length = max(1.0, _BAR * weight)
    bar = rect(_WEIGHT + 10, y + 4, length, _ROW - 10, weight_colour(weight), f'stroke="{LINE}"')
    return frame + bar + text(_WEIGHT + _BAR + 18, y + 18, weight_text(weight))
