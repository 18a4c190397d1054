"""The alarm works: pytest, as this project configures it, on toy notebooks in a project of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from refresh import main, to_text
from test_notebooks import build, code

ROOT = Path(__file__).parents[1]
SETTINGS = ["conftest.py", "pyproject.toml", "tests/nbval_sanitize.cfg", "tests/notebook_kernel.py"]

ENVIRONMENT = "import os\nprint(os.environ['OMP_NUM_THREADS'], repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"
PICTURE = """from IPython.display import HTML
HTML('<img alt="a dot" src="data:image/png;base64,AAAA">')"""
DRAWING = """HTML('<img alt="a dot" src="data:image/svg+xml;base64,CCCC">')"""
GPU = "print('no CUDA device here')"


@pytest.fixture
def project(tmp_path):
    for name in SETTINGS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "notebooks").mkdir()
    pretend_cuda(tmp_path, False)
    return tmp_path


def pretend_cuda(project: Path, available: bool) -> None:
    """Put a stand-in for torch where the run finds it first: this machine may or may not have CUDA."""
    stand_in = f"class cuda:\n    is_available = staticmethod(lambda: {available})\n"
    (project / "torch.py").write_text(stand_in, encoding="utf-8")


def store(project: Path, name: str, *cells: dict, **metadata) -> Path:
    path = project / "notebooks" / name
    raw = build(list(cells))
    raw["metadata"].update(metadata)
    path.write_text(to_text(raw), encoding="utf-8")
    assert main([str(path)]) == 0
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(project: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "notebooks", "-p", "no:cacheprovider", "--color=no", *options]
    environment = os.environ | {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, encoding="utf-8", timeout=240, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_unchanged_notebooks_pass_and_their_seconds_are_listed(project):
    store(project, "01_one.ipynb", code(ENVIRONMENT), code(GPU, "gpu"), code("import time\ntime.sleep(2)"))
    store(project, "02_two.ipynb", code(ENVIRONMENT), transformer_course={"threads": 2})
    status, printed = run(project, "-n", "2", "--dist", "loadscope")
    assert status == 0, printed
    assert re.search(r"3 passed, 1 skipped", printed), printed
    assert re.search(r"SKIPPED .*no CUDA device", printed)
    table = printed.split("seconds per notebook, slowest first")[1]
    assert re.findall(r"s +(\d+ cells run +\S+)", table) == [
        "2 cells run  notebooks/01_one.ipynb",
        "1 cells run  notebooks/02_two.ipynb",
        "3 cells run  in",
    ]


def test_only_the_bytes_of_a_png_may_differ(project):
    path = store(project, "01_one.ipynb", code(PICTURE), code("print('sum 5')"), code(PICTURE), code(DRAWING))
    raw = json.loads(path.read_text(encoding="utf-8"))
    # The outputs are edited, not the sources: each cell still computes what it did.
    edits = [("AAAA", "BBBB"), ("sum 5", "sum 6"), ("a dot", "a line"), ("CCCC", "DDDD")]
    for cell, (old, new) in zip(raw["cells"], edits, strict=True):
        assert old in json.dumps(cell["outputs"])
        cell["outputs"] = json.loads(json.dumps(cell["outputs"]).replace(old, new))
    path.write_text(json.dumps(raw), encoding="utf-8")
    status, printed = run(project)
    failed = re.findall(r"^FAILED notebooks/01_one.ipynb::(Cell \d)", printed, re.MULTILINE)
    assert (status, failed) == (1, ["Cell 1", "Cell 2", "Cell 3"]), printed


def test_an_error_fails_and_a_warning_fails(project):
    path = store(project, "01_one.ipynb", code("x = 1"), code("1 / x"), code("import warnings"))
    edit(path, "x = 1", "x = 0")
    edit(path, '"import warnings"', "\"import warnings\\nwarnings.warn('careful')\"")
    status, printed = run(project)
    assert status == 1
    assert "ZeroDivisionError" in printed and "Unexpected output fields" in printed
    assert "2 failed, 1 passed" in printed


def test_with_cuda_a_gpu_cell_runs_uncompared(project):
    path = store(project, "01_one.ipynb", code(GPU, "gpu"))
    store(project, "02_two.ipynb", code(ENVIRONMENT))
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["cells"][0]["outputs"][0]["text"] = ["what another machine printed\n"]
    path.write_text(json.dumps(raw), encoding="utf-8")
    pretend_cuda(project, True)
    status, printed = run(project)
    assert status == 0, printed
    assert "2 passed" in printed and "skipped" not in printed
