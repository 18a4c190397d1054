"""Cells of a submission that appear twice, that are gone, or whose metadata are damaged: none costs a mark."""

from __future__ import annotations

import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')

from small_course import RIGHT, nbgrader, small_notebook, submit
from transformer_lib.course.teaching.assignments import build
from transformer_lib.course.teaching.assignments.repair import Given, repaired


def given(name: str, **marks: object) -> Given:
    kinds = {"grade": False, "solution": False, "task": False, "locked": False, "grade_id": name, "schema_version": 3}
    return Given(f"{name} as handed out", "code", kinds | marks, f"id-{name}")


GIVEN = {
    "exercise-1": given("exercise-1", solution=True),
    "check-1": given("check-1", grade=True, locked=True, points=2),
    "answer-1": given("answer-1", locked=True),
    "exercise-2": given("exercise-2", solution=True),
    "check-2": given("check-2", grade=True, locked=True, points=1),
}


def cell(name: str, source: str = "as handed in", *, cell_id: str | None = None, **marks: object):
    """A cell of a submission; its id in Jupyter is that of the cell that was handed out, unless another is named."""
    metadata = {"nbgrader": GIVEN[name].marks | marks}
    return new_code_cell(source, metadata=metadata, id=cell_id or GIVEN[name].cell_id)


def whole() -> list:
    return [cell(name) for name in GIVEN]


def submission(cells, minor: int = 5):
    """Return a notebook of these cells, valid or not."""
    return nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor})


def names_and_sources(cells) -> list[tuple[str | None, str]]:
    notebook = repaired(submission(cells), GIVEN)
    nbformat.validate(notebook)
    return [(one.metadata.get("nbgrader", {}).get("grade_id"), one.source) for one in notebook.cells]


EXPECTED = [
    (name, one.source if one.marks["locked"] else "as handed in") for name, one in GIVEN.items()
]  # checks are as they were handed out


def test_a_submission_in_order_keeps_its_cells_and_gets_its_checks_back():
    own = new_code_cell("a cell of one's own")
    assert names_and_sources([*whole(), own]) == [*EXPECTED, (None, "a cell of one's own")]


@pytest.mark.parametrize("at", [0, 1, 5])
@pytest.mark.parametrize("name", ["exercise-1", "check-1"])
def test_a_copy_is_a_cell_of_ones_own_where_it_stands(name, at):
    cells = whole()
    cells.insert(at, cell(name, "the copy", cell_id="another"))
    found = names_and_sources(cells)
    assert [pair for pair in found if pair[0]] == EXPECTED
    note, copy = found[at : at + 2]
    assert note[0] is None and f"The cell `{name}` appears twice." in note[1] and copy == (None, "the copy")


@pytest.mark.parametrize("copied", ["exercise-1", "check-1"])
def test_of_two_cells_that_both_have_ids_of_their_own_the_first_counts(copied):
    cells = [cell(name, cell_id=f"other-{name}") for name in GIVEN] + [cell(copied, "the copy", cell_id="another")]
    found = names_and_sources(cells)
    assert found[:5] == EXPECTED and found[6] == (None, "the copy") and len(found) == 7


def test_cells_with_the_same_id_in_jupyter_get_different_ones():
    cells = [*whole(), new_code_cell("own", id="id-check-1")]
    assert names_and_sources(cells) == [*EXPECTED, (None, "own")]


DAMAGED = [{}, None, [], "x", {"grade": True}, {"grade_id": 7}, {"grade_id": "renamed"}, {"grade_id": "exercise-2"}]
DAMAGED += [GIVEN["check-1"].marks | {"schema_version": version, "points": "many"} for version in (0, 99)]


@pytest.mark.parametrize("damaged", DAMAGED, ids=str)
def test_a_cell_with_damaged_metadata_is_known_by_its_id(damaged):
    cells = whole()
    cells[1].source = "check-1 as"  # without its hidden tests
    for one in cells[:2]:
        one.metadata["nbgrader"] = damaged
    assert names_and_sources(cells) == EXPECTED
    marks = repaired(submission(cells), GIVEN).cells[1].metadata.nbgrader
    assert (marks.points, marks.schema_version) == (2, 3)


def test_an_answer_with_the_id_of_a_check_is_not_replaced_by_it():
    cells = whole()
    cells[0].id, cells[0].metadata = cells[1].id, {}
    cells[1].id, cells[1].metadata = "another", {}
    assert (None, "as handed in") in names_and_sources(cells) and EXPECTED[1] in names_and_sources(cells)


