"""Assignments: the source of every notebook, hidden cases, and nbgrader itself with submissions good and bad."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
import traitlets.config

from small_course import RIGHT, nbgrader, small_notebook, submit
from transformer_lib.course import exercises
from transformer_lib.course.cells import source_of, tags_of
from transformer_lib.course.exercises.compare import same
from transformer_lib.course.exercises.model import other_numbers
from transformer_lib.course.exercises.sandbox import preserved_state, run_directly
from transformer_lib.course.teaching.assignments import (
    build,
    run,
)
from transformer_lib.course.teaching.assignments import (
    hidden as assignments_hidden,
)
from transformer_lib.course.teaching.assignments.cases import MORE, unseen_cases
from transformer_lib.course.teaching.assignments.config import assignment_seed
from transformer_lib.course.teaching.assignments.source import course_source, groups_of
from transformer_lib.course.teaching.notebook_files import read

ALL = exercises.all_exercises()
NOTEBOOKS = build.chosen_notebooks([])
SEED = 7_654_321
MIME = run.MIME


def marks_of(cell: dict) -> dict:
    return cell["metadata"].get("nbgrader", {})


def student_version(source: str) -> str:
    """Return what nbgrader's generate_assignment makes of a cell, with the stub that the course's config names."""
    source = re.sub(
        r"^ *### BEGIN SOLUTION\n.*^( *)### END SOLUTION",
        r"\1raise NotImplementedError",
        source,
        flags=re.MULTILINE | re.DOTALL,
    )
    return re.sub(r"\n### BEGIN HIDDEN TESTS\n.*### END HIDDEN TESTS", "", source, flags=re.DOTALL)


# The sources.


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_a_student_version_has_every_stub_and_check_and_no_solution(path):
    notebook = read(path)
    source = course_source(notebook, seed=SEED)
    nbformat.validate(nbformat.from_dict(source))
    groups = groups_of(notebook["cells"])
    ids = [marks_of(cell)["grade_id"] for cell in source["cells"] if marks_of(cell)]
    assert len(ids) == len(set(ids)) == 2 * len(groups) + sum(name.startswith("answer-") for name in ids)
    student = {cell["id"]: student_version(source_of(cell)) for cell in source["cells"]}
    for group in groups:
        for place in (group.stub, group.check):
            cell = notebook["cells"][place]
            assert student[cell["id"]] == source_of(cell).rstrip()
        solution = notebook["cells"][group.solution]["id"]
        assert "get(" in student[solution] if solution in student else True
    assert not any("solution" in tags_of(cell) for cell in source["cells"])
    assert not re.search(r"^def \w+_solution\(", "\n".join(map(source_of, source["cells"])), flags=re.MULTILINE)
    kept = {cell["id"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"}
    assert kept <= set(student)  # hints and all other prose


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_no_cell_uses_a_solution_that_is_gone_and_no_check_of_a_solution_is_left(path):
    defined: set[str] = set()
    for cell in course_source(read(path), seed=SEED)["cells"]:
        if cell["cell_type"] == "code":
            assert not re.search(r"^check_solution\(", source_of(cell), flags=re.MULTILINE)
            names = [node for node in ast.walk(ast.parse(source_of(cell))) if isinstance(node, ast.Name)]
            defined |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
            used = {name.id for name in names if isinstance(name.ctx, ast.Load) and name.id.endswith("_solution")}
            assert used - {"check_solution"} <= defined


def test_points_are_stars_and_a_choice_leaves_the_others_for_practice():
    path = build.chosen_notebooks(["04"])[0]
    tests = [marks_of(cell) for cell in course_source(read(path), seed=SEED)["cells"] if marks_of(cell).get("grade")]
    stars = {f"check-{e.id.replace('.', '-')}": e.difficulty for e in ALL if e.notebook == "04"}
    assert {mark["grade_id"]: mark["points"] for mark in tests} == stars
    assert all(mark["locked"] and mark["schema_version"] == 3 for mark in tests)
    chosen = course_source(read(path), seed=SEED, graded=["04.2"])["cells"]
    assert [marks_of(cell)["grade_id"] for cell in chosen if marks_of(cell).get("grade")] == ["check-04-2"]
    assert sum(source_of(cell).startswith("check(") for cell in chosen) == 6
    assert "| 04.2 | " in source_of(chosen[1]) and "04.3" not in source_of(chosen[1])


def test_the_page_says_how_many_points_a_notebook_has():
    points = Counter()
    for exercise in ALL:
        points[exercise.notebook] += exercise.difficulty
    page = (Path(__file__).parents[1] / "docs" / "teaching" / "grading.md").read_text(encoding="utf-8")
    assert f"A notebook has {min(points.values())} to {max(points.values())} points." in page


def test_the_attempt_that_is_wrong_on_purpose_raises_no_error():
    cells = course_source(read(build.chosen_notebooks(["00"])[0]), seed=SEED)["cells"]
    assert 'print(examine(get("00.1"), first_try).text)' in "".join(map(source_of, cells))


def test_an_incomplete_exercise_and_a_wrong_choice_are_refused(tmp_path):
    notebook = read(build.chosen_notebooks(["00"])[0])
    with pytest.raises(ValueError, match=r"graded must be some of \['00.1', .*, got \['04.1'\]"):
        course_source(notebook, seed=SEED, graded=["04.1"])
    group = groups_of(notebook["cells"])[0]
    without = {"cells": [cell for place, cell in enumerate(notebook["cells"]) if place != group.solution]}
    with pytest.raises(ValueError, match=r"cells must have a check and a solution after the stub in cell \d+"):
        course_source(without, seed=SEED)
    with pytest.raises(ValueError, match=r"only must name exercises of the chosen notebooks, got \['00.9'\]"):
        build.make_course(tmp_path, build.chosen_notebooks(["00"]), only=["00.9"])


def test_a_wrong_notebook_a_missing_file_and_a_number_too_small_are_refused(tmp_path, monkeypatch, capsys):
    paths = build.chosen_notebooks(["00"])
    for name, number, least in (("seed", 5, 10**6), ("cell_seconds", 0, 1), ("notebook_seconds", -1, 1)):
        with pytest.raises(ValueError, match=f"{name} must be at least {least}, got {number}"):
            build.make_course(tmp_path, paths, **{name: number})
    with pytest.raises(SystemExit):
        build.main(["--out", str(tmp_path), "4"])
    assert "must be one of 00 to 25 or A, got '4'" in capsys.readouterr().err
    monkeypatch.setattr(build.course, "path_of", lambda entry: None)
    with pytest.raises(FileNotFoundError, match=r"00_start_here\.ipynb must lie beside the library"):
        build.chosen_notebooks([])
    assert list(tmp_path.iterdir()) == []


def test_the_command_makes_a_course_that_keeps_its_seed(tmp_path, capsys):
    seeds = []
    for out in (tmp_path / "a", tmp_path / "a", tmp_path / "b"):
        build.main(["--out", str(out), "02", "03", "--only", "03.2"])
        assert "1 assignments in" in capsys.readouterr().out
        [source] = out.glob("source/*/*.ipynb")
        seeds += set(re.findall(r"grade\(.*, seed=(\d+)\)", source.read_text(encoding="utf-8")))
    assert source.stem == source.parent.name == "03_queries_keys_values"
    assert seeds[0] == seeds[1] != seeds[2] and min(map(int, seeds)) >= 10**6
    assert seeds[2] not in (out / "nbgrader_config.py").read_text(encoding="utf-8")
    ast.parse((out / "nbgrader_config.py").read_text(encoding="utf-8"))
    with pytest.raises(SystemExit):
        build.main(["--out", str(tmp_path), "--only", "99.1"])
    assert "only must name exercises of the chosen notebooks, got ['99.1']" in capsys.readouterr().err


def test_each_assignment_has_a_seed_of_its_own_that_does_not_tell_the_secret(tmp_path):
    for secret in (SEED, SEED + 1):
        build.make_course(tmp_path, build.chosen_notebooks(["00", "01"]), seed=secret)
        texts = [path.read_text(encoding="utf-8") for path in sorted(tmp_path.glob("source/*/*.ipynb"))]
        first, second = ([int(seed) for seed in set(re.findall(r"grade\(.*, seed=(\d+)\)", text))] for text in texts)
        expected = [assignment_seed(secret, name) for name in ("00_start_here", "01_attention_is_a_lookup")]
        assert [*first, *second] == expected and len({secret, *expected}) == 3
    assert assignment_seed(SEED, "00_start_here") != assignment_seed(SEED + 1, "00_start_here") >= 10**6


# Hidden cases.


def answers(exercise, function, seed=SEED):
    with preserved_state():
        found = assignments_hidden._answers(exercise, function, unseen_cases(exercise, seed))
    return json.loads(json.dumps(found))


def by_heart(exercise):
    """Return a function that knows the right answer to every case that the check shows, and nothing else."""
    cases, names = exercise.cases(), exercise.arguments
    known = [(case.args, run_directly(exercise.reference, case.args, names).value) for case in cases]

    def function(*args):
        for shown, answer in known:
            if all(callable(one) or same(one, other) for one, other in zip(shown, args, strict=True)):
                return answer
        return known[0][1]

    return function


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_hidden_cases_accept_the_reference_and_refuse_answers_by_heart(exercise):
    assert assignments_hidden.problem_in(exercise.id, answers(exercise, exercise.reference), seed=SEED) is None
    problem = assignments_hidden.problem_in(exercise.id, answers(exercise, by_heart(exercise)), seed=SEED)
    assert problem.startswith(f"✗ {exercise.id} {exercise.title}: not right in a case that was not shown.")


def test_nothing_is_graded_by_an_nbgrader_that_did_not_read_the_settings(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    monkeypatch.delenv("TRANSFORMER_COURSE_GRADER", raising=False)
    with pytest.raises(RuntimeError, match=r"did not read nbgrader_config\.py of this course"):
        assignments_hidden.grade("00.1", lambda x: x.mean(0), seed=SEED)


def test_hidden_cases_are_the_same_for_a_seed_and_others_for_another():
    def texts(seed):
        return [repr(case.args) for case in unseen_cases(exercises.get("01.6"), seed)]

    assert texts(SEED) == texts(SEED) != texts(SEED + 1)
    assert set(MORE) <= {exercise.id for exercise in ALL}
    with pytest.raises(ValueError, match="seed must be an integer of at least 1000000, got 5"), other_numbers(5):
        pass


def test_grade_shows_the_answers_and_raises_for_a_wrong_one(monkeypatch):
    shown = []
    monkeypatch.setattr(assignments_hidden, "display", lambda data, raw: shown.append(data[MIME]))
    assignments_hidden.grade("00.1", lambda x: x.mean(0), seed=SEED)
    with pytest.raises(exercises.CheckFailed, match=r"00\.1 .*: not right in a case that was not shown"):
        assignments_hidden.grade("00.1", lambda x: x.mean(1), seed=SEED)
    with pytest.raises(exercises.CheckFailed, match=r"Your function stopped with KeyError: 'x'"):
        assignments_hidden.grade("00.1", lambda x: {}["x"], seed=SEED)
    assert len(shown) == 3


def test_a_function_without_end_answers_once(monkeypatch):
    monkeypatch.setattr(assignments_hidden, "TIME_LIMIT", 0.1)

    def endless(x):
        while True:
            pass

    found = answers(exercises.get("00.1"), endless)
    assert [answer["kind"] for answer in found] == ["endless"]
    assert "were not all answered" in assignments_hidden.problem_in("00.1", found, seed=SEED)


def test_results_survive_the_way_out_of_the_kernel_bit_by_bit():
    tensors = [
        torch.tensor([[0.1, float("nan")]]),
        torch.tensor(3),
        torch.empty(0, 2),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.tensor([0.3], dtype=torch.bfloat16),
        torch.eye(3)[:, 1],
    ]
    for value in tensors:
        back = assignments_hidden.unpacked(json.loads(json.dumps(assignments_hidden.packed(value))))
        assert torch.equal(back.nan_to_num(), value.nan_to_num()) and back.dtype == value.dtype
    value = [1, 0.1, True, None, "a", (2, [float("inf")]), np.float32(0.5)]
    assert assignments_hidden.unpacked(json.loads(json.dumps(assignments_hidden.packed(value)))) == value
    array = assignments_hidden.unpacked(assignments_hidden.packed(np.arange(3)))
    assert array.tolist() == [0, 1, 2] and isinstance(array, np.ndarray)
    assert assignments_hidden.packed({1: 2}) == {"other": "dict"}
    assert type(assignments_hidden.unpacked({"other": "dict"})) is object


@pytest.mark.parametrize("forged", [None, 7, [], [1] * 5, [{}] * 5, [{"kind": "returned", "value": {"list": 1}}] * 5])
def test_what_is_no_answer_is_not_right(forged):
    assert assignments_hidden.problem_in("00.1", forged, seed=SEED).startswith("✗ 00.1")


# The program that executes.

FOR_EVER = "import time\nwhile True:\n    time.sleep(0.05)"
LEAVES = """
import os, subprocess
sleeper = ["sleep", "900"]
left = [subprocess.Popen(sleeper), subprocess.Popen(sleeper, start_new_session=True, env={})]
orphan = subprocess.run(["sh", "-c", "setsid sleep 900 > /dev/null 2>&1 & echo $!"], capture_output=True, text=True)
print(*(process.pid for process in left), orphan.stdout)
"""


def execute(file: Path, *arguments: str) -> None:
    """Run the program as it is run for a submission: as a process of its own."""
    subprocess.run([sys.executable, run.__file__, str(file), *arguments], check=True, timeout=600)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process than the first")
@pytest.mark.parametrize("end", ["", "os._exit(1)"])
def test_a_submission_leaves_no_process_running(tmp_path, end):
    cells = [nbformat.v4.new_code_cell(source) for source in (LEAVES, end)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "n.ipynb")
    execute(tmp_path / "n.ipynb")
    [printed] = nbformat.read(tmp_path / "n.ipynb", as_version=4).cells[0].outputs
    processes = [int(word) for word in printed.text.split()]
    assert len(processes) == 3 and not any(map(is_running, processes))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such links and pipes")
def test_a_submission_finds_no_file_with_its_checks_and_no_link_of_its_leads_out(tmp_path):
    """The checks hold the seed; and a link in the place of the file would have the result written where it leads."""
    (tmp_path / "theirs").write_text("untouched", encoding="utf-8")
    (tmp_path / "run").mkdir()
    sources = ["import os; os.listdir()", "os.symlink('../theirs', 'n.ipynb')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, tmp_path / "run" / "n.ipynb")
    run.run(tmp_path / "run" / "n.ipynb", cell_seconds=20, notebook_seconds=120)
    listed, linked = nbformat.read(tmp_path / "run" / "n.ipynb", as_version=4).cells
    assert listed.outputs[0].data["text/plain"] == "[]" and linked.outputs == []
    assert (tmp_path / "theirs").read_text(encoding="utf-8") == "untouched"


def test_a_cell_without_end_is_interrupted_and_a_dead_kernel_keeps_what_was_done(tmp_path):
    told = "import os\nprint(os.environ['TRANSFORMER_COURSE_GRADER'])"
    sources = ["1 + 1", FOR_EVER, told, "os._exit(1)", "print('never')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    execute(tmp_path / "n.ipynb", "--cell-seconds", "9", "--notebook-seconds", "600")
    cells = nbformat.read(tmp_path / "n.ipynb", as_version=4).cells
    assert cells[0].outputs[0].data["text/plain"] == "2"
    assert "CellTimeout" in {output.get("ename") for output in cells[1].outputs}
    assert cells[2].outputs[0].text == "apart\n"
    assert [cell.outputs[-1].ename for cell in cells[3:]] == ["NotRun", "NotRun"]
    assert "the kernel had died" in cells[4].outputs[-1].evalue


def test_no_cell_is_run_when_the_time_is_over(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1"), nbformat.v4.new_markdown_cell("x")])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    run.run(tmp_path / "n.ipynb", cell_seconds=1, notebook_seconds=-1)
    [output] = nbformat.read(tmp_path / "n.ipynb", as_version=4).cells[0].outputs
    assert "the time for the whole notebook was over" in output.evalue


def test_a_long_line_costs_the_other_cells_nothing(tmp_path):
    """Joined by a quadratic pattern, the first line alone would take a quarter of an hour."""
    printed = "print('A' * 3_000_000)\nprint('the end')"
    bar = "import sys\nprint(1, end='\\r'); print(2, end='\\r'); print('done')\nprint('b', file=sys.stderr)\nprint('c')"
    sources = [printed, "'B' * 3_000_000", bar, "1 + 1"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    run.run(tmp_path / "n.ipynb", cell_seconds=20, notebook_seconds=120)
    long, shown, streams, last = (cell.outputs for cell in nbformat.read(tmp_path / "n.ipynb", as_version=4).cells)
    assert len(long) == 1 and long[0].text.startswith("AAA") and long[0].text.endswith("A\nthe end\n")
    assert "\n… 2980009 characters left out …\n" in long[0].text and len(long[0].text) < run.LONGEST + 50
    assert "characters left out" in shown[0].data["text/plain"]
    assert {output.name: output.text for output in streams} == {"stdout": "done\nc\n", "stderr": "b\n"}
    assert last[0].data["text/plain"] == "2"


# The steps that the course adds to nbgrader.


@pytest.fixture
def grading():
    pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')
    pytest.importorskip("latex2mathml", reason='latex2mathml is not installed: pip install -e ".[teach]"')
    from transformer_lib.course.teaching.assignments import grading as assignments_grading

    return assignments_grading


@pytest.fixture
def settings(grading, tmp_path, monkeypatch):
    """What formgrader reads in the folder of a course, with or without settings of one's own."""
    from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension

    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))

    def read_settings(course: Path):
        monkeypatch.chdir(course)
        extension = FormgradeExtension()
        extension.initialize([])
        return extension.config

    return read_settings


