"""The register of claims: its form, the notebooks that settle each row, and notebook B, which shows all of it."""

from __future__ import annotations

import copy
import json
import re

import pytest

from transformer_lib.course import claims
from transformer_lib.course.claims import model, view, where
from transformer_lib.course.notebooks import NOTEBOOKS, notebook, path_of

pytestmark = pytest.mark.fast

LEDGER = claims.load()
DATA = json.loads(model.CLAIMS.read_text(encoding="utf-8"))
CELLS = json.loads(path_of(notebook("B")).read_text(encoding="utf-8"))["cells"] if path_of(notebook("B")) else []
EXECUTABLE = [row.id for row in LEDGER.claims if not row.prose]
STALE = "run `make refresh NB=notebooks/B_register_of_claims.ipynb`"
IN_PROSE = [row.id for row in LEDGER.claims if row.prose]


# The rows -----------------------------------------------------------------------------------------------


def test_every_row_is_there_with_a_verdict():
    assert [row.id for row in LEDGER.claims] == [f"C{number:03}" for number in range(1, 353)]
    assert [row.id for row in LEDGER.errata] == [f"R{number:02}" for number in range(1, len(LEDGER.errata) + 1)]
    assert len(LEDGER.texts) == 5
    assert {row.verdict for row in LEDGER.claims} == set(model.VERDICTS)
    assert all(row.right for row in LEDGER.claims if row.verdict != "true")


def test_verdicts_are_counted_in_their_order():
    rows = [claims.get(name) for name in ("C164", "C001", "C002", "C165")]
    expected = {verdict: sum(row.verdict == verdict for row in rows) for verdict in model.VERDICTS}
    assert list(claims.counts(rows).items()) == list(expected.items())
    assert sum(claims.counts(LEDGER.claims).values()) == len(LEDGER.claims)


def test_rows_of_a_topic_stand_together():
    topics = [row.topic for row in LEDGER.claims]
    assert topics == sorted(topics)
    assert set(topics) == set(range(len(LEDGER.topics)))


def test_each_claim_is_made_by_a_text_but_for_one_of_our_own():
    assert [row.id for row in LEDGER.claims if not row.texts] == ["C325"]
    assert model.Claim("C001", "5 §3.2; 3 intro", 0, "c", "true").texts == (5, 3)


def test_every_false_row_is_corrected():
    corrected = {name for entry in LEDGER.errata for name in entry.claims}
    assert [row.id for row in claims.find(verdict="false") if row.id not in corrected] == []


def test_a_correction_of_true_rows_alone_names_their_condition():
    alone = [entry for entry in LEDGER.errata if {claims.get(name).verdict for name in entry.claims} == {"true"}]
    assert {entry.kind for entry in alone} == {"condition"}


def test_most_rows_are_settled_by_execution():
    assert len(IN_PROSE) <= len(LEDGER.claims) / 10


def broken(**change):
    """Return the data with one thing changed: rows=3 takes the first three claims and no corrections."""
    data = copy.deepcopy(DATA)
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
    with pytest.raises(ValueError, match=re.escape(message)):
        model.ledger(data)


def test_whole_rows_pass():
    assert model.ledger(broken(errata=[ERRATUM])).errata[0].claims == ("C002",)


# Where a row is settled ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXECUTABLE)
def test_an_executable_row_is_asserted_by_a_cell(name):
    assert [place for place in claims.places().get(name, ()) if place.asserted], f"no cell is tagged claim:{name}"


@pytest.mark.parametrize("name", IN_PROSE)
def test_another_row_is_answered_in_words(name):
    """A mention is an answer when its line says something: more than ids and the words around a list of them."""
    found = [place for place in claims.places().get(name, ()) if not place.asserted]
    assert found, f"no notebook speaks of {name}"
    lines = [line for place in found for line in source(place).splitlines() if name in where.mentioned(line)]
    said = [len(re.findall(r"[a-z]{2,}", re.sub(r"[Ss]ettled in.*|notebook \d\d", "", line))) for line in lines]
    assert max(said) >= 6, f"{name} is only listed: {lines}"


def test_no_unknown_row_is_named():
    assert set(claims.places()) == {row.id for row in LEDGER.claims}


