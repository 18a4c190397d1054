"""Cross-attention as an alignment: lines from a target word to the source words it reads, and the heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plotting.base import KEY, QUERY
from .cells import cells, short_labels, top_words
from .colours import CIVIDIS, weight_levels
from .elements import FOCUS, Picture, number, rect, text, text_width

WIDTH = 720
_DRAWN = 0.02  # thinner lines would only be a haze
_SPAN, _MAP = 130, 308  # px between the two columns of words; at most, for the heat map


def alignment_picture(
    weights: np.ndarray, source: Sequence[str], target: Sequence[str], row: int, title: str
) -> Picture:
    """Draw weights [tgt_len, src_len]; the rows write the tgt_len tokens of ``target``, ``row`` is the chosen one.

    Left the source, in the middle the target, each row of the heat map beside its target word.
    Raises ValueError when the shape does not fit the tokens, or there is no such row.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (len(target), len(source)):
        raise ValueError(f"weights must have shape {(len(target), len(source))}, got {weights.shape}")
    if not 0 <= row < len(target):
        raise ValueError(f"row must lie between 0 and {len(target) - 1}, got {row}")
    src, tgt = short_labels(source), short_labels(target)
    step = min(22, _MAP // len(src))
    left = 12 + max(map(text_width, src))
    right = left + _SPAN
    at = right + 18 + max(map(text_width, tgt))
    top = 26 + 0.8 * max(map(text_width, src))
    body = text(6, 14, title, "bold") + _rays(weights, row, left + 8, right, top, step)
    body += _words(src, tgt, row, left, right, top, step)
    body += cells(weight_levels(weights), CIVIDIS, np.ones(weights.shape, dtype=bool), at, top, step)
    body += "".join(text(at + (j + 0.6) * step, top - 5, word, turn=-55) for j, word in enumerate(src))
    body += rect(at, top + row * step, len(src) * step, step, "none", f'stroke="{FOCUS}" stroke-width="2.5"')
    spoken = [word if word[0].isalnum() else f"“{word}”" for word in src]
    says = f"{title} ← {top_words(weights[row], spoken)}"
    height = int(top + step * max(len(src), len(tgt)) + 12)
    alt = f"Lines from {len(tgt)} target words to {len(src)} source words, and their heat map. {says}."
    table = [["source word", "weight"], *([word, f"{w:.2f}"] for word, w in zip(src, weights[row], strict=True))]
    return Picture(body, WIDTH, height, alt, says, table=table)


def _rays(weights: np.ndarray, row: int, left: float, right: float, top: float, step: int) -> str:
    """Draw all lines faint and those of the chosen row strong, each as thick as its weight."""
    groups = []
    for i in [*(i for i in range(len(weights)) if i != row), row]:
        drawn = "".join(
            f'<path d="M{number(right)} {number(top + (i + 0.5) * step)}L{number(left)} '
            f'{number(top + (j + 0.5) * step)}" stroke-width="{0.4 + 6 * weight:.1f}"/>'
            for j, weight in enumerate(weights[i])
            if weight >= _DRAWN
        )
        groups.append(f'<g stroke="{QUERY}" fill="none" opacity="{"0.95" if i == row else "0.13"}">{drawn}</g>')
    return "".join(groups)


def _words(src: Sequence[str], tgt: Sequence[str], row: int, left: float, right: float, top: float, step: int) -> str:
    """Write the source at the left, right-aligned, and the target in the middle, the chosen word in bold."""
    parts = [text(left, top - 10, "source", "soft end", size=11), text(right + 10, top - 10, "writes", "soft", size=11)]
    for j, word in enumerate(src):
        middle = top + (j + 0.5) * step
        parts += [text(left, middle + 4, word, "end"), rect(left + 5, middle - 3, 6, 6, KEY)]
    for i, word in enumerate(tgt):
        parts.append(text(right + 10, top + (i + 0.5) * step + 4, word, "bold" if i == row else ""))
    return "".join(parts)
