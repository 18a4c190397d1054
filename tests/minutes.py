"""Count the minutes of every notebook and write them wherever they are stated: `make minutes`.

    python tests/minutes.py

Counted is as in `notebook_measures`. Stated they are in the notebook, its optional parts too, the list of notebooks,
the page of the teaching guide (by section), the routes and the README. After it, refresh notebooks 00 and those
whose text changed.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from notebook_measures import EXERCISE, OPTIONAL, measure, optional_minutes, sections, source, spine
from refresh import to_text
from transformer_lib._streams import run_command
from transformer_lib.course import notebooks, routes
from transformer_lib.course.progress.route_view import spoken

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "transformer_lib" / "course"
STATED = re.compile(r"(about )(\d+)( minutes to read and run)")
ANOTHER = re.compile(r"( takes? another )\d+")
ROW = re.compile(r"^\| ((?:\d+\. )?)([^|]+) \| ([^|]+) \| (\d+) \|$", re.MULTILINE)


def shares(exact: dict[str, float], total: int) -> dict[str, int]:
    """Round minutes to whole ones that add up to the total, each at least 1."""
    rounded = {name: max(1, int(value)) for name, value in exact.items()}
    by_rest = sorted(exact, key=lambda name: exact[name] - rounded[name], reverse=True)
    while sum(rounded.values()) < total:
        for name in by_rest[: total - sum(rounded.values())]:
            rounded[name] += 1
    while sum(rounded.values()) > total:
        largest = max(rounded, key=lambda name: rounded[name] - exact[name] if rounded[name] > 1 else -99)
        rounded[largest] -= 1
    return rounded


def of_sections(cells: list[dict]) -> dict[str, float]:
    """Exact reading minutes of each section of the spine; what is above the first heading counts to the first."""
    exact = {name: measure(found).reading() for name, found in sections(spine(cells)).items()}
    above = exact.pop("", 0.0)
    first = next(iter(exact))
    return exact | {first: exact[first] + above}


def write_notebook(entry: notebooks.Notebook) -> dict[str, int]:
    """State the minutes in a notebook and its page of the guide; return {section: minutes}."""
    path = notebooks.file_of(entry)
    stored = json.loads(path.read_text(encoding="utf-8"))
    total = round(measure(spine(stored["cells"])).reading())
    extra = optional_minutes(stored["cells"])
    for cell in stored["cells"]:
        if cell["cell_type"] == "markdown" and STATED.search(source(cell)):
            text = STATED.sub(rf"\g<1>{total}\3", source(cell))
            cell["source"] = ANOTHER.sub(rf"\g<1>{sum(extra.values())}", text)
        elif cell["cell_type"] == "markdown" and OPTIONAL.search(source(cell)):
            cell["source"] = with_minutes(source(cell), extra)
    path.write_text(to_text(stored), encoding="utf-8")
    each = shares(of_sections(stored["cells"]), total)
    page = ROOT / "docs" / "teaching" / f"{entry.stem}.md"
    text = ROW.sub(
        lambda row: f"| {row[1]}{row[2]} | {row[3]} | {each.get(row[2], int(row[4]))} |", page.read_text("utf-8")
    )
    text = re.sub(r"Going further \(optional[^|*\n]*(?= \||\*\*)", lambda found: with_minutes(found[0], extra), text)
    text = re.sub(r"\d+( minutes to read and run)", rf"{total}\1", text)
    page.write_text(re.sub(r"(\*\*reading\*\* \| \| \*\*)\d+", rf"\g<1>{total}", text), encoding="utf-8")
    return each


def with_minutes(heading: str, minutes: dict[str, int]) -> str:
    """The heading of an optional part, with or without its marks, stating the minutes of that part."""
    marks = "" if heading.startswith("## ") else "## "
    first, *more = (marks + heading).split("\n")
    counted = minutes.get(OPTIONAL.sub("", first))
    first = OPTIONAL.sub(rf"\g<1>{counted}\3", first) if counted else first
    return "\n".join([first, *more])[len(marks) :]


def exercises(entry: notebooks.Notebook) -> dict[str, int]:
    """{exercise: minutes} as the notebook's headings have them."""
    cells = json.loads(notebooks.file_of(entry).read_text(encoding="utf-8"))["cells"]
    prose = "\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")
    return {name: int(minutes) for name, minutes in EXERCISE.findall(prose)}


