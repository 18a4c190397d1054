"""Autograders for Gradescope: what the archive holds, and submissions graded in a folder laid out as /autograder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')
pytest.importorskip("latex2mathml", reason='latex2mathml is not installed: pip install -e ".[teach]"')

from small_course import RIGHT, small_notebook
from transformer_lib.course.teaching.gradescope import build, grade

SEED = 7_654_321
REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> tuple[Path, Path]:
    """The archive of a small notebook, and the notebook."""
    folder = tmp_path_factory.mktemp("gradescope")
    notebook = small_notebook(folder)
    return build.make_autograder(folder / "out", notebook, seed=SEED, cell_seconds=20), notebook


def laid_out(folder: Path, archive: Path) -> Path:
    """Lay a folder out as Gradescope lays out /autograder; in place of the image's Python stands this one."""
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder / "source")
    for name in ("submission", "results", "course/venv/bin"):
        (folder / name).mkdir(parents=True)
    (folder / "run_autograder").write_bytes((folder / "source" / "run_autograder").read_bytes())
    python = folder / "course" / "venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return folder


def graded(root: Path) -> dict:
    """Run run_autograder as Gradescope does, with the archive's own library, and return results.json."""
    environment = os.environ | {"PYTHONPATH": str(root / "source" / "course"), "AUTOGRADER_USER": ""}
    subprocess.run(["bash", "run_autograder"], cwd=root, env=environment, check=True, timeout=600)
    return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))


def test_the_archive_has_its_scripts_at_the_root_and_the_course_without_what_was_compiled(archive):
    with zipfile.ZipFile(archive[0]) as opened:
        names = set(opened.namelist())
        modes = {name: opened.getinfo(name).external_attr >> 16 & 0o111 for name in build.SCRIPTS}
    assert {"setup.sh", "run_autograder", "assignment.json", "course/data/context/train.tsv"} <= names
    assert {"course/transformer_lib/__init__.py", "course/notebooks/00_start_here.ipynb"} <= names
    assert not any("__pycache__" in name or name.startswith("wheels/") for name in names)
    assert all(modes.values())  # Gradescope copies run_autograder and executes it


@pytest.mark.parametrize("script", build.SCRIPTS)
def test_the_scripts_are_ones_that_bash_can_read(script):
    subprocess.run(["bash", "-n", str(build.HERE / script)], check=True)


