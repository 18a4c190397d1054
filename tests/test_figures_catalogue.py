"""The list of interactive figures agrees with the panels, with the list of notebooks, and with the notebooks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from transformer_lib.course import notebooks
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.catalogue import INTERACTIVE_FIGURES

pytestmark = pytest.mark.fast

PANELS = Path(widgets.__file__).parent
BY_FUNCTION = {figure.function: figure for figure in INTERACTIVE_FIGURES}


def calls(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Return every call in the code as (name of the function, the literal given as `widget_id`)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            given = (word.value for word in node.keywords if word.arg == "widget_id")
            yield name, next((value.value for value in given if isinstance(value, ast.Constant)), None)


def ids_in_the_panels() -> dict[str, str]:
    """{name of a function: the id that its panel is remembered under}, read from the source."""
    modules = [ast.parse(file.read_text(encoding="utf-8")) for file in PANELS.glob("*.py")]
    functions = [node for module in modules for node in module.body if isinstance(node, ast.FunctionDef)]
    made = [(function.name, *call) for function in functions for call in calls(function)]
    return {function: widget_id for function, name, widget_id in made if name == "Panel" and widget_id}


def ids_in_the_notebook(entry: notebooks.Notebook) -> set[str]:
    """Return the ids of the panels that a notebook's cells make."""
    cells = nbformat.read(notebooks.file_of(entry), as_version=4).cells
    shown = [cell.source for cell in cells if "widget" in cell.metadata.get("tags", [])]
    made = [call for source in shown for call in calls(ast.parse(source))]
    fixed = ids_in_the_panels()
    return {given or fixed[name] for name, given in made if given or name in fixed}


def test_ids_and_functions_are_distinct():
    assert len({figure.id for figure in INTERACTIVE_FIGURES}) == len(INTERACTIVE_FIGURES)
    assert len(BY_FUNCTION) == len(INTERACTIVE_FIGURES)


@pytest.mark.parametrize("figure", INTERACTIVE_FIGURES, ids=lambda figure: figure.id)
def test_each_function_is_public_and_each_sentence_is_one(figure):
    assert figure.function in widgets.__all__ and callable(getattr(widgets, figure.function))
    assert figure.shows[0].isupper() or figure.shows[0] == "“"
    assert figure.shows.endswith(".") and ". " not in figure.shows


def test_each_panel_is_remembered_under_its_own_id():
    expected = {figure.function: figure.id for figure in INTERACTIVE_FIGURES}
    del expected["attention_view"]  # general: the notebook that counts it says under which id
    assert ids_in_the_panels() == expected


@pytest.mark.parametrize("entry", notebooks.NOTEBOOKS, ids=lambda entry: entry.id)
def test_each_notebook_lists_and_shows_its_figures(entry):
    listed = tuple(figure.id for figure in INTERACTIVE_FIGURES if entry.id in figure.notebooks)
    assert entry.widgets == listed
    assert ids_in_the_notebook(entry) == set(listed)


def test_every_notebook_named_exists():
    named = {name for figure in INTERACTIVE_FIGURES for name in figure.notebooks}
    assert named <= {entry.id for entry in notebooks.NOTEBOOKS}
