"""Where in its notebook each exercise, question and case stands, and where a learner goes on."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any

from ..notebooks import Notebook, path_of

_TASK = re.compile(r"""\b(check|quiz|diagnose)\(\s*["']([\w.]+)["']""")
_KINDS = {"check": "exercise", "quiz": "quiz", "diagnose": "case"}


@dataclass(frozen=True)
class Place:
    """A task in a notebook's file: kind, id such as "01.3", and a link to its cell."""

    kind: str
    name: str
    link: str


def place_to_continue(entry: Notebook, state: dict[str, dict[str, str]]) -> Place | None:
    """Return the first task that is open after the last one passed, or before it if there is none after.

    None where nothing is passed yet, or nothing is open, or the notebook's file is not there.
    """
    places = places_in(entry)
    passed = [place.name in state[place.kind] for place in places]
    if not any(passed):
        return None
    latest = max(number for number, done in enumerate(passed) if done)
    order = [*range(latest, len(places)), *range(latest)]
    return next((places[number] for number in order if not passed[number]), None)


@functools.cache
def places_in(entry: Notebook) -> tuple[Place, ...]:
    """Return the tasks of a notebook in the order of its cells; nothing where its file is missing or damaged."""
    path = path_of(entry)
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path else []
        return tuple(_places(cells, entry))
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def _places(cells: list[dict[str, Any]], entry: Notebook) -> list[Place]:
    found: dict[tuple[str, str], Place] = {}
    stub, parts = "", set(entry.parts)
    for cell in cells:
        tags, source = cell["metadata"].get("tags", ()), "".join(cell["source"])
        if "exercise" in tags:
            stub = cell["id"]
        elif cell["cell_type"] == "code" and (match := _TASK.search(source)):
            kind = _KINDS[match[1]]
            name = f"{entry.id}.{match[2]}" if kind == "case" else match[2]
            where = stub if kind == "exercise" and stub else cell["id"]
            if (kind, name) in parts:
                found.setdefault((kind, name), Place(kind, name, f"{entry.filename}#cell-id={where}"))
    return list(found.values())
