"""The reading site, built once for all workers of a test run; and the one for students.

COURSE_SITE names one that is built already, as the workflow that publishes it does; SITE_… are then its settings.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[1]


def built(factory: pytest.TempPathFactory, *, for_students: bool = False) -> Path:
    """Return the site's folder; the first caller builds it, in a separate process, and the others wait."""
    if (ready := os.environ.get("COURSE_SITE")) and not for_students:
        return (ROOT / ready).resolve()
    name = "students" if for_students else "site"
    for package in ("sphinx_book_theme", "myst_nb"):
        pytest.importorskip(package, reason='the site needs pip install -e ".[site]"')
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    log = shared / f"{name}.log"
    with FileLock(shared / f"{name}.lock"):
        if not log.exists():
            command = [sys.executable, ROOT / "docs" / "build_site.py", "--out", shared / name]
            command += ["--for-students"] if for_students else []
            environment = {name: value for name, value in os.environ.items() if not name.startswith("SITE_")}
            done = subprocess.run(
                command, env=environment, capture_output=True, encoding="utf-8", errors="replace", check=False
            )
            log.write_text(f"{done.returncode}\n{done.stdout}{done.stderr}", encoding="utf-8")
    status, _, said = log.read_text(encoding="utf-8").partition("\n")
    assert status == "0", f"the site was not built, or with warnings:\n{said}"
    return shared / name


def setting(name: str) -> str:
    """Return a setting that the site was built with: none, unless it was built before the tests."""
    return os.environ.get(name, "") if os.environ.get("COURSE_SITE") else ""
