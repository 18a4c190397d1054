"""What a reader with a screen reader stumbles over in a notebook: the rules of jupyterlab-a11y-checker, and more.

That program looks at Markdown cells; here the stored outputs are held to the same rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from bs4 import BeautifulSoup, Tag

from markdown_rendering import READER, without_formulas
from transformer_lib.course.cells import source_of
from transformer_lib.course.teaching.notebook_files import html_of

HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
VAGUE = re.compile(r"(?:click |see |read )?(?:here|this|more|link|page|there|read)\W*", re.IGNORECASE)
ADDRESS = re.compile(r"https?://|www\.", re.IGNORECASE)


def problems(cells: Iterable[dict]) -> Iterator[str]:
    """Yield a phrase for each thing that is wrong, with the id of its cell."""
    found: list[tuple[str, int, str]] = []
    for cell in cells:
        shown = page_of(cell)
        headings = [(int(each.name[1]), text_of(each)) for each in shown.find_all(HEADINGS)]
        found += [(cell["id"], *heading) for heading in headings]
        yield from (f"{cell['id']}: {problem}" for problem in _of_page(shown))
    yield from _of_headings(found)


def page_of(cell: dict) -> BeautifulSoup:
    """Return what a cell shows: its Markdown, or the HTML and the Markdown of its stored outputs."""
    if cell["cell_type"] == "markdown":
        return BeautifulSoup(READER.render(without_formulas(source_of(cell))), "html.parser")
    said = ["".join(output.get("data", {}).get("text/markdown", "")) for output in cell.get("outputs", [])]
    return BeautifulSoup(html_of(cell) + "".join(map(READER.render, said)), "html.parser")


def text_of(tag: Tag) -> str:
    """Return the words of an element, or its label; a picture counts by its description."""
    words = [tag.get_text(" ", strip=True), *(str(image.get("alt", "")) for image in tag.find_all("img"))]
    return str(tag.get("aria-label") or " ".join(words)).strip()


def _of_headings(found: list[tuple[str, int, str]]) -> Iterator[str]:
    levels = [level for _, level, _ in found]
    if levels[:1] != [1] or levels.count(1) != 1:
        yield f"the first heading, and it alone, must have level 1, got levels {levels}"
    for before, (cell, level, text) in zip(levels, found[1:], strict=False):
        if level > before + 1:
            yield f"{cell}: a heading of level {level} after one of level {before}: {text}"
    texts = Counter(text.casefold() for _, level, text in found if level <= 2)
    yield from (f"two headings of level 1 or 2 say {text!r}" for text, times in texts.items() if times > 1)


def _of_page(shown: BeautifulSoup) -> Iterator[str]:
    yield from (f"an empty {each.name}" for each in shown.find_all(HEADINGS) if not text_of(each))
    for image in shown.find_all("img"):
        if not str(image.get("alt", "")).strip():
            yield f"a picture without a description: {str(image)[:80]}"
    for table in shown.find_all("table"):
        if not any(text_of(head) for head in table.find_all("th")):
            yield f"a table without a header: {text_of(table)[:80]}"
    for link in shown.find_all("a", href=True):
        if VAGUE.fullmatch(text_of(link)) or ADDRESS.match(text_of(link)) or not re.search(r"\w", text_of(link)):
            yield f"a link that does not say where it leads: {str(link)[:120]}"
    for fold in shown.find_all("details"):
        if not fold.find("summary") or not text_of(fold.find("summary")):
            yield f"a folded part without a title: {str(fold)[:80]}"
