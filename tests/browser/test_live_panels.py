"""The panels of the site, served as a reader gets them: every control moves, and the page says what Python says."""

from __future__ import annotations

import functools
import gzip
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import site_panels

from transformer_lib.course.figures.widgets import Panel
from transformer_lib.course.notebooks import NOTEBOOKS, Notebook, notebook

PHONE = {"width": 390, "height": 844}
CELLS = {
    entry.id: [each for each in site_panels.panel_cells(entry) if not site_panels.needs_the_real_model(each)]
    for entry in NOTEBOOKS
}
WITH_PANELS = [entry for entry in NOTEBOOKS if CELLS[entry.id]]
AS_KEPT = {"05", "08", "19", "17"}  # compared with the file: they need a training, or a patient draws random numbers


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """The page watches its own requests; no JupyterLab is needed."""
    yield


@pytest.fixture
def opened(browser, address) -> Iterator:
    """Opens a notebook's page; no request leaves the site, and nothing is complained about."""
    strangers, complaints, pages = [], [], []

    def visit(entry: Notebook, **look):
        page = browser.new_page(viewport={"width": 1280, "height": 900}, **look)
        pages.append(page)
        page.set_default_timeout(60_000)
        page.on("request", lambda sent: strangers.append(sent.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}notebooks/{entry.stem}.html")
        return page

    yield visit
    for page in pages:
        page.close()
    assert [url for url in strangers if not url.startswith((address, "data:"))] == []
    assert complaints == []


def fresh(cell_id: str) -> Panel:
    """The panel as its cell in JupyterLab makes it."""
    return next(site_panels.made(cells) for cells in CELLS[cell_id[:2]] if cells[-1]["id"] == cell_id)


python = functools.cache(fresh)  # to be asked with all of its controls set, as the last test left them somewhere


@functools.cache
def offered(cell_id: str) -> dict[str, list[Any]]:
    """The values of its controls on the page, which has the panel as its cell makes it."""
    return python(cell_id).carried


def box(page, cell_id: str):
    """The panel of a cell, when its states are there."""
    found = page.locator(f"[data-panel*='/{cell_id}.bin']")
    found.scroll_into_view_if_needed()
    page.wait_for_function("node => node.dataset.shown", arg=found.element_handle())
    return found


def shown(panel) -> dict[str, str]:
    """What a panel says, and the words of its picture."""
    says = panel.locator(".panel-says > b").first
    alt = panel.locator(".panel-picture > svg").get_attribute("aria-label")
    return {"says": says.text_content(), "alt": alt}


def drawn(living: site_panels.Living, at: list[int]) -> dict[str, str]:
    """What Python says when the controls stand at these values, by number: its panel, or what was kept of it."""
    controls = living.known["controls"]
    if living.cell[:2] in AS_KEPT:
        held = json.loads(gzip.decompress(living.states))
        number = functools.reduce(lambda sum, i: sum * len(controls[i]["values"]) + at[i], range(len(at)), 0)
        kept = "".join(held["pieces"][piece] for piece in held["rows"][held["at"][number]])
        says, alt, *_ = kept.split(site_panels.PARTS)
        return {"says": says, "alt": alt.replace(site_panels.SAYS, says)}
    values = {
        control["name"]: offered(living.cell)[control["name"]][i] for control, i in zip(controls, at, strict=True)
    }
    picture = python(living.cell).set(**values).picture
    return {"says": picture.says, "alt": picture.alt}


def moved(page, panel, number: int, control: Mapping[str, Any]) -> None:
    """Move a control by keyboard, and wait until the picture has followed."""
    held = panel.locator(f"[data-control='{number}']")
    before = panel.get_attribute("data-shown")
    last = control["at"] == len(control["values"]) - 1
    if held.locator("input[type=range]").count():
        held.locator("input[type=range]").focus()
        page.keyboard.press("ArrowLeft" if last else "ArrowRight")
    elif held.locator("input[type=checkbox]").count():
        held.locator("input[type=checkbox]").focus()
        page.keyboard.press("Space")
    elif held.locator("select").count():
        held.locator("select").focus()
        page.keyboard.press("ArrowUp" if last else "ArrowDown")
    else:
        held.locator("[data-at]").nth(control["at"] - 1 if last else control["at"] + 1).focus()
        page.keyboard.press("Enter")
    page.wait_for_function("([node, before]) => node.dataset.shown !== before", arg=[panel.element_handle(), before])


@pytest.mark.parametrize("entry", WITH_PANELS, ids=lambda entry: entry.id)
def test_every_control_moves_by_keyboard_and_the_page_says_what_python_says(opened, entry):
    page = opened(entry)
    for cells in CELLS[entry.id]:
        living = site_panels.living(cells)
        if living.cell[:2] not in AS_KEPT:
            offered(living.cell)
        panel = box(page, living.cell)
        assert not panel.locator("xpath=..").locator(".in-lab").is_visible()
        for number, control in enumerate(living.known["controls"]):
            if control["scripted"] or len(control["values"]) == 1:
                continue
            moved(page, panel, number, control)
            at = [int(number) for number in panel.get_attribute("data-shown").split()]
            assert shown(panel) == drawn(living, at), (living.cell, control)


def test_a_number_is_typed_and_the_nearest_one_is_taken(opened):
    page = opened(notebook("01"))
    panel = box(page, "01-087")
    angle = panel.get_by_label("angle of k to q in °", exact=True)
    angle.fill("88")
    page.keyboard.press("Enter")
    assert panel.locator("[data-control='0'] .note").inner_text() == "the nearest on this page is 90"
    assert (angle.input_value(), "angle 90°" in shown(panel)["says"]) == ("90", True)
    angle.press("ArrowUp")
    assert (angle.input_value(), "angle 105°" in shown(panel)["says"]) == ("105", True)
    angle.fill("")
    angle.press("Tab")
    assert panel.locator("[data-control='0'] .note").inner_text() == "type a number"
    assert angle.input_value() == "105"


def test_the_buttons_of_steps_go_back_and_on(opened):
    page = opened(notebook("14"))
    panel = box(page, "14-069")
    step = panel.get_by_label("step", exact=True)
    start = int(step.input_value())
    for name, expected in (("back", start - 1), ("next", start), ("reset", 1), ("back", 1), ("next", 2)):
        panel.get_by_role("button", name=name, exact=True).click()
        assert int(step.input_value()) == expected


def test_a_part_of_the_picture_is_clicked(opened):
    page = opened(notebook("12"))
    panel = box(page, "12-010")
    panel.locator(".panel-spot[title='14. cross-attention']").click()
    assert shown(panel)["says"].startswith("14. decoder, cross-attention")
    assert panel.get_by_label("step", exact=True).input_value() == "14"
    link = panel.locator(".panel-foot a").first
    assert link.get_attribute("href").endswith("11_decoder_and_cross_attention.html")


@pytest.fixture
def laboratory(opened):
    """The mask laboratory on its page, as (press a button, set a box, compare with Python's for these values)."""
    page = opened(notebook("07"))
    panel, mine = box(page, "07-032"), fresh("07-032")

    def press(name: str) -> None:
        panel.get_by_role("button", name=name, exact=True).press("Enter")

    def put(label: str, number: int) -> None:
        held = panel.get_by_label(label, exact=True)
        held.fill(str(number))
        held.press("Enter")

    def like(**values) -> None:
        expected = mine.set(**values).picture
        page.wait_for_function(
            "([node, says]) => node.textContent === says",
            arg=[panel.locator(".panel-says > b").first.element_handle(), expected.says],
        )
        assert shown(panel)["alt"] == expected.alt
        written = panel.locator(".panel-picture > svg").evaluate("node => node.textContent")
        assert written == html.unescape(re.sub(r"<[^>]*>", "", expected.svg))

    return press, put, like


def test_a_mask_is_painted_as_in_python(laboratory):
    press, put, like = laboratory
    like(preset="causal", row=2, column=3, flips=())
    press("toggle cell")
    like(flips=((2, 3),))
    put("key j", 5)
    press("toggle cell")
    like(column=5, flips=((2, 3), (2, 5)))
    press("toggle row")
    flipped = {(2, 3), (2, 5)} ^ {(2, j) for j in range(7)}
    like(flips=tuple(sorted(flipped)))
    put("query i", 4)
    press("toggle row")
    like(row=4, flips=tuple(sorted(flipped | {(4, j) for j in range(7)})))
    press("undo all")
    like(flips=())


def test_a_whole_mask_is_painted_on_a_preset(laboratory):
    press, put, like = laboratory
    press("toggle cell")
    press("causal & padding")  # a preset starts afresh
    like(preset="causal & padding", row=2, column=3)
    cells = [(i, j) for i in range(7) for j in range(i % 2, 7, 2)]
    for i, j in cells:
        put("query i", i)
        put("key j", j)
        press("toggle cell")
    like(row=6, column=6, flips=tuple(cells))


NUMBER = re.compile(r"changes by ([+-][\d.]+)")


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_weight_is_cut_as_in_python(opened, everywhere):
    """The page's translator computes with weights of half precision: a change of ln P may differ by 0.02."""
    page = opened(notebook("15"))
    panel, mine = box(page, "15-025"), fresh("15-025")
    cut = panel.get_by_label("cut its key", exact=True)
    if everywhere:
        panel.get_by_label("cut in all layers and heads").press("Space")
    for part, head, key in (("cross", "all", 2), ("cross", 3, 2), ("encoder", 1, 9), ("decoder", "all", 12)):
        panel.get_by_role("button", name=part, exact=True).press("Enter")
        panel.locator("[data-control='3'] button", has_text=re.compile(f"^{head}$")).press("Enter")
        cut.fill(str(key))
        cut.press("Enter")
        says = mine.set(part=part, head=head, cut=key, everywhere=everywhere).picture.says
        start = says[: says.index("changes by")] if "changes by" in says else says
        page.wait_for_function(
            "([node, start]) => node.textContent.startsWith(start)",
            arg=[panel.locator(".panel-says > b").first.element_handle(), start],
        )
        told = shown(panel)["says"]
        assert NUMBER.sub("", told) == NUMBER.sub("", says)
        for ours, theirs in zip(NUMBER.findall(told), NUMBER.findall(says), strict=True):
            assert abs(float(ours) - float(theirs)) <= 0.02


def test_without_a_script_the_stored_picture_stays(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}notebooks/{notebook('01').stem}.html")
    assert page.locator(".panel-picture > img").count() == page.locator(".in-lab:visible").count() == 3
    assert page.locator(".panel-controls:visible").count() == 0
    context.close()


def test_opened_from_a_file_the_stored_picture_stays(browser, site):
    page = browser.new_page()
    page.goto((site / "notebooks" / f"{notebook('01').stem}.html").as_uri())
    page.wait_for_function("!document.querySelector('.panel-controls:not([hidden])')")
    assert page.locator(".panel-picture > img").count() == page.locator(".in-lab:visible").count() == 3
    page.close()


def test_states_are_loaded_when_a_reader_comes_near(opened):
    page = opened(notebook("01"))
    loaded = []
    page.on("request", lambda sent: loaded.append(sent.url) if sent.url.endswith(".bin") else None)
    box(page, "01-087")
    assert [url.rsplit("/", 1)[1] for url in loaded] == ["01-087.bin"]


@pytest.mark.parametrize("number", ["01", "12", "15"])
def test_on_a_telephone_nothing_is_wider_than_the_page(opened, number):
    page = opened(notebook(number))
    page.set_viewport_size(PHONE)
    for cells in CELLS[number]:
        panel = box(page, cells[-1]["id"])
        assert panel.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_moving_a_control_moves_nothing_above_the_picture(opened):
    page = opened(notebook("00"))
    panel = box(page, "00-002")
    where = "node => node.getBoundingClientRect().top"
    places = {panel.locator(".panel-picture").evaluate(where)}
    for word in ("seal", "bat", "ruler", "nut"):
        panel.get_by_role("button", name=word, exact=True).press("Enter")
        page.wait_for_function("([node, word]) => node.textContent.includes(word)", arg=[panel.element_handle(), word])
        places.add(panel.locator(".panel-picture").evaluate(where))
    assert len(places) == 1


def test_axe_finds_nothing_grave(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    options = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "preload": False}
    for number in ("00", "07"):
        page = opened(notebook(number))
        box(page, CELLS[number][0][-1]["id"])
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
            found = axe.run(page, context={"include": [[".panel"]]}, options=options).response["violations"]
            grave = [rule for rule in found if rule["impact"] in ("serious", "critical")]
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in grave] == []
