"""The course as a learner meets it: JupyterLab in a browser, Run All, controls by keyboard, both themes."""

from __future__ import annotations

import pytest
from lab_driver import (
    THEMES,
    cell,
    changed,
    errors,
    output_of,
    press_on,
    rewrite_and_run,
    run_cell,
    store_notebook,
)

from transformer_lib.course import notebooks

NOTEBOOKS = [entry.filename for entry in notebooks.NOTEBOOKS if entry.widgets]
WIDGETS = {
    "W1": "tl.widgets.soft_lookup()",
    "W2": "tl.widgets.dot_product()",
    "W3": "tl.widgets.saturation()",
    "W15": "tl.widgets.model_map(step=4)",
    "W26": "tl.widgets.gradient_descent()",
    "view": "tl.widgets.attention_view(weights, tokens)",
}
DECIDING = "tl.widgets.deciding_word()"
BELOW_THE_CELL = """drawing => {
    const cell = drawing.closest('.jp-Cell');
    return Math.round(drawing.getBoundingClientRect().top - cell.getBoundingClientRect().top);
}"""
SETUP = """import numpy as np
import transformer_lib as tl
from transformer_lib import progress
from transformer_lib.course.exercises import check
tokens = ["the", "animal", "did", "not", "cross", "because", "it", "was", "tired"]
scores = np.random.default_rng(0).normal(size=(4, 9, 9)) * 2
weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)"""
STUB = "def nearest_key_lookup(query, keys, values):\n    raise NotImplementedError"
WRONG = "def nearest_key_lookup(query, keys, values):\n    return values[(keys @ query).argmin()]"
RIGHT = "def nearest_key_lookup(query, keys, values):\n    return values[(keys @ query).argmax()]"
CHECK = 'check("01.1", nearest_key_lookup)'


@pytest.fixture(scope="session")
def toy(server):
    """A small notebook with every widget, an exercise and a figure, stored with its outputs."""
    code = [SETUP, 'progress.banner("01")', *WIDGETS.values(), DECIDING, STUB, CHECK]
    code.append('tl.plotting.figure(tl.plotting.plot_attention(weights[0], tokens, title="Head 1"), "One head.")')
    return store_notebook(server[1], "toy.ipynb", *code)


@pytest.fixture(scope="module")
def ran(lab, toy):
    """The small notebook after Run All, for the tests that only read it or move its controls."""
    page = lab.open(toy)
    lab.run_all(page)
    yield page
    page.close()


@pytest.fixture(scope="module")
def spare(lab):
    """A page that the test before has left in order, for the next notebook: JupyterLab need not start again."""
    pages = []
    yield pages
    for page in pages:
        lab.close(page)


def picture_of(found):
    return found.locator(".jupyter-widgets svg.tl").locator("..").first


def move_last_slider(page, found):
    """One step by keyboard, or the last button where there is no slider; picture and line of text must follow.

    A slider may belong to another setting of the panel, such as the dice of a choice that is not made at random; then
    the one before it is moved, and at last the button that chooses another view.
    """
    found.scroll_into_view_if_needed()
    told, handles = found.locator("[role=status]").first, found.locator(".noUi-handle")
    before, said = picture_of(found).inner_html(), told.inner_html()
    for number in reversed(range(handles.count())):
        press_on(page, handles.nth(number), "ArrowRight")
        if changed(page, picture_of(found), before, seconds=3):
            break
    else:
        press_on(page, found.locator(".jupyter-widgets button").last, "Enter")
    assert changed(page, picture_of(found), before), "the picture did not change"
    assert changed(page, told, said), "the line of text did not change"


def test_stored_pictures_are_shown_before_anything_runs(lab, toy):
    page = lab.open(toy)
    for source in WIDGETS.values():
        image = cell(page, source).locator(".jp-OutputArea img[alt]")
        image.scroll_into_view_if_needed()
        assert image.get_attribute("alt")
        assert image.evaluate("image => image.complete && image.naturalWidth > 100")
    lab.shoot(page, "stored")
    page.close()


@pytest.mark.parametrize("theme", THEMES)
def test_run_all_shows_no_error_and_every_picture_fits(lab, ran, theme):
    assert errors(ran) == []
    lab.use_theme(ran, theme)
    for name, source in WIDGETS.items():
        found = cell(ran, source)
        found.scroll_into_view_if_needed()
        lab.shoot(found, f"{name}_{theme}")
        drawn = picture_of(found).locator("svg.tl").bounding_box()
        room = found.locator(".jp-Cell-outputArea").bounding_box()
        assert drawn["x"] + drawn["width"] <= room["x"] + room["width"], f"{name} is cut off"


