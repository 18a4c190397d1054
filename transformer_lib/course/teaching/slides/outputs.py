"""What a slide shows of a code cell: its source, its stored picture with the description, its question, its text."""

from __future__ import annotations

import functools
import html
import re
import textwrap

from bs4 import BeautifulSoup, Tag

from ...cells import text_of
from ..notebook_files import html_of
from .long_lines import LEGIBLE, WIDTH, broken

PLAIN_LINES, CODE_LINES, OUTPUT_LINES = 8, 16, 14
CUT = "…"


def source_lines(source: str, *, full: bool = False) -> str:
    """Return the source, long lines broken, in at most CODE_LINES lines: without its assertions, then cut."""
    lines = broken(source.strip())
    if full or len(lines) <= PLAIN_LINES:
        return "\n".join(lines)
    kept = _without_assertions(lines)
    if len(kept) > CODE_LINES:
        kept = [*kept[: CODE_LINES - 1], "# … goes on in the notebook"]
    return "\n".join(kept).strip()


def _without_assertions(lines: list[str]) -> list[str]:
    """Drop assertions, with the indented lines that belong to them, and doubled blank lines."""
    kept: list[str] = []
    dropping = -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if dropping >= 0 and line.strip() and indent > dropping:
            continue
        dropping = indent if re.match(r"\s*(assert |(torch|np)\.testing\.)", line) else -1
        doubled = not line.strip() and kept and not kept[-1].strip()
        if dropping < 0 and not doubled:
            kept.append(line)
    return kept


def fenced(text: str, language: str) -> str:
    """Return a fenced block of Markdown."""
    return f"```{language}\n{text}\n```"


def printed(cell: dict) -> str:
    """Return what a code cell printed or returned, in at most OUTPUT_LINES lines; "" where it has a picture."""
    found = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        text = output.get("text") or ("" if "text/html" in data else data.get("text/plain", ""))
        found.append(text_of(text).rstrip())
    lines = [part for line in "\n".join(filter(None, found)).splitlines() for part in _wrapped(line)]
    if len(lines) > OUTPUT_LINES:
        lines = [*lines[: OUTPUT_LINES - 1], CUT]
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(line: str) -> list[str]:
    """Return a long line as several; one with columns, which have wider gaps, stays while it is legible."""
    if len(line) <= (LEGIBLE if "  " in line.strip() else WIDTH):
        return [line]
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def stored_html(cell: dict) -> str:
    """Return the HTML that a code cell stored, on one line and without its folded parts."""
    return _unfolded(html_of(cell))


@functools.lru_cache(maxsize=8)  # asked several times for a cell; with a picture in it the text is long
def _unfolded(stored: str) -> str:
    soup = BeautifulSoup(stored, "html.parser")
    for folded in soup.find_all("details"):
        folded.decompose()
    return re.sub(r"\s*\n\s*", " ", str(soup)).strip()


def has_picture(cell: dict) -> bool:
    """Return True when the stored output is a figure or the picture of a widget."""
    return "<img" in stored_html(cell)


def picture(cell: dict, caption: str = "") -> str:
    """Return the stored picture as HTML, with its line of text above and the caption below."""
    soup = BeautifulSoup(stored_html(cell), "html.parser")
    images = soup.find_all("img")
    says = " ".join(part.get_text(" ", strip=True) for part in soup.find_all("strong"))
    tags = "".join(_image(image) for image in images)
    above = f'<p class="says">{html.escape(says)}</p>' if says else ""
    below = f"\n\n<figcaption>\n\n{caption}\n\n</figcaption>" if caption else ""
    return f'<figure>{above}<div class="pictures">{tags}</div>{below}\n\n</figure>'


def _image(image: Tag) -> str:
    return f'<img alt="{html.escape(str(image.get("alt", "")))}" src="{image["src"]}">'


def question(cell: dict) -> tuple[str, str, str]:
    """Return a stored quiz as HTML: question and options, the right answer, and why the others are wrong.

    Raises:
        ValueError: if the cell has not stored a quiz.
    """
    soup = BeautifulSoup(html_of(cell), "html.parser")
    asked, answers, listing = soup.find("p"), soup.find("details"), soup.find("ol")
    if not (asked and asked.find("b") and answers and listing):
        raise ValueError(f"cell {cell['id']} must have stored its quiz: run the notebook")
    asked.find("b").decompose()
    replies = [reply.get_text() for reply in answers.find_all("li")]
    options = [option.decode_contents() for option in listing.find_all("li")]
    chosen = not listing.find_parent("details")
    letters = [f"{chr(ord('A') + index)}. " if chosen else "" for index in range(len(replies))]
    judged = list(zip(letters, replies, strict=True))
    right = [f"{letter}{reply}" for letter, reply in judged if "✓" in reply]
    wrong = [f"- {letter}{html.escape(reply)}" for letter, reply in judged if "✓" not in reply]
    listed = '<ol type="A">' + "".join(f"<li>{option}</li>" for option in options) + "</ol>" if chosen else ""
    body = f'<div class="quiz"><p>{asked.decode_contents().strip()}</p>{listed}</div>'
    return body, f'<div class="answer"><p>{html.escape(" ".join(right))}</p></div>', "\n".join(wrong)
