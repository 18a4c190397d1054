"""Look up rows of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .model import KINDS, VERDICTS, Claim, Erratum, load
from .where import Place, places


def get(claim_id: str) -> Claim:
    """Return the claim with this id, such as "C168".

    Raises:
        ValueError: if there is none.
    """
    for row in load().claims:
        if row.id == claim_id:
            return row
    raise ValueError(f"claim_id must be one of C001 to {load().claims[-1].id}, got {claim_id!r}")


def topics() -> tuple[str, ...]:
    """Return the names of the topics, in order."""
    return load().topics


def shown_in(claim: Claim) -> tuple[Place, ...]:
    """Return the cells that settle a claim: those that assert it or, where nothing can be executed, the prose."""
    return tuple(place for place in places().get(claim.id, ()) if place.asserted != claim.prose)


def find(
    words: str = "",
    *,
    verdict: str | None = None,
    text: int | None = None,
    topic: int | None = None,
    notebook: str | None = None,
) -> tuple[Claim, ...]:
    """Return the claims that fit all conditions, in order.

    Args:
        words: each must occur in the claim, its source or its correction; upper and lower case count as equal.
        verdict: one of VERDICTS.
        text: number of the text, 1 to 5.
        topic: index of the topic.
        notebook: number of a notebook that settles the claim, such as "06".

    Raises:
        ValueError: if there is no such verdict, text or topic.
    """
    if verdict is not None and verdict not in VERDICTS:
        raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}")
    for name, value, first, count in (("text", text, 1, len(load().texts)), ("topic", topic, 0, len(topics()))):
        if value is not None and value not in range(first, first + count):
            raise ValueError(f"{name} must be {first} to {first + count - 1}, got {value!r}")
    wanted = words.lower().split()
    return tuple(
        row
        for row in load().claims
        if (verdict is None or row.verdict == verdict)
        and (text is None or text in row.texts)
        and (topic is None or row.topic == topic)
        and (notebook is None or notebook in {place.notebook for place in shown_in(row)})
        and all(word in f"{row.id} {row.text} {row.claim} {row.right}".lower() for word in wanted)
    )


def counts(rows: Iterable[Claim]) -> dict[str, int]:
    """Count the rows of each verdict, in the order of VERDICTS."""
    found = Counter(row.verdict for row in rows)
    return {verdict: found[verdict] for verdict in VERDICTS}


def errata(claim_id: str | None = None, *, kind: str | None = None) -> tuple[Erratum, ...]:
    """Return all corrections, or those that concern one claim, or those of one kind.

    Raises:
        ValueError: if there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return tuple(
        row
        for row in load().errata
        if (claim_id is None or claim_id in row.claims) and (kind is None or row.kind == kind)
    )
