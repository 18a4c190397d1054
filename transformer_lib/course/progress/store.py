"""The progress file: read, and changed under a lock, so that two kernels lose nothing."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from platformdirs import user_data_path

from ..._files import write_atomically

KINDS = ("exercise", "quiz", "case", "widget", "notebook")
STORED = (*KINDS, "route", "prediction")  # kept beside: the chosen route, {its name: date}; what was predicted
FOLDER = "transformer-course"
LOCK_PATIENCE = 8.0  # seconds to wait for another kernel, whose write takes milliseconds

State = dict[str, dict[str, str]]


def path() -> Path:
    """Return the file that holds the progress; it need not exist."""
    chosen = os.environ.get("TRANSFORMER_COURSE_PROGRESS")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":  # platformdirs also follows XDG_DATA_HOME there; a file from before stays in use
        earlier = Path.home() / "Library" / "Application Support" / FOLDER / "progress.json"
        if earlier.exists():
            return earlier
    return user_data_path(FOLDER, appauthor=False, roaming=True) / "progress.json"


def empty() -> State:
    """Return the state in which nothing is passed yet."""
    return {kind: {} for kind in STORED}


def read(file: Path) -> State | None:
    """Return the stored state, or None when the file is missing, unreadable or damaged."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))["passed"]
        return {kind: {str(k): str(v) for k, v in stored.get(kind, {}).items()} for kind in STORED}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def last(file: Path) -> str:
    """Return the number of the notebook that was last worked in; "" when that is not known."""
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["last"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def update(file: Path, change: Callable[[State], State], here: str = "") -> bool:
    """Read, change and write back while no other kernel can. Return False when the place cannot be written.

    A damaged file is kept beside the new one, with `.corrupt` added to its name. `here` is the number of the notebook
    that is worked in; without it, the file goes on naming the one before.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_name(file.name + ".lock"), timeout=LOCK_PATIENCE):
            current = read(file)
            if current is None and file.exists():
                _retry(lambda: os.replace(file, file.with_name(file.name + ".corrupt")))
            content = {"version": 1, "passed": change(current or empty()), "last": here or last(file)}
            text = json.dumps(content, indent=1, sort_keys=True) + "\n"
            _retry(lambda: write_atomically(file, text.encode()))
        return True
    except OSError:  # a lock that stays taken is one, too
        return False


def _retry(action: Callable[[], None], times: int = 50) -> None:
    """Windows refuses to move a file while another process reads it: try again for half a second."""
    for _ in range(times - 1):
        try:
            return action()
        except PermissionError:
            time.sleep(0.01)
    return action()
