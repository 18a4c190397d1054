"""How a class did, from a gradebook and the graded notebooks of a made-up course."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest

from transformer_lib.course import exercises
from transformer_lib.course.teaching import statistics

pytestmark = pytest.mark.fast

NAME = "00_start_here"
AXIS = "You averaged along each row, one number a token; average over the rows, axis 0."
TABLES = """
CREATE TABLE student (id TEXT, first_name TEXT, last_name TEXT, email TEXT);
CREATE TABLE assignment (id TEXT, name TEXT);
CREATE TABLE notebook (id TEXT, assignment_id TEXT);
CREATE TABLE base_cell (id TEXT, name TEXT, notebook_id TEXT);
CREATE TABLE grade_cells (id TEXT, max_score REAL);
CREATE TABLE submitted_assignment (id TEXT, assignment_id TEXT);
CREATE TABLE submitted_notebook (id TEXT, assignment_id TEXT);
CREATE TABLE grade
  (student_id TEXT, cell_id TEXT, notebook_id TEXT, manual_score REAL, auto_score REAL, extra_credit REAL);
INSERT INTO assignment VALUES ('a', '00_start_here');
INSERT INTO notebook VALUES ('n', 'a');
"""  # the columns of nbgrader's gradebook that are read


def error(ename, evalue, *traceback):
    return {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": list(traceback)}


def refused(exercise_id, function):
    """What a graded test shows when the check refuses a function."""
    text = exercises.examine(exercises.get(exercise_id), function).text
    printed = {"output_type": "stream", "name": "stdout", "text": text}
    return [printed, error("CheckFailed", text, "No points: see above.")]


RIGHT = [{"output_type": "stream", "name": "stdout", "text": "✓ 00.1 hidden cases: right.\n"}]
HIDDEN = "✗ 00.2 A weighted mean: not right in a case that was not shown."
STOPPED = [error("NameError", "name 'f' is not defined", "grade('00.2', f, seed=…)", "NameError")]
CLASS = {  # {student: (points and outputs of 00.1, of 00.2)}
    "ann": ((1, RIGHT), (2, RIGHT)),
    "bob": ((0, refused("00.1", lambda x: x.mean(dim=1))), (0, STOPPED)),
    "cyn": (
        (0, refused("00.1", lambda x: x.mean(1))),
        (1, [error("CheckFailed", HIDDEN, f"{HIDDEN}\n  The sign.\n  seen")]),
    ),
    "dan": (
        (0, refused("00.1", lambda x: exercises.stub)),
        (0, [error("CheckFailed", "○ 00.2 not attempted yet", "")]),
    ),
}


@pytest.fixture
def course(tmp_path):
    """Four graded submissions, and one whose notebook is left from an earlier version and is not graded now."""
    database = sqlite3.connect(tmp_path / "gradebook.db")
    database.executescript(TABLES)
    for number, points in ((1, 1), (2, 2)):
        database.execute("INSERT INTO base_cell VALUES (?, ?, 'n')", (f"c{number}", f"check-00-{number}"))
        database.execute("INSERT INTO grade_cells VALUES (?, ?)", (f"c{number}", points))
    for student, marks in {**CLASS, "eve": CLASS["bob"]}.items():
        database.execute("INSERT INTO student VALUES (?, '', '', '')", (student,))
        if student != "eve":
            database.execute("INSERT INTO submitted_assignment VALUES (?, 'a')", (student,))
            database.execute("INSERT INTO submitted_notebook VALUES (?, ?)", (student, student))
            for number, (points, _) in enumerate(marks, 1):
                row = (student, f"c{number}", student, points)
                database.execute("INSERT INTO grade VALUES (?, ?, ?, NULL, ?, NULL)", row)
            handed_in(tmp_path, student)
        cells = [
            {"metadata": {"nbgrader": {"grade": True, "grade_id": f"check-00-{n}"}}, "source": "", "outputs": outputs}
            for n, (_, outputs) in enumerate(marks, 1)
        ]
        place = tmp_path / "autograded" / student / NAME
        place.mkdir(parents=True)
        text = json.dumps({"cells": [{"metadata": {}, "source": "", "cell_type": "markdown"}, *cells]})
        (place / f"{NAME}.ipynb").write_text(text, encoding="utf-8")
    database.commit()
    database.close()
    return tmp_path


def handed_in(course: Path, student: str) -> None:
    place = course / "submitted" / student / NAME
    place.mkdir(parents=True)
    (place / f"{NAME}.ipynb").write_text("{}", encoding="utf-8")


def test_the_table_counts_marks_and_diagnoses_and_names_nobody(course, capsys):
    before = (course / "gradebook.db").read_bytes()
    statistics.main([str(course), "--most", "1"])
    out = capsys.readouterr().out
    head, first, most, second, also, path = out.splitlines()
    assert head.split() == [NAME, "graded", "full", "some", "none"]
    assert first.split() == ["00.1", "4", "1", "0", "3"] and second.split() == ["00.2", "4", "1", "1", "2"]
    assert most.strip() == f"2 × {AXIS}" and also.strip().startswith("1 × ")
    assert path == str(course / "grades" / "statistics.csv")
    text = out.replace(path, "") + (course / "grades" / "statistics.csv").read_text(encoding="utf-8")
    assert not any(student in text.split() for student in CLASS)
    assert (course / "gradebook.db").read_bytes() == before


def test_the_file_has_a_row_for_each_diagnosis(course):
    statistics.write(course)
    with (course / "grades" / "statistics.csv").open(encoding="utf-8", newline="") as opened:
        head, *rows = csv.reader(opened)
    assert head == ["assignment", "exercise", "graded", "full", "some", "none", "diagnosis", "count"]
    assert rows[0] == [NAME, "00.1", "4", "1", "0", "3", AXIS, "2"]
    assert len(rows) == 5 and sum(int(row[-1]) for row in rows if row[1] == "00.2") == 3
    said = {row[6] for row in rows if row[1] == "00.2"}
    assert said == {
        "stopped with NameError: name 'f' is not defined",
        "right in the cases that are shown, not in others: The sign.",
        "not attempted",
    }


def test_an_exercise_that_all_have_right_has_one_row():
    found = statistics.Summary(statistics.Task(NAME, "check-00-1", 1), (1, 1), ())
    assert [*statistics.rows([found])][1:] == [[NAME, "00.1", "2", "2", "0", "0", "", "0"]]


def test_what_a_submission_says_of_itself_is_shown_as_plain_text():
    long = statistics.diagnosis([error("CheckFailed", "", "✗ 00.1 x: not right yet.\n  =1+1\x1b[31m" + "A" * 999)])
    assert long.startswith("1+1 [31mAAA") and len(long) == statistics.LONGEST + 2
    assert statistics.diagnosis([error("=SUM(1)", "two\nlines")]) == "stopped with =SUM(1): two"
    assert statistics.diagnosis([error("NotRun", "the kernel had died")]) == "stopped with NotRun: the kernel had died"


def test_what_is_no_course_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit):
        statistics.main([str(tmp_path)])
    assert "folder must be a course that was graded, with a gradebook.db" in capsys.readouterr().err
