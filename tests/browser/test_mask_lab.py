"""The mask laboratory in a real browser: painted by keyboard alone, and remembered as tried."""

from __future__ import annotations

import pytest
from lab_driver import THEMES, cell, errors, press_on, says, store_notebook

CODE = """import numpy as np
import transformer_lib as tl
scores = np.random.default_rng(7).normal(scale=1.5, size=(8, 8)).round(1)
tokens = ["<start>", "not", "on", "your", "life", "<end>", "<pad>", "<pad>"]
tl.widgets.mask_lab(scores, tokens).set(preset="causal", row=2, column=3)"""


@pytest.fixture(scope="module")
def page(lab, server):
    opened = lab.open(store_notebook(server[1], "masks.ipynb", CODE))
    lab.run_all(opened)
    yield opened
    opened.close()


def test_a_cell_and_a_row_are_painted_by_keyboard(lab, page):
    found = cell(page, "mask_lab")
    says(page, "later tokens seen: 0 cells")
    press_on(page, found.locator("button", has_text="toggle cell"), "Enter")
    says(page, "on → your: allowed")
    says(page, "later tokens seen: 1 cell, most by on → your")
    press_on(page, found.locator("button", has_text="toggle cell"), "Space")
    says(page, "later tokens seen: 0 cells")
    press_on(page, found.locator("input[type=number]").first, "ArrowDown", "ArrowDown")
    says(page, "<start> → your: hidden")
    press_on(page, found.locator("button", has_text="toggle row"), "Enter")
    says(page, "<start> → your: allowed")
    press_on(page, found.locator("button", has_text="undo all"), "Enter")
    says(page, "later tokens seen: 0 cells")
    press_on(page, found.locator(".widget-toggle-button", has_text="none").first, "Enter")
    says(page, "later tokens seen: 28 cells")
    assert errors(page) == []
    for theme in THEMES:
        lab.use_theme(page, theme)
        lab.shoot(found, f"masks_{theme}")
