"""A sentence in which one word reads the others, and its translation below."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..plotting.base import KEY, QUERY
from .elements import FOCUS, LINE, Picture, number, rect, text
from .tokens import BOX, token_width

WIDTH, HEIGHT = 720, 300
_LARGE = 1.3  # the first picture of the course is read from the back row, too
_TOP, _GAP, _DRAWN = 118, 6, 0.02  # y of the words; px between two; lighter arcs would only be a haze


def deciding_picture(
    tokens: Sequence[str],
    weights: np.ndarray,
    reader: int,
    cue: int,
    translation: Sequence[str],
    decided: Collection[int],
    *,
    cut: bool,
    title: str,
    says: str,
) -> Picture:
    """Draw what the token `reader` reads as arcs, the cut one dashed, and the translation with its decided words bold.

    weights: [len(tokens)], the row of `reader`. decided: positions of words in `translation`.
    Raises ValueError when the weights do not fit the tokens.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (len(tokens),):
        raise ValueError(f"weights must have shape {(len(tokens),)} for these tokens, got {weights.shape}")
    marks = {reader: QUERY, cue: KEY}
    words, middles = _words(tokens, _TOP, marks)
    body = text(10, 16, title, "soft", size=11)
    order = [*(j for j in range(len(tokens)) if j != cue), cue]  # the cue's arc on top of the others
    body += "".join(_arc(middles[reader], middles[j], weights[j], cut and j == cue) for j in order if j != reader)
    body += words
    if weights.any():
        body += "".join(
            text(middles[j], _TOP + BOX + 14, f"{weights[j]:.2f}", "mid bold" if j == cue else "mid soft", size=11)
            for j in range(len(tokens))
        )
    body += text(10, _TOP + 66, "in German", "soft", size=11)
    body += _words(translation, _TOP + 74, dict.fromkeys(decided, FOCUS))[0]
    body = f'<g transform="scale({_LARGE})">{body}</g>'
    row = ", ".join(f"{token} {weight:.2f}" for token, weight in zip(tokens, weights, strict=True))
    alt = f"What “{tokens[reader]}” reads: {row}. German: {' '.join(translation)}."
    table = [["word", "weight"], *([token, f"{weight:.2f}"] for token, weight in zip(tokens, weights, strict=True))]
    return Picture(body, WIDTH, HEIGHT, alt, says, table=table)


def _words(tokens: Sequence[str], y: float, marks: dict[int, str]) -> tuple[str, list[float]]:
    """Draw tokens as boxes in a row; return the drawing and the middle of each box."""
    parts, middles, x = [], [], 10.0
    for i, token in enumerate(tokens):
        width = token_width(token)
        look = f'stroke="{marks[i]}" stroke-width="2.5"' if i in marks else f'stroke="{LINE}"'
        parts.append(rect(x, y, width, BOX, "none", f'{look} rx="3"'))
        parts.append(text(x + width / 2, y + 16, token, "mid bold" if i in marks else "mid"))
        middles.append(x + width / 2)
        x += width + _GAP
    return "".join(parts), middles


def _arc(start: float, end: float, weight: float, cut: bool) -> str:
    """Draw an arc above the words, as thick as its weight; a cut one dashed, with a cross at its top."""
    if weight < _DRAWN and not cut:
        return ""
    height = min(84.0, 20 + 0.3 * abs(end - start))
    top = _TOP - 4 - height
    path = f"M{number(start)} {_TOP - 4}Q{number((start + end) / 2)} {number(_TOP - 4 - 2 * height)}"
    path += f" {number(end)} {_TOP - 4}"
    if not cut:
        look = f'stroke="{QUERY}" stroke-width="{0.6 + 6 * weight:.1f}" opacity="{0.35 + 0.65 * weight:.2f}"'
        return f'<path d="{path}" fill="none" {look}/>'
    dashed = f'<path d="{path}" fill="none" stroke="{KEY}" stroke-width="2" stroke-dasharray="5 5"/>'
    return dashed + text((start + end) / 2, top - 4, "✕ cut", "mid bold")
