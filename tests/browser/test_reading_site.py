"""The reading site in a real browser, from its files: formulas, keyboard, contrast, narrow screens, and no request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

NOTEBOOK = "notebooks/04_scaled_dot_product_attention.html"
PAGES = [
    "index.html",
    NOTEBOOK,
    "docs/register.html",
    "docs/teaching/04_scaled_dot_product_attention.html",
    "docs/api/model.html",
]
FORMULAS = {NOTEBOOK: 100, PAGES[2]: 70}
WIDE, NARROW = {"width": 1280, "height": 1000}, {"width": 390, "height": 844}
SET = "async () => { await window.MathJax?.startup?.promise; return true; }"
DOLLARS = """() => {  // formulas that nobody has set: text with a dollar sign outside of code
    const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node; (node = walker.nextNode()); )
        if (/\\$|\\\\\\(/.test(node.data) && !node.parentElement.closest("pre, code, script, mjx-container"))
            found.push(node.data.trim());
    return found;
}"""
SHORTEN = """() => {  // axe looks at every word of code: keep the sections with a panel, a solution or a table
    const kinds = [".tag_widget", ".tag_solution", "table", "dl.py"], kept = new Set();
    const sections = [...document.querySelectorAll("article section section")];
    for (const kind of kinds) {
        const first = sections.find(section => section.querySelector(kind));
        if (first) kept.add(first);
    }
    const stays = section => [...kept].some(one => one === section || section.contains(one));
    sections.forEach((section, index) => { if (index > 1 && !stays(section)) section.remove(); });
    [...document.querySelectorAll("article div.highlight")].slice(8).forEach(code => code.remove());
    document.querySelectorAll("article tr:nth-child(n+6)").forEach(row => row.remove());
    document.querySelectorAll("article dl.py ~ dl.py").forEach(entry => entry.remove());
    return document.querySelectorAll("article section section").length;
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"
# What scrolls in the new layout is told to the keyboard after the next frame (docs/_static/site.js).
LAID_OUT = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
ON_PAPER = """() => {  // what the folds hold is there at once, and nothing is cut off at the right
    const held = [...document.querySelectorAll("details.below-input > summary ~ *")];
    const codes = [...document.querySelectorAll("article pre")].filter(code => code.checkVisibility());
    return {
        theme: document.documentElement.dataset.theme,
        open: held.length > 0 && held.every(one => one.checkVisibility() && getComputedStyle(one).opacity === "1"),
        cut: codes.filter(code => code.scrollWidth > code.clientWidth + 1).map(code => code.textContent.slice(0, 40)),
    };
}"""
SEARCHED = "() => document.querySelector('.search-summary')?.textContent.includes('Search finished')"
HITS = "() => [...document.querySelectorAll('ul.search > li > a')].map(link => link.getAttribute('href'))"
FOCUSED = "() => document.activeElement.textContent.trim()"
RING = "() => { const ring = getComputedStyle(document.activeElement); return [ring.outlineStyle, ring.outlineWidth]; }"


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """Here every page watches its own requests; no JupyterLab is needed."""
    yield


@pytest.fixture
def visit(site, browser) -> Iterator:
    """Opens a page of the site from its file; at the end, no request went anywhere and nothing was complained about."""
    contexts, strangers, complaints = [], [], []

    def open_page(name: str, *, viewport: dict = WIDE, theme: str = "light"):
        calm = {"reduced_motion": "reduce"}  # no colour on its way to another when axe looks
        contexts.append(browser.new_context(viewport=viewport, color_scheme=theme, **calm))
        page = contexts[-1].new_page()
        page.on("request", lambda request: strangers.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{site.as_uri()}/{name}")
        page.evaluate(SET)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in strangers if not url.startswith(("file://" + quote(site.as_posix()), "data:"))] == []
    assert complaints == []


def shoot(page, name: str) -> None:
    if folder := os.environ.get("BROWSER_SHOTS"):
        page.screenshot(path=Path(folder) / f"site_{name}.png")


@pytest.mark.parametrize("name", PAGES)
def test_a_page(visit, name):
    """Formulas set; no scrolling sideways on a telephone; all of axe's rules in the light, contrast again in the dark.

    Axe looks at every word: of a long page it sees the sections with a panel, a solution and a table.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = visit(name)
    assert_formulas_are_set(page, FORMULAS.get(name, 0))
    page.set_viewport_size(NARROW)
    assert page.evaluate(TOO_WIDE) <= 0
    shoot(page, f"{Path(name).stem}_narrow")
    page.set_viewport_size(WIDE)
    assert page.evaluate(SHORTEN) >= 2
    page.evaluate(LAID_OUT)
    assert grave(axe, page, ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]) == []
    shoot(page, f"{Path(name).stem}_light")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert grave(axe, page, ["color-contrast", "link-in-text-block"]) == []
    shoot(page, f"{Path(name).stem}_dark")


def assert_formulas_are_set(page, at_least: int) -> None:
    marked = page.locator("article .math").count()
    assert page.locator("article .math mjx-container > svg").count() == marked >= at_least
    assert page.locator("article mjx-assistive-mml math").count() == marked  # for screen readers
    assert page.locator("mjx-merror, [data-mml-node=merror]").count() == 0
    assert page.evaluate(DOLLARS) == []


def grave(axe, page, rules: list[str]) -> list[tuple[str, str]]:
    """Return what axe finds serious or critical: the rule, and the first element that breaks it."""
    options = {"resultTypes": ["violations"], "runOnly": rules, "preload": False}
    found = axe.run(page, context={"exclude": [["mjx-container"]]}, options=options).response["violations"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")]


def test_a_formula_in_a_hint_is_set(visit):
    page = visit("notebooks/A_claims_and_corrections.html")
    assert page.locator("details .math mjx-container > svg").count() >= 2
    assert_formulas_are_set(page, 20)


def test_by_keyboard_past_the_side_bar_and_into_a_solution(visit):
    page = visit(NOTEBOOK)
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Skip to main content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main-content")
    fold = page.locator("details.above-input").first
    assert not fold.locator("pre").is_visible()
    page.locator("article details summary").first.evaluate("node => node.focus()")
    for _ in range(40):
        if page.evaluate(FOCUSED).startswith("Show the solution"):
            break
        page.keyboard.press("Tab")
    style, width = page.evaluate(RING)
    assert style != "none" and width != "0px"
    page.keyboard.press("Enter")
    assert fold.locator("pre").is_visible()
    shoot(page, "solution")


def test_the_search_finds_a_page_by_keyboard(visit):
    page = visit("index.html")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").wait_for()
    page.keyboard.type("teacher forcing")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    hit = page.locator("ul.search a[href*='07_masking_and_teacher_forcing']").first
    hit.wait_for(timeout=15_000)
    shoot(page, "search")
    hit.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/07_masking_and_teacher_forcing.html*")


def test_the_search_shows_what_explains_a_word_first(visit):
    page = visit("index.html")
    for word in ("softmax", "teacher forcing", "KV cache", "RMSNorm", "beam search", "mask"):
        page.goto(f"{page.url.rpartition('/')[0]}/search.html?q={quote(word)}")
        page.wait_for_function(SEARCHED)
        hits = page.evaluate(HITS)
        glossary, *rest = (name.partition("#")[0] for name in hits)
        notebook, *others = (name for name in rest if name != glossary)
        assert glossary == "docs/glossary.html" and notebook.startswith("notebooks/"), (word, hits)
        groups = ["docs/teaching/" in name for name in others]
        assert groups == sorted(groups), f"{word}: a page for teachers before another: {hits}"


@pytest.mark.parametrize("name", ["docs/api/course.html", "docs/api/decoding.html", "genindex.html"])
def test_long_names_do_not_widen_the_page(visit, name):
    assert visit(name, viewport=NARROW).evaluate(TOO_WIDE) <= 0


def test_a_cell_named_in_the_guide_is_in_sight(visit):
    page = visit(PAGES[3])
    page.locator("a[href$='#cell-04-034']").first.click()
    page.wait_for_url("**/04_scaled_dot_product_attention.html#cell-04-034")
    page.evaluate(SET)
    assert -50 < page.locator("#cell-04-034").bounding_box()["y"] < 600


def test_what_a_prediction_leads_to_is_printed_dark_on_white_and_whole(visit):
    page = visit(NOTEBOOK, viewport={"width": 720, "height": 1000}, theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(ON_PAPER) == {"theme": "light", "open": True, "cut": []}
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("details.below-input[open]").count() == 0


def test_on_a_telephone_a_row_of_the_register_is_a_card(visit):
    page = visit("docs/register.html", viewport=NARROW)
    row = page.locator("#wrong-numbers tbody tr").first
    assert [row.locator("td").nth(at).get_attribute("data-head") for at in (1, 4)] == ["what", "what is right"]
    assert page.locator("#wrong-numbers table").evaluate("table => table.scrollWidth - table.clientWidth") <= 1
    assert all(300 < cell.bounding_box()["width"] <= 390 for cell in row.locator("td").all())


def test_a_formula_in_a_line_that_is_wider_than_a_telephone_scrolls(visit):
    page = visit("notebooks/14_translating.html", viewport=NARROW)
    page.evaluate(LAID_OUT)
    assert page.locator("span.math.too-wide[tabindex='0']").count() >= 1
    page.set_viewport_size(WIDE)
    page.evaluate(LAID_OUT)
    assert page.locator("span.math.too-wide").count() == 0
