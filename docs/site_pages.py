"""The course's notebooks and guide as pages of the reading site: links, anchors, what a page without a kernel needs.

A page takes the stored outputs as they are. It gains an anchor per cell, links to JupyterLab and to the file, and a
strip with the way through the course where the notebook shows progress.
"""

from __future__ import annotations

import base64
import os
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import site_services
from site_asked import live
from site_links import linked_html
from site_panels import Living, alive

from transformer_lib.course.cells import (
    awaited,
    folded,
    for_readers,
    is_question,
    is_telling,
    source_of,
    tags_of,
    text_of,
)
from transformer_lib.course.notebooks import NOTEBOOKS, Notebook, notebook
from transformer_lib.course.reading import Entry, entries, literature, words
from transformer_lib.course.teaching.notebook_files import html_of

LAB = os.environ.get("SITE_JUPYTERLAB_URL", "http://localhost:8888/lab/tree").rstrip("/")
KEPT_TAGS = {"hide-input", "solution", "check", "widget", "quiz", "predict"}
OPEN_TAGS = {"exercise", "check", "solution", "widget"}  # what they show tells no prediction
CELL_NAME = re.compile(r"`((\d\d|a_|A)-(?:\d{3,4}|[a-z]+-\d+))`")
FORMULA = re.compile(r"\$([^$\n]+)\$")
GUIDE = re.compile(r"\bteaching/")
ITEM = re.compile(r"(^- .*\n(?:  .*\n)*|^\|.*\n|^/docs/teaching/.*\n)", re.MULTILINE)
PROGRESS = 'aria-label="Your progress in notebook'
IN_LAB = '<p class="in-lab">A stored picture. In JupyterLab it answers to its controls.</p>'


def anchor(cell_id: str) -> str:
    """Return the place in a page where a cell begins."""
    return f'<div class="cell-anchor" id="cell-{cell_id}"></div>\n\n'


def in_html(text: str) -> str:
    """Mark formulas in blocks of HTML, which Sphinx leaves alone, so that MathJax reads them."""
    blocks = re.split(r"(\n\s*\n)", text)
    formula = r'<span class="math">\\(\1\\)</span>'
    return "".join(FORMULA.sub(formula, block) if block.startswith("<") else block for block in blocks)


def strip(here: Notebook) -> str:
    """Show where this notebook stands in the course; in JupyterLab the strip shows progress."""
    items = []
    for entry in NOTEBOOKS:
        if entry is here:
            items.append(f'<b aria-current="page" title="{entry.title}">{entry.id}</b>')
        else:
            items.append(f'<a href="{entry.stem}.html" title="{entry.title}">{entry.id}</a>')
    says = f"{here.minutes} minutes with exercises; you will build {here.builds}. In JupyterLab, progress shows here."
    return f'<nav class="course-strip" aria-label="The course"><p>{" ".join(items)}</p><p>{says}</p></nav>'


def top_links(here: Notebook, *, for_students: bool = False) -> str:
    """Return the line under the title: open, download, run elsewhere, and, but not for students, for teachers."""
    name = here.filename
    guide = "" if for_students else f' <a href="../docs/teaching/{here.stem}.html">For teachers</a>'
    elsewhere = site_services.buttons(f"notebooks/{name}", "../docs/editors.html")
    return (
        f'\n\n<p class="notebook-links"><a href="{LAB}/notebooks/{name}">Open in your JupyterLab</a> '
        f'<a href="{name}" download>Download the notebook</a>{guide}{elsewhere}</p>\n\n'
    )


def without_guide(text: str) -> str:
    """Return a page without the items, the rows of tables and the contents that lead to the teaching guide.

    Raises:
        ValueError: if the page names the guide anywhere else, where leaving a line out would spoil a sentence.
    """
    kept = "".join(part for part in ITEM.split(text) if not (ITEM.fullmatch(part) and GUIDE.search(part)))
    if found := GUIDE.search(kept):
        line = kept[: found.end()].splitlines()[-1]
        raise ValueError(f"text must lead to the teaching guide from an item, a row or the contents, got {line!r}")
    return kept


def shown(output: dict, here: Notebook, tags: set[str], source: str = "", panel: Living | None = None) -> dict:
    """Return an output of a cell with this source as the site shows it, with the cell's panel if it lives there."""
    data = output.get("data", {})
    if "text/html" in data:
        page = live(linked_html(text_of(data["text/html"])), source)
        page = strip(here) if PROGRESS in page else page
        page = alive(page, panel) if panel else page
        data["text/html"] = page + IN_LAB if "widget" in tags else page
    return output


# What 00 says of its first panel: in JupyterLab its cell must be run, on the site it lives, and offers words to choose.
FIRST_PANEL = (
    "**Click into the cell below and press Shift+Enter. Cut the connection, and read the German again. Then join it, "
    "type another last word (river, loan, swan …), and press Enter.**",
    "**Cut the connection below, and read the German again. Then join it, and choose another last word.**",
)


