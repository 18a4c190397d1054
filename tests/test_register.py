"""The register of claims: the form of its rows, and what settles each: a cell of a notebook, or a test."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter

import pytest
import site_register as register

from transformer_lib.course.notebooks import NOTEBOOKS, file_of

pytestmark = pytest.mark.fast

WHOLE = register.load()
CLAIMS = {row["id"]: row for row in WHOLE["claims"]}
IN_PROSE = {name for name, row in CLAIMS.items() if row.get("prose")}


# The rows -----------------------------------------------------------------------------------------------


def test_every_row_is_there_and_keeps_the_rules():
    assert (len(WHOLE["claims"]), len(WHOLE["errata"]), len(WHOLE["texts"])) == (352, 59, 5)
    assert [problem for problem in register.problems(WHOLE) if problem] == []


def test_the_verdicts_are_counted():
    """A verdict is changed on purpose, and then here too."""
    counted = {"true": 223, "imprecise": 84, "false": 30, "cannot be checked": 15}
    assert Counter(row["verdict"] for row in WHOLE["claims"]) == counted


def test_rows_of_a_topic_stand_together():
    topics = [row["topic"] for row in WHOLE["claims"]]
    assert topics == sorted(topics)
    assert set(topics) == set(range(len(WHOLE["topics"])))


def test_each_claim_is_made_by_a_text_but_for_one_of_our_own():
    assert [row["id"] for row in WHOLE["claims"] if not register.texts_of(row)] == ["C325"]
    assert register.texts_of({"text": "5 §3.2; 3 intro"}) == (5, 3)


def test_every_false_row_is_corrected():
    corrected = {name for entry in WHOLE["errata"] for name in entry["claims"]}
    assert [name for name, row in CLAIMS.items() if row["verdict"] == "false" and name not in corrected] == []


def test_a_correction_of_true_rows_alone_names_their_condition():
    verdicts = {entry["id"]: {CLAIMS[name]["verdict"] for name in entry["claims"]} for entry in WHOLE["errata"]}
    assert {entry["kind"] for entry in WHOLE["errata"] if verdicts[entry["id"]] == {"true"}} == {"condition"}


def broken(**change):
    """Return the register with one thing changed: its first three claims, and no corrections."""
    data = copy.deepcopy(WHOLE)
    data["claims"], data["errata"] = data["claims"][:3], []
    data["claims"][1] |= change.pop("row", {})
    return data | change


ERRATUM = {"id": "R01", "kind": "number", "title": "t", "claims": ["C002"], "says": "s", "why": "w", "right": "r"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (broken(row={"id": "C004"}), "expected C002, found C004"),
        (broken(row={"verdict": "wrong"}), "C002 has the unknown verdict 'wrong'"),
        (broken(row={"verdict": "false", "right": ""}), "C002 is false, and nothing says what is right"),
        (broken(row={"right": ""}), "C002 is true, and nothing says what is right"),  # in prose: its only answer
        (broken(row={"topic": 18}), "C002 has the unknown topic 18"),
        (broken(row={"text": "5 intro; 6 §1"}), "C002 names an unknown text: '5 intro; 6 §1'"),
        (broken(row={"claim": "a | b"}), "C002 has a bar or a line break"),
        (broken(row={"right": "a\nb"}), "C002 has a bar or a line break"),
        (broken(row={"right": "half $x"}), "C002 has half a formula"),
        (broken(row={"claim": " "}), "C002 has an empty text"),
        (broken(errata=[ERRATUM | {"id": "R02"}]), "expected R01, found R02"),
        (broken(errata=[ERRATUM | {"claims": ["C009"]}]), "R01 names the unknown claim C009"),
        (broken(errata=[ERRATUM | {"kind": "typo"}]), "R01 has the unknown kind 'typo'"),
        (broken(errata=[ERRATUM | {"why": ""}]), "R01 has an empty text"),
    ],
)
def test_a_broken_row_is_noticed(data, message):
    assert message in "; ".join(register.problems(data))


def test_whole_rows_pass():
    assert list(register.problems(broken(errata=[ERRATUM]))) == []


# What settles a row -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CLAIMS.keys() - IN_PROSE))
def test_an_executable_row_is_settled_by_a_cell_or_a_test(name):
    assert register.places().get(name), f"no cell is tagged claim:{name}, and no test settles it"


def test_few_rows_are_answered_in_words_alone():
    assert len(IN_PROSE) == 21 and not IN_PROSE & set(register.places())


def test_no_unknown_row_is_settled():
    assert set(register.places()) <= CLAIMS.keys()


def test_where_a_row_was_settled_it_still_is():
    """A row that loses its cell, say to a shorter lesson, needs a test; more places are welcome."""
    by_cell = [name for name, found in register.places().items() if any(place.link for place in found)]
    by_test = [name for name, found in register.places().items() if any(not place.link for place in found)]
    assert len(by_test) >= 161 and len({*by_cell, *by_test}) == 331


def test_tags_are_found_under_their_headings(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": "# Title?\n\n## 2. Two\ntext\n### Part of two", "metadata": {}},
        {"cell_type": "code", "id": "03-1", "source": "1", "metadata": {"tags": ["claim:C001", "slide", "claim:C002"]}},
        {"cell_type": "markdown", "source": ["## The end\n", "C009"], "metadata": {}},
        {"cell_type": "code", "id": "03-2", "source": "2", "metadata": {"tags": ["claim:C003"]}},
    ]
    path = tmp_path / "03_toy.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    two = register.Place("03\u00a0§2", "../notebooks/03_toy.html#cell-03-1")
    end = register.Place("03, The end", "../notebooks/03_toy.html#cell-03-2")
    assert list(register.tagged(path, "03")) == [("C001", two), ("C002", two), ("C003", end)]


def test_marks_of_tests_are_found_in_their_source(tmp_path):
    path = tmp_path / "test_register_toy.py"
    path.write_text(
        '@slow\n@settles("C004", "C005")\ndef test_a():\n    pass\n\n\ndef test_b():\n    settles("C006")\n'
    )
    assert list(register.settled(path)) == [(name, register.Place("`test_a`", "")) for name in ("C004", "C005")]


def test_every_link_names_a_cell_of_a_notebook():
    cells = {
        f"../notebooks/{entry.stem}.html#cell-{cell['id']}"
        for entry in NOTEBOOKS
        for cell in json.loads(file_of(entry).read_text(encoding="utf-8"))["cells"]
    }
    assert {place.link for found in register.places().values() for place in found if place.link} <= cells


# The tables ---------------------------------------------------------------------------------------------


def test_the_tables_have_every_row_under_its_heading():
    tables = register.tables()
    assert re.findall(r"^\| ([CR]\d+) \|", tables, re.MULTILINE) == [
        row["id"]
        for row in (*sorted(WHOLE["errata"], key=lambda row: [*register.KINDS].index(row["kind"])), *WHOLE["claims"])
    ]
    assert re.findall(r"^### (.+)$", tables, re.MULTILINE) == [*register.KINDS.values(), *WHOLE["topics"]]
    for rows in re.findall(r"(?:^\|.*\n?)+", tables, re.MULTILINE):
        assert len({line.count("|") for line in rows.splitlines()}) == 1


def test_a_row_has_its_verdict_its_correction_and_one_link_for_a_section():
    line = register.table("claims", [CLAIMS["C164"]]).splitlines()[-1]
    assert line.startswith("| C164 | 5\u00a0§3.2 | ") and "| ✗ false | " in line
    assert re.search(r'<a href="\.\./notebooks/06_positional_encoding\.html#cell-[\w-]+">06\u00a0§\w+</a>|">06, ', line)
    places = [register.Place("06\u00a0§2", "a"), register.Place("06\u00a0§2", "b"), register.Place("`test_x`", "")]
    assert register.links(places) == '<a href="a">06\u00a0§2</a>, `test_x`'
    assert register.links([]) == "–"


def test_a_section_stays_on_one_line():
    assert register.unbroken("5 eq 2; 3 §4") == "5\u00a0eq\u00a02; 3\u00a0§4"