def write_list(totals: dict[str, int], optional: dict[str, int]) -> None:
    """Put the minutes with exercises, and those of the optional parts, into the list of notebooks."""
    path = COURSE / "notebooks.py"
    text = path.read_text(encoding="utf-8")
    for name, minutes in totals.items():
        text = re.sub(rf'(Notebook\(\s*"{name}",\s*"[^"]*",\s*"[^"]*",\s*)\d+', rf"\g<1>{minutes}", text)
        more = rf'(Notebook\(\s*"{name}",(?:(?!Notebook\().)*?optional_minutes=)\d+'
        text = re.sub(more, rf"\g<1>{optional[name]}", text, flags=re.DOTALL)
    path.write_text(text, encoding="utf-8")


def write_stops(minutes: dict[str, dict[str, int]]) -> dict[str, int]:
    """Put the minutes of the evening's stops into the routes; return them."""
    path, found = COURSE / "routes.py", {}
    text = path.read_text(encoding="utf-8")
    for stop in routes.EVENING.stops:
        work = exercises(stop.entry)
        found[stop.id] = sum(minutes[stop.id][name] for name in stop.sections)
        found[stop.id] += sum(work.get(name, 0) for name in stop.tasks)
        text = re.sub(rf'(Stop\(\s*"{stop.id}",\s*)\d+', rf"\g<1>{found[stop.id]}", text)
    path.write_text(text, encoding="utf-8")
    return found


def write_readme(hours: dict[str, int], totals: dict[str, int]) -> None:
    """Put the time of each route, {title: minutes}, and of each notebook into the README."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    for name, minutes in totals.items():
        text = re.sub(rf"^(\| {name} \| \[[^|]+\| )\d+( \|)", rf"\g<1>{minutes}\2", text, flags=re.MULTILINE)
    for title, minutes in hours.items():
        text = re.sub(
            rf"^(\| {re.escape(title)} \| )[^|]+( \|)", rf"\g<1>{spoken(minutes)}\2", text, flags=re.MULTILINE
        )
    path.write_text(text, encoding="utf-8")


def write_map(minutes: dict[str, int], totals: dict[str, int]) -> None:
    """Put the minutes of each notebook, to read and of its exercises, and their sums, into the map of the guide."""
    path = ROOT / "docs" / "teaching" / "index.md"
    text = path.read_text(encoding="utf-8")
    for name, total in totals.items():
        text = re.sub(
            rf"^(\| {name} \| [^|]+ \| )\d+ \| \d+( \|)",
            rf"\g<1>{minutes[name]} | {total - minutes[name]}\2",
            text,
            flags=re.MULTILINE,
        )
    reading, everything = sum(minutes.values()), sum(totals.values())
    sums = rf"\g<1>**{reading}** | **{everything - reading}**"
    path.write_text(re.sub(r"(\| \*\*all\*\* \| )\*\*\d+\*\* \| \*\*\d+\*\*", sums, text), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Count and write."""
    argparse.ArgumentParser(description="Count the minutes of every notebook and write them down.").parse_args(argv)
    minutes = {entry.id: write_notebook(entry) for entry in notebooks.NOTEBOOKS}
    totals = {}
    for entry in notebooks.NOTEBOOKS:
        prose = "".join(source(c) for c in json.loads(notebooks.file_of(entry).read_text("utf-8"))["cells"])
        work = re.search(r"minutes to read and run,? (\d+)", prose)
        totals[entry.id] = sum(minutes[entry.id].values()) + int(work[1] if work else 0)
        print(f"{entry.id}: {totals[entry.id]} minutes, {sum(minutes[entry.id].values())} of them to read and run")
    optional = {}
    for entry in notebooks.NOTEBOOKS:
        cells = json.loads(notebooks.file_of(entry).read_text("utf-8"))["cells"]
        optional[entry.id] = sum(optional_minutes(cells).values())
    write_list(totals, optional)
    write_map({name: sum(each.values()) for name, each in minutes.items()}, totals)
    evening = write_stops(minutes)
    hours = {routes.EVENING.title: sum(evening.values())}
    for route in (routes.SPINE, routes.PART_II, routes.PART_III):
        hours[route.title] = sum(totals[stop.id] for stop in route.stops)
    hours[routes.EVERYTHING.title] = sum(totals.values()) + sum(optional.values())
    write_readme(hours, totals)
    return 0


if __name__ == "__main__":
    run_command(main)
