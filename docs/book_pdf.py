"""The book as a PDF: Chromium prints the pages of the built site, and pypdf joins them, with contents and numbers.

Links among the pages become places in the book; links to a page that is not in it lead to the published site, if its
address is known, and are otherwise left as words.
"""

from __future__ import annotations

import html
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, Fit, NameObject, NumberObject, TextStringObject

PAPER = {"format": "A4", "margin": {"top": "17mm", "bottom": "19mm", "left": "19mm", "right": "19mm"}}
SCALE = 0.82  # a screen's 16 pixels are large letters on paper
READY = """async () => {
    for (const picture of document.images) picture.loading = "eager";
    await window.MathJax?.startup?.promise;
    await Promise.all([...document.images].map(picture => picture.decode().catch(() => null)));
    return [...document.images].filter(picture => !picture.naturalWidth).map(picture => picture.src.slice(0, 80));
}"""


@dataclass
class Chapter:
    """A page of the site as a part of the book; `first` is the number of its first page in the book, from 0."""

    name: str  # the site's file, such as "notebooks/04_scaled_dot_product_attention.html"
    title: str
    part: str = ""  # the heading in the contents under which it stands
    sections: list[str] = field(default_factory=list)
    pdf: PdfReader | None = field(default=None, repr=False)
    first: int = 0


def printed(browser, page, **more: object) -> PdfReader:
    """Return what Chromium prints of an open page."""
    return PdfReader(io.BytesIO(page.pdf(print_background=True, **PAPER, **more)))


def print_chapters(browser, site: Path, chapters: Sequence[Chapter]) -> None:
    """Print each chapter.

    Raises:
        RuntimeError: if a page has a picture that cannot be read.
    """
    page = browser.new_page(color_scheme="light", reduced_motion="reduce")
    page.set_default_timeout(120_000)
    for chapter in chapters:
        page.goto((site / chapter.name).as_uri())
        page.emulate_media(media="print", color_scheme="light")
        if missing := page.evaluate(READY):
            raise RuntimeError(f"{chapter.name} has pictures that cannot be read: {missing}")
        chapter.pdf = printed(browser, page, scale=SCALE, outline=True, tagged=True)
    page.close()


def html_printed(browser, text: str, at: Path) -> PdfReader:
    """Print a page that is written here; `at` is the file that its links start from."""
    page = browser.new_page(color_scheme="light")
    page.goto(at.as_uri())
    page.set_content(text)
    made = printed(browser, page)
    page.close()
    return made


