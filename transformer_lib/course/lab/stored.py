"""What the studies share: their command line, how results are stored and read, and how they get into pages."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Setup = TypeVar("Setup", bound=_Dataclass)  # a frozen one


def read(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file."""
    return json.loads(path.read_text(encoding="utf-8"))


def setup_of(kind: type[Setup], record: dict[str, Any]) -> Setup:
    """Return the set-up, a dataclass of this kind, whose fields are in the record."""
    return kind(**{field.name: record[field.name] for field in fields(kind)})


def runs_of(results: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """Return the records of `results["runs"]` whose set-up has these fields."""
    return [run for run in results["runs"] if all(run[name] == value for name, value in wanted.items())]
