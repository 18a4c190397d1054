"""The command of the learner's copy: `python -m transformer_lib.course.copies --help`."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

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
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, rest: list[str]) -> int:
    if options.task in ("lab", "update"):
        print(*update(), f"Your notebooks are in {folder()}.", sep="\n")
        return open_lab(rest) if options.task == "lab" else 0
    {"exercise": bring_back, "notebook": bring_back_notebook, "beside": beside}[options.task](options.id)
    return 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # a console of Windows may know no ○
    sys.exit(main())
