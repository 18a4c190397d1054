"""A run of a language model as words from left to right and layers from below, one place of it patched."""

from __future__ import annotations

from collections.abc import Sequence

from .elements import FOCUS, LINE, POINTED, SOFT, line, rect, text

WIDTH, HEIGHT = 720, 330
LEFT, COLUMN, FLOOR, ROOF = 52, 74, 270, 34  # px: where the columns begin, their width, behind which layers are drawn
_BARS, _BAR = 470, 150  # where the words that are said begin, and the width of the probability 1
OWN = "#0072b2"


def height_of(layer: int, n_layers: int) -> float:
    """Return where the stream in front of a layer is drawn, in px from the top."""
    return FLOOR - (FLOOR - ROOF) * layer / n_layers


def streams(tokens: Sequence[str], n_layers: int) -> str:
    """Draw a line for each word, from the embedding below to the stream behind the last layer."""
    parts = []
    for place, token in enumerate(tokens):
        x = LEFT + COLUMN * (place + 0.5)
        parts.append(line(x, FLOOR, x, ROOF, LINE, 'stroke-width="6" stroke-linecap="round"'))
        parts.append(text(x, FLOOR + 22, token, "mid bold"))
    for layer in range(0, n_layers + 1, 5):
        y = height_of(layer, n_layers)
        parts.append(text(LEFT - 6, y + 4, str(layer), "end soft", size=11))
        parts.append(line(LEFT, y, LEFT + COLUMN * len(tokens), y, LINE, 'stroke-dasharray="2 4"'))
    parts.append(text(6, 16, "in front of layer", "soft", size=11))
    return "".join(parts)


def patched(position: int, layer: int, n_layers: int, giver: str) -> str:
    """Draw the place whose vector comes from the other run."""
    x, y = LEFT + COLUMN * (position + 0.5), height_of(layer, n_layers)
    mark = f'stroke="{FOCUS}" stroke-width="2" rx="4"'
    return rect(x - 30, y - 9, 60, 18, POINTED, mark) + text(x, y + 4, giver, "mid black", size=11)


def said(row: int, title: str, likely: Sequence[tuple[str, float]], colour: str) -> str:
    """Draw the likeliest next words with their probabilities as bars, one of three blocks below each other."""
    top = 34 + 98 * row
    parts = [text(_BARS - 30, top, title, "bold" if row == 0 else "soft", size=12)]
    for place, (word, p) in enumerate(likely):
        base = top + 20 + 20 * place
        parts.append(text(_BARS + 30, base, word, "end"))
        parts.append(rect(_BARS + 36, base - 11, max(1.0, p * _BAR), 14, colour))
        parts.append(text(_BARS + 42 + p * _BAR, base, f"{p:.2f}", size=11))
    return "".join(parts)


GREY = SOFT