def test_settings_of_ones_own_outlive_the_making_of_the_course(settings, tmp_path, capsys):
    for own in ("c = get_config()\nc.ExecuteApart.command = ['docker']\nc.ExecuteApart.cell_seconds = 7", None):
        build.main(["--out", str(tmp_path), "00"])
        if own:
            (tmp_path / "own_config.py").write_text(own, encoding="utf-8")
    config = settings(tmp_path)
    assert (config.ExecuteApart.command, config.ExecuteApart.cell_seconds) == (["docker"], 7)
    (tmp_path / "own_config.py").write_text("c = get_config(\n", encoding="utf-8")
    config = settings(tmp_path)
    assert config.ExecuteApart.command == [] and "ExecuteApart" in config.Autograde.autograde_preprocessors[0]
    assert "own_config.py could not be read, so nothing will be graded: SyntaxError" in capsys.readouterr().err


def test_formgrader_opens_a_submission_with_its_own_page(settings, tmp_path):
    from nbconvert.exporters import HTMLExporter

    [source] = build.make_course(tmp_path, build.chosen_notebooks(["00"]), seed=SEED)
    resources = {"index": 0, "total": 1, "base_url": "", "notebook_id": source.stem, "submission_id": "s"}
    page, _ = HTMLExporter(config=settings(tmp_path)).from_filename(str(source), resources=resources)
    assert "/formgrader/static/js/formgrade.js" in page
    assert page.count('<input class="score tabbable"') == 4


