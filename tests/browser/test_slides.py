"""The decks in a browser, from the disk: nothing overflows, formulas are set, keys work, nothing is fetched."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

pytest.importorskip("nbconvert", reason="nbconvert is not installed")

from transformer_lib.course import notebooks
from transformer_lib.course.teaching.slides import build as slides
from transformer_lib.course.teaching.slides.plan import Piece, Slide

# One call looks at every slide of a deck, laid out as deck.js measures them.
EXAMINE = r"""() => {
    const found = [];
    document.body.classList.add('measuring');
    [...document.querySelectorAll('.slides > section > section')].forEach((slide, index) => {
        const title = slide.querySelector('h1, h2, h3, h4')?.textContent;
        const say = words => found.push(`slide ${index + 1}, ${title}: ${words}`);
        const notes = slide.querySelector('aside.notes');
        if (slide.scrollHeight > 720) say(`${slide.scrollHeight} pixels high`);
        if (slide.scrollWidth > 1280) say(`${slide.scrollWidth} pixels wide`);
        for (const part of slide.querySelectorAll('pre, table, mjx-container[display], .pictures')) {
            if (part.scrollWidth > part.parentElement.clientWidth + 1) say(`${part.tagName} is cut off`);
        }
        for (const code of slide.querySelectorAll('pre')) {
            if (parseFloat(getComputedStyle(code).fontSize) < 14) say(`code of ${getComputedStyle(code).fontSize}`);
        }
        for (const prose of slide.querySelectorAll('p, li, td')) {
            const small = parseFloat(getComputedStyle(prose).fontSize) < 15;
            if (small && !notes.contains(prose)) say(`small: ${prose.textContent}`);
        }
        for (const image of slide.querySelectorAll('img')) {
            if (!image.alt.trim()) say('a picture without a description');
            if (!image.naturalWidth || image.clientHeight < 150) say(`a picture ${image.clientHeight} pixels high`);
        }
        const scale = parseFloat(slide.style.getPropertyValue('--scale'));
        if (scale < 0.8) say(`crowded: all set at ${scale} of its size`);
        if (!notes?.textContent.includes('Cells:')) say('no notes');
        if (slide.querySelector('mjx-merror')) say('a formula with an error');
        const text = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
        while (text.nextNode()) {
            if (text.currentNode.data.includes('$') && !text.currentNode.parentElement.closest('pre, code')) {
                say(`unset formula: ${text.currentNode.data}`);
            }
            const raw = /[\p{L}\d]_[\p{L}\d]/u.test(text.currentNode.data);
            if (raw && !text.currentNode.parentElement.closest('pre, code, mjx-container')) {
                say(`unset index: ${text.currentNode.data}`);
            }
        }
    });
    document.body.classList.remove('measuring');
    return found;
}"""
FORMULAS = "() => document.querySelectorAll('mjx-container svg').length"


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine():
    """These pages need no JupyterLab; each test notes the requests itself."""


@pytest.fixture
def deck_page(browser):
    """Opens a deck; `complaints` are errors of the page and requests that are not for a file."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.set_default_timeout(60_000)
    page.complaints = complaints = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith(("file:", "data:")) else complaints.append(sent.url))
    yield page
    page.close()


def build(folder: Path, *ids: str) -> list[Path]:
    for package in {package for package, _ in slides.VENDORED.values()}:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed: the extra `slides`")
    return slides.build(folder, [entry for entry in notebooks.NOTEBOOKS if not ids or entry.id in ids])


def show(page, path: Path, query: str = "") -> None:
    page.goto(path.as_uri() + query)
    page.wait_for_selector("body.ready")


def test_every_slide_of_every_deck_fits(deck_page, tmp_path):
    problems, formulas = [], {}
    for path in build(tmp_path):
        show(deck_page, path)
        problems += [f"{path.stem}: {problem}" for problem in deck_page.evaluate(EXAMINE)]
        formulas[path.stem] = deck_page.evaluate(FORMULAS)
    deck_page.goto((tmp_path / "index.html").as_uri())
    assert deck_page.locator("tbody a").count() == len(notebooks.NOTEBOOKS) == len(formulas)
    assert deck_page.complaints == []
    assert not problems, "\n".join(problems)
    few = {stem for stem, count in formulas.items() if count < 3}
    # A clinic and a search have measurements, a text has its words.
    assert few <= {"17_bug_clinic", "24_what_does_it_know_of_france", "A_claims_and_corrections"}, formulas


def test_short_output_grows_into_the_room_that_is_left(deck_page, tmp_path):
    build(tmp_path, "A")
    lines = {"short": 4 * ["a line of thirty characters …"], "tall": 14 * ["x"], "wide": 2 * [60 * "a "]}
    printed = '<div class="printed">\n\n```text\n{}\n```\n\n</div>'
    found = [Slide(name, 2, [Piece(printed.format("\n".join(text)))]) for name, text in lines.items()]
    crowded = [Piece("Words. " * 60), found[1].pieces[0]]
    page = tmp_path / "toy.html"
    page.write_text(
        slides.render([Slide("Toy", 1, [Piece("t")]), *found, Slide("crowded", 2, crowded)], "Toy"), "utf-8"
    )
    show(deck_page, page)
    sizes = "() => [...document.querySelectorAll('pre')].map(pre => parseFloat(getComputedStyle(pre).fontSize))"
    short, tall, wide, crowded_size = deck_page.evaluate(sizes)
    assert short == pytest.approx(21 * 1.25 * 1.4, abs=0.1)
    assert wide < tall < short and crowded_size < tall
    assert [said for said in deck_page.evaluate(EXAMINE) if "no notes" not in said] == []


def test_keys_notes_and_print(deck_page, tmp_path):
    (path,) = build(tmp_path, "04")
    show(deck_page, path)
    place = "() => [Reveal.getIndices().h, Reveal.getIndices().f ?? -1]"
    for key, expected in [("ArrowRight", [1, -1]), ("Space", [2, -1]), ("ArrowRight", [3, -1])]:
        deck_page.keyboard.press(key)
        assert deck_page.evaluate(place) == expected
    answer = deck_page.locator("section.present section.present .fragment")
    assert not answer.is_visible()
    deck_page.keyboard.press("ArrowRight")
    answer.wait_for(state="visible")
    assert deck_page.evaluate(place) == [3, 0] and "✓" in answer.inner_text()
    deck_page.keyboard.press("ArrowLeft")
    deck_page.keyboard.press("ArrowLeft")
    assert deck_page.evaluate(place)[0] == 2
    assert "Cells: 04-003" in deck_page.evaluate("Reveal.getSlideNotes()")
    deck_page.keyboard.press("d")
    assert "dark" in deck_page.locator("html").get_attribute("class")

    with deck_page.expect_popup() as opened:
        deck_page.keyboard.press("s")
    notes = opened.value.locator(".speaker-controls-notes .value")
    notes.get_by_text("softmax").first.wait_for()
    opened.value.close()

    show(deck_page, path, "?print-pdf")
    pages = deck_page.locator(".pdf-page").count()
    assert pages == len(slides.deck_of(notebooks.notebook("04")))
    assert deck_page.complaints == []
