"""Every notebook can be read with a screen reader, as far as a program can tell."""

from __future__ import annotations

import pytest

pytest.importorskip("bs4", reason="nbconvert is not installed")

from accessible import problems
from transformer_lib.course.notebooks import NOTEBOOKS, path_of
from transformer_lib.course.teaching import notebook_files


@pytest.mark.parametrize("entry", NOTEBOOKS, ids=lambda entry: entry.id)
def test_a_notebook_can_be_read_with_a_screen_reader(entry):
    assert list(problems(notebook_files.read(path_of(entry))["cells"])) == []


TITLE = "# Title\n\n## One\n\nText.\n\n"


def markdown(source: str) -> dict:
    return {"cell_type": "markdown", "id": "m", "source": source}


def html(shown: str) -> dict:
    return {"cell_type": "code", "id": "c", "source": "f()", "outputs": [{"data": {"text/html": shown}}]}


@pytest.mark.parametrize(
    "cells",
    [
        [TITLE + "### Two\n\n## Three\n\n| a | |\n|---|---|\n| b | c |\n\n[the softmax](04.ipynb)"],
        ["# Why $d_k$?", html("<table><tr><th>a</th></tr></table><img alt='A bar.' src=x>")],
        ["# Title", html("<a href='x' aria-label='Notebook 04'>04</a><details><summary>Hint</summary>b</details>")],
    ],
)
def test_nothing_is_said_about_what_is_right(cells):
    assert list(problems(markdown(each) if isinstance(each, str) else each for each in cells)) == []


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ([markdown("## One")], "level 1, got levels [2]"),
        ([markdown("# One\n\n# Two")], "level 1, got levels [1, 1]"),
        ([markdown("# One"), html("<h1>Two</h1>")], "level 1, got levels [1, 1]"),
        ([markdown("# One\n\n### Two")], "m: a heading of level 3 after one of level 1: Two"),
        ([markdown("# One\n\n## A\n\n## a")], "two headings of level 1 or 2 say 'a'"),
        ([markdown("# One\n\n##\n")], "m: an empty h2"),
        ([markdown("# One\n\n![](a.png)")], "m: a picture without a description"),
        ([markdown("# One"), html("<img alt=' ' src=x>")], "c: a picture without a description"),
        ([markdown("# One"), html("<table><tr><td>a</td></tr></table>")], "c: a table without a header: a"),
        ([markdown("# One\n\n| | |\n|---|---|\n| a | b |")], "m: a table without a header: a b"),
        ([markdown("# One\n\n[here](a.html)")], "m: a link that does not say where it leads"),
        ([markdown("# One\n\n[https://a.org/b](https://a.org/b)")], "m: a link that does not say where it leads"),
        ([markdown("# One"), html("<a href='x'>→</a>")], "c: a link that does not say where it leads"),
        ([markdown("# One"), html("<details>b</details>")], "c: a folded part without a title"),
    ],
)
def test_each_slip_is_named(cells, problem):
    [said] = problems(cells)
    assert problem in said
