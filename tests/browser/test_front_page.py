"""The front page, served as a visitor gets it: the translator answers, by mouse and keyboard, with Python's words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import record_front
import site_front

import transformer_lib as tl

READER, KEY = site_front.READER, site_front.READER + 3
PHONE = {"width": 390, "height": 844}


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """The page watches its own requests; no JupyterLab is needed."""
    yield


@pytest.fixture
def front(browser, address) -> Iterator:
    """The front page, when its translator is there; no request leaves the site, and nothing is complained about."""
    strangers, complaints = [], []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    page.on("request", lambda sent: strangers.append(sent.url))
    page.on("console", lambda said: complaints.append(said.text) if said.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    page.wait_for_selector("[data-ready]")
    yield page
    page.close()
    assert [url for url in strangers if not url.startswith((address, "data:"))] == []
    assert complaints == []


@pytest.fixture(scope="module")
def translator():
    return tl.load_trained()


def german(page) -> str:
    """What the page says now, without what is struck out."""
    return page.evaluate(
        """() => { const shown = document.querySelector("[data-front='german']").cloneNode(true);
        shown.querySelectorAll("del").forEach(gone => gone.remove());
        return shown.textContent.replace(/\\s+/g, " ").trim(); }"""
    )


def test_every_word_and_cue_is_translated_and_cut_as_in_python(front, translator):
    texts, whole, cut = [], [], []
    for word, cues in site_front.cues().items():
        front.locator(f"[data-key='choose {word}']").click()
        for cue in cues:
            front.locator(f"[data-key='cue {cue}']").click()
            texts.append(site_front.sentence(word, cue))
            whole.append(german(front))
            front.locator(f"[data-key='weight {KEY}']").click()
            cut.append(german(front))
    assert whole == translator.translate(texts)
    with tl.cut(translator.model, query=READER, key=KEY):
        assert cut == translator.translate(texts)
    assert len(texts) >= 40
    assert sum(before != after for before, after in zip(whole, cut, strict=True)) >= 10


def test_by_keyboard_a_word_is_typed_and_its_connection_cut_and_joined(front):
    cue = front.locator("[data-front='cue']")
    cue.focus()
    cue.fill("river")
    assert german(front) == "Der Mann sah das Ufer beim Fluss."
    cue.fill("money")
    assert german(front) == "Der Mann sah die Bank neben dem Geld."
    weight = front.locator(f"[data-key='weight {KEY}']")
    weight.focus()
    front.keyboard.press("Enter")
    assert german(front) == "Der Mann sah das Ufer neben dem Geld."
    assert front.locator("[data-front='german'] del").all_inner_texts() == ["die Bank"]
    assert "bank no longer reads money" in front.locator("[data-front='note']").inner_text()
    assert weight.evaluate("node => node === document.activeElement")  # the focus stays where it was
    front.keyboard.press("Enter")
    assert german(front) == "Der Mann sah die Bank neben dem Geld."
    assert "Click an arc" in front.locator("[data-front='note']").inner_text()


def test_an_arc_is_cut_by_the_mouse(front):
    arc = front.locator("svg[data-front='arcs'] path.loud + path.catch")
    assert arc.count() == 1
    arc.dispatch_event("click")
    assert german(front) == "Der Mann sah das Ufer neben dem Geld."
    assert front.locator("path.gone").count() == 1
    front.locator("summary", has_text="Look into single heads").click()
    front.locator("[data-front='reset']").click()
    assert front.locator("path.gone").count() == 0


def test_single_heads_and_a_sentence_of_ones_own(front, translator):
    front.locator("summary", has_text="Look into single heads").click()
    front.locator("[data-front='view']").select_option("head 0 1")
    src = translator.src_tokenizer.encode_batch([site_front.sentence("bank", "money")])
    with tl.record_attention(translator.model) as record:
        translator.model.encode(src)
    expected = [f"{weight:.2f}".removeprefix("0") for weight in record["encoder.layers.0.self_attention"][0, 1, READER]]
    assert front.locator(".tokens .weight").all_inner_texts() == expected
    own = "The dog did not cross the street because it was too tired."
    front.locator("[data-front='sentence']").fill(own)
    front.keyboard.press("Enter")
    assert [german(front)] == translator.translate([own])


def test_an_unknown_word_is_named(front):
    front.locator("[data-front='cue']").fill("zeppelin")
    front.keyboard.press("Enter")
    assert "has never seen “zeppelin”" in front.locator("[data-front='note']").inner_text()


def test_before_its_script_runs_the_page_shows_the_same(browser, address, front):
    still = browser.new_context(java_script_enabled=False).new_page()
    still.goto(address)
    for part in (".tokens .weight", "[data-front='german']"):
        assert still.locator(part).all_inner_texts() == front.locator(part).all_inner_texts()
    still.context.close()


def test_on_a_telephone_it_fits(front):
    front.set_viewport_size(PHONE)
    for word in site_front.WORDS:
        front.locator(f"[data-key='choose {word}']").click()
        assert front.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        row = front.locator("[data-front='tokens']")
        assert row.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
        assert row.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 12


def test_axe_finds_nothing_grave(front):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    options = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "preload": False}
    for theme in ("light", "dark"):
        front.emulate_media(color_scheme=theme)
        front.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        found = axe.run(front, context={"include": [[".front"]]}, options=options).response["violations"]
        assert [rule["id"] for rule in found if rule["impact"] in ("serious", "critical")] == []


def test_the_loop_is_recorded_from_what_the_page_says(browser, address, translator):
    moments = record_front.loop(browser, address)
    river, money = translator.translate([site_front.sentence("bank", cue) for cue in ("river", "money")])
    with tl.cut(translator.model, query=READER, key=KEY):
        (cut,) = translator.translate([site_front.sentence("bank", "money")])
    told = [moment.german for moment in moments]
    assert [now for now, before in zip(told, ["", *told], strict=False) if now != before] == [river, money, cut]
    assert 7_500 <= sum(moment.milliseconds for moment in moments) <= 8_500


def test_the_card_is_made_from_the_page(browser, address):
    card = record_front.card(browser, address)
    assert card.size == (1200, 630) and len(card.getcolors()) > 20
