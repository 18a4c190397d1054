"""The learner's own copy in a browser: the first start, coming back, an update beside an edited notebook."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lab_driver
import pytest
from lab_driver import cell, output_of, rewrite_and_run, run_cell

from transformer_lib.course import copies, notebooks, progress

pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")

FIRST, SECOND = "00_start_here.ipynb", "01_attention_is_a_lookup.ipynb"
STUB = "nearest_key_lookup(query, keys, values):"
ANSWER = "def nearest_key_lookup(query, keys, values):\n    return values[(keys @ query).argmax()]"
ASKED = 'predict("00.p1")'
PANEL, QUESTION, NUMBER = "tl.widgets.soft_lookup()", 'quiz("01.q1")', 'quiz("01.q2")'
SHOWN = "window.jupyterapp.shell.currentWidget"
DIRTY = f"{SHOWN}.content.model.dirty"
IN_SIGHT = """name => {
    const {content} = window.jupyterapp.shell.currentWidget;
    const cell = content.widgets.find(cell => cell.model.id === name), box = cell.node.getBoundingClientRect();
    return cell.isVisible && box.height > 0 && box.top > 0 && box.top < window.innerHeight;
}"""
ONLY_THIS = """async () => {  // close the other notebooks, their kernels too
    const {shell} = window.jupyterapp, shown = shell.currentWidget;
    for (const other of [...shell.widgets('main')].filter(widget => widget !== shown)) {
        await other.context?.sessionContext.shutdown();
        if (other.content?.model) other.content.model.dirty = false;
        other.close();
    }
}"""


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine(learner) -> Iterator[None]:
    """Each test has a JupyterLab of its own."""
    yield
    assert learner.strangers == [], "requests left this machine"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """The learner's home; this process looks at their folder and progress, too."""
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / "mine"))
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path


@pytest.fixture
def learner(browser, home, shots) -> Iterator[lab_driver.Lab]:
    """A browser to drive; its address is that of the JupyterLab started last."""
    yield lab_driver.Lab(browser.new_context(viewport={"width": 1100, "height": 1100}), "", home, shots)


