"""The search of a served site: which sections have the words, a few words of each, and nothing that is folded."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
import record_front

FOUND = """() => [...document.querySelectorAll("ul.search > li")].map(item => ({
    title: item.querySelector(":scope > a").textContent,
    sections: [...item.querySelectorAll(".found-sections > li")].map(row => ({
        heading: row.querySelector("a").textContent, to: row.querySelector("a").href,
        words: row.querySelector("p").textContent,
        marked: [...row.querySelectorAll("mark")].map(mark => mark.textContent)})),
}))"""
SEVERAL = "() => document.querySelectorAll('ul.search > li:has(.found-sections)').length >= 4"


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """The page watches its own requests; no JupyterLab is needed."""
    yield


@pytest.fixture
def found(site, browser) -> Iterator:
    """Asks the search of the served site; no request leaves it, and nothing is complained about."""
    strangers, complaints = [], []
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.on("request", lambda sent: strangers.append(sent.url))
    page.on("console", lambda said: complaints.append(said.text) if said.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    with record_front.served(site) as address:

        def ask(words: str) -> list[dict]:
            page.goto(f"{address}search.html?q={quote(words)}")
            page.wait_for_function(SEVERAL, timeout=60_000)
            return page.evaluate(FOUND)

        yield ask
        page.close()
    assert [url for url in strangers if not url.startswith((address, "data:"))] == []
    assert complaints == []


def test_a_page_shows_its_sections_with_the_words_marked(found):
    glossary, notebook, *_ = found("beam search")
    assert glossary["title"] == "Glossary" and glossary["sections"][0]["heading"] == "beam search"
    assert glossary["sections"][0]["words"].startswith("Decoding that keeps the b likeliest prefixes")
    assert notebook["title"].startswith("14 · ")
    assert 1 <= len(notebook["sections"]) <= 3
    for section in notebook["sections"]:
        assert "/notebooks/14_translating.html#" in section["to"]
        assert section["marked"] and all(mark.lower().startswith(("beam", "search")) for mark in section["marked"])
        assert len(section["words"]) < 300


def test_what_is_folded_is_not_told(found):
    """The text that tells a prediction, hints and solutions are not in an excerpt, nor is raw LaTeX."""
    for item in found("softmax scores"):
        for section in item["sections"]:
            assert not {"What happened", "Hint 1"} & {section["words"][:13], section["words"][:6]}
            assert "\\(" not in section["words"] + section["heading"]


def test_signs_are_words_as_they_are(found):
    assert any(item["sections"] for item in found("W_Q (queries) attention"))
