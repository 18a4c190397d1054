"""Build the reading site: `make site`, or `python docs/build_site.py [folder]`; nothing is executed or downloaded.

The pages are prepared in a folder that mirrors the repository, so that links among its files hold on the site as well.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT)]

from site_pages import contents, course_map, guide_page, page_of, picture_of  # noqa: E402

from transformer_lib.course import NOTEBOOKS  # noqa: E402


def mathjax() -> Path:
    """MathJax in one file, from the package that brings it."""
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None:
        raise SystemExit('The site needs more packages: pip install -e ".[site]"')
    return Path(found.origin).parent / "static" / "mathjax" / "tex-svg-full.js"


def write(path: Path, text: str) -> None:
    """Write a file, its folder made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def prepare(source: Path) -> None:
    """Write what Sphinx reads."""
    shutil.rmtree(source, ignore_errors=True)
    for entry in NOTEBOOKS:
        notebook = json.loads((ROOT / "notebooks" / entry.filename).read_text("utf-8"))
        write(source / "notebooks" / entry.filename, json.dumps(page_of(notebook, entry)))
    pages = sorted((DOCS / "teaching").glob("*.md"))
    for page in pages:
        listed = contents(pages) if page.stem == "index" else ""
        write(source / "docs" / "teaching" / page.name, guide_page(page.read_text("utf-8")) + listed)
    for folder in ("api", "teaching/hub"):
        shutil.copytree(DOCS / folder, source / "docs" / folder)
    front = (DOCS / "index.md").read_text("utf-8")
    write(source / "index.md", front.replace("<!-- map -->", course_map()))
    write(source / "transformer.svg", picture_of(ROOT / "notebooks", "12", "12-011"))


def build(out: Path, work: Path) -> int:
    """Prepare the pages, run Sphinx, lay the notebooks beside their pages; returns Sphinx's exit status."""
    from sphinx.cmd.build import build_main

    script = mathjax()
    shutil.rmtree(out, ignore_errors=True)
    prepare(work / "source")
    options = ["-b", "html", "-q", "-W", "--keep-going", "-E", "-c", str(DOCS), "-d", str(work / "doctrees")]
    status = build_main([*options, str(work / "source"), str(out)])
    shutil.copyfile(script, out / "_static" / "mathjax.js")
    for entry in NOTEBOOKS:
        shutil.copyfile(ROOT / "notebooks" / entry.filename, out / "notebooks" / entry.filename)
    return status


if __name__ == "__main__":
    OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    STATUS = build(OUT, OUT.parent / f"{OUT.name}-work")
    print(f"{'built' if STATUS == 0 else 'built, with errors'}: {OUT / 'index.html'}")
    sys.exit(STATUS)
