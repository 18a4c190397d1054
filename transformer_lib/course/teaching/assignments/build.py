"""Makes an nbgrader course from the notebooks.

    python -m transformer_lib.course.teaching.assignments --out build/course           # every notebook
    python -m transformer_lib.course.teaching.assignments --out build/course 01 04     # two of them
    python -m transformer_lib.course.teaching.assignments --out build/course --only 01.2 01.4 04.1
    python -m transformer_lib.course.teaching.assignments --out build/course --hints 1 04

`docs/teaching/grading.md` says what to do with it. Needs the extra `teach`: pip install -e ".[teach]".
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Collection, Sequence
from pathlib import Path

from ...._validate import check_int
from ... import notebooks as course
from ...exercises import all_variants, get
from ...exercises.model import SMALLEST_SEED
from ..notebook_files import read
from .changed import variant_of
from .config import SECRET_LINE, assignment_seed, write_settings
from .source import course_source, groups_of


def make_course(
    out: Path,
    notebooks: Sequence[Path],
    *,
    only: Collection[str] | None = None,
    hints: int | None = None,
    variant: Collection[str] | None = None,
    seed: int | None = None,
    course_id: str = "transformer",
    cell_seconds: int = 120,
    notebook_seconds: int = 1200,
) -> list[Path]:
    """Write a course folder: nbgrader_config.py and one source notebook for each assignment.

    Args:
        out: the course folder. Sources and settings in it are replaced; own_config.py, the gradebook and what was
            handed in are not touched.
        notebooks: notebooks of the course; those without an exercise (or without a chosen one) are left out.
        only: ids of the exercises that give points; all by default.
        hints: how many hints of each exercise stay, 0 for none; all by default.
        variant: ids of exercises in whose place their variant stands; an empty list for all that have one. None by
            default.
        seed: the secret number of the course, from which each assignment's own seed of hidden cases follows, at least
            1,000,000; by default that of the course in `out`, else a new one of 128 bits.
        course_id: nbgrader's name for the course.
        cell_seconds: time that one cell may take when graded.
        notebook_seconds: time that one notebook may take.

    Returns:
        The source notebooks.

    Raises:
        ValueError: if `only` or `variant` names an exercise that is in none of the notebooks or gives no points, or has
            no variant, or a number is too small.
    """
    seed = (_kept_secret(out) or secrets.randbits(128) + SMALLEST_SEED) if seed is None else seed
    check_int("seed", seed, minimum=SMALLEST_SEED)
    limits = {"cell_seconds": cell_seconds, "notebook_seconds": notebook_seconds}
    for name, seconds in limits.items():
        check_int(name, seconds)
    if hints is not None:
        check_int("hints", hints, minimum=0)
    changed = all_variants() if variant == [] else [variant_of(name).exercise.original for name in variant or ()]
    sources = {path.stem: _source(path, only, assignment_seed(seed, path.stem), hints, changed) for path in notebooks}
    sources = {stem: source for stem, source in sources.items() if source}
    graded = {name for source in sources.values() for name in _ids(source)}
    missing = sorted(set(only or ()) - {get(name).original or name for name in graded})
    if missing or not sources:
        raise ValueError(f"only must name exercises of the chosen notebooks, got {missing or sorted(only or ())}")
    without = sorted(name for name in variant or () if f"{name}b" not in graded)
    if without:
        raise ValueError(f"variant must name exercises that give points in the chosen notebooks, got {without}")
    write_settings(out, course_id=course_id, secret=seed, **limits)
    return [_write(out / "source" / stem / f"{stem}.ipynb", source) for stem, source in sources.items()]


def _kept_secret(out: Path) -> int | None:
    """Return the secret of a course made earlier, so that what was handed in is graded by the same cases again."""
    config = out / "nbgrader_config.py"
    found = SECRET_LINE.search(config.read_text(encoding="utf-8")) if config.exists() else None
    return int(found[1]) if found else None


def _source(
    path: Path, only: Collection[str] | None, seed: int, hints: int | None, changed: Collection[str]
) -> dict | None:
    """Return the source of one assignment; None when the notebook has no exercise that gives points."""
    notebook = read(path)
    found = {group.exercise.id for group in groups_of(notebook["cells"])}
    chosen = found if only is None else found & set(only)
    return course_source(notebook, seed=seed, graded=chosen, hints=hints, variants=changed) if chosen else None


def _ids(source: dict) -> list[str]:
    """Return the exercises of a source that give points."""
    marks = [cell["metadata"].get("nbgrader", {}) for cell in source["cells"]]
    return [mark["grade_id"].removeprefix("check-").replace("-", ".") for mark in marks if mark.get("grade")]


def _write(path: Path, notebook: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def chosen_notebooks(names: Sequence[str]) -> list[Path]:
    """Return the files of the notebooks with these numbers (or A); all that have exercises if none is named.

    Raises:
        ValueError: if there is no such notebook.
        FileNotFoundError: if its file is not there.
    """
    chosen = course.chosen(names) if names else [entry for entry in course.NOTEBOOKS if entry.exercises]
    found = {entry.filename: course.path_of(entry) for entry in chosen}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise FileNotFoundError(f"{missing[0]} must lie beside the library: install with pip install -e")
    return [path for path in found.values() if path is not None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, make the course, and say what to do next."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.assignments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("notebooks", nargs="*", metavar="NN", help="numbers of notebooks, such as 04, or A; or all")
    parser.add_argument("--out", type=Path, required=True, help="the course folder")
    parser.add_argument("--only", nargs="+", metavar="NN.N", help="exercises that give points, instead of all")
    parser.add_argument("--hints", type=int, help="how many hints of each exercise stay, 0 for none; all by default")
    parser.add_argument(
        "--variant", nargs="*", metavar="NN.N", help="exercises to change; all that can be if none is named"
    )
    parser.add_argument("--seed", type=int, help="number from which the hidden cases follow, at least 1000000")
    parser.add_argument("--course-id", default="transformer", help="nbgrader's name for the course")
    parser.add_argument("--cell-seconds", type=int, default=120, help="time that one cell may take when graded")
    parser.add_argument("--notebook-seconds", type=int, default=1200, help="time that one notebook may take")
    given = vars(parser.parse_args(arguments))
    try:
        paths = make_course(given.pop("out"), chosen_notebooks(given.pop("notebooks")), **given)
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    print(f"{len(paths)} assignments in {paths[0].parents[1]}; nbgrader generate_assignment makes the student versions")
