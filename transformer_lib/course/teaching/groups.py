"""Groups that hand in one file: what a group's folder in submitted/ got, each of its members gets.

nbgrader knows no groups: it grades the folder of a group as it grades that of a student.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .gradebook import Course

COLUMNS = ("group", "member")


def read_groups(file: Path) -> dict[str, list[str]]:
    """Return {group: its members} of a CSV file with the columns group and member, a row for each member.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a column is missing, or a row has no group or no member, or a member stands twice in a group.
    """
    groups: dict[str, list[str]] = {}
    with file.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.DictReader(opened)
        if not set(COLUMNS) <= set(reader.fieldnames or ()):
            raise ValueError(f"groups must have the columns group and member, got {reader.fieldnames} in {file}")
        for row in reader:
            group, member = ((row[name] or "").strip() for name in COLUMNS)
            if not group or not member or member in groups.get(group, ()):
                raise ValueError(
                    f"groups must name a group and another member of it in line {reader.line_num} of {file}"
                )
            groups.setdefault(group, []).append(member)
    return groups


def by_member(course: Course, groups: Mapping[str, Sequence[str]]) -> Course:
    """Return the course with members in the place of groups.

    Raises:
        ValueError: if a member has handed an assignment in twice, alone or in two groups.
    """
    states = {pair: state for pair, state in course.states.items() if pair[0] not in groups}
    points = {pair: mark for pair, mark in course.points.items() if pair[0] not in groups}
    source = {(student, assignment): student for student, assignment in states}
    for (group, assignment), state in course.states.items():
        for member in groups.get(group, ()):
            other = source.setdefault((member, assignment), group)
            if other != group:
                raise ValueError(
                    f"groups: {member} must hand {assignment} in once, got it from {other} and from {group}"
                )
            states[member, assignment] = state
            own = {
                task: mark
                for (who, task), mark in course.points.items()
                if (who, task.assignment) == (group, assignment)
            }
            points |= {(member, task): mark for task, mark in own.items()}
    names = {name for members in groups.values() for name in members} | set(course.students) - set(groups)
    students = {name: course.students.get(name, ("", "", "")) for name in sorted(names)}
    return replace(course, students=students, states=states, points=points)
