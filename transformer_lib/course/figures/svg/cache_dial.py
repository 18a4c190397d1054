"""Caches as bars: each row a model's shape, how many bytes one conversation takes, and how many fit on a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .elements import TEXT, fit, line, rect, text

YOURS, OTHERS, FULL = "#e69f00", "#0072b2", "#bbbbbb"
WIDTH, TOP, ROW = 720, 64, 44
_LEFT, _BAR, _AFTER = 252, 276, 84  # px: where bars begin, the longest one, and room for its bytes


@dataclass(frozen=True)
class Row:
    """One bar: a model's name, its shape in words, the bytes of its cache, without its window, and who fits."""

    name: str
    shape: str
    bytes: int
    whole: int
    shown: str
    users: str


def height(n_rows: int) -> int:
    """Return the height of the picture in px."""
    return TOP + ROW * n_rows + 8


def bars(rows: Sequence[Row], title: str, card: str) -> str:
    """Draw the rows under a title; the first one is the reader's. A grey rest is what a window saves."""
    most = max(row.whole for row in rows)
    parts = [text(12, 18, title, "bold"), text(_LEFT, 46, "cache of one conversation", "soft")]
    parts.append(text(_LEFT + _BAR + _AFTER + 8, 46, card, "soft"))
    for number, row in enumerate(rows):
        y = TOP + ROW * number
        colour = OTHERS if number else YOURS
        parts.append(text(12, y + 14, fit(row.name, _LEFT - 16), "" if number else "bold"))
        parts.append(text(12, y + 29, fit(row.shape, _LEFT - 16, 11), "soft", size=11))
        whole, kept = (max(1.0, _BAR * size / most) for size in (row.whole, row.bytes))
        if row.whole > row.bytes:
            parts.append(rect(_LEFT + kept, y + 3, whole - kept, 14, "none", f'stroke="{FULL}" stroke-dasharray="3 2"'))
        parts.append(rect(_LEFT, y + 3, kept, 14, colour))
        parts.append(text(_LEFT + whole + 8, y + 14, row.shown))
        parts.append(text(_LEFT + _BAR + _AFTER + 8, y + 14, row.users, "" if number else "bold"))
    return "".join(parts) + line(_LEFT, TOP - 6, _LEFT, TOP + ROW * len(rows) - 20, TEXT)
