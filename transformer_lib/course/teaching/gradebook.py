"""What the gradebook and the folders of a course say: tasks, students, states and points. Nothing is changed."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

GRADED, NOT_GRADED, NOT_GRADABLE = "graded", "not graded yet", "not gradable"
NOT_HANDED_IN = "not handed in"
STATES = (GRADED, NOT_GRADED, NOT_GRADABLE, NOT_HANDED_IN)

TASKS = """
SELECT assignment.name, base_cell.name, grade_cells.max_score
FROM grade_cells JOIN base_cell USING (id) JOIN notebook ON notebook.id = base_cell.notebook_id
JOIN assignment ON assignment.id = notebook.assignment_id ORDER BY assignment.name, base_cell.rowid
"""
MARKS = """
SELECT student_id, assignment.name, base_cell.name,
  coalesce(grade.manual_score, grade.auto_score, 0) + coalesce(grade.extra_credit, 0)
FROM grade JOIN base_cell ON base_cell.id = grade.cell_id
JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
JOIN assignment ON assignment.id = submitted_assignment.assignment_id
"""


@dataclass(frozen=True)
class Task:
    """What gives points: an exercise in an assignment."""

    assignment: str
    cell: str
    maximum: float

    @property
    def title(self) -> str:
        """Its column: "Exercise 01.2", or for an assignment of one's own the names of the assignment and the cell."""
        found = re.fullmatch(r"check-(\w+)-(\w+)", self.cell)
        return f"Exercise {found[1]}.{found[2]}" if found else f"{self.assignment} {self.cell}"


@dataclass
class Course:
    """What gradebook and folders of a course say."""

    tasks: list[Task]
    students: dict[str, tuple[str, str, str]]
    """{student: first name, last name, address}"""
    states: dict[tuple[str, str], str]
    """{(student, assignment): one of STATES}; what is not in it was not handed in"""
    points: dict[tuple[str, Task], float] = field(default_factory=dict)
    """Only of what is graded."""

    def state(self, student: str, assignment: str) -> str:
        """Return what became of a student's assignment."""
        return self.states.get((student, assignment), NOT_HANDED_IN)

    def mark(self, student: str, task: Task, *, zero_missing: bool = False) -> str:
        """Return the points as a file has them: nothing where none were given; 0 for what is missing, if wanted."""
        if zero_missing and self.state(student, task.assignment) == NOT_HANDED_IN:
            return "0"
        points = self.points.get((student, task))
        return "" if points is None else f"{points:g}"


def read_course(folder: Path) -> Course:
    """Return what a course's gradebook and folders say; neither is changed.

    Raises:
        FileNotFoundError: if there is no gradebook.
        ValueError: if the file is no gradebook, or no assignment in it gives points.
    """
    gradebook = folder / "gradebook.db"
    if not gradebook.is_file():
        raise FileNotFoundError(f"folder must be a course that was graded, with a gradebook.db, got {folder}")
    try:
        with closing(sqlite3.connect(f"{gradebook.resolve().as_uri()}?mode=ro", uri=True)) as database:
            tasks = [Task(*row) for row in database.execute(TASKS)]
            marks = database.execute(MARKS).fetchall()
            people = database.execute("SELECT id, first_name, last_name, email FROM student").fetchall()
    except sqlite3.Error as error:
        raise ValueError(f"gradebook must be one of nbgrader's, got {gradebook} ({error})") from error
    if not tasks:
        raise ValueError(f"gradebook must have an assignment with points, got none in {gradebook}")
    states = _states(folder, {(student, name) for student, name, *_ in marks}, {task.assignment for task in tasks})
    students = {student: (first or "", last or "", address or "") for student, first, last, address in people}
    students |= {student: ("", "", "") for student, _ in states if student not in students}
    by_name = {(task.assignment, task.cell): task for task in tasks}
    points = {(row[0], by_name[row[1], row[2]]): row[3] for row in marks if states.get((row[0], row[1])) == GRADED}
    return Course(tasks, dict(sorted(students.items())), states, points)


def _states(folder: Path, tried: set[tuple[str, str]], assignments: set[str]) -> dict[tuple[str, str], str]:
    """Return {(student, assignment): state}; nbgrader removes from autograded/ what it could not grade."""
    states = {}
    for place in sorted((folder / "submitted").glob("*/*")):
        student, name = pair = (place.parent.name, place.name)
        if name in assignments and any(path.is_file() for path in place.rglob("*")):
            done = any((folder / "autograded" / student / name).glob("*.ipynb"))
            states[pair] = GRADED if done and pair in tried else NOT_GRADABLE if pair in tried else NOT_GRADED
    return states
