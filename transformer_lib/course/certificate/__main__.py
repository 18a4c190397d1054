"""`python -m transformer_lib.course.certificate "Ada Lovelace"`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..._streams import run_command
from ..printing import NO_BROWSER
from . import write


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, write the page, and name the files."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.certificate", description="A page that shows what you have passed."
    )
    parser.add_argument("name", help="yours, as the page is to say it")
    parser.add_argument("--out", type=Path, help="folder to write into (default: mine)")
    given = parser.parse_args(arguments)
    try:
        paths = write(given.name, given.out)
    except (ValueError, OSError, RuntimeError) as error:
        parser.error(str(error))
    print("\n".join(map(str, paths)))
    if len(paths) == 1:
        print(f"No PDF, since {NO_BROWSER}. Any browser prints the page.")


if __name__ == "__main__":
    run_command(main)
