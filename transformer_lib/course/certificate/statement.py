"""What a certificate states, as data: made from the progress and the functions that are kept on this machine."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from ... import __version__
from .. import mine, notebooks, progress
from ..mine.folder import current, folder
from ..progress.guesses import Guess

FORMAT = 1
LONGEST = 100  # characters of a name
LARGEST = 5_000_000  # bytes of a page
DATA = re.compile(r'<script type="application/json" id="statement">(.*?)</script>', flags=re.DOTALL)

Statement = dict[str, Any]


def stated(name: str) -> Statement:
    """Return what the progress file and the folder `mine` of this machine say.

    Raises:
        ValueError: if the name is empty, too long or not printable, or nothing is passed yet.
    """
    words = " ".join(str(name).split())
    if not words or len(words) > LONGEST or not words.isprintable():
        raise ValueError(f"name must be yours, in at most {LONGEST} characters, got {name!r}")
    state = progress.state()
    passed = {kind: _known(kind, state[kind]) for kind in ("exercise", "quiz", "case")}
    if not any(passed.values()):
        raise ValueError(f"there must be something passed to show, got nothing in {progress.path()}")
    guesses = {name: Guess.read(kept) for name, kept in state["prediction"].items()}
    met = {name: [each.date, each.right] for name, each in guesses.items() if each and each.right is not None}
    own = mine.kept()
    return {
        "format": FORMAT,
        "course": __version__,
        "name": words,
        "made": date.today().isoformat(),
        **passed,
        "prediction": dict(sorted(met.items())),
        "functions": list(own),
        "source": current(folder()).text() if own else "",
    }


def _is_known(statement: Statement) -> bool:
    """Return whether a page has a name and tasks that the course could have written; others may hide something."""
    tasks = all(statement[kind] == _known(kind, statement[kind]) for kind in ("exercise", "quiz", "case"))
    signed = statement.get("signed", {"by": "", "on": ""})
    return tasks and all(each.isprintable() for each in (statement["name"], signed["by"], signed["on"]))


def _known(kind: str, passed: dict[str, str]) -> dict[str, str]:
    """Return {id: date} of what the course has, in its order."""
    names = [name for entry in notebooks.NOTEBOOKS for of, name in entry.parts if of == kind]
    return {name: passed[name] for name in names if name in passed}


def canonical(statement: Statement) -> bytes:
    """Return the one form in bytes of what is stated; a code and a signature are made of these."""
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def code_of(statement: Statement) -> str:
    """Return the fingerprint that stands on the page: 80 bits of SHA-256, in groups of four. Anybody can compute it."""
    digits = hashlib.sha256(canonical(statement)).hexdigest()[:20].upper()
    return "-".join(digits[start : start + 4] for start in range(0, 20, 4))


def read(path: Path) -> Statement:
    """Return what a page states, once it is certain that the page shows just that.

    Raises:
        ValueError: if it is no certificate, or one that was altered, or one of another version of the course.
    """
    from .page import page

    text = path.read_text(encoding="utf-8") if path.stat().st_size <= LARGEST else ""
    found = DATA.search(text)
    try:
        statement = json.loads(found[1]) if found else None
        shown = page(statement)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"page must be a certificate of the course, got {path}") from None
    if (statement["format"], statement["course"]) != (FORMAT, __version__):
        made = f"version {statement['course']}, format {statement['format']}"
        raise ValueError(f"page must be of this version of the course, {__version__}, got one of {made}: {path}")
    if shown != text or not _is_known(statement):
        raise ValueError(f"page must be as it was written, got one whose text was altered: {path}")
    return statement
