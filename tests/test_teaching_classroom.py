"""GitHub Classroom: the workflow's file, the command that it runs, and what a student reads in the job's summary."""

from __future__ import annotations

import shlex

import nbformat
import pytest

pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')
pytest.importorskip("latex2mathml", reason='latex2mathml is not installed: pip install -e ".[teach]"')

from small_course import RIGHT, small_notebook
from transformer_lib.course.exercises import get
from transformer_lib.course.teaching import classroom
from transformer_lib.course.teaching.assignments.alone import Result

yaml = pytest.importorskip("yaml", reason="PyYAML, which JupyterLab brings, is not installed")
NAME = "04_scaled_dot_product_attention.ipynb"


def steps_of(folder) -> dict:
    return yaml.safe_load((folder / classroom.PLACE).read_text(encoding="utf-8"))["jobs"]["checks"]


@pytest.mark.fast
def test_the_workflow_brings_the_course_and_runs_the_check(tmp_path, capsys):
    command = ["workflow", "04", "--course", "owner/course@v1", "--only", "04.1", "04.2", "--out", str(tmp_path)]
    assert classroom.main([*command, "--index", "https://example.org/cpu"]) == 0
    assert NAME in capsys.readouterr().out
    job = steps_of(tmp_path)
    own, course, python, install, check = job["steps"]
    assert "with" not in own and course["with"] == {"repository": "owner/course", "path": "course", "ref": "v1"}
    assert python["with"]["python-version"] == "3.12" and '-e "course[teach]"' in install["run"]
    assert job["env"]["PIP_EXTRA_INDEX_URL"] == "https://example.org/cpu"
    words = shlex.split(check["run"])
    given = classroom._parser().parse_args(words[words.index(classroom.__name__) + 1 :])
    assert (given.action, [path.name for path in given.notebooks], given.only) == ("check", [NAME], ["04.1", "04.2"])


@pytest.mark.fast
def test_a_workflow_without_more_has_no_more_and_a_wrong_address_is_refused(tmp_path, capsys):
    classroom.main(["workflow", "04", "--course", "owner/course", "--out", str(tmp_path)])
    job = steps_of(tmp_path)
    assert "PIP_EXTRA_INDEX_URL" not in job["env"] and "ref" not in job["steps"][1]["with"]
    for wrong in ("course", "owner/course\n  evil: yes", "https://example.org/owner/course"):
        with pytest.raises(SystemExit):
            classroom.main(["workflow", "04", "--course", wrong, "--out", str(tmp_path)])
        assert "course must be OWNER/NAME or OWNER/NAME@REF" in capsys.readouterr().err


@pytest.mark.fast
def test_the_summary_has_a_row_for_each_exercise_and_the_whole_verdict_of_what_is_wrong():
    right = Result(get("00.1"), 1, 1, "✓ 00.1", "")
    wrong = Result(get("00.2"), 0, 2, "✗ 00.2\n  a | <b>", "a | <b> `x`")
    text = classroom.summary("00_start_here", [right, wrong])
    assert "## 00_start_here: 1 of 2 exercises are right" in text
    assert "| ✓ | 00.1 " in text and r"| 0 of 2 | a \| &lt;b&gt; \`x\` |" in text
    assert text.count("<details>") == 1 and "<pre>✗ 00.2\n  a | &lt;b&gt;</pre>" in text


@pytest.mark.fast
def test_what_cannot_be_checked_is_named(tmp_path, capsys):
    for name in ("mine.ipynb", NAME):
        with pytest.raises(SystemExit):
            classroom.main(["check", str(tmp_path / name), "--allow-root"])
    message = capsys.readouterr().err
    assert "notebooks must have the course's names, such as 04_scaled" in message and "No such file" in message


@pytest.mark.slow
def test_a_push_is_checked_and_its_summary_written(tmp_path, monkeypatch, capsys):
    path = small_notebook(tmp_path)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.source.startswith("def mean_of_rows("):
            cell.source = cell.source.replace("raise NotImplementedError", RIGHT["mean_of_rows"])
    nbformat.write(notebook, path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert classroom.main(["check", str(path), "--only", "00.1", "00.2", "--allow-root"]) == 1
    told = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "00_start_here: 1 of 2 exercises are right" in told and "| 0 of 2 | not attempted |" in told
    out = capsys.readouterr().out
    assert "✓ 00.1" in out and "○ 00.2 not attempted yet" in out