def test_a_cell_of_another_type_is_code_again_and_one_whose_other_metadata_are_wrong_loses_them():
    cells = whole()
    cells[0] = new_markdown_cell("as handed in", id="id-exercise-1", attachments={"a.png": {"image/png": "AA=="}})
    cells[3].metadata["tags"] = "no list"
    assert names_and_sources(cells) == EXPECTED
    assert names_and_sources([*cells, cells[0] | {"cell_type": "no type", "id": "none"}])[-1] == (None, "as handed in")


@pytest.mark.parametrize(
    ("missing", "places"),
    [(["check-1"], [1]), (["answer-1", "check-1"], [1, 3]), (["exercise-2", "check-2"], [3]), (list(GIVEN), [0, 2, 4])],
)
def test_what_is_missing_is_put_back_in_its_place_and_an_answer_is_not(missing, places):
    found = names_and_sources([cell(name) for name in GIVEN if name not in missing])
    assert [place for place, (_, source) in enumerate(found) if "was missing" in source] == places
    kept = [pair for pair in EXPECTED if pair[0] not in missing or not pair[0].startswith("exercise")]
    assert [pair for pair in found if pair[0]] == kept


def test_a_notebook_of_an_older_format_is_repaired():
    cells = [{key: value for key, value in one.items() if key != "id"} for one in [*whole(), cell("check-1", "copy")]]
    notebook = repaired(submission(cells, minor=4), GIVEN)
    nbformat.validate(notebook)
    assert [one.source for one in notebook.cells if one.metadata] == [source for _, source in EXPECTED]


def shuffled(cells):
    """Copies an answer and a check, renames, damages, retypes and deletes others."""
    by_name = {one.metadata.nbgrader.grade_id: one for one in cells if one.metadata.get("nbgrader")}
    copies = [nbformat.from_dict(by_name[name] | {"id": f"copy-{name}"}) for name in ("exercise-00-1", "check-00-1")]
    copies[0].source = copies[0].source.replace(RIGHT["mean_of_rows"], "return x.mean(0)")
    by_name["exercise-00-1"].source = by_name["exercise-00-1"].source.replace(RIGHT["mean_of_rows"], "return x")
    by_name["check-00-2"].metadata["nbgrader"] = {}
    by_name["exercise-00-2"].metadata["nbgrader"]["grade_id"] = "mine"
    by_name["exercise-00-2"].id = by_name["check-00-2"].id
    kept = [one for one in cells if one is not by_name["check-00-3"]]
    place = kept.index(by_name["exercise-00-1"]) + 1
    answer = by_name["exercise-00-3"]
    kept[kept.index(answer)] = new_markdown_cell(answer.source, metadata=answer.metadata, id=answer.id)
    return [*kept[:place], *copies, *kept[place:]]


def test_nbgrader_gives_full_marks_to_right_answers_in_cells_of_any_disorder(tmp_path):
    course = tmp_path / "course"
    build.make_course(course, [small_notebook(tmp_path)], cell_seconds=20, notebook_seconds=600)
    nbgrader(course, "generate_assignment", "00_start_here")
    submit(course, "disorder", RIGHT, shuffled)
    nbgrader(course, "autograde", "00_start_here")
    nbgrader(course, "generate_feedback", "00_start_here")
    page = (course / "feedback/disorder/00_start_here/00_start_here.html").read_text(encoding="utf-8")
    assert 'class="total">5.0 of' in page
    for told in ("exercise-00-1</code> appears twice", "check-00-1</code> appears twice", "00-3</code> was missing"):
        assert told in page


def test_no_disorder_stops_the_grading_of_others(tmp_path):
    """Nothing is executed here: the program leaves the notebook as it is."""
    course = tmp_path / "course"
    build.make_course(course, [small_notebook(tmp_path)])
    own = f"c = get_config()\nc.ExecuteApart.command = [{sys.executable!r}, '-c', '']\n"
    (course / "own_config.py").write_text(own, encoding="utf-8")
    nbgrader(course, "generate_assignment", "00_start_here")
    for place, damaged in enumerate(DAMAGED):

        def damage(cells, damaged=damaged):
            for one in cells:
                one.metadata["nbgrader"] = damaged
            return cells

        submit(course, f"student{place}", RIGHT, damage)
    nbgrader(course, "autograde", "00_start_here")
    assert len(list(course.glob("autograded/*/00_start_here/00_start_here.ipynb"))) == len(DAMAGED)
