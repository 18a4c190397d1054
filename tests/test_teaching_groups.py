"""Marks for each member of a group that handed in one file."""

from __future__ import annotations

import csv

import pytest

from transformer_lib.course.teaching import gradebook, grades
from transformer_lib.course.teaching.groups import by_member, read_groups

pytestmark = pytest.mark.fast

FIRST, SECOND = gradebook.Task("03_keys", "check-03-1", 2), gradebook.Task("04_scaled", "check-04-1", 1)
GROUPS = {"team-1": ["ann", "bob"], "team-2": ["cyn"]}


def a_course():
    """Team 1 and dan handed in 03, team 1 got its points; bob handed in 04 alone; team 2 handed in nothing."""
    students = {"team-1": ("", "", ""), "dan": ("", "", ""), "bob": ("Bob", "B", "b@example.org")}
    states = {("team-1", "03_keys"): gradebook.GRADED, ("dan", "03_keys"): gradebook.NOT_GRADABLE}
    states[("bob", "04_scaled")] = gradebook.GRADED
    return gradebook.Course([FIRST, SECOND], students, states, {("team-1", FIRST): 1.5, ("bob", SECOND): 1})


def test_members_get_what_their_group_got():
    course = by_member(a_course(), GROUPS)
    assert list(course.students) == ["ann", "bob", "cyn", "dan"] and course.students["bob"][0] == "Bob"
    marks = {student: [course.mark(student, task) for task in course.tasks] for student in course.students}
    assert marks == {"ann": ["1.5", ""], "bob": ["1.5", "1"], "cyn": ["", ""], "dan": ["", ""]}
    assert course.state("ann", "03_keys") == course.state("bob", "04_scaled") == gradebook.GRADED
    assert course.state("cyn", "03_keys") == course.state("ann", "04_scaled") == gradebook.NOT_HANDED_IN
    assert course.state("dan", "03_keys") == gradebook.NOT_GRADABLE


@pytest.mark.parametrize("second", ["bob", "team-2"])
def test_nobody_hands_in_twice(second):
    course = a_course()
    course.states[second, "03_keys"] = gradebook.GRADED
    with pytest.raises(ValueError, match=f"groups: bob must hand 03_keys in once, got it from .*{second}"):
        by_member(course, {"team-1": ["ann", "bob"], "team-2": ["cyn", "bob"]})


def test_the_command_writes_members_who_are_found_in_the_roster(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(grades, "read_course", lambda folder: a_course())
    groups, roster = tmp_path / "groups.csv", tmp_path / "roster.csv"
    groups.write_text("\ufeffgroup,member\nteam-1,ann\nteam-1, bob\nteam-2,cyn\n", encoding="utf-8")
    roster.write_text('Student,ID,SIS Login ID\n"A, Ann",11,ann\n"C, Cyn",13,cyn\n', encoding="utf-8")
    grades.main([str(tmp_path), "--roster", str(roster), "--groups", str(groups)])
    assert "03_keys: 2 graded, 0 not graded yet, 1 not gradable, 1 not handed in" in capsys.readouterr().out
    with (tmp_path / "grades" / "canvas.csv").open(encoding="utf-8", newline="") as opened:
        rows = {row[3]: row for row in csv.reader(opened)}
    assert rows["ann"] == ["A, Ann", "11", "", "ann", "", "1.5", ""] and "team-1" not in rows
    assert rows["bob"][5:] == ["1.5", "1"] and rows["cyn"][5:] == ["", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group,students\nteam-1,ann\n", "groups must have the columns group and member, got .'group', 'students'. in"),
        ("", "groups must have the columns group and member, got None in"),
        ("group,member\nteam-1,\n", "groups must name a group and another member of it in line 2 of"),
        ("group,member\nteam-1,ann\nteam-1,ann\n", "in line 3 of"),
        ("group,member\nteam-1\n", "in line 2 of"),
    ],
)
def test_a_file_that_names_no_groups_is_refused(tmp_path, text, message, capsys, monkeypatch):
    file = tmp_path / "groups.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_groups(file)
    monkeypatch.setattr(grades, "read_course", lambda folder: a_course())
    with pytest.raises(SystemExit):
        grades.main([str(tmp_path), "--groups", str(file)])
    assert "groups must" in capsys.readouterr().err and not (tmp_path / "grades").exists()
