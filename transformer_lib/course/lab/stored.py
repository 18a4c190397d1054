"""How what a study has stored is read: each `load_results` here is a `loader` of its file."""

from __future__ import annotations

import json
from collections.abc import Callable
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
