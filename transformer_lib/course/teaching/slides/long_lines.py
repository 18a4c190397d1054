"""Lines of Python that are too long for a slide, broken inside their brackets."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, LEGIBLE, DEEPER = 92, 118, 8
"""Characters that a slide's line holds at the plain size and at the least, and the indent of a continued line."""


@dataclass(frozen=True)
class Gap:
    """A space inside brackets, where a line may be broken: its column, and whether it stands after a comma."""

    column: int
    after_comma: bool


def broken(source: str) -> list[str]:
    """Return the lines of a source, those of more than WIDTH characters as several."""
    lines = source.splitlines()
    if all(len(line) <= WIDTH for line in lines):
        return lines
    gaps = _gaps(source)
    return [part for row, line in enumerate(lines, 1) for part in _cut(line, gaps[row])]


def _gaps(source: str) -> dict[int, list[Gap]]:
    """Return the gaps of each line; none from where the source is not Python, as after a command of IPython."""
    found: dict[int, list[Gap]] = defaultdict(list)
    depth = strings = 0
    end, text = (0, 0), ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            inside = depth > 0 and not strings and token.type != tokenize.COMMENT
            if inside and token.start[0] == end[0] and token.start[1] > end[1]:
                found[end[0]].append(Gap(end[1], text == ","))
            kind = tokenize.tok_name[token.type]
            strings += kind.endswith("STRING_START") - kind.endswith("STRING_END")  # strings with values in braces
            if token.type == tokenize.OP and not strings:
                depth += (token.string in "([{") - (token.string in ")]}")
            end, text = token.end, token.string
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _cut(line: str, gaps: Sequence[Gap]) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + DEEPER)
    parts, start, room = [], 0, WIDTH
    while len(line) - start > room:
        within = [gap for gap in gaps if start < gap.column <= start + room]
        if not within:
            break
        middle = start + room // 2
        last = max(within, key=lambda gap: (gap.after_comma and gap.column > middle, gap.column))
        parts.append(line[start : last.column])
        start, room = last.column, WIDTH - len(indent)
    parts.append(line[start:])
    return [parts[0], *(indent + part.strip() for part in parts[1:])]