@pytest.fixture
def make_lab(learner, home) -> Iterator[Callable]:
    """Do what `make lab` does, and return the page that opens and a function that ends it all."""
    processes = []

    def start():
        port = lab_driver.free_port()
        processes.append(lab_driver.start_course(sys.executable, home, port))
        if not lab_driver.answers(processes[-1], port, seconds=300):
            pytest.fail(f"JupyterLab did not start:\n{(home / 'log.txt').read_text(errors='replace')[-2000:]}")
        learner.address = f"http://127.0.0.1:{port}"
        page = learner.context.new_page()
        page.set_default_timeout(120_000)
        page.on("request", learner.note)
        page.goto(f"{learner.address}/?token={lab_driver.TOKEN}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        learner.wait_until_idle(page, 120)
        return page

    def stop(page):
        learner.close(page)
        processes[-1].terminate()
        processes[-1].wait(30)

    start.stop = stop
    yield start
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


def name_of(page) -> str:
    return page.evaluate(f"{SHOWN}.context.path")


def save(page, path: Path) -> dict:
    """Save as the learner does, and return what is in the file."""
    page.keyboard.press("Control+s")
    page.wait_for_function(f"!{DIRTY}")
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_first_evening_and_coming_back(learner, make_lab, home):
    page = make_lab()
    look_at_the_first_notebook(learner, page)
    play_with_the_first_panel(learner, page)
    commit_to_a_prediction(learner, page)
    go_to_the_second(learner, page)
    pass_an_exercise(learner, page)
    wake_panel_and_questions(learner, page)
    bring_an_exercise_back(learner, page)
    assert "widget-view" not in json.dumps(save(page, home / "mine" / SECOND))
    make_lab.stop(page)
    page = make_lab()
    assert name_of(page) == f"mine/{SECOND}"
    everything_stored_is_shown(learner, page)
    for source in ("import numpy", PANEL):  # a new kernel counts from 1, as the saved prompts do
        cell(page, source).locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
    cell(page, PANEL).locator(".noUi-handle").first.wait_for()


def test_no_notebook_is_changed_by_opening_it(learner, make_lab):
    page = make_lab()
    for entry in notebooks.NOTEBOOKS:
        learner.show(page, f"mine/{entry.filename}")
        page.wait_for_timeout(500)
        assert name_of(page) == f"mine/{entry.filename}"
        assert not page.evaluate(DIRTY), f"opening {entry.id} changed it"
        assert page.locator(".jp-Dialog").count() == 0


def look_at_the_first_notebook(learner, page):
    """It is a copy, not changed by opening, and its predictions are still to be made."""
    assert name_of(page) == f"mine/{FIRST}"
    page.wait_for_timeout(1000)
    assert not page.evaluate(DIRTY), "opening a notebook changed it"
    assert output_of(cell(page, "def right_senses(")) == ""
    assert "In how many of the twelve sentences" in output_of(cell(page, ASKED))
    told = page.locator("details", has_text="so the last word must have told")
    assert told.count() == 1 and not told.evaluate("fold => fold.open")
    assert "▶ Run this cell" in output_of(cell(page, "tl.widgets.deciding_word()"))
    learner.shoot(page, "copy_first")


def commit_to_a_prediction(learner, page):
    """By keyboard; the run then says how it compares."""
    for source in ("tl.progress.banner", "translator = ", "corpus = ", "def sentences("):
        run_cell(learner, page, cell(page, source))
    asked = cell(page, ASKED)
    run_cell(learner, page, asked)
    asked.locator("input[type=text]").focus()
    page.keyboard.type("9")
    page.keyboard.press("Enter")
    asked.locator("[role=status]", has_text="Noted: 9.").wait_for()
    assert run_cell(learner, page, cell(page, "def right_senses(")).startswith("You said 9, it is 12.")
    assert progress.said("00.p1").right is False
    learner.shoot(page, "copy_prediction")


def play_with_the_first_panel(learner, page):
    """It asks for nothing but its own cell; a typed word decides."""
    shown = cell(page, "tl.widgets.deciding_word()")
    run_cell(learner, page, shown)
    shown.locator("input[type=text]").fill("river")
    page.keyboard.press("Enter")
    shown.locator("[role=status]", has_text="the translation says Ufer").wait_for()
    learner.shoot(page, "copy_panel")
    run_cell(learner, page, cell(page, 'progress.banner("00")'))


def go_to_the_second(learner, page):
    """Over a link of the strip to the copy beside this one."""
    strip = cell(page, 'progress.banner("00")')
    strip.scroll_into_view_if_needed()
    strip.locator(f'a[href*="{SECOND}"]').first.click()
    page.wait_for_function(f"{SHOWN}.context?.path === 'mine/{SECOND}'")
    page.locator(".jp-Cell:visible").first.wait_for()
    learner.wait_until_idle(page, 120)
    page.evaluate(ONLY_THIS)


def pass_an_exercise(learner, page):
    """The verdict has a colour and words; the strip follows it, and leads on to the next task."""
    strip = cell(page, 'progress.banner("01")')
    run_cell(learner, page, strip)
    rewrite_and_run(learner, page, cell(page, STUB), ANSWER)
    checking = cell(page, 'check("01.1"')
    assert "✓ 01.1" in run_cell(learner, page, checking)
    assert "border-left" in checking.locator("[role=status]").get_attribute("style")
    learner.shoot(checking, "copy_verdict")
    onward = strip.locator("a", has_text="continue at 01.")
    onward.scroll_into_view_if_needed()
    learner.shoot(strip, "copy_strip")
    target = onward.get_attribute("href").split("#cell-id=")[-1]
    onward.click()
    page.wait_for_function(IN_SIGHT, arg=target)


def wake_panel_and_questions(learner, page):
    """A question is answered by a click on an option's text, or by Enter."""
    for source in (PANEL, QUESTION, NUMBER):
        run_cell(learner, page, cell(page, source))
    cell(page, PANEL).locator(".noUi-handle").first.wait_for()
    asked, number = cell(page, QUESTION), cell(page, NUMBER)
    asked.locator(".tl-option").first.click(position={"x": 300, "y": 12})  # the text, right of the letter
    asked.locator("[role=status]", has_text=re.compile("Right|Not quite")).wait_for()
    number.locator("input").fill("0.73")
    number.locator("input").press("Enter")
    number.locator("[role=status]", has_text="✓ Right.").wait_for()
    for theme in lab_driver.THEMES:
        learner.use_theme(page, theme)
        for name, found in (("question", asked), ("number", number), ("panel", cell(page, PANEL))):
            learner.shoot(found, f"copy_{name}_{theme}")


def bring_an_exercise_back(learner, page):
    """The cell that asks for it becomes the stub."""
    found = cell(page, STUB)
    assert "Undo" in rewrite_and_run(learner, page, found, 'tl.course.bring_back("01.1")  # ' + STUB)
    cell(page, STUB).locator(".cm-content", has_text="raise NotImplementedError").wait_for()


def everything_stored_is_shown(learner, page):
    """Pictures and texts instead of dead widgets, and where to continue."""
    for source, words in ((PANEL, "to get the controls"), (QUESTION, "to answer")):
        shown = cell(page, source)
        shown.scroll_into_view_if_needed()
        shown.locator(".tl-wake", has_text=words).wait_for()
        learner.shoot(shown, f"copy_again_{words.split()[-1]}")
    assert cell(page, PANEL).locator("img[alt]").evaluate("image => image.complete && image.naturalWidth > 100")
    letters = cell(page, QUESTION).locator("ol").first.evaluate("list => getComputedStyle(list).listStyleType")
    assert letters == "upper-alpha"
    assert page.get_by_text("model not found").count() == 0
    assert "▶ continue at 01." in output_of(cell(page, 'progress.banner("01")'))


def become_older(path: Path, edited: bool) -> None:
    """Make a copy one of an earlier version of the course; if `edited`, one that the learner has changed since."""
    record = json.loads((path.parent / ".copies.json").read_text())
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"][0]["source"] = "# An earlier title"
    record["notebooks"][path.name] = {"version": "earlier", "cells": copies.record.cells_of(notebook)}
    if edited:
        notebook["cells"][0]["source"] = "# My own title"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    (path.parent / ".copies.json").write_text(json.dumps(record))


def test_an_update_beside_an_edited_notebook(learner, make_lab, home):
    copies.update()
    edited, untouched = (home / "mine" / entry.filename for entry in notebooks.NOTEBOOKS[1:3])
    become_older(edited, edited=True)
    become_older(untouched, edited=False)
    before = edited.read_bytes()
    progress.mark("exercise", "01.1")
    page = make_lab()
    assert name_of(page) == f"mine/{edited.name}"
    assert page.locator(".jp-Notebook h1", has_text="My own title").count() == 1
    said = (home / "log.txt").read_text(errors="replace")
    assert said.count("you have edited yours, so it stays") == 1 and f"{edited.name}: you have edited" in said
    assert edited.read_bytes() == before
    assert "An earlier title" not in untouched.read_text(encoding="utf-8")
    copies.beside("01")
    learner.show(page, f"mine/{edited.stem}.new_1.ipynb")
    assert page.locator(".jp-Notebook h1", has_text="My own title").count() == 0
    assert cell(page, "def nearest_key_lookup").count() == 1