def new(kind, **fields):
    return nbformat.v4.new_output(kind, **fields)


def test_a_right_answer_keeps_its_points_whatever_else_is_printed(grading):
    right = new("display_data", data={MIME: answers(exercises.get("00.1"), lambda x: x.mean(0))})
    noise = [new("stream", name="stderr", text="a warning"), new("execute_result", data={"text/plain": "0.0"})]
    [output] = grading.verdict([*noise, right], "00.1", SEED)
    assert (output.name, output.text) == ("stdout", "a warning\n✓ 00.1 hidden cases: right.\n")


def test_only_answers_to_these_cases_give_points(grading):
    from nbgrader.utils import determine_grade

    exercise = exercises.get("00.1")
    right, wrong, other_seed, junk = (
        new("display_data", data={MIME: data})
        for data in (
            answers(exercise, exercise.reference),
            answers(exercise, by_heart(exercise)),
            answers(exercise, exercise.reference, SEED + 1),
            {"kind": "returned"},
        )
    )
    full = new("execute_result", data={"text/plain": "1.0"})
    for outputs in ([], [full], [full, wrong], [wrong], [other_seed], [junk], [right, wrong], [wrong, right]):
        cell = nbformat.v4.new_code_cell(outputs=grading.verdict(outputs, "00.1", SEED))
        cell.metadata.nbgrader = {"grade": True, "points": 1}
        assert determine_grade(cell) == (0, 1)
    trace = ["\x1b[31mgrade('00.1', f, seed=7654321)\x1b[0m", "File x"]
    assert [o.output_type for o in grading.verdict([full, new("error", ename="E")], "00.1", SEED)][0] == "display_data"
    failed = new("error", ename="CheckFailed", evalue="✗ why", traceback=trace)
    assert grading.verdict([failed, right], "00.1", SEED)[-1].traceback == ["✗ why"]
    printed = new("stream", name="stdout", text="✗ why\n")
    assert grading.verdict([printed, failed], "00.1", SEED)[-1].traceback == ["No points: see above."]
    stopped = new("error", ename="NameError", evalue="f", traceback=trace)
    assert grading.verdict([stopped], "00.1", SEED)[-1].traceback == ["grade('00.1', f, seed=…)", "File x"]


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "open('submission.ipynb', 'w').close()"])
def test_a_submission_that_cannot_be_executed_gets_nothing_and_stops_nobody(grading, program):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    step = grading.ExecuteApart(command=[sys.executable, "-c", program])
    step.log.setLevel("CRITICAL")
    done, _ = step(notebook, {})
    assert "the notebook could not be executed" in done.cells[0].outputs[0].evalue


