"""Build the book: `make book`, or `python docs/build_book.py` after `make site`; nothing is executed or downloaded.

Both files have the notebooks in their order, the glossary and the references. The PDF is printed from the built site by
an installed Chromium, CHROMIUM or one on the PATH; the EPUB is made by Sphinx from the same source.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT)]

import book_epub  # noqa: E402
import book_pages  # noqa: E402
import book_pdf  # noqa: E402
import build_site  # noqa: E402
import record_front  # noqa: E402
from lxml import html as lxml_html  # noqa: E402

from transformer_lib import __version__  # noqa: E402
from transformer_lib._streams import run_command  # noqa: E402
from transformer_lib.course.notebooks import NOTEBOOKS  # noqa: E402

TITLE = "The Transformer, from one lookup to a translator"
ABOUT = (
    "A course in notebooks, as a book to read. What one opens there with a click (hints, answers to the questions, "
    "solutions) stands at the end of each chapter. What one does there, to predict, run, break and be checked, needs "
    f"the notebooks themselves. Version {__version__}, MIT licence."
)
FORMULA = re.compile(r"\\\((.*?)\\\)")
AT_THE_END = ("docs/glossary", "docs/references")
PART = re.compile(r"^:caption: (.*)\n\n((?:.+\n)+?)```", re.MULTILINE)
ENTRY = re.compile(r"^(.+) </(notebooks/\w+)\.ipynb>$", re.MULTILINE)
BOOK_CSS = """
.bd-article { padding: 0 !important; } #jb-print-docs-body h1 { font-size: 2rem; line-height: 1.25; }
#jb-print-docs-body h1 { text-align: left !important; margin: 0 0 2rem !important; padding: 0 !important; }
.prev-next-footer, footer, #jb-print-toc, #print-main-content h2 { display: none !important; }
.bd-article div.highlight pre, .cell_output pre { font-size: 0.74em !important; }
.bd-article div.cell_output .output, .bd-article .cell_input { box-shadow: none; }
.bd-article :is(h2, h3, h4) { break-after: avoid; } .was-folded { font-weight: 700; break-after: avoid; }
.bd-article h2 { margin-top: 1.6rem; } #answers { font-size: 0.9em; } #answers h2 { break-before: page; }
#answers h3 { font-size: 1.1rem; margin: 1rem 0 0.3rem; } #answers p { margin: 0 0 0.3rem; }
"""


def parts(only: Collection[str] = ()) -> dict[str, dict[str, str]]:
    """Return the parts of the course, each with its pages: {part: {page: title}}; the last is what lies beside it."""
    listed = PART.findall((DOCS / "index.md").read_text("utf-8"))
    wanted = {entry.stem for entry in NOTEBOOKS if not only or entry.id in only}
    made = {}
    for part, lines in listed:
        pages = {page: title for title, page in ENTRY.findall(lines) if page.partition("/")[2] in wanted}
        made |= {part: pages} if pages else {}
    return made | {"At the end": {page: page.partition("/")[2].capitalize() for page in AT_THE_END}}


def chapters(only: Collection[str] = ()) -> list[book_pdf.Chapter]:
    """Return what the book consists of."""
    return [
        book_pdf.Chapter(f"{page}.html", title, part)
        for part, pages in parts(only).items()
        for page, title in pages.items()
    ]


def paper_site(site: Path, work: Path, book: Sequence[book_pdf.Chapter]) -> Path:
    """Copy the site, its chapters made ready for paper."""
    copy = work / "site"
    shutil.copytree(site, copy)
    for chapter in book:
        file = copy / chapter.name
        page = lxml_html.document_fromstring(file.read_text("utf-8"))
        article = page.find(".//article")
        book_pages.for_paper(article)
        chapter.sections = [FORMULA.sub(r"\1", heading.text_content()).strip() for heading in article.iter("h2")]
        style = lxml_html.fragment_fromstring(f"<style>@media print {{ {BOOK_CSS} }}</style>")
        page.find(".//head").append(style)
        file.write_bytes(lxml_html.tostring(page, doctype="<!DOCTYPE html>", encoding="utf-8"))
    return copy


def pdf(site: Path, work: Path, out: Path, only: Collection[str]) -> int:
    """Print the book; returns its number of pages."""
    book = chapters(only)
    copy = paper_site(site, work, book)
    card = (DOCS / "_static" / "card.png").as_uri()
    with record_front.browser() as driven:
        book_pdf.print_chapters(driven, copy, book)
        picture = f'<img class="picture" src="{card}" alt="The translator of the course">'
        made = book_pdf.joined(driven, TITLE, ABOUT, picture, book, copy, os.environ.get("SITE_URL", ""))
    made.write(out)
    return len(made.pages)


def book_source(source: Path, only: Collection[str]) -> None:
    """Write what Sphinx reads for the EPUB: the site's source, without the pages that the book lacks."""
    build_site.prepare(source, for_students=True)
    kept = {page for pages in parts(only).values() for page in pages}
    for path in [*source.rglob("*.md"), *source.rglob("*.ipynb")]:
        if path.relative_to(source).with_suffix("").as_posix() not in kept:
            path.unlink()
    toc = [
        "\n".join(
            ["```{toctree}", f":caption: {part}", "", *(f"{title} </{page}>" for page, title in pages.items()), "```"]
        )
        for part, pages in parts(only).items()
    ]
    build_site.write(source / "index.md", "\n\n".join([f"# {TITLE}", ABOUT, *toc]) + "\n")