CONTENTS = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 11pt/1.5 "DejaVu Sans", system-ui, sans-serif; margin: 0; color: #111; }}
.cover {{ height: 245mm; display: flex; flex-direction: column; justify-content: center; break-after: page; }}
h1 {{ font-size: 27pt; line-height: 1.2; margin: 0 0 8mm; }} .cover p {{ font-size: 12pt; max-width: 130mm; }}
.cover .picture {{ width: 150mm; margin: 0 0 14mm; }}
h2 {{ font-size: 18pt; }} h3 {{ font-size: 11pt; margin: 5mm 0 1mm; break-after: avoid; }}
a {{ color: inherit; text-decoration: none; display: flex; gap: 3mm; break-inside: avoid; }}
a i {{ flex: 1; border-bottom: 1px dotted #999; margin-bottom: 1.4mm; }} a b {{ font-weight: normal; }}
</style></head><body><section class="cover">{picture}<h1>{title}</h1><p>{about}</p></section>
<h2>Contents</h2>{lines}</body></html>"""


def contents(title: str, about: str, picture: str, chapters: Sequence[Chapter], site: Path, start: int) -> str:
    """Return cover and contents as HTML; `start` is the number of pages before the first chapter."""
    lines, part = [], ""
    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            lines.append(f"<h3>{html.escape(part)}</h3>")
        to = (site / chapter.name).as_uri()
        number = start + chapter.first + 1
        lines.append(f'<a href="{to}"><b>{html.escape(chapter.title)}</b><i></i><span>{number}</span></a>')
    return CONTENTS.format(title=html.escape(title), about=html.escape(about), picture=picture, lines="\n".join(lines))


def numbers(browser, titles: Sequence[str], at: Path) -> PdfReader:
    """Print what stands at the foot of each page: its chapter and its number. "" leaves a foot empty."""
    foot = "\n".join(
        f"<div><p>{f'{html.escape(title)}<span>{at}</span>' if title else ''}</p></div>"
        for at, title in enumerate(titles, start=1)
    )
    page = browser.new_page()
    page.set_content(
        "<style>body { margin: 0; font: 8pt 'DejaVu Sans', sans-serif; color: #555; }"
        "div { height: 296mm; position: relative; break-after: page; } div:last-child { break-after: auto; }"
        "p { position: absolute; bottom: 8mm; left: 19mm; right: 19mm; margin: 0; display: flex;"
        f" justify-content: space-between; }}</style>{foot}"
    )
    made = PdfReader(io.BytesIO(page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "0"))))
    page.close()
    return made


def sections(chapter: Chapter) -> Iterator[tuple[str, int, float]]:
    """Yield the sections of a chapter, each with its page and height there.

    Raises:
        RuntimeError: if Chromium has seen other sections than the page has.
    """
    below = [each for entry in chapter.pdf.outline if isinstance(entry, list) for each in entry]
    seen = [each for each in below if not isinstance(each, list)]
    if len(seen) != len(chapter.sections):
        raise RuntimeError(f"{chapter.name} must have the sections {chapter.sections}, got {len(seen)}")
    for name, each in zip(chapter.sections, seen, strict=True):  # it names one twice that it has moved to the next page
        yield name, chapter.pdf.get_destination_page_number(each), float(each.top or 0)


def place(writer: PdfWriter, number: int, top: float | None = None) -> ArrayObject:
    """Return a place in the book as PDF writes it: a page, and how far up on it."""
    height = float(writer.pages[number].mediabox.height) if top is None else top
    spot = [NameObject("/XYZ"), NumberObject(0), NumberObject(round(height)), NumberObject(0)]
    return ArrayObject([writer.pages[number].indirect_reference, *spot])


class Links:
    """Leads the links of printed pages to where their targets are in the book."""

    def __init__(self, writer: PdfWriter, site: Path, chapters: Sequence[Chapter], start: int, address: str) -> None:
        self.writer, self.site, self.address, self.start = writer, site, address, start
        self.of_file = {(site / chapter.name).resolve(): chapter for chapter in chapters}

    def mend(self, pages: range, pdf: PdfReader) -> None:
        """Mend the links of these pages of the book, which are all of one printed document."""
        named = pdf.named_destinations
        for number in pages:
            page = self.writer.pages[number]
            kept = [link for link in page.get("/Annots", ()) if self.mended(link.get_object(), pages.start, pdf, named)]
            if kept:
                page[NameObject("/Annots")] = ArrayObject(kept)
            elif "/Annots" in page:
                del page["/Annots"]

    def mended(self, link, first: int, pdf: PdfReader, named: dict) -> bool:
        """Change one link; returns False for one that leads nowhere."""
        action = link.get("/A", {})
        inside = link.get("/Dest", action.get("/D"))
        if isinstance(inside, str):  # a name of the printed document, which the book does not keep
            if inside not in named:
                return False
            target = named[inside]
            self.lead(link, place(self.writer, first + pdf.get_destination_page_number(target), float(target.top or 0)))
            return True
        address = action.get("/URI", "")
        return bool(address) and self.outward(link, urlsplit(address))

    def outward(self, link, parts) -> bool:
        """Change a link with an address; returns False for one to a page that only this machine has."""
        if parts.scheme != "file":
            return parts.scheme in ("http", "https") and parts.hostname != "localhost"
        file = Path(unquote(parts.path)).resolve()
        if chapter := self.of_file.get(file):
            top = self.height(chapter, unquote(parts.fragment))
            self.lead(link, place(self.writer, self.start + chapter.first + top[0], top[1]))
            return True
        if not (self.address and file.is_relative_to(self.site)):
            return False
        there = urljoin(self.address, file.relative_to(self.site).as_posix())
        link["/A"][NameObject("/URI")] = TextStringObject(there + (f"#{parts.fragment}" if parts.fragment else ""))
        return True

    @staticmethod
    def height(chapter: Chapter, name: str) -> tuple[int, float | None]:
        """Return where a name is in a chapter: the page within it, and the height; its beginning, if unknown."""
        target = chapter.pdf.named_destinations.get(name) or chapter.pdf.named_destinations.get(f"/{name}")
        return (chapter.pdf.get_destination_page_number(target), float(target.top or 0)) if target else (0, None)

    @staticmethod
    def lead(link, to: ArrayObject) -> None:
        """Let a link lead to a place in the book."""
        if "/A" in link:
            del link["/A"]
        link[NameObject("/Dest")] = to


def joined(
    browser, title: str, about: str, picture: str, chapters: Sequence[Chapter], site: Path, address: str
) -> PdfWriter:
    """Return the book, of chapters that are printed."""
    pages = 0
    for chapter in chapters:
        chapter.first, pages = pages, pages + len(chapter.pdf.pages)
    guess = html_printed(browser, contents(title, about, picture, chapters, site, 0), site / "index.html")
    start = len(guess.pages)
    front = html_printed(browser, contents(title, about, picture, chapters, site, start), site / "index.html")
    writer = PdfWriter()
    for pdf in (front, *(chapter.pdf for chapter in chapters)):
        writer.append(pdf, import_outline=False)
    links = Links(writer, site.resolve(), chapters, start, address)
    links.mend(range(start), front)
    foot = [""] * start
    for chapter in chapters:
        first = start + chapter.first
        links.mend(range(first, first + len(chapter.pdf.pages)), chapter.pdf)
        foot += [chapter.title] * len(chapter.pdf.pages)
        entry = writer.add_outline_item(title=chapter.title, page_number=first, is_open=False)
        for name, at, top in sections(chapter):
            writer.add_outline_item(title=name, page_number=first + at, parent=entry, fit=Fit.xyz(top=top))
    for page, below in zip(writer.pages, numbers(browser, foot, site).pages, strict=True):
        page.merge_page(below)
        page.compress_content_streams()
    writer.add_metadata({"/Title": title, "/Author": "The authors of this course"})
    writer.page_mode = "/UseOutlines"
    for name in ("/Dests", "/StructTreeRoot", "/MarkInfo"):  # of single pages, and no longer true
        writer.root_object.pop(name, None)
    writer.compress_identical_objects(remove_duplicates=True, remove_unreferenced=True)
    return writer