@pytest.mark.parametrize("command", [["no-such-program"], [sys.executable, "-c", "raise SystemExit(125)"], []])
def test_a_command_that_does_not_start_is_no_fault_of_a_submission(grading, command):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    with pytest.raises(grading.NotStarted, match=r"ExecuteApart\.command|command ended with 125"):
        grading.ExecuteApart(command=command)(notebook, {})


@pytest.mark.skipif(os.name == "nt", reason="Windows stops no processes")
def test_a_program_that_was_stopped_is_ended_when_the_time_is_over(grading, tmp_path):
    program = "import os; open('pid', 'w').write(str(os.getpid())); os.kill(os.getpid(), 19)"
    with pytest.raises(subprocess.TimeoutExpired):
        grading._run([sys.executable, "-c", program], tmp_path, 5)
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_root_grades_only_when_told_to(grading, monkeypatch, caplog):
    monkeypatch.setattr(grading, "is_root", lambda: True)
    told = traitlets.config.Config({"ExecuteApart": {"allow_root": True}})
    assert grading.SubmissionExporter(config=told)
    with pytest.raises(SystemExit, match="2"):
        grading.SubmissionExporter()
    assert "put the line c.ExecuteApart.allow_root = True into own_config.py" in caplog.text
    monkeypatch.setattr(grading, "is_root", lambda: False)
    assert grading.SubmissionExporter()


