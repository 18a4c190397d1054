"""The links of the register in a real browser: each form of them opens another notebook at the cell that it names."""

from __future__ import annotations

import pytest
from lab_driver import cell, errors, store_notebook

from transformer_lib.course.claims import shown_in, table
from transformer_lib.course.claims.search import find, get

LATE = get("C176")  # asserted far down in its notebook
PLACE = next(place for place in shown_in(LATE) if place.asserted)
ROW = find(notebook="06").index(LATE) + 1
CODE = f"""import transformer_lib as tl
display(tl.claims.table([tl.claims.get("C176")]))
tl.widgets.claim_browser(notebook="06", row={ROW})"""
IN_SIGHT = """id => {
    const panel = window.jupyterapp.shell.currentWidget.content;
    const found = panel.widgets && panel.widgets.find(widget => widget.model.id === id);
    if (!found || !found.isAttached) return false;
    const [cell, frame] = [found.node.getBoundingClientRect(), panel.node.getBoundingClientRect()];
    return cell.height > 0 && cell.bottom > frame.top && cell.top < frame.bottom;
}"""


@pytest.mark.parametrize("place", [".jp-RenderedMarkdown", ".jupyter-widgets"])
def test_a_link_opens_the_notebook_at_the_cell(lab, server, place):
    page = lab.open(store_notebook(server[1], "links.ipynb", CODE))
    lab.run_all(page)
    assert PLACE.link in table([LATE]).markdown
    link = cell(page, "claim_browser").locator(f'{place} a[href*="{PLACE.filename}"]').first
    link.scroll_into_view_if_needed()
    lab.shoot(page, f"claim_{place.strip('.')}")
    link.click()
    page.wait_for_selector(f'.lm-TabBar-tabLabel:has-text("{PLACE.filename[:11]}")')
    page.wait_for_function(IN_SIGHT, arg=PLACE.cell)
    page.wait_for_timeout(2000)  # cells above are rendered late, and move it
    assert page.evaluate(IN_SIGHT, PLACE.cell), "the cell is out of sight"
    lab.shoot(page, f"claim_after_{place.strip('.')}")
    assert errors(page) == []
    page.close()
