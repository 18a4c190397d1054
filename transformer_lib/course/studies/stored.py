"""What the studies share: their command line, how results are stored and read, and how they get into pages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from ..._files import DATA, write_atomically

ROOT = DATA.parent  # the repository: README.md and docs/ show what is stored


def read(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file."""
    return json.loads(path.read_text(encoding="utf-8"))


def save(path: Path, content: dict[str, Any], *, indent: int | None = None) -> None:
    """Write the content as JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=indent) + "\n").encode("utf-8"))


def put_between(text: str, name: str, report: str) -> str:
    """Return the text with the report in place of what stands between `<!-- name: begin -->` and `<!-- name: end -->`.

    Raises:
        ValueError: the text does not have these two marks once, in this order.
    """
    begin, end = (f"<!-- {name}: {edge} -->" for edge in ("begin", "end"))
    before, *rest = text.split(begin)
    inside, *after = "".join(rest).split(end)
    if len(rest) != 1 or len(after) != 1:
        raise ValueError(f"text must have the marks {begin} and {end} once, in this order")
    return f"{before}{begin}\n{report}\n{end}{after[0]}"


def write_between(page: Path, name: str, report: str) -> None:
    """Put the report between the two marks of this name in a Markdown page."""
    text = put_between(page.read_text(encoding="utf-8"), name, report)
    write_atomically(page, text.encode("utf-8"))


def parser(description: str | None, results: Path, seeds: Sequence[int] = (0, 1, 2)) -> argparse.ArgumentParser:
    """Return the command line that all studies have: --seeds and --results."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    found.add_argument("--results", type=Path, default=results)
    return found


def arguments(description: str | None, results: Path, seeds: Sequence[int] = (0, 1, 2)) -> tuple[list[int], Path]:
    """Return the seeds and the file of the command line, and set torch to one thread: sums depend on their number."""
    given = parser(description, results, seeds).parse_args()
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
