"""What a cell of a notebook is to its reader: hidden, waiting to be run, or telling what happened when it was.

A *guard* (tag `guard`) holds the assertions about the cell above it. Tests run it; no reader gets it. A *telling*
(tag `telling`) says what came out of a prediction. It is folded wherever the prediction can still be made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

Cell = dict[str, Any]

_QUIZ = re.compile(r"^(tl\.quiz\.)?quiz\(", re.MULTILINE)
_ASKS = re.compile(r"\bpredict", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


def text_of(field: str | list[str]) -> str:
    """Return a field of a notebook's file, which may be a list of lines, as text."""
    return field if isinstance(field, str) else "".join(field)


def source_of(cell: Cell) -> str:
    """Return the source of a cell."""
    return text_of(cell["source"])


def tags_of(cell: Cell) -> list[str]:
    """Return the tags of a cell."""
    return cell["metadata"].get("tags", [])


def for_readers(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells without the guards."""
    return [cell for cell in cells if "guard" not in tags_of(cell)]


def is_question(cell: Cell) -> bool:
    """Return whether a code cell asks: a question of the quiz, or a prediction to commit to."""
    return bool({"quiz", "predict"} & set(tags_of(cell))) or bool(_QUIZ.search(source_of(cell)))


def is_telling(cell: Cell) -> bool:
    """Return whether a Markdown cell says what came out of a prediction."""
    return cell["cell_type"] == "markdown" and "telling" in tags_of(cell)


def awaited(cells: Iterable[Cell]) -> Iterator[tuple[Cell, bool]]:
    """Yield each cell, and whether the reader has been asked what it will show: since a prediction, up to a heading."""
    asked = False
    for cell in cells:
        if cell["cell_type"] == "markdown":
            asked = asked if is_telling(cell) else asks(source_of(cell), asked)
        elif cell["cell_type"] == "code":
            asked = asked or is_question(cell)
        yield cell, asked


def asks(text: str, asked: bool = False) -> bool:
    """Return whether a prediction is open after this text: in its last section, or earlier and no heading since."""
    text = _CODE.sub("", text)
    headings = [match.start() for match in _HEADING.finditer(text)]
    questions = [match.start() for match in _ASKS.finditer(text)]
    if headings:
        return any(place >= headings[-1] for place in questions)
    return asked or bool(questions)


def folded(text: str, summary: str = "What happened") -> str:
    """Return Markdown that opens with a click: blank lines around it let formulas, lists and tables through."""
    return f"<details><summary><b>{summary}</b></summary>\n\n{text.strip()}\n\n</details>"
