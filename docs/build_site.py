"""Build the reading site: `make site`, or `python docs/build_site.py`; nothing is downloaded.

Of the notebooks only the cells run that a panel needs; its pictures are kept in build/panels for the next build.

`make site SITE=--for-students` leaves the teaching guide out.

The pages are prepared in a folder that mirrors the repository, so that links among its files hold on the site as well.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT)]

import site_finish  # noqa: E402
import site_front  # noqa: E402
import site_panels  # noqa: E402
import site_register  # noqa: E402
import site_services  # noqa: E402
import site_weights  # noqa: E402
from site_pages import (  # noqa: E402
    bibliography,
    contents,
    course_map,
    glossary,
    guide_page,
    modules_of,
    page_of,
    picture_of,
    without_guide,
)

import studies  # noqa: E402
from transformer_lib._streams import run_command  # noqa: E402
from transformer_lib.course import lab  # noqa: E402
from transformer_lib.course.notebooks import NOTEBOOKS, file_of, notebook  # noqa: E402
from transformer_lib.course.teaching.notebook_files import MATHJAX, carried, read  # noqa: E402
from transformer_lib.decoding.translator import TRAINED  # noqa: E402

FRONT_PICTURE = ("12", "12-010")  # notebook and cell: the map of the model


def write(path: Path, text: str) -> None:
    """Write a file, its folder made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def prepare(
    source: Path, *, for_students: bool = False, panels: Mapping[str, site_panels.Living] | None = None
) -> None:
    """Write what Sphinx reads, with the panels that live; for students, without the teaching guide and ways to it."""
    for entry in NOTEBOOKS:
        made = page_of(read(file_of(entry)), entry, for_students=for_students, panels=panels)
        write(source / "notebooks" / entry.filename, json.dumps(made))
    from_the_library = {
        "<!-- glossary -->": glossary(),
        "<!-- references -->": bibliography(),
        "<!-- studies -->": modules_of(studies),
        "<!-- lab -->": modules_of(lab),
        "<!-- map -->": course_map(),
        "<!-- register -->": site_register.tables(),
        "<!-- translator -->": f"```{{raw}} html\n{site_front.markup()}\n```",
    }
    for page in (*DOCS.glob("*.md"), *(DOCS / "api").glob("*.md"), ROOT / "data" / "README.md"):
        text = site_services.filled_in(page.read_text("utf-8"))
        text = without_guide(text) if for_students else text
        for mark, section in from_the_library.items():
            text = text.replace(mark, section)
        front = page == DOCS / "index.md"
        write(source / ("index.md" if front else page.relative_to(ROOT)), text)
    if not for_students:
        prepare_guide(source / "docs" / "teaching")
    write(source / "transformer.svg", picture_of(read(file_of(notebook(FRONT_PICTURE[0]))), FRONT_PICTURE[1]))


def prepare_guide(folder: Path) -> None:
    """Write the teaching guide, with the files for a class's JupyterHub that it links to."""
    pages = sorted((DOCS / "teaching").glob("*.md"))
    for page in pages:
        listed = contents(pages) if page.stem == "index" else ""
        write(folder / page.name, guide_page(site_services.filled_in(page.read_text("utf-8"))) + listed)
    shutil.copytree(DOCS / "teaching" / "hub", folder / "hub")


def build(out: Path, work: Path, *, for_students: bool = False) -> int:
    """Prepare the pages, run Sphinx, lay the notebooks beside their pages; returns Sphinx's exit status.

    `out` is replaced only by a site that was built without a warning.
    """
    script = carried(*MATHJAX, "site")
    from sphinx.cmd.build import build_main

    shutil.rmtree(work, ignore_errors=True)
    pages = work / "html"
    panels = site_panels.all_living()
    prepare(work / "source", for_students=for_students, panels=panels)
    options = ["-b", "html", "-q", "-W", "--keep-going", "-E", "-j", "auto"]  # every processor works
    options += ["-c", str(DOCS), "-d", str(work / "doctrees")]
    status = build_main([*options, str(work / "source"), str(pages)])
    if status:
        return status
    shutil.copyfile(script, pages / "_static" / "mathjax.js")
    carry_engine(pages / "_static" / "web")
    site_panels.lay(panels.values(), pages)
    site_finish.finish(pages, os.environ.get("SITE_URL", ""))
    for entry in NOTEBOOKS:
        shutil.copyfile(file_of(entry), pages / "notebooks" / entry.filename)
    shutil.rmtree(out, ignore_errors=True)
    shutil.move(pages, out)
    return 0


def carry_engine(folder: Path) -> None:
    """Lay the scripts of docs/web into the site, and the translator's weights beside them."""
    shutil.copytree(DOCS / "web", folder, ignore=shutil.ignore_patterns("tsconfig.json"))
    (folder / "weights.safetensors").write_bytes(site_weights.half(TRAINED["context"]))


def replaceable(out: Path) -> bool:
    """Return True when nothing is lost if `out` is replaced: it is new, empty, or an earlier build."""
    return not out.exists() or (out.is_dir() and (not any(out.iterdir()) or (out / ".buildinfo").is_file()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the reading site; nothing is downloaded.")
    place = ROOT / "build" / "site"
    parser.add_argument("--out", type=Path, default=place, help="its folder; an earlier build in it is replaced")
    parser.add_argument("--for-students", action="store_true", help="leave the teaching guide out, with its answers")
    options = parser.parse_args(arguments)
    out = options.out.resolve()
    if not replaceable(out):
        parser.error(f"--out must be a new folder or an earlier build of the site, got {out}")
    try:
        status = build(out, out.parent / f"{out.name}-work", for_students=options.for_students)
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        parser.error(str(error))
    print(f"built: {out / 'index.html'}" if status == 0 else "not built: see the messages above")
    return status


if __name__ == "__main__":
    run_command(main)
