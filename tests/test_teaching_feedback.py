"""What a student reads first: why a function is missing, and the page of diagnoses before the notebook."""

from __future__ import annotations

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')
pytest.importorskip("latex2mathml", reason='latex2mathml is not installed: pip install -e ".[teach]"')

from small_course import small_notebook
from transformer_lib.course.teaching.assignments import alone, build, grading
from transformer_lib.course.teaching.assignments.missing import is_missing, why_missing
from transformer_lib.course.teaching.assignments.source import course_source
from transformer_lib.course.teaching.diagnoses import diagnosis_in
from transformer_lib.course.teaching.notebook_files import read
from transformer_lib.course.teaching.statistics import diagnosis

SEED = 7_654_321
NAME_ERROR = new_output("error", ename="NameError", evalue="name 'mean_of_rows' is not defined", traceback=[])
UNCLOSED = new_output("error", ename="SyntaxError", evalue="'(' was never closed (123.py, line 2)", traceback=[])
NO_MODULE = new_output("error", ename="ModuleNotFoundError", evalue="No module named 'nunpy'", traceback=[])


@pytest.mark.fast
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([], "no cell defines mean_of_rows."),
        ([("def mean_of_row(x): pass", [])], "no cell defines mean_of_rows. Is it mean_of_row? Its name must stay"),
        ([("def mean_of_rows_solution(x): pass", [])], "no cell defines mean_of_rows."),
        ([("def mean_of_rows(x):\n    return (x", [UNCLOSED])], "its cell did not run. Line 2: its ( is never closed"),
        ([("import nunpy\ndef mean_of_rows(x): pass", [NO_MODULE])], "It stopped with ModuleNotFoundError: No module"),
        ([("def mean_of_rows(x): pass", [])], "its cell ran, but mean_of_rows was gone afterwards."),
    ],
)
def test_the_reason_for_a_missing_function_is_named(cells, said):
    cells = [new_markdown_cell("def mean_of_rows"), *(new_code_cell(text, outputs=outputs) for text, outputs in cells)]
    told = why_missing(cells, len(cells), "00.1", "mean_of_rows")
    assert told.startswith("✗ 00.1 ") and said in told and "_solution" not in told
    error = [grading.failed(told)]
    assert diagnosis_in(error).startswith("Your function is missing: ")
    assert diagnosis(error) == diagnosis_in(error)  # the statistics of a class count it, too


@pytest.mark.fast
def test_the_line_that_python_cannot_read_is_shown_and_a_definition_below_the_check_is_found():
    broken = new_code_cell("def mean_of_rows(x):\n    return (x", outputs=[UNCLOSED])
    assert "\n      return (x" in why_missing([broken], 1, "00.1", "mean_of_rows")
    below = [new_code_cell("check"), new_code_cell("mean_of_rows = lambda x: x")]
    assert "only in a cell below this check" in why_missing(below, 0, "00.1", "mean_of_rows")


@pytest.mark.fast
def test_only_the_function_itself_is_missing():
    assert is_missing([NAME_ERROR], "mean_of_rows") and not is_missing([NAME_ERROR], "rows")
    assert not is_missing([UNCLOSED], "mean_of_rows") and not is_missing([], "mean_of_rows")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """{exercise: result} of the small notebook as a learner's own copy: one cell deleted, one broken, one right."""
    path = small_notebook(tmp_path_factory.mktemp("feedback"))
    source, submission = course_source(read(path), seed=SEED), alone.read_submission(path)
    stubs = [cell for cell in submission.cells if "exercise" in cell.metadata.get("tags", [])]
    stubs[1].source = "def weighted_mean(weights, x:\n    return 0"
    stubs[2].source = stubs[2].source.replace("raise NotImplementedError", "return torch.eye(n, dtype=torch.bool)")
    submission.cells.remove(stubs[0])
    results = alone.graded(submission, source, grading.ExecuteApart(cell_seconds=60))
    return submission, {each.exercise.id: each for each in results}


def test_a_copy_without_marks_is_graded_and_each_verdict_says_what_to_do(executed):
    _, results = executed
    assert [(name, each.score) for name, each in results.items()] == [("00.1", 0), ("00.2", 0), ("00.3", 0)]
    assert "no cell defines mean_of_rows." in results["00.1"].diagnosis
    assert "its cell did not run. Line 1: its ( is never closed" in results["00.2"].diagnosis
    assert results["00.3"].text.startswith("✗ 00.3") and "NameError" not in results["00.3"].text


def page_of(notebook, tmp_path, monkeypatch) -> str:
    """The page that nbgrader's feedback would have, with the settings of a course."""
    from nbgrader.converters import GenerateFeedback
    from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension

    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    build.make_course(tmp_path, build.chosen_notebooks(["00"]), seed=SEED)
    monkeypatch.chdir(tmp_path)
    extension = FormgradeExtension()
    extension.initialize([])
    steps = extension.config.GenerateFeedback.preprocessors
    assert steps.index(f"{grading.__name__}.WithDiagnoses") < steps.index(f"{grading.__name__}.WithoutHiddenTests")
    points = {"notebook": "00_start_here", "score": 0.0, "max_score": 5.0, "late_penalty": 2}
    resources = {"nbgrader": points, "inlining": {"css": []}}
    for cell in (cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")):
        cell.metadata.nbgrader.score = 0.0  # as nbgrader's GetGrades does
    for step in (grading.WithDiagnoses(), grading.WithoutHiddenTests()):
        notebook, resources = step(notebook, resources)
    exporter = grading.OfflineExporter(config=GenerateFeedback(config=extension.config).config)
    return exporter.from_notebook_node(notebook, resources)[0]


def test_a_page_of_diagnoses_stands_before_the_notebook(executed, tmp_path, monkeypatch):
    notebook, results = executed
    page = page_of(notebook, tmp_path, monkeypatch)
    first, _, whole = page.partition("The notebook, as it was graded")
    rows = re.findall(r'<tr><td><a href="#(.*?)">(.*?)</a></td>\s*<td>(.*?)</td>\s*<td>(.*?)</td></tr>', first)
    assert [row[0] for row in rows] == ["check-00-1", "check-00-2", "check-00-3"]
    for (anchor, title, points, said), result in zip(rows, results.values(), strict=True):
        assert title.startswith(result.exercise.id) and points == f"0.0 of {float(result.points)}"
        assert said[:40] == result.diagnosis[:40] and f'name="{anchor}"' in whole
    assert "break-before: page" in first and "Handed in late: −2.0" in first
    assert "<script" not in page
