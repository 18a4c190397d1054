"""One step of a decoder: the words so far, what the cross-attention reads, and the word that comes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plotting.base import QUERY, weight_text
from .cells import short_labels, top_words
from .colours import ink_kind, weight_colour
from .elements import FOCUS, LINE, Picture, number, rect, text, text_width

WIDTH = 720
_LEFT, _TOP, _BELOW, _TALL = 10, 44, 190, 24  # px: of the first box; of both rows of boxes; the height of a box
_DRAWN = 0.02  # thinner lines would only be a haze


def writing_picture(weights: np.ndarray, source: Sequence[str], target: Sequence[str], step: int) -> Picture:
    """Draw step `step`, from 1: the decoder has read target[:step], and writes target[step].

    Args:
        weights: [tgt_len, src_len], row t reads target[t]; the rows up to this step are drawn.
        source, target: src_len tokens, and tgt_len + 1 tokens, "<bos>" first.
    Raises:
        ValueError: the shape does not fit the tokens, or there is no such step.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (len(target) - 1, len(source)):
        raise ValueError(f"weights must have shape {(len(target) - 1, len(source))}, got {weights.shape}")
    if not 1 <= step <= len(weights):
        raise ValueError(f"step must lie between 1 and {len(weights)}, got {step}")
    src, tgt = short_labels(source), short_labels(target)
    above, below = _middles(src, least=46), _middles(tgt)
    title = f"step {step} of {len(weights)}: reads “{target[step - 1]}”, writes “{target[step]}”"
    body = text(_LEFT, 16, title, "bold") + text(WIDTH - 10, 16, "the source, read by cross-attention", "end soft")
    body += "".join(_rays(weights[t], above, below[t + 1][0], t == step - 1) for t in range(step))
    body += "".join(
        _source(label, weight, *at) for label, weight, at in zip(src, weights[step - 1], above, strict=True)
    )
    body += "".join(_word(tgt[t], t, step, *below[t]) for t in range(step + 1))
    says = f"{title} ← {top_words(weights[step - 1], [w if w[0].isalnum() else f'“{w}”' for w in src])}"
    alt = f"The source, {len(src)} words with their weights, above the words written so far. {says}."
    table = [["source word", "weight"], *([w, f"{x:.2f}"] for w, x in zip(src, weights[step - 1], strict=True))]
    return Picture(body, WIDTH, _BELOW + _TALL + 24, alt, says, table=table)


def _middles(labels: Sequence[str], least: float = 0) -> list[tuple[float, float]]:
    """Return the middle and the width of each box of a row, squeezed where the row would be wider than the picture."""
    widths = [max(least, text_width(label) + 12) for label in labels]
    squeeze = min(1.0, (WIDTH - 2 * _LEFT) / sum(widths))
    widths = [width * squeeze for width in widths]
    return [(_LEFT + sum(widths[:i]) + width / 2, width) for i, width in enumerate(widths)]


def _rays(row: np.ndarray, above: Sequence[tuple[float, float]], to: float, now: bool) -> str:
    """Draw what one word was written from: strong now, faint if it was written earlier."""
    drawn = "".join(
        f'<path d="M{number(x)} {_TOP + _TALL}L{number(to)} {_BELOW}" stroke-width="{0.4 + 7 * weight:.1f}"/>'
        for (x, _), weight in zip(above, row, strict=True)
        if weight >= _DRAWN
    )
    return f'<g stroke="{QUERY}" fill="none" opacity="{"0.9" if now else "0.12"}">{drawn}</g>'


def _source(label: str, weight: float, middle: float, width: float) -> str:
    """Write a source word above its weight."""
    colour = weight_colour(weight)
    box = rect(middle - width / 2 + 1, _TOP, width - 2, _TALL, colour)
    value = text(middle, _TOP + 16, weight_text(float(weight)), f"mid {ink_kind(colour)}", size=11)
    return text(middle, _TOP - 6, label, "mid") + box + value


def _word(label: str, t: int, step: int, middle: float, width: float) -> str:
    """Write a target word: in a box, the new one in a strong frame; below, which one asks and which one comes."""
    new = t == step
    frame = f'stroke="{FOCUS}" stroke-width="2.5"' if new else f'stroke="{LINE}"'
    said = "new" if new else "asks" if t == step - 1 else ""
    box = rect(middle - width / 2 + 2, _BELOW, width - 4, _TALL, "none", frame)
    word = text(middle, _BELOW + 16, label, "mid bold" if new else "mid")
    return box + word + text(middle, _BELOW + _TALL + 15, said, "mid soft", size=11)
