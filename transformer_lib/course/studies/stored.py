"""What the studies share: their command line, and how their results are stored and read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from ..._files import write_atomically


def read(path: Path) -> dict:
    """Return the JSON object in the file."""
    return json.loads(path.read_text(encoding="utf-8"))


def save(path: Path, content: dict, *, indent: int | None = None) -> None:
    """Write the content as JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=indent) + "\n").encode("utf-8"))


def put_between(text: str, begin: str, end: str, report: str) -> str:
    """Return the text with the report in place of what stands between its two marks."""
    before, rest = text.split(begin, 1)
    return f"{before}{begin}\n{report}\n{end}{rest.split(end, 1)[1]}"


def arguments(description: str | None, results: Path, seeds: Sequence[int] = (0, 1, 2)) -> tuple[list[int], Path]:
    """Return the seeds and the file of the command line, and set torch to one thread: sums depend on their number."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    parser.add_argument("--results", type=Path, default=results)
    given = parser.parse_args()
    torch.set_num_threads(1)
    return given.seeds, given.results


def command(name: str, seeds: Sequence[int]) -> str:
    """Return the command that runs the study `name` with these seeds."""
    return f"python -m transformer_lib.course.studies.{name} --seeds {' '.join(map(str, seeds))}"


def measure_and_save(
    name: str,
    seeds: Sequence[int],
    path: Path,
    measure: Callable[[Sequence[int]], dict[str, Any]],
    *,
    indent: int | None = None,
) -> None:
    """Store what `measure(seeds)` returns, with the command, today's date and the seeds in front."""
    content = {"command": command(name, seeds), "date": date.today().isoformat(), "seeds": list(seeds)}
    save(path, content | measure(seeds), indent=indent)
