"""Brings back what the course had: one exercise as its stub, or a whole notebook; what the learner wrote is kept."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..._files import write_atomically
from ..cells import source_of
from .record import read, write
from .updating import PATIENCE, as_bytes, put


def stub_cell(source: Path, exercise_id: str) -> dict[str, Any]:
    """Return the cell of a notebook of the course that holds the stub of this exercise.

    Raises:
        ValueError: the notebook has no such exercise.
    """
    found, checks = None, re.compile(rf"\bcheck\(\s*[\"']{re.escape(exercise_id)}[\"']")
    for cell in json.loads(source.read_bytes())["cells"]:
        tags = cell["metadata"].get("tags", ())
        if "exercise" in tags:
            found = cell
        if found and "check" in tags and checks.search(source_of(cell)):
            return found
    raise ValueError(f"exercise_id must be that of an exercise in {source.name}, such as '01.2', got {exercise_id!r}")


def stub(source: Path, exercise_id: str) -> str:
    """Return the text of an exercise's stub, from a notebook of the course.

    Raises:
        ValueError: the notebook has no such exercise.
    """
    return source_of(stub_cell(source, exercise_id))


def exercise(source: Path, place: Path, exercise_id: str) -> str:
    """Put the stub back into the learner's notebook, and what they wrote into the folder `earlier`; return a line.

    Raises:
        ValueError: there is no such exercise, or the learner's notebook has lost its cell.
        OSError: the learner's notebook is not there, or cannot be written.
    """
    stub, target = stub_cell(source, exercise_id), place / source.name
    with FileLock(place / ".copies.lock", timeout=PATIENCE):
        notebook = json.loads(target.read_bytes())
        cell = next((cell for cell in notebook["cells"] if cell.get("id") == stub["id"]), None)
        if cell is None:
            raise ValueError(
                f"{target.name} has lost the cell of exercise {exercise_id}: bring the notebook back "
                f"(… copies notebook {exercise_id.split('.')[0]})"
            )
        if source_of(cell) == source_of(stub):
            return f"{exercise_id} is as the course has it."
        kept = _free(place / "earlier", exercise_id + "_", ".py")
        write_atomically(kept, (source_of(cell) + "\n").encode())
        cell |= {"source": stub["source"], "outputs": [], "execution_count": None}
        write_atomically(target, as_bytes(notebook))
    return f"{exercise_id} is a stub again; what you had written is in {place.name}/earlier/{kept.name}."


def notebook(source: Path, place: Path) -> str:
    """Put the course's notebook in the place of the learner's, which is kept beside it; return a line.

    Raises:
        OSError: the folder cannot be written.
    """
    target, said = place / source.name, f"{source.name} is as the course has it"
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".copies.lock", timeout=PATIENCE):
        if target.is_file():
            kept = _free(place, source.stem + ".yours_", ".ipynb")
            write_atomically(kept, target.read_bytes())
            said += f"; yours is now {kept.name}"
        write(place, read(place) | {source.name: put(source.read_bytes(), target)})
    return said + "."


def beside(source: Path, place: Path) -> str:
    """Put the course's notebook beside the learner's, which stays as it is; return a line.

    From then on the learner's counts as one of this version: an update does not mention it again.

    Raises:
        OSError: the folder cannot be written.
    """
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".copies.lock", timeout=PATIENCE):
        target = _free(place, source.stem + ".new_", ".ipynb")
        write(place, read(place) | {source.name: put(source.read_bytes(), target)})
    return f"{target.name} is the course's, beside yours."


def _free(folder: Path, start: str, end: str) -> Path:
    """Return the first path that is not taken, with a number between `start` and `end`."""
    return next(path for number in count(1) if not (path := folder / f"{start}{number}{end}").exists())