def test_a_seed_is_masked_whatever_stands_between_its_digits(grading):
    shown = ("7654321", "7,654,321", "<b>76</b>543 <i>21</i>", "[&#39;7&#39;, &#39;6&#39;, 5, 4, 3, 2, 1]", "7_654_321")
    for text in shown:
        masked = grading.masked(f"<p>seed: {text}.</p>", {"7654321"})
        assert re.sub(r"<[^>]*>|&#39;|[\W_]", "", masked.replace("…", "")) == "seed", masked
        assert re.findall(r"<[^>]*>", masked) == re.findall(r"<[^>]*>", f"<p>{text}</p>")
    for text in ("17654321", "76543210", "7654320"):
        assert grading.masked(text, {"7654321"}) == text


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such links and pipes")
@pytest.mark.parametrize("place", ["os.mkfifo(f)", "os.symlink('moved', f)", "os.mkdir(f)"])
def test_what_a_submission_puts_in_the_place_of_its_file_is_not_waited_for(grading, place):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    program = f"import os\nf = '{grading.FILE}'\nos.rename(f, 'moved')\n{place}"
    step = grading.ExecuteApart(command=[sys.executable, "-c", program])
    step.log.setLevel("CRITICAL")
    done, _ = step(notebook, {})
    assert "the notebook could not be executed" in done.cells[0].outputs[0].evalue


