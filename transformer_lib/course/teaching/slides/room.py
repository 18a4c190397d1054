"""How much of a slide its pieces fill, by a rough count of lines; what is too full becomes two slides or more.

Heights are in pixels, at the text's plain size of 30 pixels and a slide of 1280 × 720.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from .markdown import Block, blocks
from .plan import Piece, Slide

ROOM = 700
"""What fits below the title with letters of at least about 27 pixels."""
CHARACTERS, LINE, GAP = 78, 40, 15
CODE_LINE, PICTURE, FORMULA, ROW = 28, 440, 100, 48
TAG = re.compile(r"<[^>]*>")
APART = {"answer": 900, "printed": 200, "announced": 400}
"""What a division costs before an answer, before what a code prints, and after a line that ends with a colon."""


def divided(slides: Sequence[Slide]) -> list[Slide]:
    """Return the slides, each that is too full as several with the same notes."""
    return [part for slide in slides for part in _parts(slide)]


def _parts(slide: Slide) -> list[Slide]:
    heights = [height(piece.text) for piece in slide.pieces]
    if sum(heights) <= ROOM or len(heights) < 2:
        return [slide]
    ends = range(1, len(heights))
    end = min(ends, key=lambda end: max(sum(heights[:end]), sum(heights[end:])) + _cost(slide.pieces, end))
    first, *rest = slide.pieces[end:]
    following = replace(slide, title=slide.topic or slide.title, pieces=[replace(first, step=False), *rest])
    return [*_parts(replace(slide, pieces=slide.pieces[:end])), *_parts(following)]


def _cost(pieces: Sequence[Piece], end: int) -> int:
    """Return how much is lost when the slide is divided before the piece `end`, in pixels."""
    before, after = pieces[end - 1].text, pieces[end].text
    cost = APART["announced"] if before.rstrip("* ").endswith(":") else 0
    if after.startswith('<div class="answer">'):
        return cost + APART["answer"]
    return cost + (APART["printed"] if before.startswith("```") and after.startswith('<div class="printed">') else 0)


def height(text: str) -> int:
    """Return about how high a piece of Markdown or HTML stands on a slide."""
    if "<figure>" in text:
        return PICTURE + sum(map(_lines, TAG.sub("\n", text).splitlines())) * LINE
    if '<div class="quiz">' in text:
        return sum(_lines(part) * LINE + GAP for part in re.split(r"</p>|</li>", text) if TAG.sub("", part).strip())
    return sum(map(_height, blocks(text)))


def _height(block: Block) -> int:
    lines = block.text.splitlines()
    if block.kind == "code":
        return (len(lines) - 2) * CODE_LINE + 2 * GAP
    if block.kind == "math":
        return FORMULA + block.text.count(r"\\") * LINE
    if block.kind == "table":
        return (len(lines) - 1) * ROW + GAP
    items = re.split(r"\n(?=\S)", block.text) if block.kind == "list" else [block.text]
    return sum(_lines(item) * LINE + GAP for item in items if TAG.sub("", item).strip())


def _lines(text: str) -> int:
    return math.ceil(len(TAG.sub("", " ".join(text.split()))) / CHARACTERS)
