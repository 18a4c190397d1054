"""Marks of each exercise from a course's gradebook, as files that Canvas and Moodle import.

    python -m transformer_lib.course.teaching.grades build/course --roster export-of-the-platform.csv

Tells apart what was not handed in, what could not be graded, and what got no points. The gradebook is only read.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..._streams import run_command
from .gradebook import STATES, Course, read_course
from .groups import by_member, read_groups

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("First name", "Last name", "ID number", "Email address", "Username")
NAMES = ("SIS Login ID", "Username", "SIS User ID", "ID number", "Email address", "ID")
"""Columns of a roster that may hold the names of the folders in submitted/."""


def read_roster(file: Path, students: Iterable[str]) -> tuple[dict[str, dict[str, str]], str]:
    """Return the people in a CSV file that Canvas or Moodle exported, and the column with their names in submitted/.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if no column holds the name of a student who has handed something in.
    """
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.DictReader(opened))
    known = set(students)
    hits = {name: sum(row.get(name) in known for row in rows) for name in NAMES}
    column = max(hits, key=lambda name: hits[name])
    if not hits[column]:
        raise ValueError(f"roster must name students as submitted/ does, in a column of {', '.join(NAMES)}, got {file}")
    return {row[column]: row for row in rows if row.get(column)}, column


def canvas(course: Course, people: dict[str, dict[str, str]], *, zero_missing: bool = False) -> Iterator[list[str]]:
    """Yield the rows of a gradebook that Canvas imports."""
    yield [*CANVAS, *(task.title for task in course.tasks)]
    yield ["    Points Possible", "", "", "", "", *(f"{task.maximum:g}" for task in course.tasks)]
    for student, (first, last, _) in course.students.items():
        own = {"Student": ", ".join(filter(None, (last, first))) or student, "SIS Login ID": student}
        found = people.get(student, own)
        head = [found.get(name) or "" for name in CANVAS]
        yield [*head, *(course.mark(student, task, zero_missing=zero_missing) for task in course.tasks)]


def moodle(course: Course, people: dict[str, dict[str, str]], *, zero_missing: bool = False) -> Iterator[list[str]]:
    """Yield the rows of a grade file that Moodle imports."""
    yield [*MOODLE, *(task.title for task in course.tasks)]
    for student, (first, last, address) in course.students.items():
        own = {"First name": first, "Last name": last, "Email address": address, "Username": student}
        found = people.get(student, own)
        head = [found.get(name) or "" for name in MOODLE]
        yield [*head, *(course.mark(student, task, zero_missing=zero_missing) for task in course.tasks)]


def listed(course: Course) -> Iterator[list[str]]:
    """Yield a row for each student and exercise, which says in words what became of it."""
    yield ["student", "assignment", "exercise", "state", "points", "maximum"]
    for student in course.students:
        for task in course.tasks:
            state, mark = course.state(student, task.assignment), course.mark(student, task)
            yield [student, task.assignment, task.title.removeprefix("Exercise "), state, mark, f"{task.maximum:g}"]


def overview(course: Course) -> str:
    """Return a table: of each assignment, how many are graded, and who has to be looked at."""
    lines = []
    for name in dict.fromkeys(task.assignment for task in course.tasks):
        of_state = {state: [each for each in course.students if course.state(each, name) == state] for state in STATES}
        lines.append(f"{name}: " + ", ".join(f"{len(who)} {state}" for state, who in of_state.items()))
        lines += [f"  {state}: {', '.join(of_state[state])}" for state in STATES[1:] if of_state[state]]
    return "\n".join(lines)


def write(
    folder: Path, *, roster: Path | None = None, groups: Path | None = None, zero_missing: bool = False
) -> tuple[Course, list[Path]]:
    """Write canvas.csv, moodle.csv and exercises.csv into the folder `grades` of a course.

    Args:
        folder: of the course.
        roster: the export of a platform, with everybody in the class; by default those whom the gradebook knows.
        groups: a CSV file with the columns group and member; what a group got, its members get.
        zero_missing: write 0 for what was not handed in, instead of nothing.

    Raises:
        FileNotFoundError: if there is no gradebook, or no roster, or no file of groups.
        ValueError: if one of them is of another kind, or a member of a group has handed an assignment in twice.
    """
    course = read_course(folder)
    course = by_member(course, read_groups(groups)) if groups else course
    people = read_roster(roster, course.students)[0] if roster else {}
    course.students = {student: ("", "", "") for student in people} | course.students
    tables = {
        "canvas.csv": canvas(course, people, zero_missing=zero_missing),
        "moodle.csv": moodle(course, people, zero_missing=zero_missing),
        "exercises.csv": listed(course),
    }
    return course, [write_csv(folder, name, rows) for name, rows in tables.items()]


def write_csv(folder: Path, name: str, rows: Iterable[Sequence[object]]) -> Path:
    """Write rows as a file of this name into the folder `grades` of a course, and return it."""
    path = folder / "grades" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(rows)
    return path


def parser_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return the command line of a module that reads the gradebook of a course: its folder, so far."""
    parser = argparse.ArgumentParser(
        prog=f"python -m transformer_lib.course.teaching.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("course", type=Path, help="the course folder, such as build/course")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, write the files, and say what is graded."""
    parser = parser_of("grades", __doc__)
    parser.add_argument("--roster", type=Path, help="CSV that the platform exported: everybody in the class")
    parser.add_argument("--groups", type=Path, help="CSV with the columns group and member: who handed in together")
    parser.add_argument("--zero-missing", action="store_true", help="0 for what was not handed in, instead of nothing")
    given = parser.parse_args(arguments)
    try:
        course, paths = write(given.course, roster=given.roster, groups=given.groups, zero_missing=given.zero_missing)
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    print(overview(course))
    print("\n".join(map(str, paths)))


if __name__ == "__main__":
    run_command(main)
