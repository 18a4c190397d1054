"""Calls of a translator that checks drafted words: which it accepts, which it rejects, and what it says itself."""

from __future__ import annotations

from collections.abc import Sequence

from .elements import LINE, SOFT, fit, line, rect, text

WIDTH, LEFT, TOP = 720, 58, 30
BOX, ROW = 72, 32  # px; nine boxes fit the page
STANDS, FALLS, OWN = "#007a5a", "#b64a00", "#0072b2"  # white letters can be read on all three
MOST = 8  # drafted words in a row


def height(calls: int) -> int:
    """Return the height of the picture in px, for as many calls as it has room for."""
    return TOP + ROW * calls + 104


def call(row: int, drafted: Sequence[str], accepted: int, own: str | None) -> str:
    """Draw one call: its drafted words, the first `accepted` of which are kept, and the target's own word, if any.

    A word behind the one that falls no longer counts, and is only outlined.
    """
    y = TOP + ROW * row
    parts = [text(LEFT - 8, y + 18, f"call {row + 1}", "end")]
    for place, word in enumerate(drafted):
        x = LEFT + BOX * place
        if place > accepted or own is None and place == accepted:
            parts.append(rect(x, y, BOX - 4, 26, "none", f'stroke="{LINE}" stroke-dasharray="3 3"'))
            parts.append(text(x + BOX / 2 - 2, y + 17, fit(word, BOX - 8, 11), "mid soft", size=11))
            continue
        parts.append(rect(x, y, BOX - 4, 26, STANDS if place < accepted else FALLS))
        parts.append(text(x + BOX / 2 - 2, y + 17, fit(word, BOX - 8, 11), "mid white", size=11))
        if place == accepted:
            parts.append(line(x + 6, y + 13, x + BOX - 10, y + 13, "#fff", 'stroke-width="1.5"'))
    if own is not None:
        x = LEFT + BOX * len(drafted)
        parts.append(rect(x, y, BOX - 4, 26, OWN))
        parts.append(text(x + BOX / 2 - 2, y + 17, fit(own, BOX - 8, 11), "mid white", size=11))
    return "".join(parts)


def legend(y: float) -> str:
    """Draw what the colours mean."""
    parts = []
    named = ((STANDS, "drafted, stands"), (FALLS, "drafted, falls"), (OWN, "the translator's own"))
    for place, (colour, name) in enumerate(named):
        x = LEFT + 160 * place
        parts += [rect(x, y - 10, 12, 12, colour), text(x + 18, y, name, size=11)]
    x = LEFT + 160 * len(named)
    parts += [rect(x, y - 10, 12, 12, "none", f'stroke="{SOFT}" stroke-dasharray="2 2"')]
    return "".join(parts) + text(x + 18, y, "no longer counts", size=11)


def totals(y: float, calls: int, greedy: int, most: int) -> str:
    """Draw the calls so far as bars: with a draft, and what greedy decoding takes for the same words."""
    parts, room = [], WIDTH - LEFT - 130
    for place, (name, count, colour) in enumerate((("with the draft", calls, STANDS), ("without", greedy, SOFT))):
        base = y + 22 * place
        parts.append(text(LEFT + 84, base + 12, name, "end", size=11))
        parts.append(rect(LEFT + 92, base, max(1.0, room * 0.8 * count / most), 16, colour))
        parts.append(text(LEFT + 98 + max(1.0, room * 0.8 * count / most), base + 12, str(count), size=11))
    return "".join(parts)
