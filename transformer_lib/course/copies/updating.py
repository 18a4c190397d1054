"""Brings the learner's folder up to date with the course, and never touches a notebook that the learner has edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..._files import write_atomically
from .clearing import for_learner
from .record import Copied, cells_of, read, version_of, write

PATIENCE = 8.0  # seconds to wait for another call


def update(course: Path, place: Path) -> list[str]:
    """Copy new notebooks, replace those that the learner has not edited, and return a line about each that stays.

    Args:
        course: the folder of the course's notebooks.
        place: the learner's folder; made where it is not there.

    Raises:
        FileNotFoundError: `course` holds no notebook. OSError: `place` cannot be written.
    """
    sources = sorted(course.glob("*.ipynb"))
    if not sources:
        raise FileNotFoundError(f"course must be the folder of the notebooks, but there are none in {course}")
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".copies.lock", timeout=PATIENCE):
        record = read(place)
        lines = [line for source in sources if (line := _bring(source, place, record))]
        write(place, record)
    return lines


def _bring(source: Path, place: Path, record: dict[str, Copied]) -> str:
    """Bring one notebook up to date, in the folder and in the record; returns a line if the learner's stays."""
    content = source.read_bytes()
    version, target, known = version_of(content), place / source.name, record.get(source.name)
    if target.is_file():
        if known and known.version == version:
            return ""
        now = cells_of_file(target)
        if now == cells_of(for_learner(json.loads(content))):  # only its outputs are new, or the record was lost
            record[source.name] = Copied(version, now)
            return ""
        if known is None or now != known.cells:
            return (
                f"{source.name}: you have edited yours, so it stays. The new one beside it: "
                f"python -m transformer_lib.course.copies beside {source.name.split('_')[0]}"
            )
    record[source.name] = put(content, target)
    return ""


def put(content: bytes, target: Path) -> Copied:
    """Write the learner's version of a notebook of the course to `target`.

    Raises:
        OSError: it cannot be written.
    """
    learners = for_learner(json.loads(content))
    write_atomically(target, as_bytes(learners))
    return Copied(version_of(content), cells_of(learners))


def as_bytes(notebook: dict[str, Any]) -> bytes:
    """Return a notebook as the bytes of its file, laid out as JupyterLab does."""
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def cells_of_file(path: Path) -> str:
    """Return the digest of a learner's notebook; "" for a file that is no notebook (any more)."""
    try:
        return cells_of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        return ""
