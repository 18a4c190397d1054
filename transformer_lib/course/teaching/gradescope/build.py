"""Makes an autograder for Gradescope from each notebook: a zip archive to upload.

    python -m transformer_lib.course.teaching.gradescope 04
    python -m transformer_lib.course.teaching.gradescope 04 --only 04.1 04.2 --out build/gradescope

A student hands in the notebook: the release version of `make assignments`, or their own copy of the course's.
`docs/teaching/gradescope.md` says how to upload it, and what to set there.
"""

from __future__ import annotations

import argparse
import json
import secrets
import zipfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ...._files import DATA
from ...exercises import all_variants
from ...exercises.model import SMALLEST_SEED
from ...notebooks import NOTEBOOKS, path_of
from ..assignments.build import chosen_notebooks
from ..assignments.changed import variant_of
from ..assignments.config import assignment_seed
from ..assignments.source import course_source, groups_of, points_of
from ..notebook_files import read

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")
HERE = Path(__file__).parent
LIBRARY = Path(__file__).parents[3]
SCRIPTS = ("setup.sh", "run_autograder")
LEFT_OUT = ("__pycache__", ".ipynb_checkpoints")
EXTRAS = ["nbgrader>=0.9.5,<0.10", "latex2mathml>=3.77,<4", "bleach[css]>=6.1,<7"]
"""What grading needs beside what learners install: the extra `teach` of pyproject.toml; a test compares the two."""


def make_autograder(
    out: Path,
    notebook: Path,
    *,
    only: Collection[str] | None = None,
    variant: Collection[str] | None = None,
    seed: int | None = None,
    visibility: str = "visible",
    wheels: Path | None = None,
    index: str | None = None,
    cell_seconds: int = 120,
    notebook_seconds: int = 480,
) -> Path:
    """Write the archive of one notebook and return it.

    Args:
        out: the folder to write it into.
        notebook: a notebook of the course.
        only: ids of the exercises that give points; all by default.
        variant: ids of exercises in whose place their variant stands; an empty list for all that have one.
        seed: from which the hidden cases follow, at least 1,000,000; by default a new one of 128 bits.
        visibility: when students see the verdicts: one of `VISIBILITIES`, in Gradescope's words.
        wheels: a folder of wheels that the image is built from, without a network.
        index: the address of PyTorch's CPU builds (README, "Which PyTorch"); without it the image holds CUDA.
        cell_seconds, notebook_seconds: that one cell, and the notebook, may take.

    Raises:
        ValueError: if `only` or `variant` names an exercise that this notebook does not have, or `visibility` is none,
            or there are no wheels.
    """
    if visibility not in VISIBILITIES:
        raise ValueError(f"visibility must be one of {', '.join(VISIBILITIES)}, got {visibility!r}")
    if wheels is not None and not any(wheels.glob("*.whl")):
        raise ValueError(f"wheels must be a folder of .whl files, got {wheels}")
    content = read(notebook)
    ids = {group.exercise.id for group in groups_of(content["cells"])}
    missing = sorted({*(only or ()), *(variant or ())} - ids)
    if missing:
        raise ValueError(f"only and variant must name exercises of {notebook.name}, got {missing}")
    changed = all_variants() if variant == [] else [variant_of(name).exercise.original for name in variant or ()]
    secret = secrets.randbits(128) + SMALLEST_SEED if seed is None else seed
    source = course_source(content, seed=assignment_seed(secret, notebook.stem), graded=only, variants=changed)
    settings = {"name": notebook.stem, "visibility": visibility}
    settings |= {"cell_seconds": cell_seconds, "notebook_seconds": notebook_seconds}
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{notebook.stem}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in SCRIPTS:
            archive.write(HERE / name, name)
        archive.writestr("assignment.json", json.dumps({"settings": settings, "source": source}, ensure_ascii=False))
        for file, name in _course_files():
            archive.write(file, f"course/{name}")
        archive.writestr("course/requirements-grading.txt", _requirements())
        if index:
            archive.writestr("index.txt", index)
        for wheel in sorted(wheels.glob("*.whl")) if wheels else ():
            archive.write(wheel, f"wheels/{wheel.name}")
    return path


def _course_files() -> Iterator[tuple[Path, str]]:
    """Yield what an image holds of the course, with its place there: the library, its data, and the notebooks."""
    root = LIBRARY.parent
    for folder, name in ((LIBRARY, "transformer_lib"), (DATA, "data")):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not set(LEFT_OUT) & set(file.parts):
                yield file, f"{name}/{file.relative_to(folder).as_posix()}"
    for entry in NOTEBOOKS:
        found = path_of(entry)
        if found is not None:
            yield found, f"notebooks/{found.name}"
    for name in ("LICENSE", "requirements.txt"):  # notebook 00 compares what is installed with the latter
        yield root / name, name


def _requirements() -> str:
    text = (LIBRARY.parent / "requirements.txt").read_text(encoding="utf-8")
    return "\n".join([text.rstrip(), *EXTRAS, ""])


def points_in(notebook: Path, only: Collection[str] | None = None) -> int:
    """Return the points that an assignment gives altogether."""
    exercises = [group.exercise for group in groups_of(read(notebook)["cells"])]
    return sum(points_of(each) for each in exercises if only is None or each.id in only)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, write the archives, and say what to set at Gradescope."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.gradescope",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("notebooks", nargs="+", metavar="NN", help="numbers of notebooks, such as 04, or A")
    parser.add_argument("--out", type=Path, default=Path("build/gradescope"), help="folder to write into")
    parser.add_argument("--only", nargs="+", metavar="NN.N", help="exercises that give points, instead of all")
    parser.add_argument("--variant", nargs="*", metavar="NN.N", help="exercises to change; all that can be if none")
    parser.add_argument("--visibility", choices=VISIBILITIES, default="visible", help="when students see verdicts")
    parser.add_argument("--wheels", type=Path, help="folder of wheels; then the image is built without a network")
    parser.add_argument("--index", metavar="ADDRESS", help="of PyTorch's CPU builds; without it the image holds CUDA")
    parser.add_argument("--seed", type=int, help="number from which the hidden cases follow, at least 1000000")
    parser.add_argument("--cell-seconds", type=int, default=120, help="time that one cell may take")
    parser.add_argument("--notebook-seconds", type=int, default=480, help="time that one notebook may take")
    given = vars(parser.parse_args(arguments))
    out = given.pop("out")
    try:
        for notebook in chosen_notebooks(given.pop("notebooks")):
            path = make_autograder(out, notebook, **given)
            size = path.stat().st_size / 1e6
            print(f"{path} ({size:.0f} MB): {points_in(notebook, given['only'])} points")
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    print("At Gradescope: memory 3 GB or more, the time limit above --notebook-seconds (docs/teaching/gradescope.md)")
