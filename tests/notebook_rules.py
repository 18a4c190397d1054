"""What every notebook must satisfy as a file, without running it.

A rule takes a `Notebook` and yields one sentence per violation. `tests/test_notebooks.py` applies all rules
to all notebooks, and each rule to a small notebook that breaks it.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.validator import iter_validate

from approximate import numbers, texts, tolerance_of
from markdown_rendering import rendering_problems
from notebook_kernel import tags
from notebook_measures import measure, predictions, source, spine
from refresh import to_text
from transformer_lib.course.cells import is_telling

CELL_LINES = 30
LONG_TEXT = 25  # letters of a description that would tell the result before its cell has run
CODE_CELLS_IN_A_ROW = 2
TAGS = {
    "exercise",
    "check",
    "solution",
    "hide-input",
    "quiz",
    "widget",
    "gpu",
    "slide",
    "slide-part",
    "slide-step",
    "slide-notes",
    "slide-full",
    "slide-output",
    "raises-exception",
    "nbval-ignore-output",
    "optional",
    "guard",
    "predict",
    "telling",
}
CLAIM = re.compile(r"claim:C\d{3}")
ANSWERS = re.compile(r"answers:(\d\d|A)\.\d+")
THIRD_EDITION = tuple(f"{n:02}" for n in range(26))  # kept to the proportions below
MINUTES, MINUTES_OF_00 = 85, 45  # of the spine, with its exercises; cells tagged `optional` are counted apart
OFF_BY = 5  # minutes by which the stated time may differ from the counted one
MEDIAN_LINES, LONGEST_CELL, LONGEST_LINE = 6, 16, 88
TIME = re.compile(r"\*\*Time:\*\* about (\d+) minutes to read and run")
FRONT_MATTER = ("00_", "A_")  # orientation and appendix: no derivation, so not the anatomy of a lesson


@dataclass(frozen=True)
class Notebook:
    """One notebook: its file name, its text as stored, and the text parsed without any repair."""

    name: str
    text: str

    @classmethod
    def read(cls, path: Path) -> Notebook:
        return cls(path.name, path.read_bytes().decode("utf-8"))

    @property
    def raw(self) -> dict:
        return json.loads(self.text)

    @property
    def cells(self) -> list[dict]:
        return self.raw["cells"]

    def numbered(self, kind: str) -> list[tuple[int, dict]]:
        return [(number, cell) for number, cell in enumerate(self.cells) if cell["cell_type"] == kind]

    @property
    def prose(self) -> str:
        """All Markdown without fenced code, whose comments look like headings."""
        whole = "\n\n".join(source(cell) for _, cell in self.numbered("markdown"))
        return re.sub(r"^```.*?^```", "", whole, flags=re.MULTILINE | re.DOTALL)


Rule = Callable[[Notebook], Iterator[str]]


def asserts(code: str) -> bool:
    """Whether the code has an `assert` or calls something named assert…, as torch.testing.assert_close."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except SyntaxError:
        return False
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = [getattr(func, "attr", getattr(func, "id", "")) for func in called]
    return any(isinstance(node, ast.Assert) for node in nodes) or any(n.startswith("assert") for n in names)


def file_name(nb: Notebook) -> Iterator[str]:
    if not re.fullmatch(r"(\d\d|A)_[a-z0-9_]+\.ipynb", nb.name):
        yield "the file name is not 07_like_this.ipynb"


def valid_format(nb: Notebook) -> Iterator[str]:
    for error in iter_validate(nbformat.from_dict(nb.raw)):
        yield f"not valid nbformat: {error.message}"


def normal_form(nb: Notebook) -> Iterator[str]:
    if nb.text != to_text(nb.raw):
        yield "not in normal form (metadata, ids, line ends): run `make refresh`"


def unique_ids(nb: Notebook) -> Iterator[str]:
    ids = [cell.get("id") for cell in nb.cells]
    for name in sorted({str(name) for name in ids if name is None or ids.count(name) > 1}):
        yield f"the cell id {name} is missing or used twice"


def executed_in_order(nb: Notebook) -> Iterator[str]:
    for position, (number, cell) in enumerate(nb.numbered("code"), start=1):
        if not source(cell).strip():
            yield f"cell {number} is an empty code cell"
        elif cell["execution_count"] != position:
            yield f"cell {number} has execution count {cell['execution_count']}, expected {position}"


def no_stored_error(nb: Notebook) -> Iterator[str]:
    for number, cell in nb.numbered("code"):
        for output in cell["outputs"]:
            if output["output_type"] == "error" and "raises-exception" not in tags(cell):
                yield f"cell {number} stores an error: {output['ename']}"
            if output.get("name") == "stderr":
                yield f"cell {number} stores text on stderr, such as a warning"


def asserted(nb: Notebook, number: int) -> bool:
    """Whether a cell of code asserts something, or the guard right below it does."""
    below = nb.cells[number + 1 : number + 2]
    guard = below[0] if below and "guard" in tags(below[0]) else None
    return asserts(source(nb.cells[number])) or bool(guard and asserts(source(guard)))


