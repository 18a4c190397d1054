"""What `pip install` gives: the library with its data, and nothing of the course before it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]

# Runs where nothing but the library's own dependencies can be imported; filelock and packaging come with those, too.
WITHOUT_THE_COURSE = """
import sys

MISSING = {"IPython", "ipywidgets", "jupyterlab", "matplotlib", "nbformat", "nbval", "platformdirs", "traitlets"}


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING or name == "transformer_lib.course.claims":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
import transformer_lib as tl

print(tl.__file__)
print(tl.DATA)
print(*tl.load_trained("context").translate(["The man saw the bank near the river."]))
for name in ("plotting", "exercises", "claims"):
    try:
        getattr(tl, name)
    except ImportError as error:
        print(type(error).__name__, error, "|", repr(error.__cause__))
"""


def build(source: Path, kind: str, out: Path) -> Path:
    """Make a distribution as pip does, but with the build backend that is installed here: no network is needed."""
    call = f"import sys, hatchling.build; print(hatchling.build.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", call, out], cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with what the wheel holds, which was built from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(build(ROOT, "sdist", folder)) as archive:
        archive.extractall(folder / "sdist", filter="data")
    [source] = (folder / "sdist").iterdir()
    with ZipFile(build(source, "wheel", folder)) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_wheel_carries_the_data_and_nothing_beside_the_package(installed):
    assert contents(installed / "transformer_lib" / "_data") == contents(ROOT / "data")
    assert sorted(path.name.partition("-")[0] for path in installed.iterdir()) == ["transformer_lib"] * 2
    assert (installed / "transformer_lib" / "py.typed").is_file()
    slides = Path("course", "teaching", "slides", "template")
    assert contents(installed / "transformer_lib" / slides) == contents(ROOT / "transformer_lib" / slides)


@pytest.mark.slow
def test_it_translates_without_anything_of_the_course(installed, tmp_path):
    own = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    command = [sys.executable, "-P", "-W", "error", "-c", WITHOUT_THE_COURSE]
    own["PYTHONPATH"] = str(installed)
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    package = installed / "transformer_lib"
    hint = 'in the folder of the course: pip install -e ".[course]" | ModuleNotFoundError("No module named'
    assert done.stdout.splitlines() == [
        str(package / "__init__.py"),
        str(package / "_data"),
        "Der Mann sah das Ufer beim Fluss.",
        f"ImportError transformer_lib.plotting needs matplotlib; {hint} 'matplotlib'\")",
        f"ImportError transformer_lib.exercises needs platformdirs; {hint} 'platformdirs'\")",
        "ModuleNotFoundError No module named 'transformer_lib.course.claims' | None",
    ]
