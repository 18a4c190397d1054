"""Quiz questions and predictions of a page: what its script must know to answer without a kernel."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from transformer_lib.course import predictions, quiz
from transformer_lib.course.predictions.model import surprise

CALL = re.compile(r"""\b(quiz|predict|outcome)\("([\w.]+)\"""")
TAG = re.compile(r"<[^>]+>")
CAME = re.compile(r"It is (-?[\d.]+)\.")  # a number that came out, in the line of an outcome that nobody predicted


def asked_in(source: str) -> list[tuple[str, str]]:
    """Return what a cell asks or answers, as ("quiz" | "predict" | "outcome", id)."""
    return CALL.findall(source)


def live(page: str, source: str) -> str:
    """Return the HTML that a cell has stored, with what the page's script needs to ask, or to compare."""
    for kind, name in asked_in(source):
        known = {"quiz": of_quiz, "predict": of_prediction}[kind](name) if kind != "outcome" else outcome(name, page)
        if known is None:
            continue
        data = html.escape(json.dumps(known, ensure_ascii=False), quote=True)
        page = f'<div class="asked" data-asked="{kind}" data-known="{data}">{page}</div>'
    return page


def of_quiz(name: str) -> dict[str, Any]:
    """Return a question with what is said to each answer."""
    asked = quiz.question(name)
    if isinstance(asked, quiz.Choice):
        options = [{"text": option.text, "why": option.why, "right": option.right} for option in asked.options]
        return {"id": name, "options": options}
    replies = [{"value": asked.value, "why": asked.why, "right": True}]
    replies += [{"value": value, "why": why, "right": False} for value, why in asked.near]
    return {"id": name, "replies": replies, "tolerance": asked.tolerance, "otherwise": asked.otherwise}


def of_prediction(name: str) -> dict[str, Any]:
    """Return what can be predicted."""
    asked = predictions.prediction(name)
    if isinstance(asked, predictions.Choice):
        return {"id": name, "options": [{"text": option} for option in asked.options]}
    return {"id": name, "low": asked.low, "high": asked.high}


def outcome(name: str, page: str) -> dict[str, Any] | None:
    """Return what came out, to be compared with what the reader said; None where the page does not show it."""
    asked = predictions.prediction(name)
    common = {"id": name, "surprise": surprise(name)}
    if isinstance(asked, predictions.Choice):
        line = predictions.view.compared(asked.compare("").text, None)
        shown = html.unescape(TAG.sub("", line))
        return {**common, "right": asked.right, "shown": shown} if line in page else None
    came = CAME.search(page)
    if not came:
        return None
    return {**common, "came": float(came[1]), "shown": came[0], "close": asked.close, "decimals": asked.decimals}