def source(place):
    cells = json.loads(path_of(notebook(place.notebook)).read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["id"] == place.cell)


def cell(kind, text, *tags):
    cell = {"cell_type": kind, "id": f"id-{len(text)}", "metadata": {"tags": list(tags)} if tags else {}}
    return cell | {"source": text.splitlines(keepends=True)}


def test_tags_and_mentions_are_found_under_their_headings(tmp_path):
    written = [
        cell("markdown", "# Title?\nC009 first"),
        cell("markdown", "## 2. Two\ntext\n### Part of two\n### Exercise 03.1 · Not a part"),
        cell("code", "assert True", "claim:C001", "claim:C002", "nbval-ignore-output"),
        cell("markdown", "## The end\n| C003, C005–C007 | or C010 to C012 |"),
        cell("code", "C099"),
    ]
    path = tmp_path / "03_toy.ipynb"
    path.write_text(json.dumps({"cells": written}), encoding="utf-8")
    found = [(name, place.label, place.heading, place.asserted) for name, place in where.places_in(path, "03")]
    end = [(f"C{number:03}", "03, The end", "The end", False) for number in (3, 5, 6, 7, 10, 11, 12)]
    two = [(f"C00{number}", "03 §2", "Part of two", True) for number in (1, 2)]
    assert found == [("C009", "03, Title?", "Title?", False), *two, *end]
    link = next(place.link for name, place in where.places_in(path, "03") if name == "C001")
    assert link == "03_toy.ipynb#cell-id=id-11"


def test_every_link_names_a_cell_of_a_notebook():
    ids = {
        entry.filename: {cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
        for entry in NOTEBOOKS
        if (path := path_of(entry))
    }
    for found in claims.places().values():
        for place in found:
            assert place.cell in ids[place.filename]
            assert re.fullmatch(r"[\w.-]+#cell-id=[\w-]+", place.link)  # nothing that a browser would write otherwise


# Finding and showing ------------------------------------------------------------------------------------


def test_conditions_narrow_the_search():
    assert claims.find() == LEDGER.claims
    assert {(row.topic, row.verdict) for row in claims.find(topic=6, verdict="false")} == {(6, "false")}
    assert all(2 in row.texts and row.verdict == "imprecise" for row in claims.find(text=2, verdict="imprecise"))
    assert claims.find("MASK") == claims.find("mask")
    assert claims.find("mask zebra") == ()
    assert set(claims.find("mask padding")) == set(claims.find("mask")) & set(claims.find("padding"))
    assert claims.find("C164") == (claims.get("C164"),)
    assert all("06" in {place.notebook for place in claims.shown_in(row)} for row in claims.find(notebook="06"))
    assert claims.get("C164") in claims.find(notebook="06")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: claims.get("C353"), "claim_id must be one of C001 to C352, got 'C353'"),
        (lambda: claims.show("R99"), "claim_id must be one of C001 to C352, got 'R99'"),
        (lambda: claims.find(verdict="wrong"), "verdict must be one of true, imprecise, .*, got 'wrong'"),
        (lambda: claims.find(text=6), "text must be 1 to 5, got 6"),
        (lambda: claims.find(topic=18), "topic must be 0 to 17, got 18"),
        (lambda: claims.errata(kind="typo"), "kind must be one of number, .*, got 'typo'"),
    ],
)
def test_a_wrong_name_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_one_row_is_shown_with_its_link_and_its_correction():
    shown = claims.show("C164")
    assert shown.markdown.startswith("**C164** · text 5 §3.2 · Positional encoding · **✗ false**")
    assert "*Correction R01:*" in shown.markdown
    assert re.search(r"\[06: [^]]+\]\(06_positional_encoding\.ipynb#cell-id=[\w-]+\)", shown.markdown)
    assert repr(shown) == shown._repr_mimebundle_()["text/plain"] == claims.plain(shown.text)
    assert "What is right" not in claims.show("C163").markdown
    correction = claims.show("R04").markdown
    assert "*Rows:* C287, C288" in correction
    assert "(B_register_of_claims.ipynb#cell-id=" in correction