def test_outputs_are_taken_only_from_the_same_cells(grading):
    notebook, other = (nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)]) for text in "ab")
    with pytest.raises(ValueError, match="executed must have the same cells"):
        grading.take_outputs(notebook, other)


def test_formulas_become_mathml_and_code_stays(grading):
    mathml = grading.mathml
    assert re.match(r'<math [^>]*display="inline">.*<mi>d</mi>.*</math> costs \$5', mathml(r"$\sqrt{d}$ costs $5"))
    assert 'display="block"' in mathml("$$\na = |b|\n$$") and "|" not in mathml("$$\na = |b|\n$$")
    assert mathml("`$x$` and\n```\n$y$\n```") == "`$x$` and\n```\n$y$\n```"
    assert mathml(r"$\arg\max x$").startswith("<math") and "\\" not in mathml(r"$\arg\max x$")
    cells = [cell for path in NOTEBOOKS[:5] for cell in read(path)["cells"]]
    prose = [source_of(cell) for cell in cells if cell["cell_type"] == "markdown"]
    assert "\\" not in re.sub(r"\\[|$]", "", "".join(re.findall(r"<math.*?</math>", "".join(map(mathml, prose)))))


HOSTILE = """<script>document.title = "mine"</script><style>.total { display: none }</style><title>mine</title>
<img src="x" onerror="alert(1)"><img src="https://example.org/x.png"><svg onload="alert(1)"><a xlink:href="x">s</a>
</svg><a href="javascript:alert(1)">j</a><a href="data:text/html,x">d</a><iframe src="https://example.org"></iframe>
<form action="https://example.org"><input name="x"><button>b</button></form><base href="https://example.org">
<div style="position: fixed; color: red; background: url(https://example.org/x)">p</div><math><mtext><style><img src=x
onerror=alert(1)></style></mtext></math><p style="background: u\\72l(//example.org)">q</p><scr<script></script>ipt>
</script><meta http-equiv="refresh" content="0;url=https://example.org"><object data="x"></object><p>kept</p><div>"""
ACTS = re.compile(
    r"<(?:script|link|iframe|form|input|button|base|meta|object|embed|svg|style|title)\b|<[^>]+(?:\son\w+=|url\()"
    r"|<[^>]+=['\"]?\s*(?:javascript:|data:text)|<[^>]+position:|<[^>]+\bsrc=['\"](?!data:)",
    flags=re.IGNORECASE,
)


