"""The register of claims: the rows of register.json, where each is settled, and the tables of its page.

A row is settled by cells of notebooks, tagged `claim:C164`, or by tests that say `@settles("C164")`; where nothing can
be executed (`"prose": true`), the row itself says why.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from transformer_lib.course.cells import source_of, tags_of
from transformer_lib.course.notebooks import NOTEBOOKS, file_of

Row = Mapping[str, Any]

REGISTER = Path(__file__).parent / "register.json"
TESTS = sorted((REGISTER.parents[1] / "tests").glob("test_register_*.py"))
VERDICTS = {"true": "✓", "imprecise": "△", "false": "✗", "cannot be checked": "?"}
"""The four verdicts, each with its sign. Imprecise: true only under a condition that the text leaves out."""
KINDS = {
    "number": "Wrong numbers",
    "statement": "False statements and formulas",
    "condition": "True under a condition that is missing",
    "damage": "Lost or damaged",
}
"""The kinds of corrections, each with a heading."""
HEADS = {
    "claims": ("id", "text", "claim", "verdict", "what is right, or to add", "settled in"),
    "errata": ("", "what", "printed", "why it is wrong", "what is right", "rows", "settled in"),
}


class Place(NamedTuple):
    """What settles a row: where, such as "05 §3" or the name of a test, and a cell's address; "" for a test."""

    label: str
    link: str


@cache
def load(path: Path = REGISTER) -> dict[str, Any]:
    """Return the register: "texts", "topics", "claims" and "errata"."""
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def places() -> Mapping[str, tuple[Place, ...]]:
    """Return the places of every claim that something settles, by its id: cells in order, then tests."""
    found: defaultdict[str, list[Place]] = defaultdict(list)
    cells = (pair for entry in NOTEBOOKS for pair in tagged(file_of(entry), entry.id))
    for claim, place in (*cells, *(pair for path in TESTS for pair in settled(path))):
        if place not in found[claim]:
            found[claim].append(place)
    return {claim: tuple(rows) for claim, rows in found.items()}


def tagged(path: Path, notebook: str) -> Iterator[tuple[str, Place]]:
    """Yield a claim's id and its place for every tag in a notebook's file."""
    label = notebook
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            for title in re.findall(r"^## +(.+)", source_of(cell), re.MULTILINE):
                number = re.match(r"(\d+)\. ", title)
                label = f"{notebook}\u00a0§{number[1]}" if number else f"{notebook}, {title}"
        for tag in tags_of(cell):
            if tag.startswith("claim:"):
                yield tag.removeprefix("claim:"), Place(label, f"../notebooks/{path.stem}.html#cell-{cell['id']}")


def settled(path: Path) -> Iterator[tuple[str, Place]]:
    """Yield a claim's id and its place for every test of a file that says what it settles."""
    for test in ast.parse(path.read_text(encoding="utf-8")).body:
        for mark in test.decorator_list if isinstance(test, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "settles":
                yield from ((ast.literal_eval(claim), Place(f"`{test.name}`", "")) for claim in mark.args)


def problems(whole: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each rule that a row breaks."""
    for table, letter, width in (("claims", "C", 3), ("errata", "R", 2)):
        for number, row in enumerate(whole[table], start=1):
            if row["id"] != f"{letter}{number:0{width}}":
                yield f"expected {letter}{number:0{width}}, found {row['id']}"
            yield from bad_texts(row)
    known = {row["id"] for row in whole["claims"]}
    for row in whole["claims"]:
        yield from bad_claim(row, len(whole["topics"]), len(whole["texts"]))
    for row in whole["errata"]:
        if row["kind"] not in KINDS:
            yield f"{row['id']} has the unknown kind {row['kind']!r}"
        yield from (f"{row['id']} names the unknown claim {claim}" for claim in row["claims"] if claim not in known)


def bad_claim(row: Row, topics: int, texts: int) -> Iterator[str]:
    """Yield what is wrong with a claim's verdict, topic, text or correction."""
    if row["verdict"] not in VERDICTS:
        yield f"{row['id']} has the unknown verdict {row['verdict']!r}"
    if (row["verdict"] != "true" or row.get("prose")) and not row.get("right"):
        yield f"{row['id']} is {row['verdict']}, and nothing says what is right"
    if not 0 <= row["topic"] < topics:
        yield f"{row['id']} has the unknown topic {row['topic']}"
    if any(not 1 <= number <= texts for number in texts_of(row)):
        yield f"{row['id']} names an unknown text: {row['text']!r}"


def bad_texts(row: Row) -> Iterator[str]:
    """Yield what keeps a text from standing in a cell of a Markdown table: bars, line breaks, half formulas."""
    for text in (value for key, value in row.items() if isinstance(value, str) and (value or key != "right")):
        if not text.strip():
            yield f"{row['id']} has an empty text"
        if "|" in text or "\n" in text:
            yield f"{row['id']} has a bar or a line break, which end a table's cell: {text!r}"
        if text.count("$") % 2:
            yield f"{row['id']} has half a formula: {text!r}"


def texts_of(row: Row) -> tuple[int, ...]:
    """Return the numbers of the texts that make a claim; none for a check of our own."""
    return tuple(int(number) for number in re.findall(r"(?:^|; )(\d)\b", row["text"]))


def tables() -> str:
    """Return the texts, the corrections of each kind, and the claims of each topic, as Markdown."""
    whole = load()
    parts = ["## The five texts", "\n".join(f"- **Text {i}**: {text}" for i, text in enumerate(whole["texts"], 1))]
    parts += ["## The corrections"]
    for kind, heading in KINDS.items():
        parts += [f"### {heading}", table("errata", (row for row in whole["errata"] if row["kind"] == kind))]
    parts += ["## All claims, by topic"]
    for topic, heading in enumerate(whole["topics"]):
        parts += [f"### {heading}", table("claims", (row for row in whole["claims"] if row["topic"] == topic))]
    return "\n\n".join(parts)


def table(kind: str, rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table with links."""
    cells = claim_cells if kind == "claims" else erratum_cells
    lines = [HEADS[kind], [":---" for _ in HEADS[kind]], *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def claim_cells(row: Row) -> list[str]:
    """Return what stands below the words of the head."""
    verdict = f"{VERDICTS[row['verdict']]} {row['verdict']}"
    where = links(places().get(row["id"], ()))
    return [row["id"], unbroken(row["text"]), row["claim"], verdict, row.get("right") or "–", where]


def erratum_cells(row: Row) -> list[str]:
    """Return what stands below the words of the head."""
    where = links(place for claim in row["claims"] for place in places().get(claim, ()))
    return [*(row[key] for key in ("id", "title", "says", "why", "right")), ", ".join(row["claims"]) or "–", where]


def links(where: Iterable[Place]) -> str:
    """Return one link for each section, to its first cell, and the tests by name."""
    first: dict[str, str] = {}
    for place in where:
        first.setdefault(place.label, place.link)
    named = (f'<a href="{link}">{html.escape(label)}</a>' if link else label for label, link in first.items())
    return ", ".join(named) or "–"


def unbroken(text: str) -> str:
    """Join a section or an equation to what precedes it, so that no line breaks between them."""
    return re.sub(r" (§|eq )", lambda found: "\u00a0" + found[1].replace(" ", "\u00a0"), text)
