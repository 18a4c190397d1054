"""GitHub Classroom: a workflow that checks notebooks at each push, and the command that it runs.

    python -m transformer_lib.course.teaching.classroom workflow 04 --course OWNER/NAME --out template/
    python -m transformer_lib.course.teaching.classroom check 04_scaled_dot_product_attention.ipynb

`check` runs a notebook apart, prints what is right and what is not, and shows it in the summary of the job; it ends
with 1 where something is not right yet. The hidden cases are new ones each time (docs/teaching/gradescope.md).
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
from collections.abc import Collection, Sequence
from html import escape
from pathlib import Path

from ..._streams import run_command
from .. import notebooks as course
from ..exercises.model import SMALLEST_SEED
from .assignments.alone import Result, executor, graded, read_submission
from .assignments.build import chosen_notebooks
from .assignments.grading import ExecuteApart
from .assignments.source import course_source
from .notebook_files import read

PLACE = ".github/workflows/checks.yml"
REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<ref>[\w./-]+))?")
WORKFLOW = """\
# Written by transformer_lib.course.teaching.classroom: runs the checks of the exercises at each push.
name: Checks
on:
  push:
  workflow_dispatch:
permissions:
  contents: read
jobs:
  checks:
    runs-on: ubuntu-24.04
    timeout-minutes: 45
    env:
      OMP_NUM_THREADS: "1"{index}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/checkout@v5
        with:
          repository: {repository}
          path: course{ref}
      - uses: actions/setup-python@v6
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: course/requirements.txt
      - run: python -m pip install -r course/requirements.txt -e "course[teach]"
      - run: {command}
"""


def workflow(names: Sequence[str], repository: str, *, only: Collection[str] = (), index: str = "") -> str:
    """Return the workflow that checks notebooks which lie at the root of a student's repository.

    Args:
        names: file names of the notebooks.
        repository: where the course is, OWNER/NAME or OWNER/NAME@REF.
        only: ids of the exercises that are checked; all by default.
        index: the address of PyTorch's CPU builds (README, "Which PyTorch"); without it CUDA is installed, too.

    Raises:
        ValueError: if the repository is not named like that.
    """
    found = REPOSITORY.fullmatch(repository)
    if not found:
        raise ValueError(f"course must be OWNER/NAME or OWNER/NAME@REF, got {repository!r}")
    command = " ".join(
        ["python -m transformer_lib.course.teaching.classroom check", *names, *(["--only", *only] if only else [])]
    )
    return WORKFLOW.format(
        repository=found["name"],
        ref=f"\n          ref: {found['ref']}" if found["ref"] else "",
        index=f"\n      PIP_EXTRA_INDEX_URL: {index}" if index else "",
        command=command,
    )


def check(path: Path, apart: ExecuteApart, only: Collection[str] | None = None) -> list[Result]:
    """Execute a notebook of a student and return what became of its exercises.

    Raises:
        ValueError: if its name is that of no notebook of the course, or it cannot be read.
        FileNotFoundError: if it is not there.
    """
    entry = next((each for each in course.NOTEBOOKS if each.filename == path.name), None)
    if entry is None or not entry.exercises:
        raise ValueError(f"notebooks must have the course's names, such as {course.NOTEBOOKS[4].filename}, got {path}")
    content = read(course.file_of(entry))
    own = [f"{entry.id}.{number}" for number in range(1, entry.exercises + 1)]
    chosen = [name for name in own if not only or name in only]
    source = course_source(content, seed=SMALLEST_SEED + secrets.randbelow(10**9), graded=chosen)
    return graded(read_submission(path), source, apart)


def summary(name: str, results: Sequence[Result]) -> str:
    """Return what became of a notebook as GitHub shows it in the summary of a job."""
    right = sum(each.right for each in results)
    lines = [
        f"## {name}: {right} of {len(results)} exercises are right",
        "",
        "| | exercise | points | |",
        "|---|---|---|---|",
    ]
    for each in results:
        sign = "✓" if each.right else "✗"
        title = f"{each.exercise.id} {each.exercise.title}"
        lines.append(f"| {sign} | {_cell(title)} | {each.score} of {each.points} | {_cell(each.diagnosis)} |")
    for each in (each for each in results if not each.right):
        lines += ["", f"<details><summary>{each.exercise.id}: the whole verdict</summary>", ""]
        lines += [f"<pre>{escape(each.text)}</pre>", "</details>"]
    return "\n".join(lines) + "\n\n"


def _cell(text: str) -> str:
    """Return text that stays in its cell of a table in Markdown, and means nothing there."""
    return re.sub(r"([\\|`*_\[\]])", r"\\\1", escape(" ".join(text.split()), quote=False))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.classroom",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("workflow", help="write the workflow into a template repository")
    one.add_argument("notebooks", nargs="+", metavar="NN", help="numbers of notebooks, such as 04, or A")
    one.add_argument("--course", required=True, metavar="OWNER/NAME[@REF]", help="the repository of the course")
    one.add_argument("--only", nargs="+", default=[], metavar="NN.N", help="exercises to check, instead of all")
    one.add_argument(
        "--index", default="", metavar="ADDRESS", help="of PyTorch's CPU builds; without it CUDA comes too"
    )
    one.add_argument("--out", type=Path, default=Path("."), help="the root of the template repository")
    two = actions.add_parser("check", help="check notebooks, as the workflow does")
    two.add_argument("notebooks", nargs="+", type=Path, metavar="FILE")
    two.add_argument("--only", nargs="+", default=[], metavar="NN.N", help="exercises to check, instead of all")
    two.add_argument("--cell-seconds", type=int, default=120, help="time that one cell may take")
    two.add_argument("--notebook-seconds", type=int, default=1200, help="time that one notebook may take")
    two.add_argument("--user", default="", help="as whom notebooks run, where root checks")
    two.add_argument("--allow-root", action="store_true", help="run them as root: on a machine to throw away")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do it; returns 1 where an exercise is not right yet."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        return _write(given) if given.action == "workflow" else _check(given)
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))


def _write(given: argparse.Namespace) -> int:
    names = [path.name for path in chosen_notebooks(given.notebooks)]
    text = workflow(names, given.course, only=given.only, index=given.index)
    path = given.out / PLACE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"{path}; beside .github the template needs {', '.join(names)}")
    return 0


def _check(given: argparse.Namespace) -> int:
    limits = {name: getattr(given, name) for name in ("cell_seconds", "notebook_seconds")}
    apart = executor(given.user, allow_root=given.allow_root, **limits)
    shown, failed = os.environ.get("GITHUB_STEP_SUMMARY"), False
    for path in given.notebooks:
        results = check(path, apart, given.only)
        failed |= not all(each.right for each in results)
        print("\n\n".join(each.text for each in results))
        if shown:
            with Path(shown).open("a", encoding="utf-8") as opened:
                opened.write(summary(path.stem, results))
    return int(failed)


if __name__ == "__main__":
    run_command(main)