def guards_are_guards(nb: Notebook) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        if "guard" not in tags(cell):
            continue
        if cell["cell_type"] != "code" or not asserts(source(cell)):
            yield f"cell {number} is a guard and asserts nothing"
        elif not cell["metadata"].get("jupyter", {}).get("source_hidden"):
            yield f"the guard in cell {number} is not folded (source_hidden)"
        elif cell["outputs"]:
            yield f"the guard in cell {number} shows something"
        elif nb.cells[number - 1]["cell_type"] != "code" or "guard" in tags(nb.cells[number - 1]):
            yield f"the guard in cell {number} has no cell of code right above it"


def guards_assert(nb: Notebook) -> Iterator[str]:
    """What a learner runs shows its result, and leaves to a guard what only tests need."""
    for number, cell in nb.numbered("code"):
        if "guard" not in tags(cell) and asserts(source(cell)):
            yield f"cell {number} asserts: move that to a guard below it"


def descriptions_have_names(nb: Notebook) -> Iterator[str]:
    for number, cell in nb.numbered("code"):
        for call in filter(_is_figure, _calls(source(cell))):
            texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
            if any(isinstance(text, str) and len(text) > LONG_TEXT for text in texts):
                yield f"cell {number} tells what its figure shows: give the description a name in descriptions.md"


def _calls(code: str) -> Iterator[ast.Call]:
    try:
        yield from (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    except SyntaxError:
        return


def _is_figure(call: ast.Call) -> bool:
    return getattr(call.func, "attr", getattr(call.func, "id", "")) == "figure"


def tellings_are_folded(nb: Notebook) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        if is_telling(cell) and re.search(r"^#{1,6} ", source(cell), flags=re.MULTILINE):
            yield f"the telling in cell {number} has a heading, which would be folded, too"
    for cell, after in predictions(nb.cells):
        if after is None or not is_telling(after):
            yield f"what follows cell {cell['id']}, whose result is predicted, is not tagged as its telling"


def unchecked_output_asserts(nb: Notebook) -> Iterator[str]:
    for number, cell in nb.numbered("code"):
        if {"nbval-ignore-output", "gpu"} & set(tags(cell)) and not asserted(nb, number):
            yield f"the output of cell {number} is not compared, and nothing is asserted"


def known_tags(nb: Notebook) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        for tag in tags(cell):
            known = tag in TAGS or CLAIM.fullmatch(tag) or ANSWERS.fullmatch(tag) or tag.startswith("approx:")
            if not known:
                yield f"cell {number} has the unknown tag {tag!r}"
        if cell["cell_type"] == "code" and re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)_", source(cell)):
            yield f"cell {number} steers nbval by a comment; use a tag"


def tolerances_are_used(nb: Notebook) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        try:
            tolerance = tolerance_of(tags(cell))
        except ValueError as error:
            yield f"cell {number}: {error}"
            continue
        if tolerance:
            yield from (f"cell {number} is tagged approx and {problem}" for problem in _misused_tolerance(nb, number))


def _misused_tolerance(nb: Notebook, number: int) -> Iterator[str]:
    cell = nb.cells[number]
    if cell["cell_type"] != "code":
        yield "has no output"
        return
    outputs = texts(cell["outputs"])
    if not any(numbers("".join(holder[field]), kind) for kind, holder, field in outputs):
        yield "stores no number that could differ"
    if not asserted(nb, number):
        yield "asserts nothing"
    for tag in sorted({"nbval-ignore-output", "gpu"} & set(tags(cell))):
        yield f"{tag}, so that its output is never compared"


def claims_are_asserted(nb: Notebook) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        claims = [tag for tag in tags(cell) if tag.startswith("claim:")]
        if claims and not (cell["cell_type"] == "code" and asserted(nb, number)):
            yield f"cell {number} is tagged {', '.join(claims)} and asserts nothing"


def plain_python(nb: Notebook) -> Iterator[str]:
    for number, cell in nb.numbered("code"):
        code = source(cell)
        try:
            ast.parse(code)
        except SyntaxError as error:
            yield f"cell {number} is not plain Python (magics and shell commands included): {error.msg}"
        if re.search(r"\b(filterwarnings|simplefilter)\(", code):
            yield f"cell {number} filters warnings"
        if code.rstrip().endswith(";"):
            yield f"cell {number} ends with ';', which hides nothing when the notebook is tested"


def short_cells(nb: Notebook) -> Iterator[str]:
    for number, cell in nb.numbered("code"):
        lines = [line for line in source(cell).splitlines() if line.strip()]
        if len(lines) > CELL_LINES:
            yield f"cell {number} has {len(lines)} lines of code, at most {CELL_LINES}"
    shown = [number for number, cell in enumerate(nb.cells) if "guard" not in tags(cell)]
    kinds = "".join("c" if nb.cells[number]["cell_type"] == "code" else " " for number in shown)
    for match in re.finditer("c" * (CODE_CELLS_IN_A_ROW + 1) + "+", kinds):
        first, last = shown[match.start()], shown[match.end() - 1]
        yield f"cells {first} to {last} are code without prose between"