def test_the_image_installs_what_learners_have_and_what_grading_needs():
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    teach = [each for each in extras["optional-dependencies"]["teach"] if not each.startswith("transformer_lib")]
    assert teach == build.EXTRAS
    assert (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").rstrip() in build._requirements()


def test_wheels_are_carried_and_points_are_those_of_the_chosen_exercises(archive, tmp_path, capsys):
    (tmp_path / "torch-2.13.0-py3-none-any.whl").write_bytes(b"wheel")
    command = ["04", "--out", str(tmp_path / "out"), "--only", "04.1", "04.6", "--wheels", str(tmp_path)]
    build.main(command)
    assert re.search(r"04_scaled\w+\.zip \(\d+ MB\): 5 points", capsys.readouterr().out)
    [path] = (tmp_path / "out").glob("*.zip")
    with zipfile.ZipFile(path) as opened:
        assert opened.read("wheels/torch-2.13.0-py3-none-any.whl") == b"wheel"
        cells = json.loads(opened.read("assignment.json"))["source"]["cells"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    assert [(mark["grade_id"], mark["points"]) for mark in marks if mark.get("grade")] == [
        ("check-04-1", 2),
        ("check-04-6", 3),
    ]


def test_what_cannot_be_made_is_refused(archive, tmp_path, capsys):
    for given, message in (
        ({"only": ["04.1"]}, r"only and variant must name exercises of 00_start_here.ipynb, got \['04.1'\]"),
        ({"visibility": "later"}, "visibility must be one of visible, after_due_date"),
        ({"wheels": tmp_path}, "wheels must be a folder of .whl files"),
    ):
        with pytest.raises(ValueError, match=message):
            build.make_autograder(tmp_path / "out", archive[1], **given)
    with pytest.raises(SystemExit):
        build.main(["99", "--out", str(tmp_path / "out")])
    assert "must be one of 00 to 25 or A, got '99'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def copy_of(notebook: Path, bodies: dict[str, str], change=lambda cells: cells) -> nbformat.NotebookNode:
    """A learner's own copy of the notebook: no marks of nbgrader's in it."""
    copied = nbformat.read(notebook, as_version=4)
    for cell in copied.cells:
        name = re.match(r"def (\w+)", cell.source)
        if name and name[1] in bodies:
            cell.source = cell.source.replace("raise NotImplementedError", bodies[name[1]])
    copied.cells = change(copied.cells)
    return copied


def odd(cells):
    """One stub deleted, one that Python cannot read, a loop without end among the cells, and no ids."""
    kept = [cell for cell in cells if not cell.source.startswith("def mean_of_rows(")]
    for cell in kept:
        cell.source = cell.source.replace("def weighted_mean(weights, x):", "def weighted_mean(weights, x:")
    return [*kept[:3], nbformat.v4.new_code_cell("while True:\n    pass"), *kept[3:]]


@pytest.mark.slow
def test_submissions_get_their_points_and_their_diagnoses(archive, tmp_path):
    path, notebook = archive
    texts: dict[str, list[str]] = {}
    half = {"mean_of_rows": RIGHT["mean_of_rows"], "weighted_mean": "return x.mean(0)"}
    for name, bodies, change, scores in (
        ("good", RIGHT, lambda cells: cells, [1, 2, 2]),
        ("half", half, lambda cells: cells, [1, 0, 0]),
        ("odd", RIGHT, odd, [0, 0, 2]),
    ):
        root = laid_out(tmp_path / name, path)
        nbformat.write(copy_of(notebook, bodies, change), root / "submission" / "00_start_here.ipynb")
        results = graded(root)
        assert [test["score"] for test in results["tests"]] == scores, name
        assert [test["number"] for test in results["tests"]] == ["00.1", "00.2", "00.3"]
        assert all(test["status"] == ("passed" if test["score"] else "failed") for test in results["tests"])
        assert all(test["visibility"] == "visible" and test["name"] for test in results["tests"])
        assert results["stdout_visibility"] == "hidden" and results["execution_time"] >= 0
        texts[name] = [test["output"] for test in results["tests"]]
    assert "not attempted yet" in texts["half"][2] and texts["half"][1].startswith("✗ 00.2 ")
    assert "no cell defines mean_of_rows" in texts["odd"][0]
    assert "its cell did not run. Line 1: its ( is never closed" in texts["odd"][1]
    assert not any(str(SEED) in text or "seed=" in text for text in sum(texts.values(), []))


@pytest.mark.fast
def test_what_is_no_notebook_is_named_and_gets_nothing(tmp_path):
    source = {"settings": {"name": "00_start_here", "visibility": "visible"}, "source": {}}
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "assignment.json").write_text(json.dumps(source), encoding="utf-8")
    (tmp_path / "submission").mkdir()

    def told() -> str:
        grade.main([str(tmp_path)])
        results = json.loads((tmp_path / "results" / "results.json").read_text(encoding="utf-8"))
        assert results["score"] == 0 and "tests" not in results
        return results["output"]

    (tmp_path / "results").mkdir()
    assert "Hand in one notebook, 00_start_here.ipynb; got none." in told()
    for name in ("a", "b"):
        (tmp_path / "submission" / f"{name}.ipynb").write_text("{", encoding="utf-8")
    assert "got a.ipynb, b.ipynb." in told()
    (tmp_path / "submission" / "00_start_here.ipynb").write_text("{", encoding="utf-8")
    assert "00_start_here.ipynb must be a Jupyter notebook, got what cannot be read as one" in told()
    (tmp_path / "source" / "assignment.json").write_text("{}", encoding="utf-8")
    assert "The autograder itself failed" in told()


@pytest.mark.fast
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such links")
def test_a_link_to_the_secrets_is_not_read(tmp_path):
    (tmp_path / "secret.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "00_start_here.ipynb").symlink_to(tmp_path / "secret.ipynb")
    with pytest.raises(ValueError, match="got none"):
        grade.handed_in(tmp_path / "submission", "00_start_here")
