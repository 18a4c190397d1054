"""What the studies share: their command line, how results are stored and read, and how they get into pages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import torch

from transformer_lib._files import DATA, write_atomically
from transformer_lib.course.lab.stored import Setup, read, setup_of

ROOT = DATA.parent  # the repository: README.md and docs/ show what is stored


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
    return f"python -m studies.{name} --seeds {' '.join(map(str, seeds))}"


def head(name: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Return what every stored study begins with: its command, today's date, the seeds."""
    return {"command": command(name, seeds), "date": date.today().isoformat(), "seeds": list(seeds)}


def fill(
    content: dict[str, Any], path: Path, setups: Sequence[Setup], train: Callable[[Setup], dict[str, Any]]
) -> dict[str, Any]:
    """Train the set-ups that `path` does not have yet with these seeds, write it after each, and return what it has.

    Args:
        content: what the file begins with, as from `head`; `["runs"]` follows, a record for each set-up.
        setups: instances of one frozen dataclass. train: returns what the record has beside the fields of the set-up.
    """
    before = read(path) if path.exists() else {}
    known = {
        setup_of(type(setups[0]), record): record
        for record in before.get("runs", ())
        if before["seeds"] == content["seeds"]
    }
    for setup in setups:
        if setup not in known:
            known[setup] = asdict(setup) | train(setup)
        save(path, content | {"runs": [known[one] for one in setups if one in known]}, indent=1)
    return read(path)


def measure_and_save(
    name: str,
    seeds: Sequence[int],
    path: Path,
    measure: Callable[[Sequence[int]], dict[str, Any]],
    *,
    indent: int | None = None,
) -> None:
    """Store what `measure(seeds)` returns, with the command, today's date and the seeds in front."""
    save(path, head(name, seeds) | measure(seeds), indent=indent)
