"""What was copied: for each notebook, which version, and what the copy held; so that an edit is seen as one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..._files import write_atomically
from ..cells import source_of

FILE = ".copies.json"


@dataclass(frozen=True)
class Copied:
    """A notebook as it was copied: the digest of the course's file, and of the cells that the learner got."""

    version: str
    cells: str


def version_of(content: bytes) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(content).hexdigest()


def cells_of(notebook: dict[str, Any]) -> str:
    """Return the digest of what a learner can edit: kind and source of every cell, in order; no output counts."""
    cells = [(cell["cell_type"], source_of(cell)) for cell in notebook["cells"]]
    while cells and cells[-1] == ("code", ""):  # JupyterLab adds an empty one below the last cell that was run
        cells.pop()
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def read(place: Path) -> dict[str, Copied]:
    """Return the record of a folder, by file name; a missing or damaged one is empty."""
    try:
        stored = json.loads((place / FILE).read_text(encoding="utf-8"))["notebooks"]
        return {name: Copied(str(entry["version"]), str(entry["cells"])) for name, entry in stored.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write(place: Path, record: dict[str, Copied]) -> None:
    """Write the record of a folder.

    Raises:
        OSError: the folder cannot be written.
    """
    content = {"notebooks": {name: asdict(entry) for name, entry in sorted(record.items())}}
    write_atomically(place / FILE, (json.dumps(content, indent=1) + "\n").encode())
