"""Byte-pair encoding at one moment: words as boxes of tokens, pairs with their counts, the vocabulary so far."""

from __future__ import annotations

from collections.abc import Sequence

from .elements import LINE, POINTED, SOFT, fit, rect, text

BOX, ROW, WIDTH = 24, 30, 710  # height of a token, of a row, and width of the picture, in px
_PAIRS_X, _BAR_X, _BAR = 420, 540, 120
_NEW = f'stroke="{POINTED}" stroke-width="2.5"'


def token_width(token: str) -> float:
    """Return how wide a token's box is, in px."""
    return max(20.0, 8.0 * len(token) + 12)


def token_box(token: str, x: float, y: float, new: bool = False) -> str:
    """Draw a token in its box; a new one is bold with a thick border."""
    width = token_width(token)
    look = (_NEW if new else f'stroke="{LINE}"') + ' rx="3"'
    return rect(x, y, width, BOX, "none", look) + text(x + width / 2, y + 16, token, "mid bold" if new else "mid")


def words_part(words: Sequence[tuple[Sequence[str], int]], newest: str | None, y: float) -> str:
    """Draw one row per word: how often it occurs, and its tokens."""
    parts = [text(10, y, "word, as tokens", "bold"), text(10, y + 16, "times", "soft")]
    for row, (tokens, count) in enumerate(words):
        top = y + 22 + row * ROW
        parts.append(text(40, top + 16, f"{count} ×", "end"))
        x = 52.0
        for token in tokens:
            parts.append(token_box(token, x, top, token == newest))
            x += token_width(token) + 3
    return "".join(parts)


def pairs_part(pairs: Sequence[tuple[tuple[str, str], int]], y: float) -> str:
    """Draw the most frequent pairs with bars for their counts; an arrow marks the first, which is merged next."""
    parts = [text(_PAIRS_X, y, "pair", "bold"), text(_BAR_X, y, "how often", "bold")]
    if not pairs:
        parts.append(text(_PAIRS_X, y + 38, "none left: each word is one token", "soft"))
    largest = max((count for _, count in pairs), default=1)
    for row, ((left, right), count) in enumerate(pairs):
        top = y + 22 + row * ROW
        kind, fill = ("bold", POINTED) if row == 0 else ("", SOFT)
        parts.append(text(_PAIRS_X, top + 16, f"{'▶ ' if row == 0 else ''}{fit(f'{left} + {right}', 100)}", kind))
        length = max(1.0, _BAR * count / largest)
        parts.append(rect(_BAR_X, top + 5, length, 14, fill, 'fill-opacity=".75"'))
        parts.append(text(_BAR_X + length + 6, top + 16, str(count), kind))
    return "".join(parts)


def vocabulary_part(tokens: Sequence[str], newest: str | None, y: float) -> tuple[str, float]:
    """Draw the vocabulary in the order of its ids, wrapped; also returns the y below it."""
    parts = [text(10, y, f"vocabulary, {len(tokens)} tokens in the order of their ids", "bold")]
    x, top = 10.0, y + 10
    for token in tokens:
        if x + token_width(token) > WIDTH - 10:
            x, top = 10.0, top + ROW
        parts.append(token_box(token, x, top, token == newest))
        x += token_width(token) + 3
    return "".join(parts), top + BOX + 10
