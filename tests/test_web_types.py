"""The site's JavaScript, checked by TypeScript from its types in comments."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

WEB = Path(__file__).parents[1] / "docs" / "web"
COMPILER = "typescript@~5.9.3"


@pytest.fixture(scope="session")
def compiler(pytestconfig) -> Path:
    """The TypeScript compiler, taken once from npm's registry and kept in pytest's cache."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = pytestconfig.cache.mkdir("typescript")
    found = folder / "node_modules" / "typescript" / "bin" / "tsc"
    with FileLock(folder / "lock"):
        if not found.exists():
            command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, COMPILER]
            done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=240)
            if done.returncode or not found.exists():
                pytest.skip(f"npm could not install {COMPILER}: {done.stderr.strip()[-200:]}")
    return found


def complaints(compiler: Path, *arguments: str) -> str:
    done = subprocess.run(["node", compiler, *arguments], capture_output=True, encoding="utf-8", check=False)
    return done.stdout + done.stderr


def test_every_type_holds(compiler):
    assert complaints(compiler, "-p", str(WEB)) == ""


def test_a_wrong_type_is_found(compiler, tmp_path):
    (tmp_path / "wrong.js").write_text("/** @param {number} n */ const f = (n) => n; f('2');\n", "utf-8")
    said = complaints(compiler, "--allowJs", "--checkJs", "--noEmit", "--strict", str(tmp_path / "wrong.js"))
    assert "not assignable to parameter of type 'number'" in said
