"""A folder for what matplotlib keeps, where its own cannot be written: it would otherwise say so below a figure."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

NAMED_BY = "MPLCONFIGDIR"


def ensure() -> None:
    """Name a temporary folder in MPLCONFIGDIR, unless that is set or matplotlib can write where it keeps its files.

    It is there until this process ends. Only what is imported afterwards is affected.
    """
    if os.environ.get(NAMED_BY) or sys.platform == "win32" or all(map(_can_be_written, _own_folders())):
        return
    folder = tempfile.mkdtemp(prefix="matplotlib-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[NAMED_BY] = folder


def _own_folders() -> list[Path]:
    """Return where matplotlib keeps settings and fonts; without a home, a folder that cannot be."""
    try:
        home = Path.home()
    except RuntimeError:
        return [Path(os.devnull, "matplotlib")]
    if sys.platform == "darwin":
        return [home / ".matplotlib"]
    bases = (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))
    return [Path(os.environ.get(variable) or home / usual, "matplotlib") for variable, usual in bases]


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
