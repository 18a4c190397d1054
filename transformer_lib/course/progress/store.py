"""The progress file: read, and changed under a lock, so that two kernels lose nothing."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

KINDS = ("exercise", "quiz", "case", "widget", "notebook")
FOLDER = "transformer-course"
LOCK_IS_STALE = 4.0  # seconds; a write takes milliseconds, so whoever held the lock is gone
LOCK_PATIENCE = 8.0  # longer than that, so that a crashed kernel's lock is outlived

State = dict[str, dict[str, str]]


def path() -> Path:
    """The file that holds the progress; it need not exist."""
    chosen = os.environ.get("TRANSFORMER_COURSE_PROGRESS")
    return Path(chosen) if chosen else data_folder(sys.platform) / FOLDER / "progress.json"


def data_folder(platform: str) -> Path:
    """The folder where programs keep a user's data, by operating system."""
    if platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def empty() -> State:
    """Nothing passed yet."""
    return {kind: {} for kind in KINDS}


def read(file: Path) -> State | None:
    """The stored state; None when the file is missing, unreadable or damaged."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))["passed"]
        return {kind: {str(k): str(v) for k, v in stored.get(kind, {}).items()} for kind in KINDS}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def update(file: Path, change: Callable[[State], State]) -> bool:
    """Read, change and write back while no other kernel can; False when the place cannot be written.

    A damaged file is kept beside the new one, with `.corrupt` added to its name.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _lock(file.with_name(file.name + ".lock")):
            current = read(file)
            if current is None and file.exists():
                _retry(lambda: os.replace(file, file.with_name(file.name + ".corrupt")))
            _write(file, change(current or empty()))
        return True
    except OSError:
        return False


def _write(file: Path, content: State) -> None:
    """Write beside the file, then move into place: a reader sees the old file or the new one."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    text = json.dumps({"version": 1, "passed": content}, indent=1, sort_keys=True) + "\n"
    try:
        temporary.write_text(text, encoding="utf-8")
        _retry(lambda: os.replace(temporary, file))
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _retry(action: Callable[[], None], times: int = 50) -> None:
    """Windows refuses to move a file while another process reads it: try again for half a second."""
    for _ in range(times - 1):
        try:
            return action()
        except PermissionError:
            time.sleep(0.01)
    return action()


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Hold a lock file that only one process at a time can create."""
    _acquire(file, time.monotonic() + LOCK_PATIENCE)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def _acquire(file: Path, deadline: float) -> None:
    refusals = 0
    while time.monotonic() < deadline:
        try:
            return os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            _remove_if_stale(file)
        except PermissionError:  # a folder that is not ours; on Windows also a lock just being removed
            refusals += 1
            if refusals > 50:
                raise
        time.sleep(0.01)
    raise TimeoutError(f"{file.name} is held by another process")


def _remove_if_stale(file: Path) -> None:
    with suppress(OSError):
        if time.time() - file.stat().st_mtime > LOCK_IS_STALE:
            # Renaming first lets one process win, should two find the same stale lock.
            gone = file.with_name(f"{file.name}.{os.getpid()}.stale")
            os.replace(file, gone)
            gone.unlink()