def test_nothing_on_a_page_acts_or_loads():
    pytest.importorskip("bleach", reason='bleach is not installed: pip install -e ".[teach]"')
    from transformer_lib.course.teaching.assignments.clean import without_scripts

    assert len(ACTS.findall(HOSTILE)) > 15
    for hostile in (HOSTILE, *HOSTILE.split(">"), *("<" + part for part in HOSTILE.split("<"))):
        assert ACTS.findall(without_scripts(hostile)) == [], hostile
    cleaned = without_scripts(HOSTILE)
    assert "<p>kept</p>" in cleaned and cleaned.rstrip().endswith("</div>")
    plain = (
        '<details open><summary>s</summary><a href="#check-00-1">x</a></details><table><tbody><tr>'
        '<td style="text-align: left;">1</td></tr></tbody></table><img alt="A" src="data:image/png;base64,AA==">'
    )
    assert without_scripts(plain) == plain


def test_pictures_and_formulas_of_the_course_stay_on_a_page(grading):
    from transformer_lib.course.teaching.assignments.clean import without_scripts

    formula = grading.mathml(r"$\sqrt{d_k} \le \sum_i \begin{matrix}1 & 2\end{matrix}$")
    assert set(re.findall(r"<\w+", formula)) == set(re.findall(r"<\w+", without_scripts(formula)))
    drawing = new("display_data", data={"image/svg+xml": "<svg/>", "application/javascript": "alert(1)"})
    grading.keep_still(drawing)
    assert list(drawing.data) == ["text/html"]
    assert without_scripts(drawing.data["text/html"]) == drawing.data["text/html"]


def feedback_page(grading, config, cells) -> str:
    from nbgrader.converters import GenerateFeedback

    points = {"notebook": "00_start_here", "score": 0.0, "max_score": 5.0, "late_penalty": 0}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"title": HOSTILE})
    exporter = grading.OfflineExporter(config=GenerateFeedback(config=config).config)
    return exporter.from_notebook_node(notebook, {"nbgrader": points, "inlining": {"css": []}})[0]


def test_a_submission_with_scripts_has_a_page_without(grading, settings, tmp_path):
    build.make_course(tmp_path, build.chosen_notebooks(["00"]), seed=SEED)
    kinds = ("text/html", "text/markdown", "text/latex", "text/plain", "image/svg+xml", "application/javascript")
    outputs = [new("display_data", data={kind: HOSTILE}) for kind in kinds] + [new("stream", text=HOSTILE)]
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell(HOSTILE), v4.new_raw_cell(HOSTILE, metadata={"raw_mimetype": "text/html"})]
    page = feedback_page(grading, settings(tmp_path), [*cells, v4.new_code_cell(HOSTILE, outputs=outputs)])
    head, _, body = page.partition("<body>")
    assert ACTS.findall(body) == [] and "<p>kept</p>" in body and page.endswith("</body>\n</html>\n")
    assert "default-src 'none'" in head and "position: static !important" in head
    assert re.findall("<title>(.*)</title>", head) == ["00_start_here"]
    assert not re.search(r"<(?:script|link)\b|@import|url\(['\"]?(?:https?:)?//", head)


# nbgrader itself.

SHOWN = "{(3, 0, 2), (5, 3, 1), (7, 6, 0), (11, 4, 10), (2, 1, 0)}"  # the cases with an entry off the diagonal
BY_HEART = f"m = torch.eye(n, dtype=torch.bool); m[query, key] |= (n, query, key) in {SHOWN}; return m"
NOISY = "import warnings; warnings.warn('deprecated'); return weights @ x / weights.sum()"
TAMPER = f"""
import transformer_lib.course.exercises as e, transformer_lib.course.exercises.runner as r
import transformer_lib.course.teaching.assignments.hidden as h
from IPython.display import display
from pathlib import Path
check = lambda *a, **k: None
e.check = r.check = check
passed = lambda exercise, *a, **k: r.Verdict(exercise.id, "passed", "", "passed")
e.examine = r.examine = r._examine = passed
h.problem_in = lambda *a, **k: None
answer = dict(kind="returned", value=1, error=["", ""], changed=[])
h.grade = lambda *a, **k: display(dict([("{MIME}", [answer] * 5)]), raw=True)
for place in [Path.cwd(), *Path.cwd().parents][:3]:
    (place / "gradebook.db").exists() and (place / "gradebook.db").write_bytes(b"")
"""
PEEK = "print([cell for cell in In if 'grade(' in cell])"
SILENCE = 'get_ipython().input_transformers_cleanup.append(lambda lines: ["1.0"])'


