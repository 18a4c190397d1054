"""The rows of data/claims.json, and the rules that they keep."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..._files import DATA

CLAIMS = DATA / "claims.json"
VERDICTS = {"true": "✓", "imprecise": "△", "false": "✗", "cannot be checked": "?"}
"""The four verdicts, each with its sign. Imprecise: true only under a condition that the text leaves out."""
COLOURS = {"true": "#9ecae1", "imprecise": "#f0a800", "false": "#c1272d", "cannot be checked": "#8c8c8c"}
"""The colour of each verdict in figures."""

KINDS = {
    "number": "Wrong numbers",
    "statement": "False statements and formulas",
    "condition": "True under a condition that is missing",
    "damage": "Lost or damaged",
}
"""The kinds of corrections, each with a heading."""


@dataclass(frozen=True)
class Claim:
    """One statement of a text.

    Args:
        id: "C001", "C002", …
        text: which of the texts, and where, such as "5 §3.2"; several are separated by ";".
        topic: index of its topic.
        claim: the statement, in our words.
        verdict: one of VERDICTS.
        right: the correction, or the condition under which the claim holds; may be empty when it is true.
        prose: True when nothing can be executed, so that a notebook answers it in words.
    """

    id: str
    text: str
    topic: int
    claim: str
    verdict: str
    right: str = ""
    prose: bool = False

    @property
    def texts(self) -> tuple[int, ...]:
        """Numbers of the texts that make the statement; none for a check of our own."""
        return tuple(int(number) for number in re.findall(r"(?:^|; )(\d)\b", self.text))


@dataclass(frozen=True)
class Erratum:
    """One correction.

    Args:
        id: "R01", "R02", …
        kind: one of KINDS.
        title: a few words.
        claims: ids of the rows it concerns.
        says: what is printed, in our words.
        why: why that is wrong, or which condition is missing.
        right: what is right.
    """

    id: str
    kind: str
    title: str
    claims: tuple[str, ...]
    says: str
    why: str
    right: str


@dataclass(frozen=True)
class Ledger:
    """All claims and corrections, with the descriptions of the texts and the names of the topics."""

    texts: tuple[str, ...]
    topics: tuple[str, ...]
    claims: tuple[Claim, ...]
    errata: tuple[Erratum, ...]


def ledger(data: Mapping[str, Any]) -> Ledger:
    """Return the ledger made of a JSON object with the keys texts, topics, claims, errata.

    Raises:
        ValueError: if a row breaks a rule; the message names every such row.
    """
    claims = tuple(Claim(**row) for row in data["claims"])
    errata = tuple(Erratum(**row | {"claims": tuple(row["claims"])}) for row in data["errata"])
    whole = Ledger(tuple(data["texts"]), tuple(data["topics"]), claims, errata)
    problems = list(_problems(whole))
    if problems:
        raise ValueError("claims: " + "; ".join(problems))
    return whole


@cache
def load(path: Path = CLAIMS) -> Ledger:
    """Return the ledger of the course.

    Raises:
        ValueError: if a row breaks a rule.
    """
    return ledger(json.loads(path.read_text(encoding="utf-8")))


def _problems(whole: Ledger) -> Iterator[str]:
    """Yield one sentence for each rule that a row breaks."""
    tables: tuple[tuple[str, int, Sequence[Claim | Erratum]], ...] = (("C", 3, whole.claims), ("R", 2, whole.errata))
    for letter, width, rows in tables:
        for number, row in enumerate(rows, start=1):
            if row.id != f"{letter}{number:0{width}}":
                yield f"expected {letter}{number:0{width}}, found {row.id}"
    yield from _claim_problems(whole)
    yield from _erratum_problems(whole)


def _claim_problems(whole: Ledger) -> Iterator[str]:
    for row in whole.claims:
        if row.verdict not in VERDICTS:
            yield f"{row.id} has the unknown verdict {row.verdict!r}"
        if row.verdict != "true" and not row.right:
            yield f"{row.id} is {row.verdict}, and nothing says what is right"
        if not 0 <= row.topic < len(whole.topics):
            yield f"{row.id} has the unknown topic {row.topic}"
        if any(not 1 <= number <= len(whole.texts) for number in row.texts):
            yield f"{row.id} names an unknown text: {row.text!r}"
        yield from _bad_texts(row.id, row.text, row.claim, row.right or "-")


def _erratum_problems(whole: Ledger) -> Iterator[str]:
    known = {row.id for row in whole.claims}
    for row in whole.errata:
        if row.kind not in KINDS:
            yield f"{row.id} has the unknown kind {row.kind!r}"
        for claim in row.claims:
            if claim not in known:
                yield f"{row.id} names the unknown claim {claim}"
        yield from _bad_texts(row.id, row.title, row.says, row.why, row.right)


def _bad_texts(name: str, *texts: str) -> Iterator[str]:
    """Yield what keeps a text from standing in a cell of a Markdown table: bars, line breaks, half formulas."""
    for text in texts:
        if not text.strip():
            yield f"{name} has an empty text"
        if "|" in text or "\n" in text:
            yield f"{name} has a bar or a line break, which end a table's cell: {text!r}"
        if text.count("$") % 2:
            yield f"{name} has half a formula: {text!r}"
