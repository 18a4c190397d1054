"""How what a study has stored is read, and how one result of it is measured once more.

Each `load_results` here is a `loader` of its file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..._files import DATA


def read(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file."""
    return json.loads(path.read_text(encoding="utf-8"))


def loader(file: str) -> Callable[[], dict[str, Any]]:
    """Return a function that reads this file of data/: what a study has stored."""

    def load_results() -> dict[str, Any]:
        return read(DATA / file)

    return load_results


def runs_of(results: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """Return the records of `results["runs"]` whose set-up has these fields."""
    return [run for run in results["runs"] if all(run[name] == value for name, value in wanted.items())]


def again(study: str, *words: str, seeds: Iterable[int] = ()) -> None:
    """Measure single results of a study once more, in a process of its own, and print each beside the stored one.

    Args:
        study: its name, that of the file in data/. words: where the result is in the file, its keys and fields; all
            whose place has these words are measured. Without any, the places are listed.
        seeds: fewer than the file has; where each result has one seed, a word names it, such as "seed=0".

    Raises:
        ValueError: there is no such study or no such result, or seeds were given where words name them.
    """
    some = ["--seeds", *map(str, seeds)] if seeds else []
    command = [sys.executable, "-m", f"studies.{study}", *some, "--again", *words]
    root = Path(__file__).parents[3]  # where a copy of the course has its studies
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=root, stdout=pipe, stderr=pipe, text=True, encoding="utf-8") as process:
        try:
            for line in process.stdout or ():
                print(line, end="", flush=True)
        except BaseException:  # an interrupted cell leaves nothing behind that goes on training
            process.kill()
            raise
        said = process.stderr.read() if process.stderr else ""
    if process.returncode:
        raise ValueError(f"study and words must name stored results: {said.strip().splitlines()[-1]}")
