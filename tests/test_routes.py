"""The routes: sections and tasks are in the notebooks, minutes are honest, and a learner sees what is next."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from notebook_kernel import tags
from notebook_measures import EXERCISE, optional_minutes, sections, source
from transformer_lib.course import notebooks, progress, routes
from transformer_lib.course.figures.catalogue import INTERACTIVE_FIGURES
from transformer_lib.course.progress import route_view

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FUNCTIONS = {figure.id: figure.function for figure in INTERACTIVE_FIGURES}
MARKED = [stop for route in routes.ROUTES for stop in route.stops if stop.sections]


def cells_of(stop):
    found = sections(json.loads(notebooks.file_of(stop.entry).read_text(encoding="utf-8"))["cells"])
    missing = [name for name in stop.sections if name not in found]
    assert missing == [], f"{stop.entry.filename} has no such section; it has {[*found]}"
    return [cell for name in stop.sections for cell in found[name]]


# What they are ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", MARKED, ids=lambda stop: stop.id)
def test_sections_and_tasks_are_in_the_notebook_and_the_minutes_are_honest(stop):
    cells = cells_of(stop)
    code = "\n".join(source(cell) for cell in cells if cell["cell_type"] == "code")
    calls = {"exercise": 'check("{}"', "quiz": 'quiz("{}")'}
    for kind, name in stop.parts:
        call = f"widgets.{FUNCTIONS[name]}(" if kind == "widget" else calls[kind].format(name)
        assert call in code or f'widget_id="{name}"' in code, f"{name} is not in these sections"
    assert {name for _, name in stop.parts} == set(stop.tasks), "a task that the notebook does not have"
    page = (ROOT / "docs" / "teaching" / f"{stop.entry.stem}.md").read_text(encoding="utf-8")
    reading = dict(re.findall(r"^\| (?:\d+\. )?([^|]+) \| [^|]+ \| (\d+) \|$", page, re.MULTILINE))
    work = dict(EXERCISE.findall("\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")))
    told = [reading[name] for name in stop.sections] + [work[name] for name in stop.tasks if name in work]
    assert stop.minutes == sum(map(int, told))


def test_an_evening_is_an_evening():
    assert 150 <= routes.EVENING.minutes <= 225
    assert [stop.id for stop in routes.EVENING.stops] == ["00", "01", "03", "04", "08", "12", "13", "14"]


def test_the_spine_is_part_one_and_everything_is_all():
    assert [stop.id for stop in routes.SPINE.stops] == [f"{number:02}" for number in range(18)]
    assert [stop.id for stop in routes.PART_II.stops] == ["18", "19", "20", "21", "22"]
    assert routes.PART_III.stops[0].id == "23"
    assert [stop.entry for stop in routes.EVERYTHING.stops] == [*notebooks.NOTEBOOKS]
    optional = sum(entry.optional_minutes for entry in notebooks.NOTEBOOKS)
    assert routes.EVERYTHING.minutes == sum(entry.minutes for entry in notebooks.NOTEBOOKS) + optional
    assert {name for stop in routes.SPINE.stops for _, name in stop.parts}.isdisjoint(
        name for entry in notebooks.NOTEBOOKS for name in entry.optional
    )


@pytest.mark.parametrize("entry", notebooks.NOTEBOOKS, ids=lambda entry: entry.id)
def test_a_notebook_knows_what_is_optional_in_it(entry):
    cells = json.loads(notebooks.file_of(entry).read_text(encoding="utf-8"))["cells"]
    chosen = [source(cell) for cell in cells if "optional" in tags(cell)]
    code, prose = "\n".join(chosen), "\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")
    calls = {"exercise": 'check("{}"', "quiz": 'quiz("{}")'}
    found = [
        name
        for kind, name in entry.parts
        if (f"widgets.{FUNCTIONS[name]}(" if kind == "widget" else calls.get(kind, "{}").format(name)) in code
    ]
    assert found == [*entry.optional]
    told = re.findall(r"^## Going further \(optional, (\d+) minutes\)", prose, re.MULTILINE)
    assert sum(map(int, told)) == entry.optional_minutes and bool(told) == bool(chosen)
    assert {int(n) for n in re.findall(r" takes? another (\d+)", prose)} <= {entry.optional_minutes}
    counted = sum(optional_minutes(cells).values())
    assert abs(counted - entry.optional_minutes) <= 5, f"{counted} optional minutes are counted: run `make minutes`"


def test_the_readme_has_them():
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    told = {title: (time, about) for title, time, about in rows}
    for route in routes.ROUTES:
        time, about = told[route.title]
        assert time == route_view.spoken(route.minutes) and about.startswith(route.about)


@pytest.mark.parametrize(
    ("minutes", "said"), [(45, "45 minutes"), (177, "3 hours"), (200, "3.5 hours"), (121, "2 hours")]
)
def test_times_are_said_as_people_do(minutes, said):
    assert route_view.spoken(minutes) == said


# Choosing one, and going on -----------------------------------------------------------------------------


def test_without_a_choice_the_routes_are_listed_and_the_map_is_as_it_was():
    before = repr(progress.course_map())
    shown = repr(progress.route())
    assert [line.split("  ")[0] for line in shown.splitlines()] == [
        "One evening",
        "The spine",
        "Part II",
        "Part III",
        "Everything",
    ]
    assert repr(progress.course_map()) == before and "next" not in before


def test_a_chosen_route_is_remembered_and_stands_above_the_map():
    assert "next: 00 · Start here" in repr(progress.route("evening"))
    shown = repr(progress.course_map())
    assert shown.startswith("One evening, 3.5 hours: 0 of 8 stops done · next: 00 · Start here\n")
    assert "The soft lookup" in shown and " 17  Bug clinic" in shown
    html = progress.course_map()._repr_mimebundle_()["text/html"]
    assert '<a href="01_attention_is_a_lookup.ipynb">' in html and html.count("<table>") == 2
    progress.route("spine")
    assert repr(progress.course_map()).startswith("The spine, ") and len(progress.state()["route"]) == 1


def test_the_next_stop_follows_what_is_passed():
    progress.route("evening")
    first, second = routes.EVENING.stops[:2]
    for kind, name in first.parts[:-1]:
        progress.mark(kind, name)
    state = progress.state()
    assert route_view.stop_standing(first, state) == "started" and route_view.next_stop(routes.EVENING, state) == first
    progress.mark(*first.parts[-1])
    state = progress.state()
    assert route_view.stop_standing(first, state) == "done" and route_view.next_stop(routes.EVENING, state) == second
    assert "1 of 8 stops done · next: 01" in repr(progress.course_map())


def test_at_the_end_there_is_nothing_next():
    progress.route("evening")
    for stop in routes.EVENING.stops:
        for kind, name in stop.parts:
            progress.mark(kind, name)
    assert "8 of 8 stops done. You have arrived." in repr(progress.course_map())


def test_a_route_passes_nothing_and_is_forgotten_with_the_rest():
    progress.route("everything")
    assert not any(passed for kind, passed in progress.state().items() if kind != "route")
    assert progress.reset() and repr(progress.course_map()).startswith("○ not yet  00")


def test_stored_outputs_know_no_choice(monkeypatch):
    progress.route("evening")
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "1")
    assert "next" not in repr(progress.route("spine")) + repr(progress.course_map())
    monkeypatch.delenv("TRANSFORMER_COURSE_STATIC")
    assert [*progress.state()["route"]] == ["evening"]


def test_an_unknown_route_is_refused():
    with pytest.raises(
        ValueError, match="name must be one of evening, spine, part_ii, part_iii, everything, got 'morning'"
    ):
        progress.route("morning")
    with pytest.raises(ValueError, match="kind must be one of"):
        progress.mark("route", "evening")