def epub(work: Path, out: Path, only: Collection[str]) -> int:
    """Make the EPUB; returns Sphinx's exit status."""
    from sphinx.cmd.build import build_main

    book_source(work / "source", only)
    settings = {
        "extensions": "myst_nb,sphinx.ext.autodoc,book_epub",
        "suppress_warnings": "myst.header,myst.xref_missing,epub.unknown_project_files,epub.duplicated_toc_entry",
        "epub_title": TITLE,
        "epub_author": "The authors of this course",
        "epub_publisher": "The authors of this course",
        "epub_contributor": "Sphinx",
        "epub_description": "A course in notebooks",
        "epub_basename": "transformer",
        "epub_identifier": f"transformer-course-{__version__}",
        "epub_uid": f"transformer-course-{__version__}",  # by which its two tables of contents know each other
        "epub_scheme": "URN",
        "epub_show_urls": "no",
        "epub_use_index": "0",
        "epub_tocdepth": "2",
        "version": __version__,
    }
    options = ["-b", "epub", "-q", "-E", "-c", str(DOCS), "-d", str(work / "doctrees")]
    for name, value in settings.items():
        options += ["-D", f"{name}={value}"]
    status = build_main([*options, str(work / "source"), str(work / "epub")])
    if status == 0:
        book_epub.finish(work / "epub" / "transformer.epub", out)
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the book as PDF and EPUB; nothing is executed or downloaded.")
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site", help="the built site")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "book", help="the folder of both files")
    parser.add_argument("--only", nargs="+", default=[], metavar="NN", help="some notebooks, such as 00 04")
    parser.add_argument("--format", choices=("pdf", "epub"), action="append", help="one of the two")
    options = parser.parse_args(arguments)
    formats, work = options.format or ["pdf", "epub"], options.out.resolve() / "work"
    if "pdf" in formats and not (options.site / "index.html").is_file():
        parser.error(f"--site must be a built site, got {options.site}: make site builds one")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    status = 0
    try:
        if "pdf" in formats:
            file = options.out / "transformer.pdf"
            pages = pdf(options.site.resolve(), work, file, options.only)
            print(f"{file}: {pages} pages, {file.stat().st_size / 1e6:.1f} MB")
        if "epub" in formats:
            file = options.out / "transformer.epub"
            status = epub(work, file, options.only)
            print(f"{file}: {file.stat().st_size / 1e6:.1f} MB" if status == 0 else "no EPUB: see the messages above")
    except (FileNotFoundError, RuntimeError) as error:
        parser.error(str(error))
    shutil.rmtree(work)
    return status


if __name__ == "__main__":
    run_command(main)
