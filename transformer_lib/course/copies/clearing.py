"""The learner's version of a notebook: the same cells, and no answer on the screen before its cell is run."""

from __future__ import annotations

import copy
import re
import sys
from html import escape
from typing import Any

from ..cells import awaited, folded, for_readers, is_question, is_telling, source_of, tags_of

Json = dict[str, Any]

_WAITS = {"exercise", "check", "solution", "nbval-ignore-output"}
_PERSONAL = re.compile(
    r"\bprogress\.(banner|course_map|predictions)\(|\bmine\.(map|by_hand|speculative|breaking|chat)\(|\.show\("
)
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def for_learner(notebook: Json) -> Json:
    """Return a copy without guards, in which no cell counts as run, and what the learner is asked for is not there yet.

    Cleared is what follows a prediction or a question of the quiz, up to the next heading; stubs, checks and solutions;
    and what shows a learner's own progress. Panels and questions keep one line that says how to wake them. What tells
    the result of a prediction opens with a click.
    """
    notebook = copy.deepcopy(notebook)
    notebook["cells"] = for_readers(notebook["cells"])
    for cell, asked in awaited(notebook["cells"]):
        if is_telling(cell):
            cell["source"] = folded(source_of(cell))
        elif cell["cell_type"] == "code":
            cell["execution_count"] = None
            cell["outputs"] = _outputs(cell, asked)
    notebook["metadata"] |= {"kernelspec": dict(_KERNEL), "language_info": language_info()}
    return notebook


def _outputs(cell: Json, asked: bool) -> list[Json]:
    tags = set(tags_of(cell))
    if "predict" in tags:  # its stored question says how to wake it, and knows no answer
        return [_uncounted(output) for output in cell["outputs"]]
    if is_question(cell):
        return [wake_line("to answer")]
    if "widget" in tags:
        return [wake_line("to get the controls")]
    if asked or tags & _WAITS or _PERSONAL.search(source_of(cell)):
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
