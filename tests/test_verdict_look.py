"""A verdict in colour, where somebody works; plain where outputs are stored or graded."""

from __future__ import annotations

import pytest

from transformer_lib.course.exercises import check, look

pytestmark = pytest.mark.fast


@pytest.fixture
def page(monkeypatch):
    shown = []
    monkeypatch.setattr("transformer_lib.course.progress.in_kernel", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    return shown


@pytest.mark.parametrize(("mark", "colour"), [("✓", "success"), ("✗", "error"), ("○", "info")])
def test_each_mark_has_its_colour_beside_its_words(mark, colour):
    html = look.html(f"{mark} 01.1 said\n  because a < b")
    assert f"var(--jp-{colour}-color1" in html
    assert f"<b>{mark} 01.1 said</b><pre>  because a &lt; b</pre>" in html
    assert "<pre>" not in look.html(f"{mark} in one line")


def test_a_check_in_a_notebook_shows_the_same_text(page, capsys):
    verdict = check("01.1", lambda query, keys, values: values[(keys @ query).argmin()])
    assert [data["text/plain"] for data in page] == [verdict.text]
    assert "error" in page[0]["text/html"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("variable", ["TRANSFORMER_COURSE_STATIC", "NBGRADER_EXECUTION"])
def test_stored_and_graded_outputs_are_plain(page, capsys, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    look.say("✓ 01.1")
    assert (page, capsys.readouterr().out) == ([], "✓ 01.1\n")
