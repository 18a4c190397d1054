"""The teaching guide speaks of the notebooks as they are: their cells, sections, minutes and exercises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from notebook_rules import Notebook, source
from transformer_lib.course.notebooks import NOTEBOOKS

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "teaching"
PAGES = sorted(GUIDE.glob("*.md"))
CELL = re.compile(r"`((?:\d\d|a_|A)-\d{3,4})`")


def read(entry) -> tuple[Notebook, str]:
    return Notebook.read(ROOT / "notebooks" / entry.filename), (GUIDE / f"{entry.stem}.md").read_text("utf-8")


def section_of(notebook: Notebook) -> dict[str, str]:
    """{cell id: the section, a level-2 heading, in which it stands}"""
    found, section = {}, ""
    for cell in notebook.cells:
        headings = re.findall(r"^## (.*)$", source(cell), re.MULTILINE) if cell["cell_type"] == "markdown" else []
        section = headings[-1] if headings else section
        found[cell["id"]] = section
    return found


def test_every_notebook_has_its_page_and_the_index_links_it():
    names, pages = {f"{entry.stem}.md" for entry in NOTEBOOKS}, {page.name for page in PAGES} - {"index.md"}
    assert names <= pages  # beside them: pages on grading and the like
    assert pages <= set(re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (GUIDE / "index.md").read_text("utf-8")))


@pytest.mark.parametrize("entry", NOTEBOOKS, ids=lambda entry: entry.id)
def test_a_page_fits_its_notebook(entry):
    notebook, page = read(entry)
    sections, stated = section_of(notebook), re.search(r"about (\d+) minutes to read and run, (\d+)", notebook.prose)
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+|optional) \|$", page, re.MULTILINE)
    assert [heading for heading, _ in rows] == re.findall(r"^## (.*)$", notebook.prose, re.MULTILINE)
    minutes = sum(int(minutes) for _, minutes in rows if minutes != "optional")
    assert minutes == int(stated[1]) == entry.minutes - int(stated[2])
    assert f"{stated[1]} minutes to read and run, {stated[2]} for" in page
    asked = re.findall(r"^\d+\. \*\*(.+?)\*\*, before `(.+?)`: .+ \*Expect:\* .+ \*Typical:\* .+$", page, re.MULTILINE)
    assert len(asked) >= 3 and [heading for heading, _ in asked] == [sections[cell] for _, cell in asked]
    code = {cell["id"] for cell in notebook.cells if cell["cell_type"] == "code"}
    assert [cell for _, cell in asked if cell not in code] == []
    tasks = re.findall(r"^### Exercise (.+?) · (.+) \((\d+) minutes, (.+)\)$", notebook.prose, re.MULTILINE)
    if with_time := re.search(r"to read and run,? (\d+) minutes for (?:the )?(\w+) exercises[.,]", notebook.prose):
        count = ["one", "two", "three", "four", "five", "six"].index(with_time[2]) + 1  # those behind it are optional
        assert sum(int(minutes) for _, _, minutes, _ in tasks[:count]) == int(with_time[1])
    assert [f"{i} {title}, {minutes} min {stars}" for i, title, minutes, stars in tasks] == re.findall(
        r"^\| (.+ min [★☆]+) \|", page, re.MULTILINE
    )
    assert [name for kind, name in entry.parts if kind in ("exercise", "case") and name not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cells_and_links_exist(page):
    text, cells = page.read_text("utf-8"), {cell for entry in NOTEBOOKS for cell in section_of(read(entry)[0])}
    assert [name for name in CELL.findall(text) if name not in cells] == []
    assert [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if not (GUIDE / link).exists()] == []


def test_the_plans_name_exercises_that_exist():
    there = {part for entry in NOTEBOOKS for kind, part in entry.parts if kind in ("exercise", "case")}
    named = re.findall(r"(?<![\d.])(?:[0-2]\d|A)\.[1-9A-Z](?!\w)", (GUIDE / "index.md").read_text("utf-8"))
    assert len(named) > 50 and set(named) <= there


def test_the_map_adds_up():
    rows = re.findall(
        r"^\| [^|]*\| [^|]+ \| (\**\d+\**) \| (\**\d+\**) \|", (GUIDE / "index.md").read_text("utf-8"), re.MULTILINE
    )
    *found, total = [[int(cell.strip("*")) for cell in row] for row in rows]
    assert [sum(row) for row in found] == [entry.minutes for entry in NOTEBOOKS], "run `make minutes`"
    assert total == [sum(column) for column in zip(*found, strict=True)]


def test_needed_by_is_the_inverse_of_builds_on():
    rows = re.findall(
        r"^\| (\w+) \| [^|]+ \| \d+ \| \d+ \| ([^|]+) \| ([^|]+) \|$",
        (GUIDE / "index.md").read_text("utf-8"),
        re.MULTILINE,
    )
    builds_on = {number: notebooks_in(text) for number, text, _ in rows}
    assert len(rows) == len(NOTEBOOKS) and builds_on["12"] == {f"{number:02}" for number in range(4, 12)}
    for number, _, needed_by in rows[1:]:  # all need 00
        assert notebooks_in(needed_by) == {other for other in builds_on if number in builds_on[other]}, number


def notebooks_in(text: str) -> set[str]:
    """The numbers of notebooks in a cell of the map; "04 to 06" is three."""
    ids = [entry.id for entry in NOTEBOOKS]
    ends = re.findall(r"\b(\d\d|A)(?: to (\d\d))?\b", text)
    return {each for first, last in ends for each in ids[ids.index(first) : ids.index(last or first) + 1]}


def test_the_term_has_every_exercise_of_part_one_or_says_that_it_leaves_it_out():
    term = (GUIDE / "index.md").read_text("utf-8").partition("## One term")[2].partition("\n## ")[0]
    named = set()
    for first, last in re.findall(r"\b((?:\d\d|A)\.[1-9A-Z])(?: to (?:\d\d|A)\.([1-9A-Z]))?", term):
        named |= {f"{first[:-1]}{chr(end)}" for end in range(ord(first[-1]), ord(last or first[-1]) + 1)}
    part_one = [entry for entry in NOTEBOOKS if "00" < entry.id <= "17"]  # 00 is done whole
    tasks = {part for entry in part_one for kind, part in entry.parts if kind in ("exercise", "case")}
    assert tasks - named - {part for entry in part_one for part in entry.optional} == set()


def test_the_first_lesson_adds_up():
    page = (GUIDE / "start.md").read_text("utf-8")
    [total] = re.findall(r"^\| \*\*(\d+)\*\* \|", page, re.MULTILINE)
    assert sum(map(int, re.findall(r"^\| (\d+) \|", page, re.MULTILINE))) == int(total)
    assert f"takes {total} minutes" in page and len(page.split()) < 600  # short


def test_the_guide_begins_with_the_page_to_start_from():
    assert re.search(r"\]\((.+?)\)", (GUIDE / "index.md").read_text("utf-8"))[1] == "start.md"


def test_a_rubric_has_a_text_for_every_mark_and_adds_up():
    rubrics = re.split(r"^## ", (GUIDE / "rubrics.md").read_text("utf-8"), flags=re.MULTILINE)[1:3]
    for rubric in rubrics:
        rows = re.findall(r"^\| \*\*.+\|$", rubric, re.MULTILINE)
        assert all(row.count("|") == 6 and all(cell.strip() for cell in row.split("|")[1:-1]) for row in rows)
        assert f"\n{3 * len(rows)} marks." in rubric
