"""Boxes and arrows: the parts of a model and what flows between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .elements import SOFT, arrow, line, polyline, rect, text

FILLS = {
    "data": "#e8e8e8",
    "embedding": "#cfe3f5",
    "attention": "#fbd9b5",
    "norm": "#f4efbf",
    "feed-forward": "#d3ebd2",
    "head": "#e2d5ee",
}
"""Fills by kind of part; the label inside is black on all of them, in either theme."""

CURRENT = "#d55e00"
"""The frame of the current part, which is thicker, too."""


@dataclass(frozen=True)
class Box:
    """One part, centred at ``x``, its top at ``y``; ``kind`` is a key of FILLS, ``step`` its number."""

    x: float
    y: float
    label: str
    kind: str
    step: int
    width: float = 206
    height: float = 28

    @property
    def bottom(self) -> float:
        """The y of its lower edge."""
        return self.y + self.height


def draw_box(box: Box, current: int) -> str:
    """Draw a box with its step number at its left; the current one has a heavy frame and a pointer."""
    here = box.step == current
    frame = f'rx="5" stroke="{CURRENT if here else "#777"}" stroke-width="{4 if here else 1}"'
    left = box.x - box.width / 2
    parts = [rect(left, box.y, box.width, box.height, FILLS[box.kind], frame)]
    parts.append(text(box.x + 10, box.y + 18, box.label, "mid black bold" if here else "mid black"))
    label, kind = (f"▶ {box.step}", "black bold") if here else (box.step, "black")
    parts.append(text(left + 7, box.y + 18, label, kind, size=11))
    return "".join(parts)


def up(lower: Box, upper: Box) -> str:
    """Draw an arrow from a box to the one above it."""
    return arrow(lower.x, lower.y, upper.x, upper.bottom + 1, "#777", 1.5)


def around(source: Box, target: Box) -> str:
    """Draw the residual path: from below ``source``, past it on the right, into ``target``."""
    start, end, edge = source.bottom + 7, target.y + target.height / 2, source.x + source.width / 2
    return residual([(source.x, start), (edge + 12, start), (edge + 12, end), (edge + 2, end)])


def residual(corners: Sequence[tuple[float, float]]) -> str:
    """Draw a path that goes past a part of the model."""
    return polyline(corners, 'fill="none" stroke="#777" stroke-width="1.2" stroke-dasharray="3 3"')


def frame(boxes: Sequence[Box], label: str, side: int) -> str:
    """Draw a dashed frame around the boxes of one layer, with how often it is repeated beside it."""
    left = min(box.x - box.width / 2 for box in boxes) - 34
    right = max(box.x + box.width / 2 for box in boxes) + 20
    top, bottom = min(box.y for box in boxes) - 10, max(box.bottom for box in boxes) + 14
    look = f'rx="10" stroke="{SOFT}" stroke-dasharray="6 4"'
    at = left - 8 if side < 0 else right + 8
    name = text(at, (top + bottom) / 2, label, "end bold" if side < 0 else "bold")
    return rect(left, top, right - left, bottom - top, "none", look) + name


def across(source: Box, target: Box) -> str:
    """Draw the path from the top of one stack over to a box of the other."""
    turn = target.x - target.width / 2 - 62
    start, y, thin = source.y + source.height / 2, target.y + target.height / 2, 'stroke-width="1.5"'
    out = line(source.x + source.width / 2, start, turn, start, "#777", thin)
    down = line(turn, start, turn, y, "#777", thin)
    return out + down + arrow(turn, y, target.x - target.width / 2 - 1, y, "#777", 1.5)
