"""The folder `mine`: the learner's file, written whole or not at all, and the versions before it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock

from ..._files import write_atomically
from .layout import Layout, read

FILE = "my_transformer.py"
_PATIENCE = 8.0  # seconds to wait for another kernel


def folder() -> Path:
    """Return the folder of the learner's own code: `mine`, in the folder of the course; it need not exist.

    The environment variable TRANSFORMER_COURSE_MINE names another. Where the course is installed without its
    notebooks, `mine` lies where one works.
    """
    chosen = os.environ.get("TRANSFORMER_COURSE_MINE")
    if chosen:
        return Path(chosen)
    here, checkout = Path.cwd(), Path(__file__).resolve().parents[3]
    if here.name == "mine":
        return here
    if (checkout / "notebooks").is_dir():
        return checkout / "mine"
    return (here.parent if here.name == "notebooks" else here) / "mine"


def current(place: Path) -> Layout:
    """Return what the learner's file holds; nothing when there is none."""
    file = place / FILE
    return read(file.read_text(encoding="utf-8")) if file.is_file() else Layout()


def change(place: Path, name: str, edit: Callable[[Layout], Layout]) -> bool:
    """Replace the file by what `edit` makes of it, and keep the section of the part `name` as it was before.

    Returns False when nothing changes.

    Raises:
        OSError: the folder cannot be written. SyntaxError: the new file would not be Python.
    """
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".lock", timeout=_PATIENCE):
        before = current(place)
        after = edit(before)
        text = after.text()
        if text == before.text():
            return False
        compile(text, FILE, "exec")
        if name in before.sections and before.sections[name].strip() != after.sections.get(name, "").strip():
            write_atomically(_next_earlier(place, name), before.alone(name).encode())
        write_atomically(place / FILE, text.encode())
    return True


def _next_earlier(place: Path, name: str) -> Path:
    numbers = (place / "earlier" / f"{name}_{number}.py" for number in range(1, 10**6))
    return next(path for path in numbers if not path.exists())


def functions(place: Path, names: Collection[str]) -> dict[str, Callable[..., Any]]:
    """Import the learner's file, and return their functions of these parts.

    Raises:
        ValueError: the file cannot be imported, or has lost one of the parts; the message says why.
    """
    if not names:
        return {}
    file = place / FILE
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    try:
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)  # theirs, and nothing else
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{file} cannot be imported ({reason}): mend it, or call mine.reset()") from error
    if missing := [name for name in names if not callable(getattr(module, name, None))]:
        raise ValueError(f"{file} must define a function {missing[0]}, got none: mend it, or call mine.reset()")
    return {name: getattr(module, name) for name in names}
