"""The book's PDF of one notebook: pages are numbered, contents and links lead to places in it, nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import built_site

pypdf = pytest.importorskip("pypdf", reason='the book needs pip install -e ".[book]"')

import book_pdf  # noqa: E402
import build_book  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """Pages are printed from files; no JupyterLab is needed."""
    yield


@pytest.fixture(scope="module")
def book(browser, tmp_path_factory) -> pypdf.PdfReader:
    site, work = built_site.built(tmp_path_factory), tmp_path_factory.mktemp("paper")
    chapters = build_book.chapters(["04"])
    copy = build_book.paper_site(site, work, chapters)
    book_pdf.print_chapters(browser, copy, chapters)
    made = book_pdf.joined(browser, build_book.TITLE, build_book.ABOUT, "", chapters, copy, "")
    made.write(work / "book.pdf")
    return pypdf.PdfReader(work / "book.pdf")


def text(book, number: int) -> str:
    return " ".join(book.pages[number].extract_text().split())


def test_contents_outline_and_feet_agree(book):
    listed = text(book, 1)
    for entry in (each for each in book.outline if not isinstance(each, list)):
        number = book.get_destination_page_number(entry)
        assert f"{entry.title} {number + 1}" in listed
        assert text(book, number).endswith(f"{entry.title} {number + 1}")  # at its foot
    sections = next(each for each in book.outline if isinstance(each, list))
    assert [each.title for each in sections][-1] == "Hints, answers and solutions"
    for each in sections:
        assert each.title in text(book, book.get_destination_page_number(each))


def test_a_link_leads_to_a_page_of_the_book_or_to_a_paper(book):
    inside, outside = 0, set()
    for page in book.pages:
        for link in page.get("/Annots", ()):
            link = link.get_object()
            if "/Dest" in link:
                inside += isinstance(link["/Dest"], list) and link["/Dest"][0].get_object()["/Type"] == "/Page"
            else:
                outside.add(link["/A"]["/URI"].partition(":")[0])
    assert inside > 300  # most are the glossary's
    assert outside == {"https"}


def test_the_first_page_of_a_chapter_has_its_title_and_the_last_its_answers(book):
    assert "Why divide by the square root of d_k?" in text(book, 2)
    whole = " ".join(text(book, number) for number in range(len(book.pages)))
    assert whole.index("Hints, answers and solutions") < whole.index("Exercise 04.1", whole.index("Hints, answers"))
    assert "Show the solution" not in whole and "Open in your JupyterLab" not in whole
