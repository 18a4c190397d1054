"""A language model at work: the question, the answer so far, and the likeliest tokens that may come next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ..plotting.base import QUERY, weight_text
from .elements import FOCUS, LINE, Picture, fit, line, rect, text

WIDTH = 720
_LINES, _LETTERS = 4, 92  # of the answer, and in each of them
_BARS, _ROW, _LEFT, _LONG = 108, 22, 190, 430  # px: top of the bars, height of a row, where bars begin, the longest


@dataclass(frozen=True)
class NextWord:
    """What is drawn: the likeliest tokens with their probabilities, and which of them comes."""

    question: str
    answer: str
    tokens: Sequence[str]
    probabilities: Sequence[float]
    chosen: str
    how: str  # at which temperature, such as "at temperature 0.7"


def visible(said: str) -> str:
    """Return a text in one line, with signs for line breaks and for what cannot be printed."""
    return "".join(c if c.isprintable() else "⏎" if c == "\n" else "▯" for c in said)


def token_name(token: str) -> str:
    """Return a token in quotes, a space at its beginning shown as ␣."""
    shown = visible(token)
    return f"“␣{shown[1:]}”" if shown.startswith(" ") else f"“{shown}”"


def next_word_picture(shown: NextWord) -> Picture:
    """Draw the question, the answer so far, and a bar for each token."""
    chance = dict(zip(shown.tokens, shown.probabilities, strict=True)).get(shown.chosen)
    with_chance = "" if chance is None else f" ({weight_text(chance)})"
    says = f"{shown.how[0].upper()}{shown.how[1:]} comes {token_name(shown.chosen)}{with_chance}."
    lines = textwrap.wrap(visible(shown.answer), _LETTERS)[-_LINES:] or ["(nothing yet)"]
    body = text(10, 16, fit(f"asked: {visible(shown.question)}", WIDTH - 20), "bold")
    body += "".join(
        text(10, 36 + 16 * i, fit(row, WIDTH - 10), "" if shown.answer else "soft") for i, row in enumerate(lines)
    )
    body += line(10, _BARS - 10, WIDTH - 10, _BARS - 10, LINE)
    body += "".join(_bar(shown, i) for i in range(len(shown.tokens)))
    named = (f"{token_name(t)} {weight_text(p)}" for t, p in zip(shown.tokens, shown.probabilities, strict=True))
    alt = f"Bars for the {len(shown.tokens)} likeliest next tokens: {', '.join(named)}. {says}"
    table = [["token", "probability"]]
    table += [[token_name(t), f"{p:.3f}"] for t, p in zip(shown.tokens, shown.probabilities, strict=True)]
    return Picture(body, WIDTH, _BARS + _ROW * len(shown.tokens) + 8, alt, says, table=table)


def _bar(shown: NextWord, row: int) -> str:
    y, share, token = _BARS + _ROW * row, shown.probabilities[row], shown.tokens[row]
    kind = "end bold" if token == shown.chosen else "end"
    frame = f'stroke="{FOCUS}" stroke-width="2.5"' if token == shown.chosen else ""
    bar = rect(_LEFT, y, max(1.0, _LONG * share), _ROW - 6, QUERY, frame)
    label = text(_LEFT - 8, y + 13, fit(token_name(token), _LEFT - 20), kind)
    return label + bar + text(_LEFT + _LONG * share + 8, y + 13, weight_text(share), "soft", size=11)


def refused_picture(question: str, problem: str) -> Picture:
    """Draw why there is no answer."""
    body = text(10, 16, fit(f"asked: {visible(question)}", WIDTH - 20), "bold") + text(10, 40, fit(problem, WIDTH - 10))
    return Picture(body, WIDTH, _BARS, problem, problem)
