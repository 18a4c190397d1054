"""Decks for lectures from the notebooks' own cells: `python -m transformer_lib.course.teaching.slides`.

Each deck is one HTML page; reveal.js and MathJax are copied beside them from installed packages, so that the folder
works by double click, without a network.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader
from nbconvert.exporters import SlidesExporter
from traitlets.config import Config

from ... import notebooks
from ...printing import print_pdf
from ..notebook_files import MATHJAX, carried
from .plan import Slide, plan, read
from .room import divided
from .symbols import typeset

READY = "document.body.classList.contains('ready')"  # deck.js says so when every slide is laid out
TEMPLATE = Path(__file__).with_name("template")
VENDORED = {
    "reveal.css": ("sphinx-revealjs", "sphinx_revealjs/_static/revealjs/dist/reveal.css"),
    "reveal.js": ("sphinx-revealjs", "sphinx_revealjs/_static/revealjs/dist/reveal.js"),
    "notes.js": ("sphinx-revealjs", "sphinx_revealjs/_static/revealjs/plugin/notes/notes.js"),
    "reveal-licence.txt": ("sphinx-revealjs", "sphinx_revealjs/_static/revealjs/LICENSE"),
    "mathjax.js": MATHJAX,
}
"""File beside the decks: the package that holds it, and where."""


def deck_of(entry: notebooks.Notebook) -> list[Slide]:
    """Return the slides of a notebook.

    Raises:
        FileNotFoundError: if the notebook is neither beside the package nor in the working directory.
    """
    return divided(plan(read(notebooks.file_of(entry)), f"Notebook {entry.id} · {html.escape(entry.title)}"))


def as_notebook(slides: Sequence[Slide], title: str) -> nbformat.NotebookNode:
    """Return the slides as a notebook in nbconvert's terms: one Markdown cell a piece, with its type of slide."""
    cells = []
    for slide in slides:
        heading = f"{'#' * slide.level} {slide.title}"
        kinds = [("slide", heading), ("notes", _notes(slide))]
        kinds += [("fragment" if piece.step else "-", piece.text) for piece in slide.pieces]
        cells += [_cell(kind, typeset(_link_decks(text))) for kind, text in kinds]
    return nbformat.v4.new_notebook(cells=cells, metadata={"title": title})


def _cell(kind: str, text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})


def _notes(slide: Slide) -> str:
    cells = ", ".join(slide.cells)
    return "\n\n".join([f"*Cells: {cells}*", *slide.notes])


def _link_decks(text: str) -> str:
    """Turn links to notebooks, and to cells of them, into links to their decks."""
    for entry in notebooks.NOTEBOOKS:
        text = re.sub(rf"\]\({re.escape(entry.filename)}(?:#[^)]*)?\)", f"]({entry.stem}.html)", text)
    return text


def render(slides: Sequence[Slide], title: str) -> str:
    """Return the page of a deck."""
    config = Config({"TemplateExporter": {"extra_template_basedirs": [str(TEMPLATE.parent)]}})
    exporter = SlidesExporter(config=config, template_name=TEMPLATE.name, exclude_anchor_links=True)
    page, _ = exporter.from_notebook_node(as_notebook(slides, title))
    return page


def vendor(folder: Path) -> None:
    """Copy the scripts and styles that the decks load.

    Raises:
        RuntimeError: if a package of the extra `slides` is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, (package, place) in VENDORED.items():
        shutil.copyfile(carried(package, place, "slides"), folder / name)
    for name in ("deck.css", "deck.js"):
        shutil.copyfile(TEMPLATE / name, folder / name)


def build(folder: Path, entries: Sequence[notebooks.Notebook] = notebooks.NOTEBOOKS) -> list[Path]:
    """Write a deck for each notebook into a folder, and the page that lists all decks in it; returns the new ones."""
    vendor(folder / "deck")
    decks, rows = [], []
    for entry in notebooks.NOTEBOOKS:
        path = folder / f"{entry.stem}.html"
        if entry not in entries and not path.exists():
            continue  # the list also names decks that were made earlier
        slides = deck_of(entry)
        if entry in entries:
            path.write_text(render(slides, f"{entry.id} · {entry.title}"), encoding="utf-8")
            decks.append(path)
        question = typeset(html.escape(slides[0].title))
        rows.append((entry, question, path.name, len(slides)))
    environment = Environment(loader=FileSystemLoader(TEMPLATE), autoescape=True)
    page = environment.get_template("overview.html.j2").render(rows=rows)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return decks


def printed(decks: Sequence[Path]) -> list[Path]:
    """Print decks to PDF files beside them, a slide a page, and return those.

    Raises:
        RuntimeError: if there is no Chromium.
    """
    return [print_pdf(deck, deck.with_suffix(".pdf"), query="print-pdf", ready=READY) for deck in decks]


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the decks named on the command line, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.slides",
        description="Decks for lectures, from the notebooks' own cells.",
    )
    parser.add_argument("notebooks", nargs="*", metavar="NN", help="numbers of notebooks, such as 04, or A; or all")
    parser.add_argument("--out", type=Path, default=Path("build/slides"), help="folder to write into")
    parser.add_argument("--pdf", action="store_true", help="print the decks to PDF, too, by an installed Chromium")
    options = parser.parse_args(arguments)
    try:
        decks = build(options.out, notebooks.chosen(options.notebooks))
        pages = printed(decks) if options.pdf else []
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        parser.error(str(error))
    made, page = ("1 deck", decks[0]) if len(decks) == 1 else (f"{len(decks)} decks", options.out / "index.html")
    print("\n".join([f"{made}; open {page} in a browser", *map(str, pages)]))
