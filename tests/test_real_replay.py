"""A notebook of the real model without the model: cells that need it show what is stored, and all others run."""

from __future__ import annotations

import json

import pytest
from IPython.core.interactiveshell import InteractiveShell

from transformer_lib.course import real
from transformer_lib.course.real import replay

pytestmark = pytest.mark.fast
WHAT = "fetch it"
STREAM = {"output_type": "stream", "name": "stdout", "text": ["Paris\n"]}
SHOWN = {"output_type": "display_data", "data": {"text/html": ["<b>", "x</b>"], "text/plain": "x"}, "metadata": {}}
CELLS = {
    "model, words = load()": [],
    "answer = model('France')\nprint(answer)": [STREAM],
    "import math\nlogits = [math.exp(1) for _ in model]": [],
    "def ask(text):\n    return model(text)": [],
    "ask('Italy')": [SHOWN],
    "other = 3": [],
    "print(other + 1)": [],
}


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """An IPython in a notebook that has stored these cells, in which `load` finds no model."""
    path = tmp_path / "23.ipynb"
    cells = [{"cell_type": "code", "source": source.splitlines(True), "outputs": out} for source, out in CELLS.items()]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# T"}, *cells]}))
    monkeypatch.setattr(replay, "notebook", lambda name: name)
    monkeypatch.setattr(replay, "file_of", lambda name: path)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shell.user_ns["load"] = lambda: replay.begin("23", WHAT, 2)
    yield shell
    InteractiveShell.clear_instance()


def run(shell, source: str) -> None:
    shell.run_cell(source).raise_error()


def test_what_needs_the_model_shows_what_is_stored(shell, capsys, monkeypatch):
    published = []
    monkeypatch.setattr("IPython.display.publish_display_data", lambda data, metadata=None: published.append(data))
    for source in CELLS:
        run(shell, source)
    assert capsys.readouterr().out == (
        "[Not run. This is what it showed where the model was:]\nParis\n"
        "[Not run. This is what it showed where the model was:]\n4\n"
    )
    assert published == [{"text/html": "<b>x</b>", "text/plain": "x"}]
    space = shell.user_ns
    absent = {name for name, value in space.items() if isinstance(value, replay.Absent)}
    assert absent == {"model", "words", "answer", "logits", "ask"}
    assert space["math"].pi > 3 and space["other"] == 3


def test_a_cell_that_is_not_stored_says_how_the_model_is_fetched(shell, capsys):
    run(shell, "model, words = load()")
    run(shell, "mine = model('Spain')")
    assert capsys.readouterr().out == f"[Not run. {WHAT}]\n"
    run(shell, "mine = 5")  # a name that is made anew is there again
    run(shell, "print(mine)")
    assert capsys.readouterr().out == "5\n"


def test_stored_outputs_come_alone_where_they_are_compared(shell, capsys, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "1")
    run(shell, "model, words = load()")
    run(shell, "answer = model('France')\nprint(answer)")
    run(shell, "mine = model('Spain')")
    assert capsys.readouterr().out == "Paris\n"


def test_what_stands_for_the_model_can_do_nothing(shell):
    run(shell, "model, words = load()")
    absent = shell.user_ns["model"]
    for use in (lambda: absent(3), lambda: absent.config, lambda: absent[0], lambda: len(absent), lambda: list(absent)):
        with pytest.raises(replay.ModelIsMissing, match=WHAT):
            use()
    assert not hasattr(absent, "_repr_html_")


def test_without_a_notebook_there_is_a_plain_error(monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    (absent,) = replay.begin("23", WHAT, 1)
    with pytest.raises(replay.ModelIsMissing, match=WHAT):
        absent.encode("x")


def test_the_model_is_loaded_or_missing(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(real, "folder", lambda dtype="float32": None)
    monkeypatch.setattr(real, "gguf_path", lambda: None)
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    for found in (*real.load("23"), real.open_file("23")):
        assert isinstance(found, replay.Absent)
    assert capsys.readouterr().out == f"{real.WHAT_TO_DO}\n" * 2
    monkeypatch.setattr(real, "folder", lambda dtype="float32": tmp_path / dtype)
    monkeypatch.setattr(real.tl, "load_pretrained", lambda path: ("model of", path.name))
    assert real.load("23", "bfloat16") == ("model of", "bfloat16")