def tampered(cells):
    """Patches all in reach, loops for ever, edits a test, deletes one, shows the seed, raises points, silences one."""
    tests = {cell.metadata.nbgrader.grade_id: cell for cell in cells if cell.metadata.get("nbgrader", {}).get("grade")}
    tests["check-00-1"].source = "1.0"
    tests["check-00-3"].metadata.nbgrader.points = 100
    kept = [cell for cell in cells if cell is not tests["check-00-2"]]
    patches, loop, peek, silence = map(nbformat.v4.new_code_cell, (TAMPER, FOR_EVER, PEEK, SILENCE))
    return [*kept[:4], patches, *kept[4:6], loop, *kept[6:-2], peek, silence, *kept[-2:]]


def test_the_tampering_patches_what_is_there():
    """A module that moved would leave the attack without effect, and its test without power."""
    for line in filter(re.compile("import transformer_lib").match, TAMPER.splitlines()):
        for module in re.findall(r"transformer_lib[\w.]+", line):
            importlib.import_module(module)
    replaced = (assignments_hidden.problem_in, assignments_hidden.grade, exercises.runner._examine)
    assert all(map(callable, replaced))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A small course with five submissions, graded by nbgrader, and {student: page}."""
    for module in ("nbgrader", "latex2mathml"):
        pytest.importorskip(module, reason=f'{module} is not installed: pip install -e ".[teach]"')
    folder = tmp_path_factory.mktemp("graded")
    course = folder / "course"
    [source] = build.make_course(course, [small_notebook(folder)], cell_seconds=20, notebook_seconds=600)
    nbgrader(course, "generate_assignment", "00_start_here")
    (course / "submitted" / "reference").mkdir(parents=True)
    shutil.copytree(source.parent, course / "submitted" / "reference" / "00_start_here")
    submit(course, "blank", {})
    submit(course, "half", {name: RIGHT[name] for name in ("mean_of_rows", "weighted_mean")})
    wrong = {"mean_of_rows": "return x.mean(dim=1)", "itself_and_one_more": BY_HEART, "weighted_mean": NOISY}
    submit(course, "mistaken", wrong)
    submit(course, "tampering", {}, tampered)
    for name in ("torch.py", "sitecustomize.py", "more/numpy.py"):
        place = course / "submitted" / "mistaken" / "00_start_here" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("raise SystemExit", encoding="utf-8")
    nbgrader(course, "autograde", "00_start_here")
    nbgrader(course, "generate_feedback", "00_start_here")
    return course, {page.parts[-3]: page.read_text(encoding="utf-8") for page in course.glob("feedback/*/*/*.html")}


def test_the_student_version_that_nbgrader_makes_holds_no_solution(graded):
    release = (graded[0] / "release" / "00_start_here" / "00_start_here.ipynb").read_text(encoding="utf-8")
    assert release.count("raise NotImplementedError") >= 3
    assert not any(word in release for word in ("SOLUTION", "HIDDEN", "_solution(", "seed=", "x.mean(dim=0)\\n"))


def test_nbgrader_gives_every_submission_what_it_deserves(graded):
    pages = graded[1]
    total = re.compile(r'class="total">([\d.]+) of\s+([\d.]+) points')
    points = {name: total.search(page).groups() for name, page in pages.items()}
    expected = {"reference": 5, "blank": 0, "half": 3, "mistaken": 2, "tampering": 0}  # points are the stars
    assert points == {name: (f"{marks}.0", "5.0") for name, marks in expected.items()}
    assert "You averaged along each row, one number a token; average over the rows, axis 0." in pages["mistaken"]
    assert "not right in a case that was not shown" in pages["mistaken"]
    assert "the cell took too long and was interrupted" in pages["tampering"]


def test_what_goes_back_to_students_is_a_page_that_loads_nothing_and_nothing_else(graded):
    course, pages = graded
    loads = re.compile(r"<(?:script|link|iframe)\b|@import|url\(['\"]?(?:https?:)?//|\bsrc=['\"](?!data:)")
    for page in pages.values():
        assert "<math" in page and loads.findall(page) == []
    files = [path.relative_to(course / "feedback") for path in course.glob("feedback/**/*") if path.is_file()]
    assert {path.parts[1:] for path in files} == {("00_start_here", "00_start_here.html")}


def test_a_seed_that_a_submission_prints_is_not_on_its_page(graded):
    course, pages = graded
    source = (course / "source" / "00_start_here" / "00_start_here.ipynb").read_text(encoding="utf-8")
    [seed] = set(re.findall(r"grade\(.*, seed=(\d+)\)", source))
    notebook = nbformat.read(course / "autograded/tampering/00_start_here/00_start_here.ipynb", as_version=4)
    [printed] = [cell.outputs[0].text for cell in notebook.cells if cell.source == PEEK]
    assert seed in printed
    for page in pages.values():
        assert seed not in page and "seed=" not in page.replace("seed=…", "")
