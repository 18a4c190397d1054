"""W23, the claim browser: choose text, verdict and notebook, and go through the claims that fit."""

from __future__ import annotations

from functools import cache

from ...._validate import check_choice
from ...claims import COLOURS, VERDICTS, Claim, find, load, plain, shown_in
from ...claims.view import commented
from ...notebooks import NOTEBOOKS
from ..svg import claim_card
from ..svg.elements import Picture, escape
from .controls import choice, number
from .panel import Panel

ALL = "all"


def claim_browser(*, text: int | str = ALL, verdict: str = ALL, notebook: str = ALL, row: int = 1) -> Panel:
    """Choose which claims to see and go through them: the verdict, what is right, and links to the cells.

    Args:
        text: number of the text, 1 to 5, or "all".
        verdict: one of `claims.VERDICTS`, or "all".
        notebook: number of the notebook that settles the claim, such as "06", or "all".
        row: which of the claims that fit.

    Raises:
        ValueError: if there is no such text, verdict, notebook or row.
    """
    texts = [ALL, *range(1, len(load().texts) + 1)]
    used = {place.notebook for claim in load().claims for place in shown_in(claim)}
    notebooks = [ALL, *(entry.id for entry in NOTEBOOKS if entry.id in used)]
    allowed = {"text": (text, texts), "verdict": (verdict, [ALL, *VERDICTS]), "notebook": (notebook, notebooks)}
    controls = {
        name: choice(name, options, check_choice(name, value, options)) for name, (value, options) in allowed.items()
    }
    controls["row"] = number("row", row, 1, len(load().claims))
    return Panel(draw_claims, controls, widget_id="W23", footer=_links)


def draw_claims(text: int | str, verdict: str, notebook: str, row: int) -> Picture:
    """Draw the map of all claims, those that fit in colour, and in words the one with this number among them."""
    rows = fitting(text, verdict, notebook)
    claim = chosen(rows, row)
    topics = load().topics
    by_topic = [[(c.id, c.verdict) for c in load().claims if c.topic == i] for i in range(len(topics))]
    body = claim_card.ledger_map(topics, by_topic, {c.id for c in rows}, claim.id if claim else None, VERDICTS, COLOURS)
    top = claim_card.map_height(topics) + 8
    if claim:
        head = f"{claim.id} · text {claim.text} · {VERDICTS[claim.verdict]} {claim.verdict}"
        body += claim_card.in_words(head, plain(claim.claim), plain(commented(claim)), top)
        says = f"row {rows.index(claim) + 1} of {len(rows)}: {claim.id} is {claim.verdict}"
        words = f" {plain(claim.claim)} {plain(commented(claim))}".rstrip()
    else:
        says, words = "no claim fits: choose “all” in one of the lines", ""
    alt = f"A square for each of {len(load().claims)} claims, a row for each topic; {len(rows)} are filled."
    alt += f" {says[0].upper()}{says[1:]}.{words}"
    return Picture(body, claim_card.WIDTH, top + claim_card.words_height(), alt, says)


@cache
def fitting(text: int | str, verdict: str, notebook: str) -> tuple[Claim, ...]:
    """Return the claims that fit; "all" sets no condition."""
    conditions = {"text": text, "verdict": verdict, "notebook": notebook}
    return find(**{name: value for name, value in conditions.items() if value != ALL})


def chosen(rows: tuple[Claim, ...], row: int) -> Claim | None:
    """Return the row-th of them, counted from 1, or the last when there are fewer."""
    return rows[min(row, len(rows)) - 1] if rows else None


def _links(text: int | str, verdict: str, notebook: str, row: int) -> str:
    """Return links to the cells that settle the claim."""
    claim = chosen(fitting(text, verdict, notebook), row)
    places = shown_in(claim) if claim else ()
    links = {
        place.label: f'<a href="{escape(place.link)}">{place.notebook}: {escape(plain(place.heading))}</a>'
        for place in reversed(places)
    }
    return f"<p>Shown in {' · '.join(reversed(links.values()))}</p>" if links else "<p>–</p>"