def page_of(
    stored: dict, here: Notebook, *, for_students: bool = False, panels: Mapping[str, Living] | None = None
) -> dict:
    """Return the notebook as the site's source for its page; for students, without a link to the guide.

    The panels live that are given, by the ids of their cells; of the others there is the stored picture. What came out
    of a prediction, wherever it is compared, and the text that tells it, open with a click.
    """
    cells = []
    for cell, asked in awaited(for_readers(stored["cells"])):
        source, place = source_of(cell), anchor(cell["id"])
        if cell["cell_type"] == "markdown":
            source = in_html(folded(source) if is_telling(cell) else source).replace(*FIRST_PANEL)
            if not cells:  # the title comes first
                title, _, rest = source.partition("\n")
                source, place = title + top_links(here, for_students=for_students) + rest, ""
            cells.append({**cell, "source": place + source})
            continue
        tags, asked = set(tags_of(cell)), asked or 'outcome("' in source
        outputs = [shown(output, here, tags, source, (panels or {}).get(cell["id"])) for output in cell["outputs"]]
        cells.append({"cell_type": "markdown", "id": f"at-{cell['id']}", "metadata": {}, "source": place})
        tags |= {"hide-output"} if asked and outputs and not is_question(cell) and not tags & OPEN_TAGS else set()
        kept = {"tags": sorted(tags & (KEPT_TAGS | {"hide-output"}))}
        cells.append({**cell, "source": source, "metadata": kept if kept["tags"] else {}, "outputs": outputs})
    return {**stored, "cells": cells}


def guide_page(text: str) -> str:
    """Return a page of the teaching guide, with links to the cells that it names and a title of its own."""

    def link(found: re.Match) -> str:
        file = notebook(found[2].replace("a_", "A")).stem
        return f'<a href="../../notebooks/{file}.html#cell-{found[1]}"><code>{found[1]}</code></a>'

    return re.sub(r"\A(# (?:\d\d|A) · .*)", r"\1, for teachers", CELL_NAME.sub(link, text))


def contents(pages: list[Path]) -> str:
    """Return the table of contents of the guide, which only the side bar shows."""
    titles = {page.stem: page.read_text("utf-8").splitlines()[0].lstrip("# ") for page in pages}
    names = [f"{title} <{name}>" for name, title in titles.items() if name != "index"]
    return "\n".join(["", "```{toctree}", ":hidden:", "", *names, "```", ""])


def course_map() -> str:
    """Return the table of the front page."""
    rows = [
        f"| {entry.id} | [{entry.title}](notebooks/{entry.filename}) | {entry.minutes} | {entry.builds} |"
        for entry in NOTEBOOKS
    ]
    return "\n".join(["| | notebook | minutes | you build |", "|---|---|---:|---|", *rows, ""])


def modules_of(package: ModuleType) -> str:
    """The sections of the page on studies, or on what notebooks call: what each module's docstring says."""
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    section = "## `{1}`\n\n```{{eval-rst}}\n.. automodule:: {0}.{1}\n```\n"
    return "\n".join(section.format(package.__name__, name) for name in names)


def glossary() -> str:
    """The words as one list of definitions; Sphinx makes each a target and an entry of the index."""
    return "\n".join(["```{glossary}", *map(definition, entries()), "```", ""])


def definition(row: Entry) -> str:
    """Return a word with its definition, its other names, and links to its notebook, to other words and to papers."""
    there = notebook(row.notebook)
    links = [f"[Notebook {there.id}](/notebooks/{there.filename})"]
    links.append(f"See also {', '.join(f'{{term}}`{name}`' for name in row.see)}")
    if row.sources:
        papers = map(literature.reference, row.sources)
        links.append(f"From {', '.join(f'{{ref}}`{paper.label} <ref-{paper.key}>`' for paper in papers)}")
    also = f" Also called {', '.join(map(words.named, row.also))}." if row.also else ""
    return f"{row.word}\n  {row.means}{also}\n\n  {' · '.join(links)}\n"


def bibliography() -> str:
    """The papers, each a target that the glossary links to."""
    return "\n".join(f"(ref-{paper.key})=\n{paper.markdown}\n" for paper in literature.load().values())


def picture_of(stored: dict, cell_id: str) -> str:
    """Return the SVG picture that a cell has stored.

    Raises:
        ValueError: if the notebook has no such cell, or the cell no such picture.
    """
    shows = "".join(html_of(cell) for cell in stored["cells"] if cell["id"] == cell_id)
    picture = re.search(r"data:image/svg\+xml;base64,([^\"]+)", shows)
    if not picture:
        raise ValueError(f"cell_id must name a cell with a stored SVG picture, got {cell_id!r}")
    return base64.b64decode(picture[1]).decode("utf-8")
