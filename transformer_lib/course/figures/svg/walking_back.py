"""The way back through a decoder layer: its boxes from the top down, bars for the gradients at a stop, and a tally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .elements import arrow, fit, rect, text
from .flow import Box, draw_box, residual

WIDTH, HEIGHT = 712, 340
RIGHT, WRONG = "#0072b2", "#d55e00"
_STEP, _BARS, _ROOM = 46, 446, 128  # px between boxes; where bars begin; the longest bar
_NAMES = ("norm 3", "feed-forward", "norm 2", "cross-attention", "norm 1", "self-attention")
_KINDS = ("norm", "feed-forward", "norm", "attention", "norm", "attention")
_NUMBERS = (1, 2, 3, 4, 6, 7)  # 5 is the memory, beside the cross-attention


def layer(current: int) -> str:
    """Draw the layer with arrows that lead down, the stops numbered from 1, and the ``current`` one framed."""
    boxes = [
        Box(112, 32 + _STEP * i, name, kind, stop, width=150, height=27)
        for i, (name, kind, stop) in enumerate(zip(_NAMES, _KINDS, _NUMBERS, strict=True))
    ]
    memory = Box(268, boxes[3].y, "memory", "data", 5, width=104, height=27)
    parts = [draw_box(box, current) for box in (*boxes, memory)]
    ends = [14.0, *(box.y for box in boxes[1:]), boxes[-1].bottom + 19]
    starts = [0.0, *(box.bottom for box in boxes)]
    parts += [arrow(112, start + 2, 112, end - 1, "#777", 1.5) for start, end in zip(starts[1:], ends[1:], strict=True)]
    parts.append(arrow(112, 16, 112, boxes[0].y - 1, "#777", 1.5))
    parts += [_past(boxes[lower]) for lower in (1, 3, 5)]
    parts.append(arrow(188, memory.y + 13.5, 215, memory.y + 13.5, "#777", 1.5))
    parts.append(arrow(268, memory.bottom + 1, 268, memory.bottom + 19, "#777", 1.5))
    parts += [text(268, memory.bottom + 34, "to the encoder", "mid soft"), text(124, 14, "from layer 2", "soft")]
    parts.append(text(124, boxes[-1].bottom + 20, "to the embeddings", "soft"))
    return "".join(parts)


def _past(box: Box) -> str:
    """Draw the path around a sub-layer: from the arrow above its box, past it at the left, into the arrow below."""
    out = box.x - box.width / 2 - 12
    return residual([(box.x, box.y - 14), (out, box.y - 14), (out, box.bottom + 6), (box.x, box.bottom + 6)])


def bars(title: str, rows: Sequence[tuple[str, float, float, float]]) -> str:
    """Draw a row for each gradient: its name, its right length, its length with the slip, how far off it is."""
    longest = max(max(right, wrong) for _, right, wrong, _ in rows)
    parts, y = [text(340, 24, title, "bold")], 40.0
    for name, right, wrong, off in rows:
        parts.append(text(_BARS - 8, y + 13, name, "end bold" if name == "together" else "end"))
        parts.append(rect(_BARS, y, max(_ROOM * right / longest, 1), 11, RIGHT))
        parts.append(text(_BARS + _ROOM * right / longest + 6, y + 10, f"{right:.2f}", size=11))
        if off:
            look = f'stroke="{WRONG}" stroke-width="1.5" stroke-dasharray="3 2"'
            parts.append(rect(_BARS, y + 14, max(_ROOM * wrong / longest, 1), 9, "none", look))
            parts.append(text(_BARS + _ROOM * wrong / longest + 6, y + 23, f"{wrong:.2f}, off by {off:.0%}", size=11))
        y += 34
    return "".join(parts)


def tally(slip: str, groups: Mapping[str, tuple[int, int]]) -> str:
    """Draw how many arrays of each group have a wrong gradient."""
    parts = [text(340, 212, fit(f"slip: {slip}", 372), "bold"), text(340, 230, "arrays with a wrong gradient:", "soft")]
    for i, (name, (wrong, count)) in enumerate(groups.items()):
        x, y = 340 + 190 * (i // 4), 250 + 20 * (i % 4)
        parts.append(rect(x, y - 9, 10, 10, WRONG if wrong else RIGHT))
        parts.append(text(x + 16, y, f"{name}: {wrong} of {count}"))
    parts.append(text(340, 333, "Lengths as multiples of the sound gradient from layer 2.", "soft", size=11))
    return "".join(parts)
