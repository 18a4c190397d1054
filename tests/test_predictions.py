"""Predictions: what may be said, how it compares with what came out, what is kept, and that notebooks use each once."""

from __future__ import annotations

import json
import re

import pytest

from transformer_lib.course import notebooks, predictions, progress
from transformer_lib.course.cells import source_of, tags_of
from transformer_lib.course.predictions import outcome, predict
from transformer_lib.course.predictions.bank import PREDICTIONS
from transformer_lib.course.predictions.model import SURPRISES, Choice, Number
from transformer_lib.course.predictions.view import plain
from transformer_lib.course.progress.guesses import Guess

pytestmark = pytest.mark.fast

COUNT = Number("07.p3", "How many?", 0, 19, close=2)
SHARE = Number("07.p5", "Which share?", 0, 1, close=0.05, decimals=2)
PICK = Choice("07.p7", "Which `one`?", ("This.", "That.", "None."), right="B")


@pytest.fixture(autouse=True)
def own_bank(monkeypatch):
    """Three predictions of the test's own, and a kernel that has just started."""
    monkeypatch.setattr(predictions, "PREDICTIONS", (COUNT, SHARE, PICK))
    restart(monkeypatch)


def restart(monkeypatch):
    monkeypatch.setattr(predictions, "_said", {})
    monkeypatch.setattr(predictions, "_seen", set())


@pytest.mark.parametrize(
    ("asked", "said", "came", "right", "begins"),
    [
        (COUNT, "12", 12, True, "You said 12, and 12 it is."),
        (COUNT, "11", 13, True, "You said 11, it is 13: close enough."),
        (COUNT, "9", 12, False, "You said 9, it is 12. "),
        (COUNT, "", 12, None, "It is 12."),
        (SHARE, "0.2", 0.2049, True, "You said 0.2, and 0.20 it is."),
        (SHARE, "0.2", 0.0001, False, "You said 0.2, it is 0.00. "),
        (PICK, "B", None, True, "You said B, and so it is. B: That."),
        (PICK, "A", None, False, "You said A, it is B: That. "),
        (PICK, "", None, None, "It is B: That."),
    ],
)
def test_what_was_said_is_compared_with_what_came(asked, said, came, right, begins):
    comparison = asked.compare(asked.read(said) if said else "", came)
    assert (comparison.right, comparison.text.startswith(begins)) == (right, True), comparison
    assert (right is False) == any(surprise in comparison.text for surprise in SURPRISES)


@pytest.mark.parametrize(
    ("asked", "said", "kept"), [(COUNT, 7, "7"), (COUNT, " 7,0 ", "7"), (SHARE, "0,25", "0.25"), (PICK, "b ", "B")]
)
def test_a_prediction_may_be_written_as_people_do(asked, said, kept):
    assert asked.read(said) == kept


@pytest.mark.parametrize("said", ["", "many", "-1", 20, "nan", None])
def test_a_number_that_cannot_be_is_named(said):
    with pytest.raises(ValueError, match=re.escape(f"said must be a number from 0 to 19, got {said!r}")):
        COUNT.read(said)


@pytest.mark.parametrize("said", ["", "D", "AB", 1])
def test_an_option_that_is_not_there_is_named(said):
    with pytest.raises(ValueError, match=re.escape(f"said must be one of A, B, C, got {said!r}")):
        PICK.read(said)


def test_what_comes_out_must_fit_what_was_asked():
    with pytest.raises(TypeError, match="came must be the number that came out, for 07.p3, got None"):
        outcome("07.p3")
    with pytest.raises(TypeError, match="came must be left out, since 07.p7 asks for an option, got 3"):
        outcome("07.p7", 3)
    with pytest.raises(ValueError, match="prediction_id must be one of 07.p3, 07.p5, 07.p7, got '07.p1'"):
        predict("07.p1")


def test_a_prediction_is_kept_and_its_outcome_with_it(capsys):
    predict("07.p3", 9)
    predict("07.p3", "10")  # until the cell has run, one may think again
    outcome("07.p3", 12)
    outcome("07.p3", 12)
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert (first, second) == ("Noted: 9. Now run the cell below.", "Noted: 10. Now run the cell below.")
    assert third.startswith("You said 10, it is 12: close enough.") and fourth == third
    kept = progress.said("07.p3")
    assert (kept.said, kept.right) == ("10", True)


def test_what_is_known_is_not_predicted(capsys, monkeypatch):
    outcome("07.p3", 12)
    predict("07.p3", 12)
    assert "not counted" in capsys.readouterr().out.splitlines()[-1]
    assert progress.said("07.p3") is None
    restart(monkeypatch)  # another day: it may be forgotten
    predict("07.p3", 5)
    outcome("07.p3", 12)
    predict("07.p3", 12)
    assert "You committed to 5" in capsys.readouterr().out.splitlines()[-1]
    assert (progress.said("07.p3").said, progress.said("07.p3").right) == ("5", False)


def test_a_prediction_survives_a_restart_of_the_kernel(capsys, monkeypatch):
    predict("07.p7", "b")
    restart(monkeypatch)
    outcome("07.p7")
    assert capsys.readouterr().out.splitlines()[-1] == "You said B, and so it is. B: That."