@pytest.mark.parametrize("name", WIDGETS)
def test_a_slider_moves_by_keyboard_and_the_picture_follows(ran, name):
    move_last_slider(ran, cell(ran, WIDGETS[name]))
    assert errors(ran) == []


def test_a_click_on_a_box_goes_to_its_step_and_the_drawing_stays(lab, ran):
    found = cell(ran, WIDGETS["W15"])
    drawing = found.locator("svg.tl")
    drawing.scroll_into_view_if_needed()
    before = drawing.evaluate(BELOW_THE_CELL)
    found.locator(".tl-spot").nth(7).click()
    found.locator("[role=status]", has_text="8. encoder, memory").wait_for()
    assert drawing.evaluate(BELOW_THE_CELL) == before


def test_a_typed_word_decides_until_the_reading_is_cut(lab, ran):
    found = cell(ran, DECIDING)
    found.scroll_into_view_if_needed()
    box, told = found.locator("input[type=text]"), found.locator("[role=status]")
    assert box.evaluate("box => box.labels.length && box.labels[0].textContent.trim()")
    for typed, said in (("money", "says Bank"), ("volcano", "“volcano” is not among"), ("loan", "says Bank")):
        box.fill(typed)
        ran.keyboard.press("Enter")
        told.filter(has_text=said).wait_for()
    found.locator("input[type=checkbox]").focus()
    ran.keyboard.press("Space")
    told.filter(has_text="may not read “loan”, and the translation says Ufer").wait_for()
    for theme in THEMES:
        lab.use_theme(ran, theme)
        lab.shoot(found, f"W27_{theme}")
    assert errors(ran) == []


def test_tab_reads_one_tokens_weights(lab, ran):
    found = cell(ran, WIDGETS["view"])
    found.scroll_into_view_if_needed()
    found.locator(".row.q2").first.focus()
    assert found.locator(".say.s2").first.is_visible()
    assert not found.locator(".say.s3").first.is_visible()
    ran.keyboard.press("Tab")
    assert found.locator(".say.s3").first.is_visible()
    assert not found.locator(".say.s2").first.is_visible()
    assert ran.evaluate("document.activeElement.getAttribute('aria-label')").startswith("query not: head 1 ")
    found.locator(".row.q5").first.hover()
    assert found.locator(".say.s5").first.is_visible()
    assert not found.locator(".say.s3").first.is_visible()
    lab.shoot(found, "focus")


@pytest.mark.parametrize("name", WIDGETS)
def test_number_boxes_have_accessible_names(ran, name):
    boxes = cell(ran, WIDGETS[name]).locator("input[type=number]").all()
    assert boxes
    for box in boxes:
        assert box.evaluate("box => box.labels.length && box.labels[0].textContent.trim()")


def test_the_map_follows_links_inside_jupyterlab(lab, toy):
    page = lab.open(toy)
    lab.run_all(page)
    found = cell(page, WIDGETS["W15"])
    found.scroll_into_view_if_needed()
    found.locator('a[href*="01_attention_is_a_lookup.ipynb"]').first.click()
    page.wait_for_selector('.lm-TabBar-tabLabel:has-text("01_attention")')
    page.close()


def test_an_exercise_answered_wrong_then_right_and_remembered(lab, toy):
    page = lab.open(toy)
    lab.run_all(page)
    stub, checking = cell(page, "def nearest_key_lookup"), cell(page, CHECK)
    assert "not attempted" in output_of(checking)
    rewrite_and_run(lab, page, stub, WRONG)
    assert "✗" in run_cell(lab, page, checking)
    rewrite_and_run(lab, page, stub, RIGHT)
    assert "✓" in run_cell(lab, page, checking)
    lab.restart_kernel(page)
    run_cell(lab, page, cell(page, "import numpy"))
    assert "◐" in run_cell(lab, page, cell(page, "progress.banner"))
    page.close()


@pytest.mark.parametrize("name", NOTEBOOKS or [pytest.param("", marks=pytest.mark.skip("no such notebook yet"))])
def test_a_notebook_of_the_course(lab, spare, name):
    page = spare.pop() if spare else None
    if page:
        lab.show(page, f"notebooks/{name}")
    else:
        page = lab.open(f"notebooks/{name}")
    lab.run_all(page)
    assert errors(page) == []
    panels = page.locator(".jp-Cell", has=page.locator(".jupyter-widgets svg.tl"))
    assert panels.count() >= 1, "no interactive figure"
    for index in range(panels.count()):
        move_last_slider(page, panels.nth(index))
    for theme in THEMES:
        lab.use_theme(page, theme)
        for index in range(panels.count()):
            panels.nth(index).scroll_into_view_if_needed()
            lab.shoot(panels.nth(index), f"{name[:2]}_{index}_{theme}")
    assert errors(page) == []
    spare.append(page)
