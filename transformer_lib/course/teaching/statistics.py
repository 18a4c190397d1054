"""How a class did: of each exercise, how many got full marks and how many none, and what was wrong most often.

    python -m transformer_lib.course.teaching.statistics build/course

Reads the gradebook and the graded notebooks of a course, names nobody, and changes nothing but grades/statistics.csv.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._streams import run_command
from .diagnoses import diagnosis_in
from .gradebook import GRADED, Course, Task, read_course
from .grades import parser_of, write_csv
from .notebook_files import read

LONGEST = 200  # characters of a diagnosis
HEAD = ("assignment", "exercise", "graded", "full", "some", "none", "diagnosis", "count")


@dataclass(frozen=True)
class Summary:
    """What became of one exercise."""

    task: Task
    points: tuple[float, ...]
    """Of each submission that is graded."""
    diagnoses: tuple[tuple[str, int], ...]
    """What was said to those whose answer is not right, and how often, the most frequent first."""

    @property
    def exercise(self) -> str:
        """The id, such as "01.2"; for an assignment of one's own the names of the assignment and the cell."""
        return self.task.title.removeprefix("Exercise ")

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many are graded, and of them, how many got all points, some, and none."""
        full = sum(each >= self.task.maximum for each in self.points)
        none = sum(each <= 0 < self.task.maximum for each in self.points)
        return len(self.points), full, len(self.points) - full - none, none


def summaries(folder: Path) -> list[Summary]:
    """Return what became of each exercise of a course.

    Raises:
        FileNotFoundError: if there is no gradebook.
        ValueError: if the file is no gradebook, or no assignment in it gives points.
    """
    course = read_course(folder)
    said = _said(folder, course)
    return [
        Summary(
            task,
            tuple(points for (_, of), points in course.points.items() if of == task),
            tuple(Counter(said.get((task.assignment, task.cell), [])).most_common()),
        )
        for task in course.tasks
    ]


def _said(folder: Path, course: Course) -> dict[tuple[str, str], list[str]]:
    """Return {(assignment, cell): what each graded notebook says there}; what was right says nothing."""
    found: dict[tuple[str, str], list[str]] = {}
    for (student, assignment), state in sorted(course.states.items()):
        for path in sorted((folder / "autograded" / student / assignment).glob("*.ipynb")) if state == GRADED else ():
            for cell in read(path)["cells"]:
                marks = cell["metadata"].get("nbgrader", {})
                text = diagnosis(cell.get("outputs", [])) if marks.get("grade") else ""
                if text:
                    found.setdefault((assignment, marks["grade_id"]), []).append(text)
    return found


def diagnosis(outputs: Sequence[dict[str, Any]]) -> str:
    """Return what a graded test says of an answer, in one line; "" for a right one."""
    return _line(diagnosis_in(outputs))


def _line(text: str) -> str:
    """Return the text without what a terminal or a spreadsheet would act upon, cut where it is too long."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text).strip().lstrip("=+-@ ")
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]} …"


def table(found: Sequence[Summary], most: int = 3) -> str:
    """Return the summaries as text, with the `most` frequent diagnoses of each exercise."""
    lines = []
    for name in dict.fromkeys(each.task.assignment for each in found):
        lines.append(f"{name:32} graded  full  some  none")
        for each in (each for each in found if each.task.assignment == name):
            graded, full, some, none = each.counts
            lines.append(f"  {each.exercise:30} {graded:6} {full:5} {some:5} {none:5}")
            lines += [f"    {count:4} × {text}" for text, count in each.diagnoses[:most]]
    return "\n".join(lines)


def rows(found: Sequence[Summary]) -> Iterator[list[str]]:
    """Yield a row for each exercise and diagnosis; an exercise without any has one row."""
    yield [*HEAD]
    for each in found:
        head = [each.task.assignment, each.exercise, *map(str, each.counts)]
        for text, count in each.diagnoses or (("", 0),):
            yield [*head, text, str(count)]


def write(folder: Path) -> tuple[list[Summary], Path]:
    """Write statistics.csv into the folder `grades` of a course; returns what it says, and the file.

    Raises:
        FileNotFoundError: if there is no gradebook.
        ValueError: if the file is no gradebook, or no assignment in it gives points.
    """
    found = summaries(folder)
    return found, write_csv(folder, "statistics.csv", rows(found))


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, write the file, and print the table."""
    parser = parser_of("statistics", __doc__)
    parser.add_argument("--most", type=int, default=3, help="how many diagnoses to print for an exercise (default: 3)")
    given = parser.parse_args(arguments)
    try:
        found, path = write(given.course)
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    print(table(found, given.most))
    print(path)


if __name__ == "__main__":
    run_command(main)
