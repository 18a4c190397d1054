"""Questions and predictions on the pages answer, by keyboard, in the course's words, and the browser remembers them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from transformer_lib.course import predictions, quiz

PAGE = "notebooks/04_scaled_dot_product_attention.html"


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """These pages are files; no JupyterLab is needed."""
    yield


@pytest.fixture
def page(browser, site) -> Iterator:
    context = browser.new_context()
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{site.as_uri()}/{PAGE}")
    yield opened
    context.close()
    assert complaints == []


def box(page, kind: str, name: str):
    return page.locator(f'[data-asked="{kind}"][data-known*=\'"id": "{name}"\']')


def plain(text: str) -> str:
    """A text without its formulas, which are set when it is shown."""
    return text.split("$")[0].split("√")[0]


def test_a_choice_is_judged_with_its_reason_and_remembered(page):
    asked, question = box(page, "quiz", "04.q1"), quiz.question("04.q1")
    for letter in question.letters:
        asked.get_by_role("button", name=f"{letter}:").focus()
        page.keyboard.press("Enter")
        verdict = asked.locator(".verdict").inner_text()
        assert verdict.startswith(plain(question.reply(letter).text))
    kept = json.loads(page.evaluate("localStorage.getItem('transformer-course')"))
    assert list(kept["passed"]["quiz"]) == ["04.q1"] and kept["last"] == "04"
    page.reload()
    assert "You had this one right on" in box(page, "quiz", "04.q1").locator(".verdict").inner_text()


@pytest.mark.parametrize("said", ["0.622", ".88", "0,53", "0.2", "many"])
def test_a_number_is_judged(page, said):
    asked = box(page, "quiz", "04.q2")
    asked.locator("input").fill(said)
    page.keyboard.press("Enter")
    verdict = asked.locator(".verdict").inner_text()
    if said == "many":
        assert verdict == "answer must be a number, got “many”"
    else:
        assert verdict.startswith(plain(quiz.question("04.q2").reply(said.replace(",", ".")).text))


def test_a_prediction_meets_what_comes_out(page):
    asked, entry = box(page, "predict", "04.p1"), predictions.prediction("04.p1")
    asked.locator("input").fill("9999")
    page.keyboard.press("Enter")
    assert asked.locator(".verdict").inner_text() == "say a number from 0 to 512, got “9999”"
    asked.locator("input").fill("64")
    page.keyboard.press("Enter")
    assert asked.locator(".verdict").inner_text() == "Noted: 64. Now open what comes out below."
    came = box(page, "outcome", "04.p1")
    known = json.loads(came.get_attribute("data-known"))
    assert not came.is_visible()
    came.locator("xpath=ancestor::details").locator("summary").click()
    assert came.locator("b[data-right]").inner_text() == entry.compare("64", known["came"]).text
    kept = json.loads(page.evaluate("localStorage.getItem('transformer-course')"))
    assert kept["passed"]["prediction"]["04.p1"].split()[1:] == ["surprise", "64"]
    asked.locator("input").fill("253")
    page.keyboard.press("Enter")
    assert "and that one counts" in asked.locator(".verdict").inner_text()


def test_what_was_seen_first_does_not_count(page):
    came = box(page, "outcome", "04.p2")
    came.locator("xpath=ancestor::details").locator("summary").click()
    entry = predictions.prediction("04.p2")
    assert came.locator("b").first.inner_text() == entry.compare("").text
    box(page, "predict", "04.p2").get_by_role("button", name="A:").click()
    assert "not counted" in box(page, "predict", "04.p2").locator(".verdict").inner_text()


def test_the_front_page_has_it_to_take_along(page, site):
    box(page, "predict", "04.p2").get_by_role("button", name="A:").click()
    page.goto(f"{site.as_uri()}/index.html")
    with page.expect_download() as download:
        page.get_by_role("link", name="take it along").click()
    kept = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert list(kept["passed"]["prediction"]) == ["04.p2"]
