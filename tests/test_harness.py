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
MODULES = ["approximate", "nbval_cells", "notebook_kernel"]
SETTINGS = ["conftest.py", "pyproject.toml", "tests/nbval_sanitize.cfg", *(f"tests/{name}.py" for name in MODULES)]

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


# What a cell prints with the tag, what is stored, and what the report must say; nothing: the cell passes.
APPROX = [
    ("print('mean 0.98 over 5 seeds, −0.50')", "approx:0.02", [("0.98", "1.00"), ("−0.50", "−0.52")], ()),
    ("print('37 %, 1.2e-05 and 1,234')", "approx:5%", [("37", "38"), ("1.2", "1.25"), ("1,234", "1,190")], ()),
    ("print('loss   9.98\\nbest   1.00')", "approx:5%", [("  9.98", " 10.01")], ()),
    ("HTML('<table><td>0.98</td></table><img alt=\"ends at 0.98\">')", "approx:0.02", [("0.98", "0.97")], ()),
    (
        "print('first 0.50\\nmean 0.98')",
        "approx:0.02",
        [("0.50", "0.51"), ("0.98", "0.93")],
        (
            "stdout, number 2 of 2, in the line 'mean 0.93':",
            "stored 0.93, found 0.98, difference 0.05, allowed 0.02",
            "- mean 0.98",
            "+ mean 0.93",
        ),
    ),
    (
        "HTML('<table><td>100</td></table>')",
        "approx:5%",
        [("100", "90")],
        ("text/html, number 1 of 1", "stored 90, found 100, difference 10, allowed 4.5 (5% of 90)"),
    ),
    ("print('mean 0.98 good')", "approx:0.02", [("good", "bad")], ("- mean 0.98 good", "+ mean 0.98 bad")),
    ("print('mean 0.98')", "approx:0.02", [("0.98", "0.98 1")], ("stdout, numbers stored: 2, found: 1",)),
    ("print('mean 0.98, 1')", "approx:0.02", [(", 1", "")], ("stdout, numbers stored: 1, found: 2",)),
    ("print('mean 0.98')", "approx:0.02", [("mean", "W_2"), ("0.98", "0.97")], ("- mean 0.97", "+ W_2 0.97")),
    ("print('mean 0.98')", "approx:2 %", [], ("the tag must be approx:<number>", "got 'approx:2 %'")),
    ("print('mean 0.98')", "check", [("0.98", "0.97")], ("- mean 0.98", "+ mean 0.97")),
]


def test_numbers_differ_by_the_tolerance_and_by_no_more(project):
    cells = [code(source) for source, _, _, _ in APPROX]
    path = store(project, "01_one.ipynb", code("from IPython.display import HTML"), *cells)
    raw = json.loads(path.read_text(encoding="utf-8"))
    for cell, (_, tag, edits, _) in zip(raw["cells"][1:], APPROX, strict=True):
        cell["metadata"]["tags"] = [tag]
        for old, new in edits:
            before = json.dumps(cell["outputs"], ensure_ascii=False)
            assert old in before
            cell["outputs"] = json.loads(before.replace(old, new))
    path.write_text(json.dumps(raw), encoding="utf-8")
    status, printed = run(project, "-v")
    reports = dict(re.findall(r"^_+ [^\n]*Cell (\d+) _+\n(.*?)(?=^___|^===)", printed, re.MULTILINE | re.DOTALL))
    expected = {str(number): said for number, (_, _, _, said) in enumerate(APPROX, start=1) if said}
    assert status == 1 and set(reports) == set(expected), printed
    for number, said in expected.items():
        assert [piece for piece in said if piece not in reports[number]] == [], reports[number]
