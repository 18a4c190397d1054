"""Opens JupyterLab where the learner left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import matplotlib_folder, notebooks, progress

SETTINGS = Path(__file__).resolve().parent / "jupyter"
WORKSPACES = ".jupyterlab"  # in the learner's folder: which notebooks are open, and how JupyterLab is laid out
CLOSED = {"collapsed": True, "visible": True, "widgets": []}
AT_FIRST = {  # a narrow window has no room for a list of notebooks beside the one that is read; Ctrl+B opens it
    "data": {"layout-restorer:data": {"main": None, "left": CLOSED, "right": CLOSED, "relativeSizes": [0, 1, 0]}},
    "metadata": {"id": "default"},
}


def command(place: Path, root: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command of a JupyterLab that shows `root` and opens the notebook last worked in, or the first.

    Args:
        place: the learner's folder.
        root: the folder that JupyterLab shows; where `place` lies elsewhere, the folder around it is shown.
        arguments: for JupyterLab, as they are.
    """
    place, root = place.resolve(), root.resolve()
    shown = root if place.is_relative_to(root) else place.parent
    opened = (place / _where_one_left(place)).relative_to(shown).as_posix()
    options = [f"--ServerApp.root_dir={shown}", f"--LabApp.default_url=/lab/tree/{opened}"]
    return [sys.executable, "-m", "jupyterlab", *options, *arguments]


def _where_one_left(place: Path) -> str:
    names = [notebooks.notebook(last).filename for last in progress.last()]
    return next((name for name in names if (place / name).is_file()), notebooks.NOTEBOOKS[0].filename)


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the course's settings for the server, beside the user's own."""
    found = inherited.get("JUPYTER_CONFIG_PATH")
    return {**inherited, "JUPYTER_CONFIG_PATH": os.pathsep.join([str(SETTINGS), *([found] if found else [])])}


def layout(place: Path) -> list[str]:
    """Return the option that keeps JupyterLab's layout in the learner's folder, with closed side bars at first.

    Where the learner has named a folder for workspaces, or nothing can be written, it is JupyterLab's own.
    """
    if "JUPYTERLAB_WORKSPACES_DIR" in os.environ:
        return []
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    folder = place.resolve() / WORKSPACES
    try:
        if not any(folder.glob("*.jupyterlab-workspace")):
            WorkspacesManager(str(folder)).save("default", json.dumps(AT_FIRST))
    except OSError:
        return []
    return [f"--LabApp.workspaces_dir={folder}"]


def start(place: Path, root: Path, arguments: Sequence[str]) -> int:
    """Run JupyterLab until it ends, and return its exit status; except on Windows it takes this process over."""
    matplotlib_folder.ensure()  # for notebooks that import it themselves
    words, own = command(place, root, [*layout(place), *arguments]), environment(os.environ)
    sys.stdout.flush()
    if os.name != "nt":
        os.execve(words[0], words, own)
    return subprocess.run(words, env=own, check=False).returncode
