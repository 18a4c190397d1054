"""Whoever follows a route runs some sections of a notebook and leaves out others: these must do without those."""

from __future__ import annotations

import json
import os

import nbformat
import pytest
from nbclient import NotebookClient

from notebook_kernel import kernel_environment
from notebook_measures import sections, source
from transformer_lib.course import notebooks, routes

ALWAYS = ("", "Terms")  # set-up and table of terms, on top of every notebook


@pytest.mark.parametrize("stop", [stop for stop in routes.EVENING.stops], ids=lambda stop: stop.id)
def test_the_sections_of_a_stop_run_without_the_others(stop, monkeypatch):
    path = notebooks.file_of(stop.entry)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    found = sections(notebook["cells"])
    chosen = [cell for name in (*ALWAYS, *stop.sections) for cell in found.get(name, [])]
    cells = [nbformat.v4.new_code_cell(source(cell)) for cell in chosen if cell["cell_type"] == "code"]
    for name, value in kernel_environment(notebook).items():
        monkeypatch.setenv(name, value)
    assert os.environ["TRANSFORMER_COURSE_STATIC"] == "1"
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=300, resources=place).execute()