def test_stored_outputs_hold_nobodys_prediction(capsys, monkeypatch):
    predict("07.p3", 9)
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "1")
    outcome("07.p3", 12)
    predict("07.p5", 0.5)
    assert capsys.readouterr().out.splitlines()[1] == "It is 12."
    monkeypatch.delenv("TRANSFORMER_COURSE_STATIC")
    assert progress.said("07.p5") is None and progress.said("07.p3").right is None


def buttons(view):
    return [line.children[0] for line in view.widget.children[1:-1]]


def test_options_are_buttons_and_the_last_one_pressed_counts():
    view = predict("07.p7")
    first, second, _ = buttons(view)
    first.click()
    second.click()
    assert [each.button_style for each in buttons(view)] == ["", "info", ""]
    assert "Noted: B." in view.widget.children[-1].value
    assert progress.said("07.p7").said == "B"


def test_a_number_is_typed_and_committed_by_enter():
    view = predict("07.p5")
    box, button = view.widget.children[1].children
    box.value = "a lot"
    button.click()
    assert "said must be a number from 0 to 1, got" in view.widget.children[-1].value
    box.value = "0,3"
    box._msg_callbacks(box, {"event": "submit"}, [])
    assert "Noted: 0.3." in view.widget.children[-1].value
    assert progress.said("07.p5").said == "0.3"
    assert "You said 0.3 on" in predict("07.p5").widget.children[-1].value


def test_a_page_without_a_kernel_shows_the_question_and_no_answer():
    shown = predict("07.p7")._repr_mimebundle_()
    assert shown["text/html"].count("<li>") == 3 and "<code>one</code>" in shown["text/html"]
    assert shown["text/plain"].splitlines()[-1] == '  By text: predict("07.p7", "letter")'
    assert "right" not in shown["text/html"]


def test_progress_draws_how_often_one_was_right(monkeypatch):
    assert "No prediction has met its outcome yet" in repr(progress.predictions())
    for name, right in (("09.p2", True), ("09.p10", False), ("00.p1", True), ("09.p1", False), ("00.p2", None)):
        progress.say(name, "3", right)
    lines = repr(progress.predictions()).splitlines()
    assert lines[0].startswith("2 of 4 predictions came true.")
    assert lines[1:3] == ["  00  ●  1 of 1", "  09  ○●○  1 of 3"]
    html = progress.predictions()._repr_mimebundle_()["text/html"]
    assert html.count("<tr>") == 3 and "1 of 3" in html
    progress.reset()
    assert progress.said("09.p2") is None


def test_a_progress_file_from_before_predictions_is_still_read():
    progress.path().parent.mkdir(parents=True)
    progress.path().write_text(json.dumps({"version": 1, "passed": {"quiz": {"00.q1": "2026-01-02"}}}))
    assert progress.said("00.p1") is None
    assert progress.say("00.p1", "7")
    assert progress.state()["quiz"] == {"00.q1": "2026-01-02"}


@pytest.mark.parametrize("kept", ["", "2026-11-27", "2026-11-27 right", "2026-11-27 wrong 3"])
def test_a_damaged_entry_counts_as_nothing(kept):
    assert Guess.read(kept) is None


# The notebooks


def calls(name):
    """{notebook: [(cell, id)]} of the calls of `predict` or `outcome`, in order."""
    found = {}
    for entry in notebooks.NOTEBOOKS:
        cells = json.loads(notebooks.file_of(entry).read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] == "code":
                ids = re.findall(rf'^\s*{name}\("([\w.]+)"', source_of(cell), re.MULTILINE)
                found.setdefault(entry.id, []).extend((cell, each) for each in ids)
    return found


def test_each_prediction_is_asked_once_and_then_compared_in_its_notebook():
    asked, told = calls("predict"), calls("outcome")
    for entry in notebooks.NOTEBOOKS:
        here = [each.id for each in PREDICTIONS if each.id.startswith(f"{entry.id}.")]
        assert [name for _, name in asked.get(entry.id, [])] == here == [name for _, name in told.get(entry.id, [])]
        assert all("predict" in tags_of(cell) for cell, _ in asked.get(entry.id, []))
    assert sum(map(len, asked.values())) == len(PREDICTIONS) == len({each.id for each in PREDICTIONS})


@pytest.mark.parametrize("entry", PREDICTIONS, ids=lambda entry: entry.id)
def test_the_line_for_a_text_form_suggests_no_option(entry):
    shown = re.search(r'By text: predict\("(.*)", "?(\w+)"?\)$', plain(entry))
    assert shown and shown[1] == entry.id
    with pytest.raises(ValueError, match="said must be"):
        entry.read(shown[2])


@pytest.mark.parametrize("entry", PREDICTIONS, ids=lambda entry: entry.id)
def test_each_prediction_can_be_right_and_wrong(entry):
    if isinstance(entry, Choice):
        assert entry.right in entry.letters and len(set(entry.options)) == len(entry.options) >= 3
    else:
        assert entry.low < entry.high and 2 * entry.close < (entry.high - entry.low) / 2
