"""The decoder stepper in a real browser: next, back and reset by keyboard alone, in both themes."""

from __future__ import annotations

import pytest
from lab_driver import THEMES, cell, errors, press_on, says, store_notebook

CODE = """import transformer_lib as tl
sentences = ["The men who saw the hair photographed the bow."]
tl.widgets.decoder_stepper(tl.load_trained("context"), sentences).set(beams=2)"""
BEGUN = "<bos> die Männer , die das Haar sahen , fotografierten"


@pytest.fixture(scope="module")
def page(lab, server):
    opened = lab.open(store_notebook(server[1], "stepper.ipynb", CODE))
    lab.run_all(opened)
    yield opened
    opened.close()


def drawn(found):
    return found.locator(".jupyter-widgets svg.tl").first.inner_html()


def test_the_buttons_move_the_picture_by_keyboard(lab, page):
    found = cell(page, "decoder_stepper")
    back, forward, reset = (found.locator("button", has_text=name) for name in ("back", "next", "reset"))
    says(page, "step 1 of 13")
    first = drawn(found)
    press_on(page, back, "Enter")  # nothing lies before the first step
    press_on(page, forward, "Enter")
    says(page, "step 2 of 13")
    second = drawn(found)
    assert second != first
    press_on(page, forward, "Space")
    says(page, "step 3 of 13")
    page.keyboard.press("Shift+Tab")  # from next to back
    page.keyboard.press("Space")
    says(page, "step 2 of 13")
    assert drawn(found) == second
    press_on(page, reset, "Enter")
    says(page, "step 1 of 13")
    assert drawn(found) == first


def test_two_beams_turn_round_at_step_11_and_one_does_not(lab, page):
    found = cell(page, "decoder_stepper")
    forward = found.locator("button", has_text="next")
    press_on(page, forward, *["Enter"] * 10)
    says(page, f"step 11 of 13: after “{BEGUN} den”")
    press_on(page, forward, "Enter")
    says(page, f"step 12 of 13: after “{BEGUN} die Schleife”")
    for theme in THEMES:
        lab.use_theme(page, theme)
        lab.shoot(found, f"stepper_{theme}")
    press_on(page, found.locator(".widget-toggle-button", has_text="1").first, "Enter")
    says(page, f"step 12 of 13: after “{BEGUN} den Bogen”")
    assert errors(page) == []
