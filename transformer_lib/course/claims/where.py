"""Where the notebooks treat a claim: cells tagged with its id, which assert it, and prose that names it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..notebooks import NOTEBOOKS, path_of

SHOWN_ONLY, REGISTER = "A", "B"  # A shows rows that are settled elsewhere; B lists all
SETTLED_THERE = "3"
"""The section of the register named "Rows that no lesson needs"."""

_ID = re.compile(r"\bC(\d{3})(?:(?:–| to )C(\d{3}))?\b")  # C001, C001–C003, C001 to C003


@dataclass(frozen=True)
class Place:
    """A cell that treats a claim.

    Args:
        notebook: its number, such as "05".
        filename: its file.
        cell: the cell's id.
        heading: the heading above.
        section: the numbered section it stands in, such as "3"; empty outside of one.
        asserted: True for code that asserts the claim, False for prose that names it.
    """

    notebook: str
    filename: str
    cell: str
    heading: str
    section: str
    asserted: bool

    @property
    def link(self) -> str:
        """Address relative to the notebooks' folder; JupyterLab opens the notebook at the cell."""
        return f"{self.filename}#cell-id={self.cell}"

    @property
    def label(self) -> str:
        """Notebook and section in short, such as "05 §3"."""
        return f"{self.notebook} §{self.section}" if self.section else f"{self.notebook}, {self.heading}"


@cache
def places() -> Mapping[str, tuple[Place, ...]]:
    """Return the places of every claim by its id, in the order of the course.

    Of the appendix, which lists all claims, only the section of the register counts that settles what no lesson needs.
    """
    found: defaultdict[str, list[Place]] = defaultdict(list)
    for entry in NOTEBOOKS:
        path = path_of(entry)
        for claim, place in places_in(path, entry.id) if path else ():
            if place not in found[claim] and _settles(place):
                found[claim].append(place)
    return {claim: tuple(rows) for claim, rows in found.items()}


def _settles(place: Place) -> bool:
    if place.notebook == REGISTER:
        return place.section == SETTLED_THERE
    return place.notebook != SHOWN_ONLY


def places_in(path: Path, notebook: str) -> Iterator[tuple[str, Place]]:
    """Yield a claim's id and a place for every tag and every mention in one notebook file."""
    heading, section = "", ""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            for claim in _tagged(cell):
                yield claim, Place(notebook, path.name, cell["id"], heading, section, True)
            continue
        for line in "".join(cell["source"]).splitlines():
            title = re.match(r"(#+) +(.+)", line)
            if title and not title[2].startswith("Exercise"):  # after its exercises a section goes on
                heading = title[2].strip()
                number = re.match(r"(\d+)\. ", heading)
                section = number[1] if number else section if len(title[1]) > 2 else ""
            for claim in mentioned(line):
                yield claim, Place(notebook, path.name, cell["id"], heading, section, False)


def _tagged(cell: Mapping[str, Any]) -> list[str]:
    return [tag.removeprefix("claim:") for tag in cell["metadata"].get("tags", []) if tag.startswith("claim:")]


def mentioned(text: str) -> list[str]:
    """Return the ids of the claims that a text names, including ranges such as C102 to C106."""
    pairs = [(int(first), int(last or first)) for first, last in _ID.findall(text)]
    return [f"C{number:03}" for first, last in pairs for number in range(first, last + 1)]
