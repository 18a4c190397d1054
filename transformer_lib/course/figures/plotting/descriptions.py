"""Alternative texts by name: a cell that told its result in a description would tell it before it has run."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FILE = Path(__file__).resolve().parents[4] / "notebooks" / "descriptions.md"
_NAME = re.compile(r"(?:\d\d|[A-Z])\.[a-z][a-z0-9_]*")
_ENTRY = re.compile(r"^## (\S+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def described(text: str) -> str:
    """Return the description that `text` names, such as "00.cuts"; any other text is a description itself."""
    return description(text) if _NAME.fullmatch(text) else text


def description(name: str) -> str:
    """Return the description with this name from `notebooks/descriptions.md`.

    Raises:
        ValueError: if there is none.
    """
    known = read(_FILE)
    if name not in known:
        raise ValueError(f"alt must describe the picture, or name an entry of {_FILE.name}, got {name!r}")
    return known[name]


@cache
def read(file: Path) -> dict[str, str]:
    """Return {name: description} of a file in which each has a heading of level 2; lines of a paragraph are joined."""
    entries = _ENTRY.findall(file.read_text(encoding="utf-8")) if file.is_file() else ()
    return {name: " ".join(text.split()) for name, text in entries}
