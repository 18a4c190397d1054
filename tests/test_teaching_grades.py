"""Marks for learning platforms, from a gradebook that nbgrader made and the folders of a course."""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from transformer_lib.course.teaching import gradebook, grades

NAME = "00_start_here"
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A course: ann graded, bob graded with zero, cyn not gradable, dan not graded yet, eve has handed in nothing."""
    api = pytest.importorskip("nbgrader.api", reason='nbgrader is not installed: pip install -e ".[teach]"')
    folder_of_course = tmp_path_factory.mktemp("course")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # alembic is there
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(action="ignore"),  # nbgrader's own, about its session
    ):
        patch.setenv("PATH", path)
        gradebook_of_course(api, folder_of_course)
    for folder, students in (("submitted", ("ann", "bob", "cyn", "dan")), ("autograded", ("ann", "bob"))):
        for student in students:
            place = folder_of_course / folder / student / NAME
            place.mkdir(parents=True)
            (place / f"{NAME}.ipynb").write_text("{}", encoding="utf-8")
    (folder_of_course / "submitted" / "eve" / NAME).mkdir(parents=True)  # empty
    return folder_of_course


@pytest.fixture
def course(made, tmp_path):
    """A copy, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "course"))


def gradebook_of_course(api, folder):
    with api.Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "transformer") as gradebook:
        gradebook.add_assignment(NAME)
        gradebook.add_notebook(NAME, NAME)
        for cell, points in (("check-00-1", 1), ("check-00-2", 2), ("essay", 4)):
            gradebook.add_grade_cell(cell, NAME, NAME, max_score=points, cell_type="code")
        gradebook.add_student("ann", first_name="Ann", last_name="Ång, the 2nd", email="ann@example.org")
        for student in ("bob", "cyn", "eve"):
            gradebook.add_student(student)
        for student in ("ann", "bob", "cyn"):
            gradebook.add_submission(NAME, student)
        for cell, automatic, by_hand, extra in (("check-00-1", 1, None, None), ("check-00-2", 2, 0.5, 1)):
            grade = gradebook.find_grade(cell, NAME, NAME, "ann")
            grade.auto_score, grade.manual_score, grade.extra_credit = automatic, by_hand, extra
        gradebook.find_grade("check-00-1", NAME, NAME, "bob").auto_score = 0
        gradebook.find_grade("check-00-1", NAME, NAME, "cyn").auto_score = 1  # of an earlier version
        gradebook.db.commit()
        gradebook.engine.dispose()


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as opened:
        return list(csv.reader(opened))


def test_every_state_is_told_apart(course, capsys):
    before = (course / "gradebook.db").read_bytes()
    grades.main([str(course)])
    out = capsys.readouterr().out
    assert f"{NAME}: 2 graded, 1 not graded yet, 1 not gradable, 1 not handed in" in out
    assert "  not graded yet: dan\n  not gradable: cyn\n  not handed in: eve\n" in out and "  graded:" not in out
    head, *rows = rows_of(course / "grades" / "exercises.csv")
    assert head == ["student", "assignment", "exercise", "state", "points", "maximum"]
    assert [row for row in rows if row[2] == "00.1"] == [
        ["ann", NAME, "00.1", "graded", "1", "1"],
        ["bob", NAME, "00.1", "graded", "0", "1"],
        ["cyn", NAME, "00.1", "not gradable", "", "1"],
        ["dan", NAME, "00.1", "not graded yet", "", "1"],
        ["eve", NAME, "00.1", "not handed in", "", "1"],
    ]
    assert (course / "gradebook.db").read_bytes() == before


def test_canvas_and_moodle_get_their_columns(course):
    grades.write(course)
    canvas, moodle = (rows_of(course / "grades" / f"{name}.csv") for name in ("canvas", "moodle"))
    titles = ["Exercise 00.1", "Exercise 00.2", f"{NAME} essay"]
    assert canvas[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles]
    assert canvas[1] == ["    Points Possible", "", "", "", "", "1", "2", "4"]
    assert canvas[2] == ["Ång, the 2nd, Ann", "", "", "ann", "", "1", "1.5", "0"]  # by hand, and one more
    assert canvas[-1] == ["eve", "", "", "eve", "", "", "", ""]
    assert moodle[0] == ["First name", "Last name", "ID number", "Email address", "Username", *titles]
    assert moodle[1] == ["Ann", "Ång, the 2nd", "", "ann@example.org", "ann", "1", "1.5", "0"]
    grades.write(course, zero_missing=True)
    canvas = {row[3]: row[5] for row in rows_of(course / "grades" / "canvas.csv")}
    assert (canvas["eve"], canvas["bob"], canvas["cyn"], canvas["dan"]) == ("0", "0", "", "")


