"""Where matplotlib cannot write its own folder it is given one, and says nothing below a figure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_lib.course import matplotlib_folder

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
DRAW = "import os, transformer_lib as tl; tl.plotting.plot_curves({'a': [1, 2]}); print(os.environ.get('MPLCONFIGDIR'))"
OWN = ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


def draw(home):
    """Draw a curve in a new process with this home; return what it wrote as errors, and MPLCONFIGDIR afterwards."""
    own = {name: value for name, value in os.environ.items() if name not in OWN} | {"HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True, env=own, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr, done.stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="matplotlib's folders lie elsewhere there")
def test_a_home_that_cannot_be_written_is_not_seen_below_a_figure(tmp_path):
    (tmp_path / "file").touch()
    said, folder = draw(tmp_path / "file" / "home")
    assert said == "" and folder != "None" and not Path(folder).exists()  # it has gone with the process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="matplotlib's folders lie elsewhere there")
def test_a_home_that_can_be_written_stays_in_use(tmp_path):
    assert draw(tmp_path) == ("", "None")
    assert {path.name for path in tmp_path.iterdir()} == {".config", ".cache"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in OWN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(matplotlib_folder.atexit, "register", lambda *words, **options: None)
    return tmp_path


@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "XDG_CACHE_HOME"])
def test_each_of_its_two_folders_must_be_writable(home, monkeypatch, variable, tmp_path_factory):
    (home / "file").touch()
    monkeypatch.setenv(variable, str(home / "file"))
    monkeypatch.setattr(matplotlib_folder.tempfile, "mkdtemp", lambda prefix: str(home / prefix))
    matplotlib_folder.ensure()
    assert os.environ["MPLCONFIGDIR"] == str(home / "matplotlib-")
    monkeypatch.delenv("MPLCONFIGDIR")


def test_a_folder_that_was_chosen_stays_chosen(home, monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", "/nowhere")
    matplotlib_folder.ensure()
    assert os.environ["MPLCONFIGDIR"] == "/nowhere"


def test_without_a_home_there_is_a_folder_too(home, monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(matplotlib_folder.Path, "home", nobody)
    monkeypatch.setattr(matplotlib_folder.tempfile, "mkdtemp", lambda prefix: str(home / prefix))
    matplotlib_folder.ensure()
    assert os.environ.pop("MPLCONFIGDIR") == str(home / "matplotlib-")