def honest_minutes(nb: Notebook) -> Iterator[str]:
    stated = TIME.search(nb.prose)
    counted = measure(spine(nb.cells)).reading()
    if stated and abs(int(stated[1]) - counted) > OFF_BY:
        yield f"{stated[1]} minutes are stated to read and run, {counted:.0f} are counted"


def proportions(nb: Notebook) -> Iterator[str]:
    number = nb.name.partition("_")[0]
    if number not in THIRD_EDITION:
        return
    counted = measure(spine(nb.cells))
    lines = [line for _, cell in nb.numbered("code") for line in source(cell).splitlines() if "guard" not in tags(cell)]
    limits = {
        "minutes": (round(counted.minutes()), MINUTES_OF_00 if number == "00" else MINUTES),
        "lines in the median cell": (statistics.median(counted.code or [0]), MEDIAN_LINES),
        "lines in the longest cell": (max(counted.code, default=0), LONGEST_CELL),
        "characters in its longest line": (max(map(len, lines), default=0), LONGEST_LINE),
    }
    for name, (count, most) in limits.items():
        if count > most:
            yield f"the spine has {count:g} {name}, at most {most}"


def markdown_renders_as_meant(nb: Notebook) -> Iterator[str]:
    for number, cell in nb.numbered("markdown"):
        yield from (f"cell {number}: {problem}" for problem in rendering_problems(source(cell)))


def images_have_alt_text(nb: Notebook) -> Iterator[str]:
    for number, cell in enumerate(nb.cells):
        html = source(cell) if cell["cell_type"] == "markdown" else ""
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            html += "".join(data.get("text/html", ""))
            if any(kind.startswith("image/") for kind in data):
                yield f"cell {number} stores a bare image: show it with tl.plotting.figure(fig, alt)"
            if "<svg" in "".join(data.get("text/html", "")):
                yield f"cell {number} stores raw <svg>, which an untrusted notebook drops: use an <img>"
        images = re.findall(r"<img\b[^>]*>", html)
        if any(not re.search(r"""\balt=("[^"]*\w[^"]*"|'[^']*\w[^']*')""", image) for image in images):
            yield f"cell {number} shows an <img> without alt text"
        if re.search(r"!\[\s*\]", html):
            yield f"cell {number} shows a Markdown image without alt text"


def title_is_a_question(nb: Notebook) -> Iterator[str]:
    headings = re.findall(r"^# .*$", nb.prose, flags=re.MULTILINE)
    first = source(nb.cells[0]).splitlines()[:1] if nb.cells[0]["cell_type"] == "markdown" else []
    if first != headings[:1] or len(headings) != 1:
        yield f"expected one H1 and the notebook to begin with it, found {headings}"
    elif "?" not in headings[0]:
        yield f"the title is not a question: {headings[0]!r}"


def anatomy(nb: Notebook) -> Iterator[str]:
    pieces = {
        "what you will be able to do": r"you will",
        "the time it takes": r"\d\s*min",
        "prerequisites": r"prerequisite",
        "a table of terms": r"^#+ .*\bterms\b[^#]*?^\|",
        "a summary": r"^#+ .*\bsummary\b",
        "common misconceptions": r"misconception",
    }
    for piece, pattern in pieces.items():
        found = re.search(pattern, nb.prose, flags=re.IGNORECASE | re.MULTILINE | re.DOTALL)
        if not found and not nb.name.startswith(FRONT_MATTER):
            yield f"lacks {piece}"


def exercises_are_complete(nb: Notebook) -> Iterator[str]:
    groups: list[tuple[int, set[str]]] = []
    for number, cell in nb.numbered("code"):
        if "exercise" in tags(cell):
            groups.append((number, set()))
        elif groups:
            groups[-1][1].update(tags(cell))
    for number, found in groups:
        for piece in sorted({"check", "solution"} - found):
            yield f"the exercise in cell {number} has no {piece}"
    for number, cell in nb.numbered("code"):
        if "solution" in tags(cell):
            hidden = cell["metadata"].get("jupyter", {}).get("source_hidden")
            if not (hidden and "hide-input" in tags(cell) and source(cell).startswith("# Solution")):
                yield f"the solution in cell {number} is not folded (source_hidden, hide-input, '# Solution')"


RULES: list[Rule] = [
    file_name,
    valid_format,
    normal_form,
    unique_ids,
    executed_in_order,
    no_stored_error,
    guards_are_guards,
    guards_assert,
    descriptions_have_names,
    tellings_are_folded,
    unchecked_output_asserts,
    known_tags,
    tolerances_are_used,
    claims_are_asserted,
    plain_python,
    short_cells,
    honest_minutes,
    proportions,
    markdown_renders_as_meant,
    images_have_alt_text,
    title_is_a_question,
    anatomy,
    exercises_are_complete,
]
