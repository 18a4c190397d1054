"""How long a notebook is: words, lines of code and minutes, of the whole spine or of one section.

Cells tagged `optional` are not of the spine. Hints and formulas are not read as words; exercises, their checks and
solutions, and quizzes are not read as code: an exercise counts with the minutes that its heading states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from notebook_kernel import tags

WORDS_A_MINUTE = 150
LINES_A_MINUTE = 12
NO_LESSON = {"exercise", "solution", "check", "quiz"}
EXERCISE = re.compile(r"^### Exercise (\w+\.\d+) .*\((\d+) minutes", re.MULTILINE)
HEADING = re.compile(r"^## +(?:\d+\. )?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Measure:
    """Words of prose, lines of each cell of code, and {exercise: minutes}."""

    words: int
    code: tuple[int, ...]
    exercises: dict[str, int]

    @property
    def lines(self) -> int:
        return sum(self.code)

    def minutes(self) -> float:
        """Reading time with exercises."""
        return self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE + sum(self.exercises.values())


def source(cell: dict) -> str:
    return "".join(cell["source"])


def spine(cells: Iterable[dict]) -> list[dict]:
    return [cell for cell in cells if "optional" not in tags(cell)]


def measure(cells: Iterable[dict]) -> Measure:
    cells = list(cells)
    prose = "\n\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")
    read = re.sub(r"<details>.*?</details>(?!\s*</details>)", " ", prose, flags=re.DOTALL)
    read = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", " x ", read, flags=re.DOTALL)
    lessons = [cell for cell in cells if cell["cell_type"] == "code" and not NO_LESSON & set(tags(cell))]
    code = tuple(sum(bool(line.strip()) for line in source(cell).splitlines()) for cell in lessons)
    return Measure(len(re.findall(r"\w+", read)), code, {name: int(n) for name, n in EXERCISE.findall(prose)})


def sections(cells: Iterable[dict]) -> dict[str, list[dict]]:
    """The cells of each section by its heading without the number; a cell with several headings is taken apart."""
    found: dict[str, list[dict]] = {}
    heading = ""
    for cell in cells:
        for name, part in _parts(cell):
            heading = name or heading
            found.setdefault(heading, []).append(part)
    return found


def _parts(cell: dict) -> Iterator[tuple[str, dict]]:
    """A cell as pieces (heading or nothing, cell), cut before each heading of level 2."""
    if cell["cell_type"] != "markdown":
        yield "", cell
        return
    for text in re.split(r"^(?=## )", source(cell), flags=re.MULTILINE):
        heading = HEADING.match(text)
        if text.strip():
            yield heading[1] if heading else "", {**cell, "source": text}
