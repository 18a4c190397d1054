"""The ledger of claims, drawn: a square for each claim in the row of its topic, and one claim in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .elements import LINE, TEXT, fit, rect, text, text_width

WIDTH, LABELS, SQUARE, APART = 710, 212, 11, 11.5
LINES = {"claim": 2, "comment": 4}
"""How many lines the claim and the comment on it may take."""


def ledger_map(
    topics: Sequence[str],
    verdicts: Sequence[Sequence[tuple[str, str]]],
    fitting: Collection[str],
    chosen: str | None,
    signs: Mapping[str, str],
    colours: Mapping[str, str],
) -> str:
    """Draw a row of squares for each topic; `verdicts` holds the (id, verdict) of its claims.

    Claims that are not `fitting` are drawn as outlines, and the `chosen` one has a frame. `signs` and `colours` give
    each verdict its sign and its colour.
    """
    parts, frame = [_key(signs, colours)], ""
    for i, (topic, row) in enumerate(zip(topics, verdicts, strict=True)):
        y = 26 + i * (SQUARE + 2)
        parts.append(text(LABELS - 8, y + 9, fit(topic, LABELS, 11), "end", size=11))
        for j, (claim, verdict) in enumerate(row):
            x = LABELS + j * APART
            look = (colours[verdict], "") if claim in fitting else ("none", f'stroke="{LINE}"')
            parts.append(rect(x + 0.5, y + 0.5, SQUARE - 1, SQUARE - 1, *look))
            if claim == chosen:
                frame = rect(x - 1.5, y - 1.5, SQUARE + 3, SQUARE + 3, "none", f'stroke="{TEXT}" stroke-width="2.5"')
    return "".join(parts) + frame


def map_height(topics: Sequence[str]) -> int:
    """Return the height that `ledger_map` takes."""
    return 26 + len(topics) * (SQUARE + 2)


def _key(signs: Mapping[str, str], colours: Mapping[str, str]) -> str:
    parts, x = [], float(LABELS)
    for verdict, sign in signs.items():
        parts += [rect(x, 4, SQUARE, SQUARE, colours[verdict]), text(x + 16, 13, f"{sign} {verdict}", size=11)]
        x += 32 + text_width(f"{sign} {verdict}", 11)
    return "".join(parts)


def in_words(head: str, claim: str, comment: str, y: float) -> str:
    """Write the claim below its heading, and below that a comment, such as what is right."""
    parts = [text(10, y + 14, head, "bold")]
    y += 36
    for line in wrapped(claim, LINES["claim"]):
        parts.append(text(10, y, line))
        y += 18
    for i, line in enumerate(wrapped(comment, LINES["comment"]) if comment else ()):
        parts.append(text(10, y + 6 + 18 * i, line))
    return "".join(parts)


def words_height() -> int:
    """Return the height that `in_words` may take."""
    return 36 + 18 * (LINES["claim"] + LINES["comment"]) + 4


def wrapped(content: str, most: int, width: float = WIDTH - 20) -> list[str]:
    """Break the text into lines of at most `width` px; what does not fit into `most` lines ends in “…”."""
    lines = [""]
    for word in content.split():
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1][:-2].rstrip() + " …"]
