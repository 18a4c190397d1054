"""Cells to their readers: what waits for a prediction, and that every described figure of a notebook has its entry."""

from __future__ import annotations

import ast
import json
import re

import pytest

from transformer_lib.course import cells, notebooks
from transformer_lib.course.figures.plotting import descriptions

pytestmark = pytest.mark.fast


def markdown(text, *tags):
    return {"cell_type": "markdown", "source": text, "metadata": {"tags": [*tags]}}


def code(text, *tags):
    return {"cell_type": "code", "source": text, "metadata": {"tags": [*tags]}, "outputs": []}


@pytest.mark.parametrize(
    ("before", "waits"),
    [
        ([markdown("Predict it.")], True),
        ([markdown("**Predict** it."), markdown("And look.")], True),
        ([markdown("Predict it.\n\n## Next")], False),
        ([markdown("## Next\n\nPredict it.")], True),
        ([markdown("As `tl.progress.predictions()` says.")], False),
        ([markdown("As predicted.", "telling")], False),
        ([markdown("What do you expect?"), code('predict("00.p1")', "predict")], True),
        ([code('quiz("00.q1")', "quiz")], True),
        ([code('predict("00.p1")', "predict"), markdown("## Next")], False),
    ],
)
def test_a_cell_waits_after_a_question_up_to_the_next_heading(before, waits):
    *_, (_, asked) = cells.awaited([*before, code("print(1)")])
    assert asked == waits


def test_guards_are_for_no_reader():
    kept = code("1")
    assert cells.for_readers([kept, code("assert 1", "guard"), code("assert 2", "guard", "optional")]) == [kept]


def test_every_description_is_used_and_every_name_is_described():
    used = []
    for entry in notebooks.NOTEBOOKS:
        stored = json.loads(notebooks.file_of(entry).read_text(encoding="utf-8"))["cells"]
        sources = [cells.source_of(cell) for cell in stored if cell["cell_type"] == "code"]
        names = [name for source in sources for name in described(source)]
        assert {name.partition(".")[0] for name in names} <= {entry.id}
        used += names
    assert sorted(set(used)) == sorted(descriptions.read(descriptions._FILE)) and len(used) == len(set(used))


def described(source: str) -> list[str]:
    """Return the names of the descriptions that a cell gives to tl.plotting.figure."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    figures = [call for call in calls if ast.unparse(call.func) in {"figure", "tl.plotting.figure", "plotting.figure"}]
    named = [value.value for call in figures for value in call.args if isinstance(value, ast.Constant)]
    return [name for name in named if re.fullmatch(r"(\d\d|[A-Z])\.[a-z]\w*", str(name))]
