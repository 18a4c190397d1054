"""Certificates that learners hand in: computes their answers again, signs them, and knows its own signature.

    python -m transformer_lib.course.teaching.certificates verify certificate.html
    python -m transformer_lib.course.teaching.certificates verify certificate.html --notebooks handed_in/
    python -m transformer_lib.course.teaching.certificates sign certificate.html --secret class.secret --by "B. Teacher"
    python -m transformer_lib.course.teaching.certificates check certificate.html --secret class.secret

`verify` runs the functions in the page, and the notebooks beside it if there are any, through their checks in cases
that nobody has seen. `sign` does so too, and then seals the page by an HMAC-SHA256 with the secret of the class.
`check` says whether the seal is whole. A submission is a program of somebody else's: see docs/teaching/grading.md.
"""

from __future__ import annotations

import argparse
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..._files import write_atomically
from ..._streams import run_command
from .. import notebooks as course
from ..certificate import canonical, page, read
from ..certificate.statement import Statement
from ..exercises import all_exercises
from ..exercises.model import SMALLEST_SEED
from .assignments.alone import Result, executor, graded, graded_functions, read_submission
from .assignments.grading import ExecuteApart
from .assignments.source import course_source
from .notebook_files import read as read_notebook

SHORTEST = 16  # bytes of a secret


@dataclass(frozen=True)
class Verified:
    """What became of the exercises that a page claims: ids."""

    confirmed: tuple[str, ...]
    refuted: dict[str, str]
    """{exercise: what is wrong}"""
    unproven: tuple[str, ...]
    """No answer of theirs was there to compute."""


def verify(statement: Statement, apart: ExecuteApart, folder: Path | None = None) -> Verified:
    """Compute again what a page claims.

    Args:
        statement: of the page.
        apart: what executes the learner's code.
        folder: with notebooks of the learner, under their names.

    Raises:
        ValueError: if a notebook cannot be read.
    """
    claimed = statement["exercise"]
    results = _of_functions(statement, apart)
    for entry in course.NOTEBOOKS:
        wanted = [name for name in claimed if name.partition(".")[0] == entry.id]
        file = folder / entry.filename if folder else None
        if wanted and file and file.is_file():
            results += _of_notebook(entry, wanted, file, apart)
    verdicts = {name: [each for each in results if each.exercise.id == name] for name in claimed}
    refuted = {
        name: each.diagnosis for name, found in verdicts.items() for each in found if not each.right
    }  # one wrong answer is enough
    confirmed = tuple(name for name, found in verdicts.items() if found and name not in refuted)
    return Verified(confirmed, refuted, tuple(name for name, found in verdicts.items() if not found))


def _of_functions(statement: Statement, apart: ExecuteApart) -> list[Result]:
    of_part = {each.part: each.id for each in all_exercises() if each.part and not each.original}
    names = {of_part[part]: part for part in statement["functions"] if part in of_part}
    return graded_functions(statement["source"], names, apart, seed=_seed()) if names else []


def _of_notebook(entry: course.Notebook, wanted: list[str], file: Path, apart: ExecuteApart) -> list[Result]:
    source = course_source(read_notebook(course.file_of(entry)), seed=_seed(), graded=wanted)
    return graded(read_submission(file), source, apart)


def _seed() -> int:
    return SMALLEST_SEED + secrets.randbelow(10**9)


def signed(statement: Statement, verified: Verified, secret: bytes, by: str) -> Statement:
    """Return the statement with the seal of a class.

    Raises:
        ValueError: if an answer was wrong, or nothing could be computed.
    """
    if verified.refuted or not verified.confirmed:
        wrong = ", ".join(verified.refuted) or "no answer at all"
        raise ValueError(f"a page to sign must have answers, and right ones, got {wrong}")
    bare = {name: value for name, value in statement.items() if name != "signed"}
    seal = {"by": by, "on": date.today().isoformat(), "confirmed": list(verified.confirmed)}
    return {**bare, "signed": seal | {"seal": _seal({**bare, "signed": seal}, secret)}}


def is_sealed(statement: Statement, secret: bytes) -> bool:
    """Return whether a statement has a seal that was made with this secret, of just what it says."""
    seal = statement.get("signed")
    if not isinstance(seal, dict) or not isinstance(seal.get("seal"), str):
        return False
    bare = {**statement, "signed": {name: value for name, value in seal.items() if name != "seal"}}
    return hmac.compare_digest(_seal(bare, secret).encode(), seal["seal"].encode())


def _seal(statement: Statement, secret: bytes) -> str:
    return hmac.digest(secret, b"transformer-course certificate\n" + canonical(statement), "sha256").hex()


def read_secret(file: Path) -> bytes:
    """Return the secret of a class.

    Raises:
        ValueError: if it is too short to be one.
    """
    secret = file.read_bytes().strip()
    if len(secret) < SHORTEST:
        raise ValueError(f"secret must have at least {SHORTEST} bytes, got {len(secret)} in {file}")
    return secret


def report(verified: Verified) -> str:
    """Return what was found, for a terminal."""
    lines = [f"computed again, and right: {', '.join(verified.confirmed) or 'nothing'}"]
    lines += [f"WRONG {name}: {why}" for name, why in verified.refuted.items()]
    if verified.unproven:
        lines.append(f"stated alone (no answer of theirs was here to compute): {', '.join(verified.unproven)}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.certificates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("verify", "sign", "check"))
    parser.add_argument("page", type=Path, help="the certificate, an HTML file")
    parser.add_argument("--notebooks", type=Path, help="folder with notebooks of the learner, which are executed, too")
    parser.add_argument("--secret", type=Path, help="file with the secret of the class, to sign and to check")
    parser.add_argument("--by", default="", help="who signs")
    parser.add_argument("--out", type=Path, help="the signed page (default: in the place of the other)")
    parser.add_argument("--user", default="", help="as whom their code runs, where root verifies")
    parser.add_argument("--allow-root", action="store_true", help="run their code as root: on a machine to throw away")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do it; returns 1 for a page that is refused."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.action != "verify" and given.secret is None or given.action == "sign" and not given.by.strip():
        parser.error(f"{given.action} needs --secret FILE" + (" and --by NAME" if given.action == "sign" else ""))
    try:
        return _done(given)
    except (ValueError, OSError) as error:
        print(f"REFUSED: {error}")
        return 1


def _done(given: argparse.Namespace) -> int:
    statement = read(given.page)
    print(f"{statement['name']}, {statement['made']}: {len(statement['exercise'])} exercises are claimed")
    if given.action == "check":
        whole = is_sealed(statement, read_secret(given.secret))
        print(
            f"the seal is whole: signed by {statement['signed']['by']} on {statement['signed']['on']}"
            if whole
            else "REFUSED: no seal of this class, or one that does not fit what the page says"
        )
        return 0 if whole else 1
    verified = verify(statement, executor(given.user, allow_root=given.allow_root), given.notebooks)
    print(report(verified))
    if given.action == "sign":
        sealed = signed(statement, verified, read_secret(given.secret), given.by.strip())
        write_atomically(given.out or given.page, page(sealed).encode())
        print(f"signed: {given.out or given.page}")
    return 1 if verified.refuted else 0


if __name__ == "__main__":
    run_command(main)
