"""The command of the learner's copy: `python -m transformer_lib.course.copies --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..._streams import run_command
from . import beside, bring_back, bring_back_notebook, folder, open_lab, update


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m transformer_lib.course.copies", description="Your own copy.")
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("lab", help="bring your folder up to date and open JupyterLab there; takes JupyterLab's options")
    tasks.add_parser("update", help="bring your folder up to date")
    for name, what in (
        ("exercise", "make an exercise, such as 01.2, a stub again"),
        ("notebook", "put the course's notebook, such as 01, in the place of yours, which is kept beside it"),
        ("beside", "put the course's notebook beside yours"),
    ):
        tasks.add_parser(name, help=what).add_argument("id")
    options, rest = parser.parse_known_args(argv)
    if rest and options.task != "lab":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return _run(options, rest)
    except BrokenPipeError:
        raise  # nobody reads the output: no error
    except ValueError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(_reason(error, options.task), file=sys.stderr)
    return 1


def _run(options: argparse.Namespace, rest: list[str]) -> int:
    if options.task in ("lab", "update"):
        print(*update(), f"Your notebooks are in {folder()}.", sep="\n")
        return open_lab(rest) if options.task == "lab" else 0
    {"exercise": bring_back, "notebook": bring_back_notebook, "beside": beside}[options.task](options.id)
    return 0


def _reason(error: OSError, task: str) -> str:
    """Return what went wrong, and the cure where the learner's folder is the cause."""
    place = folder()
    if error.errno is None or not _concerns(error, place):  # no number: a lock that stays taken, or no notebooks
        return str(error)
    if task == "exercise" and isinstance(error, FileNotFoundError):
        return (
            f"{error.filename} is not there: make your notebooks first (python -m transformer_lib.course.copies update)"
        )
    what = "is a file and must be a folder" if place.is_file() else f"cannot be written ({error.strerror})"
    return (
        f"Your folder {place} {what}. To use another, which is made if need be, set the environment variable "
        "TRANSFORMER_COURSE_MINE to its path."
    )


def _concerns(error: OSError, place: Path) -> bool:
    """Return whether the error is about this folder, what is in it, or one around it that could not be made."""
    if error.filename is None:
        return True  # a write that failed: nothing is written elsewhere
    named, own = Path(error.filename).absolute(), place.absolute()
    return named.is_relative_to(own) or own.is_relative_to(named)


if __name__ == "__main__":
    run_command(main)
