"""W23, the claim browser: what fits is drawn, counted, told in words, and linked."""

from __future__ import annotations

from svg_parts import number, parts
from transformer_lib.course import claims
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import claim_card
from transformer_lib.course.figures.widgets.claims_panel import draw_claims


def squares(picture):
    """Return how many squares of each colour lie in the map, its key left out."""
    return {verdict: picture.body.count(f'fill="{colour}"') - 1 for verdict, colour in claims.COLOURS.items()}


def test_all_claims_are_drawn_once_in_their_colours():
    picture = draw_claims("all", "all", "all", 1)
    assert squares(picture) == claims.counts(claims.load().claims)
    assert picture.says == "row 1 of 352: C001 is cannot be checked"


def test_what_does_not_fit_is_an_outline():
    picture = draw_claims("all", "false", "06", 2)
    rows = claims.find(verdict="false", notebook="06")
    assert squares(picture) == {"true": 0, "imprecise": 0, "false": len(rows), "cannot be checked": 0}
    assert picture.says == f"row 2 of {len(rows)}: {rows[1].id} is false"
    assert picture.body.count('fill="none" stroke="var(--jp-border-color1, #bbb)"') == 352 - len(rows)
    assert claims.plain(rows[1].claim) in picture.alt


def test_a_number_beyond_the_last_row_shows_the_last():
    last = claims.find(text=4)[-1]
    assert draw_claims(4, "all", "all", 300).says.endswith(f"{last.id} is {last.verdict}")


def test_nothing_fits():
    picture = draw_claims(4, "false", "16", 1)
    assert picture.says == "no claim fits: choose “all” in one of the lines"
    assert sum(squares(picture).values()) == 0
    assert widgets.claim_browser(text=4, verdict="false", notebook="16")._foot == "<p>–</p>"


def test_no_claim_is_cut_off():
    for row in claims.load().claims:
        for text, most in ((row.claim, "claim"), (f"What is right: {row.right}", "comment")):
            assert not claim_card.wrapped(claims.plain(text), claim_card.LINES[most])[-1].endswith("…"), row.id


def test_wrapping_breaks_between_words_and_says_when_it_cuts():
    assert claim_card.wrapped("one two three", 2, width=60) == ["one two", "three"]
    assert claim_card.wrapped("one two three", 1, width=60) == ["one t …"]
    assert claim_card.wrapped("unbreakable", 2, width=10) == ["unbreakable"]


def test_the_frame_marks_the_chosen_square():
    drawn = claim_card.ledger_map(
        ["a", "b"], [[("C1", "true")], [("C2", "true"), ("C3", "false")]], {"C2"}, "C3", claims.VERDICTS, claims.COLOURS
    )
    boxes = parts(drawn, "rect")
    frame = max(boxes, key=lambda box: number(box, "width"))
    squares = sorted((number(box, "y"), number(box, "x"), number(box, "width")) for box in boxes if box is not frame)
    first, second, (y, x, side) = squares[-3:]  # below the legend: C1, and under it C2 and C3
    assert first[0] < second[0] and second[1] < x
    assert second[1] < number(frame, "x") < x and x + side < number(frame, "x") + number(frame, "width")
    assert first[0] < number(frame, "y") < y and y + side < number(frame, "y") + number(frame, "height")


def test_links_lead_to_the_cells():
    panel = widgets.claim_browser(verdict="false", row=2)
    for nth, row in enumerate(claims.find(verdict="false")[:5], 1):
        panel.set(row=nth)
        assert {f">{place.notebook}: " in panel._foot for place in claims.shown_in(row)} == {True}
        assert claims.shown_in(row)[0].link in panel._foot
        assert f"{row.id} is false" in panel.picture.says