PROGRAMS = {
    "nbgrader": "#!/bin/sh\necho log: $1\ntest $1 != autograde || exit {code}\n",
    "python": '#!/bin/sh\nexec "{python}" "$@"\n',
}


@pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="needs make, and programs that are scripts")
@pytest.mark.parametrize(("code", "ends_with_table"), [(0, True), (1, True), (2, False)], ids=["all", "some", "root"])
def test_make_grade_ends_with_the_table_unless_nothing_could_be_graded(course, tmp_path, code, ends_with_table):
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text.format(code=code, python=sys.executable), encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    programs = os.path.relpath(tmp_path, ROOT)
    command = ["make", "-o", ".venv/teach.stamp", "grade", f"COURSE={course}", f"BIN={programs}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == ends_with_table, done.stderr
    log, _, end = done.stdout.partition("log: autograde\n")[2].rpartition("log: export\n")
    assert ("log: generate_feedback" in log) == ends_with_table
    assert (f"{NAME}: 2 graded, 1 not graded yet, 1 not gradable, 1 not handed in\n" in end) == ends_with_table


ROSTERS = {
    "canvas": (
        "Student,ID,SIS User ID,SIS Login ID,Section,Old\n    Points Possible,,,,,9\n"
        '"Ång, Ann",11,s-1,ann,Monday,3\n"Fay, F",16,s-6,fay,Monday,\n'
    ),
    "moodle": (
        "\ufeffFirst name,Last name,ID number,Email address\nAnn,Ång,ann,a@example.org\nF,Fay,fay,f@example.org\n"
    ),
}


@pytest.mark.parametrize("kind", ROSTERS)
def test_a_roster_brings_what_the_platform_calls_everybody(course, kind):
    file = course / "roster.csv"
    file.write_text(ROSTERS[kind], encoding="utf-8")
    grades.main([str(course), "--roster", str(file)])
    rows = rows_of(course / "grades" / f"{kind}.csv")
    place, ann, fay = {
        "canvas": (3, ["Ång, Ann", "11", "s-1", "ann", "Monday"], ["Fay, F", "16", "s-6", "fay", "Monday"]),
        "moodle": (2, ["Ann", "Ång", "ann", "a@example.org", ""], ["F", "Fay", "fay", "f@example.org", ""]),
    }[kind]
    found = {row[place]: row for row in rows}
    assert found["ann"] == [*ann, "1", "1.5", "0"] and found["fay"] == [*fay, "", "", ""]
    states = {row[0]: row[3] for row in rows_of(course / "grades" / "exercises.csv")}
    assert states["fay"] == "not handed in" and set(states) >= {"ann", "bob", "cyn", "dan", "eve"}


def test_what_is_no_course_and_no_roster_is_refused(course, tmp_path, capsys):
    file = tmp_path / "roster.csv"
    file.write_text("Name\nAnn\n", encoding="utf-8")
    with pytest.raises(ValueError, match="roster must name students as submitted/ does, in a column of SIS Login ID"):
        grades.write(course, roster=file)
    assert not (course / "grades").exists()
    with pytest.raises(SystemExit):
        grades.main([str(tmp_path / "nowhere")])
    assert "folder must be a course that was graded, with a gradebook.db" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    database = tmp_path / "other" / "gradebook.db"
    database.write_text("no database, but a text that is longer than its head" * 9, encoding="utf-8")
    with pytest.raises(ValueError, match="gradebook must be one of nbgrader's"):
        gradebook.read_course(database.parent)


def test_a_gradebook_without_assignments_is_refused(course):
    database = sqlite3.connect(course / "gradebook.db")
    database.execute("DELETE FROM grade_cells")
    database.commit()
    database.close()
    with pytest.raises(ValueError, match="gradebook must have an assignment with points"):
        gradebook.read_course(course)
