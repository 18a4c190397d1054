"""The command line: measure, print the tables, write the JSON; with --store also data/bench.json and the pages."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from studies import precision, speed
from studies.engine import save
from transformer_lib._streams import run_command
from transformer_lib.course.lab import stored

from . import deployed, held, real, shared, tricks
from .run import measured
from .work import FULL, QUICK, Work

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench.json"


def write_tables() -> None:
    """Write docs/speed.md and the README's line from what is stored."""
    speed.write_pages(speed.load_results())
    speed.write_tricks(stored.read(speed.TRICKS))
    speed.write_deployed(stored.read(speed.DEPLOYED))
    speed.write_shared(stored.read(speed.SHARED))
    speed.write_held(stored.read(speed.HELD))
    if speed.REAL.exists():
        speed.write_real(stored.read(speed.REAL))
    speed.write_elsewhere(stored.read(speed.ELSEWHERE))
    precision.write_pages(stored.read(precision.RESULTS))
    print("written: docs/speed.md, and the line in README.md")


def show(results: dict, report: Callable[[dict], str], path: Path, *, store: bool) -> int:
    """Print the table of what was measured, and write it unless it was only tried."""
    print(f"\n{report(results)}")
    if store:
        speed.store(path, results)
        write_tables()
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run? says nothing of speed")
    parser.add_argument("--rounds", type=int, help="how often each candidate is measured")
    parser.add_argument("--store", action="store_true", help="write data/bench.json and docs/speed.md")
    parser.add_argument("--tricks", action="store_true", help="what each trick of the fast path is worth; stored, too")
    parser.add_argument("--deployed", action="store_true", help="decoding beside CTranslate2; stored, too")
    parser.add_argument("--shared", action="store_true", help="several learners on one machine; stored, too")
    parser.add_argument("--held", action="store_true", help="as if the processor had AVX2 and no more; stored, too")
    parser.add_argument(
        "--real", type=Path, metavar="FOLDER", help="a real model, in Hugging Face's format; stored, too"
    )
    parser.add_argument(
        "--llama", type=Path, nargs=2, metavar=("PYTHON", "FILE"), help="beside --real: llama-cpp-python, and its GGUF"
    )
    parser.add_argument("--tables", action="store_true", help="only write docs/speed.md, from what is stored")
    parser.add_argument("--results", type=Path, default=BUILD, help="where the JSON goes without --store")
    return parser


def _special(given: argparse.Namespace, work: Work) -> int | None:
    """Measure one of the single tables, if one is asked for."""
    if given.tricks:
        return show(tricks.measured(work), speed.tricks_report, speed.TRICKS, store=not given.quick)
    if given.deployed:
        return show(deployed.measured(work), speed.deployed_report, speed.DEPLOYED, store=not given.quick)
    if given.shared:
        times = {"seconds": 1.0, "rounds": 1} if given.quick else {"rounds": given.rounds or shared.ROUNDS}
        return show(shared.measured(**times), speed.shared_report, speed.SHARED, store=not given.quick)
    if given.held:
        return show(held.measured(work), speed.held_report, speed.HELD, store=not given.quick)
    if given.real is not None:
        own = real.TRIED if given.quick else replace(real.RealWork(), rounds=given.rounds or real.RealWork.rounds)
        return show(real.measured(given.real, own, given.llama), speed.real_report, speed.REAL, store=not given.quick)
    return None


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = make_parser()
    given = parser.parse_args(argv)
    if given.quick + given.store + given.tables > 1:
        parser.error("--quick, --store and --tables exclude each other: --quick measures nothing that is worth storing")
    if given.rounds is not None and given.rounds < 2:
        parser.error(f"--rounds must be at least 2, to see a spread, got {given.rounds}")
    if given.tables:
        write_tables()
        return 0
    # PyTorch's own encoder computes with nested tensors in evaluation, and says each time that they are new.
    warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors")
    work = QUICK if given.quick else FULL
    work = replace(work, rounds=given.rounds or work.rounds)
    if (special := _special(given, work)) is not None:
        return special
    results = measured(work)
    if not given.store:
        path = given.results
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, results, indent=1)
        print(f"\nwritten: {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    return show(results, speed.report, speed.RESULTS, store=given.store)


if __name__ == "__main__":
    run_command(main)
