"""The form of notebook A says what is missing, whether the run could have failed, and whether the verdict fits."""

from __future__ import annotations

import pytest

from transformer_lib.course.lab.claim_form import FIELDS, review

pytestmark = pytest.mark.fast

WHOLE = {
    "where": "a text, section 5",
    "claim": "3 times 7 is 21",
    "unit": "a whole number",
    "printed": 21,
    "refuted_by": 22,
    "run": lambda printed: printed == 3 * 7,
    "verdict": "true",
    "fair": "it is so",
}


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({}, ["✓ the run accepts 21 and rejects 22: it could have failed.", "✓ Your verdict is true, and"]),
        ({"run": lambda _: True}, ["✗ the run accepts 21 and accepts 22: it did not notice", "✓ Your verdict is true"]),
        ({"printed": 20}, ["✓ the run rejects 20 and rejects 22", "✗ Your verdict is true, but the run rejects"]),
        ({"verdict": "false"}, ["✓ the run accepts 21", "✗ Your verdict is false, but the run accepts"]),
        ({"verdict": "imprecise"}, ["✓ the run accepts 21", "✓ Your verdict is imprecise, and the run accepts"]),
        ({"claim": "", "fair": None}, ["○ claim: one sentence", "○ fair: what the author"]),
        ({"verdict": "cannot be checked", "run": None, "printed": None}, ["✓ Nothing runs here"]),
        ({"printed": 0, "refuted_by": 21, "run": lambda printed: printed == 0}, ["✓ the run accepts 0", "✓ Your"]),
    ],
)
def test_each_form_is_told_what_it_lacks(change, lines, capsys):
    review(WHOLE | change)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(lines)
    assert all(line.startswith(start) for line, start in zip(printed, lines, strict=True))


def test_an_empty_form_lists_its_fields(capsys):
    review({})
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [f"○ {name}" for name in FIELDS]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (WHOLE | {"author": "a"}, "form must have the fields where, claim, .*, got 'author'"),
        (WHOLE | {"verdict": "wrong"}, "verdict must be one of true, imprecise, .*, got 'wrong'"),
    ],
)
def test_what_is_no_form_is_refused(form, message):
    with pytest.raises(ValueError, match=message):
        review(form)