def test_a_table_has_a_line_for_each_row_and_as_many_columns_as_its_head():
    for rows in (LEDGER.claims, LEDGER.errata, claims.find("zebra")):
        lines = claims.table(rows).markdown.splitlines()
        assert len(lines) == len(rows) + 2
        assert {line.count("|") for line in lines} == {lines[0].count("|")}
    found = claims.find(topic=14)
    assert claims.table(found).text == f"{len(found)} rows, {found[0].id} to {found[-1].id}"
    assert claims.table(claims.find("C164")).text == "1 row, C164 to C164"
    assert claims.table(()).text == "0 rows"


def test_a_section_is_linked_once():
    sections = {row: {place.label for place in claims.shown_in(row)} for row in LEDGER.claims}
    assert any(len(claims.shown_in(row)) > len(found) for row, found in sections.items())
    for row, found in sections.items():
        assert claims.table([row]).markdown.splitlines()[2].count("](") == len(found)


def test_a_section_stays_on_one_line():
    line = claims.table([claims.get("C157")]).markdown.splitlines()[2]
    assert "| 5\u00a0eq\u00a02 |" in line
    assert "[06\u00a0§" in line


def test_corrections_of_a_claim_or_a_kind():
    assert [entry.id for entry in claims.errata("C164")] == ["R01"]
    assert sum(len(claims.errata(kind=kind)) for kind in claims.KINDS) == len(claims.errata()) == len(LEDGER.errata)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        (r"divide by $\sqrt{d_k}$", "divide by √d_k"),
        (r"$\sqrt{a + b}$ and $\sqrt 4$", "√(a + b) and √4"),
        (r"$QK^\top/\sqrt{d_k} + M$ is $n \times n$", "QKᵀ/√d_k + M is n × n"),
        (r"$10000^{-2j/d}$, $2^n - 1$, $d^2$, $10^{-10}$", "10000^(−2j/d), 2ⁿ − 1, d², 10⁻¹⁰"),
        (r"$3{,}072$ of $2nd\,d_{ff}$", "3,072 of 2nd d_ff"),
        (r"$\frac{1}{n}$, $\mathrm{softmax}(-\infty) \le 0$", "1/n, softmax(−∞) ≤ 0"),
        ("`<end>` is **no** input - at all", "<end> is no input - at all"),
    ],
)
def test_formulas_as_characters(markdown, text):
    assert view.plain(markdown) == text


def test_no_formula_of_the_register_is_left_in_latex():
    texts = [text for row in LEDGER.claims for text in (row.claim, row.right)]
    texts += [text for row in LEDGER.errata for text in (row.title, row.says, row.why, row.right)]
    assert [text for text in texts if re.search(r"[\\${}]", view.plain(text))] == []


# The register, notebook B --------------------------------------------------------------------------------


def stored(call):
    """The Markdown that the cell with exactly this code has stored."""
    (found,) = (cell for cell in CELLS if "".join(cell["source"]) == call)
    return "".join(found["outputs"][0]["data"]["text/markdown"])


@pytest.mark.parametrize("topic", range(len(LEDGER.topics)))
def test_the_register_shows_what_data_and_tags_say_now(topic):
    now = claims.table(claims.find(topic=topic)).markdown
    assert stored(f"tl.claims.table(tl.claims.find(topic={topic}))") == now, STALE


@pytest.mark.parametrize("kind", claims.KINDS)
def test_the_register_shows_the_corrections(kind):
    now = claims.table(claims.errata(kind=kind)).markdown
    assert stored(f'tl.claims.table(tl.claims.errata(kind="{kind}"))') == now, STALE


def test_headings_of_the_register_are_the_topics_and_kinds():
    prose = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
    headings = re.findall(r"^### (.+)$", prose, flags=re.MULTILINE)
    by_topic = prose[prose.index("## 2. ") : prose.index("## 3. ")]
    assert tuple(re.findall(r"^### (.+)$", by_topic, flags=re.MULTILINE)) == LEDGER.topics
    assert set(claims.KINDS.values()) <= set(headings)


def test_the_section_of_the_register_that_settles_rows_is_the_one_that_says_so():
    headings = re.findall(r"^## (.*)$", "\n".join("".join(cell["source"]) for cell in CELLS), re.MULTILINE)
    assert f"{where.SETTLED_THERE}. Rows that no lesson needs" in headings
