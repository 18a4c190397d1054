"""How long a notebook is: words, lines of code and minutes, of the whole spine or of one section.

Cells tagged `optional` are not of the spine, and guards are nobody's to read. Hints and formulas are not read as words;
exercises, their checks and solutions, and quizzes are not read as code: an exercise counts with the minutes that its
heading states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from notebook_kernel import tags
from transformer_lib.course.cells import asks, is_telling

WORDS_A_MINUTE = 200
SECONDS_A_LINE, SECONDS_A_PRINTED_LINE = 7, 3
MINUTES_A_QUIZ, MINUTES_A_PANEL, MINUTES_A_PREDICTION = 1.5, 3, 0.5
NO_LESSON = {"exercise", "solution", "check", "quiz", "predict"}
EXERCISE = re.compile(r"^### Exercise (\w+\.\d+) .*\((\d+) minutes", re.MULTILINE)
OPTIONAL = re.compile(r"^(## Going further \(optional, )(\d+)( minutes\))", re.MULTILINE)
HEADING = re.compile(r"^## +(?:\d+\. )?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Measure:
    """Words of prose, lines of each cell of code, lines they print, {exercise: minutes}, and how many ask for what."""

    words: int
    code: tuple[int, ...]
    printed: int
    exercises: dict[str, int]
    quizzes: int = 0
    panels: int = 0
    predictions: int = 0

    @property
    def lines(self) -> int:
        return sum(self.code)

    def reading(self) -> float:
        """Minutes without exercises."""
        seconds = self.lines * SECONDS_A_LINE + self.printed * SECONDS_A_PRINTED_LINE
        asked = self.quizzes * MINUTES_A_QUIZ + self.panels * MINUTES_A_PANEL + self.predictions * MINUTES_A_PREDICTION
        return self.words / WORDS_A_MINUTE + seconds / 60 + asked

    def minutes(self) -> float:
        """Minutes with exercises."""
        return self.reading() + sum(self.exercises.values())


def source(cell: dict) -> str:
    return "".join(cell["source"])


def spine(cells: Iterable[dict]) -> list[dict]:
    return [cell for cell in cells if "optional" not in tags(cell)]


def measure(cells: Iterable[dict]) -> Measure:
    cells = [cell for cell in cells if "guard" not in tags(cell)]
    prose = "\n\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")
    read = re.sub(r"<details>.*?</details>(?!\s*</details>)", " ", prose, flags=re.DOTALL)
    read = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", " x ", read, flags=re.DOTALL)
    lessons = [cell for cell in cells if cell["cell_type"] == "code" and not NO_LESSON & set(tags(cell))]
    code = tuple(sum(bool(line.strip()) for line in source(cell).splitlines()) for cell in lessons)
    return Measure(
        len(re.findall(r"\w+", read)),
        code,
        sum(map(printed, lessons)),
        {name: int(n) for name, n in EXERCISE.findall(prose)},
        *(sum(tag in tags(cell) for cell in cells) for tag in ("quiz", "widget")),
        sum(1 for _ in predictions(cells)),
    )


def printed(cell: dict) -> int:
    """How many lines a cell of code has printed."""
    texts = ("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    return sum(len(text.strip().splitlines()) for text in texts)


def predictions(cells: Iterable[dict]) -> Iterator[tuple[dict, dict | None]]:
    """Each cell whose result is to be predicted, with the next cell of Markdown, which tells it; no exercises."""
    asked, open_for = False, None
    for cell in cells:
        if cell["cell_type"] == "markdown":
            if open_for:
                yield open_for, cell
            open_for = None
            asked = not is_telling(cell) and asks(source(cell), asked)
        elif "predict" in tags(cell):
            asked = True
        elif asked and not NO_LESSON & set(tags(cell)) and "guard" not in tags(cell):
            open_for, asked = cell, False
    if open_for:
        yield open_for, None


def sections(cells: Iterable[dict]) -> dict[str, list[dict]]:
    """The cells of each section by its heading without the number; a cell with several headings is taken apart."""
    found: dict[str, list[dict]] = {}
    heading = ""
    for cell in cells:
        for name, part in _parts(cell):
            heading = name or heading
            found.setdefault(heading, []).append(part)
    return found


def optional_minutes(cells: list[dict]) -> dict[str, int]:
    """Minutes of each optional part, with its exercises, by what follows the minutes in its heading."""
    parts = {name: found for name, found in sections(cells).items() if OPTIONAL.match(f"## {name}")}
    return {OPTIONAL.sub("", f"## {name}"): max(1, round(measure(found).minutes())) for name, found in parts.items()}


def _parts(cell: dict) -> Iterator[tuple[str, dict]]:
    """A cell as pieces (heading or nothing, cell), cut before each heading of level 2."""
    if cell["cell_type"] != "markdown":
        yield "", cell
        return
    for text in re.split(r"^(?=## )", source(cell), flags=re.MULTILINE):
        heading = HEADING.match(text)
        if text.strip():
            yield heading[1] if heading else "", {**cell, "source": text}
