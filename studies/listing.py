"""Which files are stored in `data/`, and how did each come about? The table at the top of data/README.md:

    python -m studies.listing

writes it again. Most files say for themselves which command made them, with which seeds and when; `UNSAID` completes
those that cannot.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import safe_open

from transformer_lib._files import DATA
from transformer_lib._streams import run_command
from transformer_lib.course.lab import stored

from .pages import write_between

PAGE = DATA / "README.md"


@dataclass(frozen=True)
class Made:
    """How a file came about: by a command, or as `how` says in words; what is not recorded is empty."""

    command: str = ""
    seeds: tuple[int, ...] = ()
    date: str = ""
    how: str = ""


_CORPUS = Made("python -m transformer_lib.data.context_generator.generate --seed 2017 --out data/context", (2017,))
_BY_HAND = Made(how="written by hand")
_PUBLISHED = Made(how="published elsewhere, see below")
UNSAID = {
    **{f"context/{name}.tsv": _CORPUS for name in ("compositional", "hard", "heldout", "train", "validation")},
    "digits.npz": _PUBLISHED,
    "elsewhere.json": Made(how="`make bench`, on another processor"),
    "glossary.toml": _BY_HAND,
    "multi30k.json": Made("python -m studies.multi30k runs/ours-0 runs/ours-1 runs/torch-0 runs/torch-1", (0, 1)),
    "nile.csv": _PUBLISHED,
    "references.toml": _BY_HAND,
    **{f"speakers/{kind}/config.json": Made("python -m studies.speakers_files", (0,)) for kind in ("bert", "gpt2")},
    **{f"speakers/{kind}/model.safetensors": Made(seeds=(0,)) for kind in ("bert", "gpt2")},
    "ward.safetensors": Made(seeds=(0,)),
}


def files(folder: Path = DATA) -> list[Path]:
    """Return the stored files, sorted by name: all but README.md, hidden ones, and those being written."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path != folder / "README.md")
    return sorted(path for path in paths if not path.name.startswith(".") and path.suffix != ".part")


def origin(path: Path, folder: Path = DATA) -> Made:
    """Return how a file came about, by its own header and by `UNSAID`.

    Raises:
        ValueError: the file names no command, and `UNSAID` does not have it.
    """
    name = path.relative_to(folder).as_posix()
    known, header = UNSAID.get(name, Made()), _header(path)
    command = header.get("command", known.command)
    if not command and not known.how:
        raise ValueError(
            f"a file must name its command or be described in listing.UNSAID, got {name}, which does neither"
        )
    seeds = [header["seed"]] if "seed" in header else header.get("seeds", known.seeds or _seeds_in(command))
    return Made(command, tuple(seeds), header.get("date", known.date), known.how)


def _seeds_in(command: str) -> tuple[int, ...]:
    named = re.search(r"--seeds((?: \d+)+)", command)
    return tuple(map(int, named[1].split())) if named else ()


def _header(path: Path) -> dict[str, Any]:
    """What a file says of itself: the fields of a study, or the provenance of weights."""
    if path.suffix == ".json":
        return stored.read(path)
    if path.suffix != ".safetensors":
        return {}
    with safe_open(str(path), framework="np") as file:
        said: dict[str, Any] = file.metadata() or {}
    if "transformer_lib" in said:  # a checkpoint
        return json.loads(said["transformer_lib"])["extra"].get("provenance", {})
    return said


def table(folder: Path = DATA) -> str:
    """Return the table in Markdown, a row for each file and a last one for their sum.

    Weights that carry no date have that of the results which the same command wrote.

    Raises:
        ValueError: as for `origin`.
    """
    paths = files(folder)
    made = {path: origin(path, folder) for path in paths}
    dates = {one.command: one.date for one in made.values() if one.command and one.date}
    rows = [
        _row(path.relative_to(folder), path.stat().st_size, replace(one, date=one.date or dates.get(one.command, "")))
        for path, one in made.items()
    ]
    total = f"| **{len(paths)} files** | **{_kilobytes(sum(path.stat().st_size for path in paths))}** | | | |"
    return "\n".join(["| file | kB | made by | seeds | on |", "|---|---:|---|---|---|", *rows, total])


def _row(name: Path, size: int, made: Made) -> str:
    by = f"`{made.command}`" if made.command else made.how
    seeds = ", ".join(map(str, made.seeds)) or "–"
    return f"| `{name.as_posix()}` | {_kilobytes(size)} | {by} | {seeds} | {made.date or '–'} |"


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.1f}"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that has the marks")
    write_between(parser.parse_args(argv).page, "files", table())


if __name__ == "__main__":
    run_command(main)
