"""The learner's version of a notebook: the same cells, and no answer on the screen before its cell is run."""

from __future__ import annotations

import copy
import re
import sys
from html import escape
from typing import Any

Json = dict[str, Any]

_WAITS = {"exercise", "check", "solution", "nbval-ignore-output"}
_QUIZ = re.compile(r"^(tl\.quiz\.)?quiz\(", re.MULTILINE)
_ASKS = re.compile(r"\bpredict", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_PERSONAL = re.compile(r"\bprogress\.(banner|course_map)\(|\bmine\.(map|by_hand|speculative)\(")
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def for_learner(notebook: Json) -> Json:
    """Return a copy in which no code cell counts as run, and those whose result is asked for show none.

    Cleared is what follows a prediction or a question of the quiz, up to the next heading; stubs, checks and solutions;
    and what shows a learner's own progress. Panels and questions keep one line that says how to wake them.
    """
    notebook = copy.deepcopy(notebook)
    asked = False
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            asked = _still_asked(source_of(cell), asked)
        elif cell["cell_type"] == "code":
            cell["execution_count"] = None
            asked = asked or _is_question(cell)
            cell["outputs"] = _outputs(cell, asked)
    notebook["metadata"] |= {"kernelspec": dict(_KERNEL), "language_info": language_info()}
    return notebook


def source_of(cell: Json) -> str:
    """Return a cell's source, which a file may hold as one text or as a list of lines."""
    return "".join(cell["source"])


def _tags_of(cell: Json) -> set[str]:
    """Return a cell's tags."""
    return set(cell["metadata"].get("tags", ()))


def _still_asked(text: str, asked: bool) -> bool:
    """Return whether a prediction is open after this text: in its last section, or earlier and no heading since."""
    headings = [match.start() for match in _HEADING.finditer(text)]
    asks = [match.start() for match in _ASKS.finditer(text)]
    if headings:
        return any(place >= headings[-1] for place in asks)
    return asked or bool(asks)


def _is_question(cell: Json) -> bool:
    return "quiz" in _tags_of(cell) or bool(_QUIZ.search(source_of(cell)))


def _outputs(cell: Json, asked: bool) -> list[Json]:
    source, tags = source_of(cell), _tags_of(cell)
    if _is_question(cell):
        return [wake_line("to answer")]
    if "widget" in tags:
        return [wake_line("to get the controls")]
    if asked or tags & _WAITS or _PERSONAL.search(source):
        return []
    return [_uncounted(output) for output in cell["outputs"]]


def _uncounted(output: Json) -> Json:
    return {**output, "execution_count": None} if "execution_count" in output else output


def wake_line(what_for: str) -> Json:
    """Return an output that says how to run its cell, and what that is for."""
    line = f"▶ Run this cell (Shift+Enter) {what_for}."
    data = {"text/html": f"<p><b>{escape(line)}</b></p>", "text/plain": line}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def language_info() -> Json:
    """Return what this Python's kernel will say of itself: a notebook that says the same is not changed by opening."""
    version = sys.version_info
    return {
        "codemirror_mode": {"name": "ipython", "version": version.major},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": f"ipython{version.major}",
        "version": ".".join(map(str, version[:3])),
    }
