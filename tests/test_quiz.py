"""Quizzes: every answer is explained, buttons work, and there is a text form without a kernel."""

from __future__ import annotations

import builtins
import itertools
import math
import re

import pytest
import torch

from transformer_lib.course import notebooks, progress
from transformer_lib.course.quiz import Choice, Number, Option, answer, question, quiz, view
from transformer_lib.course.quiz.bank import QUESTIONS

pytestmark = pytest.mark.fast

CHOICES = [entry for entry in QUESTIONS if isinstance(entry, Choice)]
NUMBERS = [entry for entry in QUESTIONS if isinstance(entry, Number)]


def letter(entry, start):
    """Return the letter of the option whose text begins so."""
    texts = [option.text for option in entry.options]
    return entry.letters[[text.startswith(start) for text in texts].index(True)]


def pieces(entry):
    """Prompt, letter buttons or [box, button], and the reply line of a question's widget."""
    head, *lines, reply = quiz(entry).widget.children
    if isinstance(question(entry), Number):
        return head, lines[0].children, reply
    return head, [line.children[0] for line in lines], reply


# The bank -----------------------------------------------------------------------------------------------


def test_the_course_list_knows_every_question():
    for entry in notebooks.NOTEBOOKS:
        names = [name for kind, name in entry.parts if kind == "quiz"]
        assert names == [q.id for q in QUESTIONS if q.id.split(".")[0] == entry.id]


@pytest.mark.parametrize("entry", CHOICES, ids=lambda entry: entry.id)
def test_one_option_is_right_and_each_is_explained(entry):
    assert [option.right for option in entry.options].count(True) == 1
    assert 3 <= len(entry.options) <= 5
    assert len({option.text for option in entry.options}) == len(entry.options)
    assert all(len(option.why) > 20 for option in entry.options)


def test_no_letter_gives_the_answer_away():
    right = [[option.right for option in entry.options].index(True) for entry in CHOICES]
    assert max(right.count(place) for place in right) <= 0.4 * len(CHOICES)
    assert set(right) >= {0, 1, 2, 3}


def test_the_order_of_the_options_does_not_depend_on_how_they_are_written_down():
    options = [Option(text, "why", right=text == "five") for text in ("two", "three", "five", "seven")]
    orders = {Choice("99.q1", "?", tuple(given)).options for given in itertools.permutations(options)}
    assert len(orders) == 1
    assert len({Choice(f"99.q{n}", "?", tuple(options)).options for n in range(20)}) > 5


@pytest.mark.parametrize("entry", NUMBERS, ids=lambda entry: entry.id)
def test_likely_wrong_numbers_are_explained_and_can_be_entered(entry):
    assert len(entry.near) >= 3
    values = [entry.value, *(value for value, _ in entry.near)]
    assert all(entry.low <= value <= entry.high for value in values)
    for i, first in enumerate(values):
        for second in values[i + 1 :]:
            assert abs(first - second) > 2 * entry.tolerance
    assert entry.reply(entry.value + 10 * entry.high).why == entry.otherwise


def test_the_numbers_are_right():
    softmax = torch.softmax
    expected = {
        "01.q2": softmax(torch.tensor([1.0, 0.0]), 0)[0].item(),
        "02.q1": (softmax(torch.tensor([2.0, 2.0]), 0) @ torch.tensor([2.0, 1.0])).item(),
        "03.q1": softmax(torch.tensor([0.0, 0.0, 0.0, 3.0]), 0)[3].item(),
        "04.q2": softmax(torch.tensor([6.0, 4.0]) / math.sqrt(16), 0)[0].item(),
        "05.q2": 2 * 7,
        "06.q2": 2 * math.pi / 10000 ** (-2 / 4),
        "07.q1": softmax(torch.tensor([1.0, 3.0]).log(), 0)[0].item(),
        "08.q2": math.prod((2, 3, 5, 5)),
        "09.q2": math.comb(6, 3),
        "09.q4": torch.nn.functional.layer_norm(torch.tensor([0.0, 2.0, 2.0, 8.0]), (4,))[3].item(),
        "11.q2": 11,
        "12.q1": 2 * 1 + 2 * 2,
        "13.q1": (5 * 1 + 2 * 4) / (5 + 2),
        "14.q2": max(0.6 * 0.3, 0.4 * 0.9),
        "16.q1": 8**2 / 4**2,
        "18.q2": 6 * 2,
        "18.q3": (1 - 0.9) / math.sqrt(1 - 0.98),
    }
    assert set(expected) == {entry.id for entry in NUMBERS}
    for name, value in expected.items():
        assert question(name).value == pytest.approx(value, abs=question(name).tolerance / 2)
        assert question(name).reply(value).right
    near = dict((value, why) for value, why in question("04.q2").near)
    assert softmax(torch.tensor([6.0, 4.0]), 0)[0].item() == pytest.approx(list(near)[0], abs=1e-3)
    assert softmax(torch.tensor([6.0, 4.0]) / 16, 0)[0].item() == pytest.approx(list(near)[1], abs=1e-3)


# Answers ------------------------------------------------------------------------------------------------


def test_answers_by_text(capsys):
    wrong, right = (letter(question("04.q1"), start) for start in ("It stays the same", "It doubles"))
    answer("04.q1", wrong.lower())
    assert progress.state()["quiz"] == {}
    answer("04.q1", f" {right} ")
    answer("04.q2", "0.62")
    answer("04.q2", 0.88)
    answer("04.q2", 0.1)
    lines = capsys.readouterr().out.splitlines()
    starts = ["✗ Not quite. More terms", "✓ Right. The variance", "✓ Right. 6/4", "✗ Not quite. That is softmax(6, 4)"]
    for line, start in zip(lines, [*starts, "✗ Not quite. Divide both"], strict=True):
        assert line.startswith(start)
    assert sorted(progress.state()["quiz"]) == ["04.q1", "04.q2"]


def test_what_is_no_answer_is_refused():
    with pytest.raises(ValueError, match="answer must be one of A, B, C, D, got 'E'"):
        answer("04.q1", "E")
    with pytest.raises(ValueError, match="answer must be one of A, B, C, D, got ''"):
        answer("04.q1", "")
    with pytest.raises(ValueError, match="answer must be a number, got 'many'"):
        answer("04.q2", "many")
    with pytest.raises(ValueError, match=r"question_id must be one of 00\.q1, .*, got '99.q1'"):
        quiz("99.q1")


# The widget ---------------------------------------------------------------------------------------------


def test_pressing_a_letter_gives_the_explanation():
    head, buttons, reply = pieces("04.q1")
    assert "d_k grows from 64 to 256" in head.value
    assert [button.description for button in buttons] == ["A", "B", "C", "D"]
    by_letter = {button.description: button for button in buttons}
    wrong, right = (letter(question("04.q1"), start) for start in ("It stays the same", "It doubles"))
    assert by_letter[right].tooltip == f"{right}: It doubles."
    by_letter[wrong].click()
    assert "✗ Not quite. More terms" in reply.value
    assert by_letter[wrong].description == f"{wrong} ✗"
    assert progress.state()["quiz"] == {}
    by_letter[right].click()
    assert "✓ Right." in reply.value
    assert 'role="status" aria-live="polite"' in reply.value
    assert (by_letter[right].description, by_letter[right].button_style) == (f"{right} ✓", "success")
    assert list(progress.state()["quiz"]) == ["04.q1"]
    by_letter[wrong].click()
    assert by_letter[wrong].description == f"{wrong} ✗"
    assert "You answered this one before" in pieces("04.q1")[2].value


def test_checking_a_number_gives_the_explanation():
    _, (box, button), reply = pieces("04.q2")
    box.value = "0.88"
    button.click()
    assert "✗ Not quite. That is softmax(6, 4)" in reply.value
    box.value = " 0,62 "
    box._handle_custom_msg({"event": "submit"}, [])  # what Enter sends
    assert "✓ Right." in reply.value
    box.value = "much"
    button.click()
    assert "answer must be a number" in reply.value


def test_live_and_stored_options_have_the_same_letters():
    entry = question("04.q1")
    lines = quiz("04.q1").widget.children[1:-1]
    assert [line.children[0].description for line in lines] == [*entry.letters]
    assert [line.children[1].value for line in lines] == [view.rich(option.text) for option in entry.options]
    stored = view.html(entry).split("<details>")[0]
    assert '<ol type="A" style="list-style-type:upper-alpha">' in stored
    assert re.findall(r"<li>(.*?)</li>", stored) == [view.rich(option.text) for option in entry.options]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Where *er* is, <b>", "Where <em>er</em> is, &lt;b&gt;"),
        ("*der Hund*, *die Katze*: nouns", "<em>der Hund</em>, <em>die Katze</em>: nouns"),
        ("3*4*5, `a *b* c` and *this*", "3*4*5, <code>a *b* c</code> and <em>this</em>"),
    ],
)
def test_words_in_asterisks_are_set_apart(text, shown):
    assert view.rich(text) == shown


def test_the_last_answer_of_a_notebook_closes_it(capsys):
    entry = notebooks.notebook("04")
    for kind, name in entry.parts:
        if kind == "exercise" or name in ("04.q1", "04.q2"):
            progress.mark(kind, name)
    last = question("04.q3")
    right = last.letters[[option.right for option in last.options].index(True)]
    answer("04.q3", right)
    assert "✓ Notebook 04: every exercise passed" in capsys.readouterr().out
    answer("04.q3", right)
    assert "every exercise passed" not in capsys.readouterr().out


# Without a kernel ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry.id)
def test_the_saved_form_has_everything_and_is_the_same_every_time(entry):
    bundle = quiz(entry.id)._repr_mimebundle_()
    again = quiz(entry.id)._repr_mimebundle_()
    assert bundle["text/html"] == again["text/html"]
    assert bundle["text/plain"] == again["text/plain"] == repr(quiz(entry.id))
    assert "application/vnd.jupyter.widget-view+json" in bundle
    before, folded = bundle["text/html"].split("<details>")
    assert "Right." not in before
    assert folded.count("✓ Right.") == 1
    explained = entry.options if isinstance(entry, Choice) else (entry, *entry.near)
    assert folded.count("<li>") == len(explained)
    assert "Right" not in bundle["text/plain"]
    shown = re.search(r'By text: tl\.quiz\.answer\("(.*)", "?(\w+)"?\)$', bundle["text/plain"])
    assert shown and shown[1] == entry.id
    with pytest.raises(ValueError, match="answer must be"):  # what is shown in the answer's place suggests none
        entry.reply(shown[2])


def test_texts_are_escaped_and_code_is_marked():
    entry = Choice("99.q1", "Is `a < b` & c?", (Option("<yes>", "No, `x`.", right=True),))
    html = view.html(entry)
    assert "Is <code>a &lt; b</code> &amp; c?" in html
    assert "&lt;yes&gt;" in html
    assert not re.search(r"<yes>", html)


def test_without_ipywidgets_the_text_is_enough(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "ipywidgets":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert set(quiz("04.q1")._repr_mimebundle_()) == {"text/html", "text/plain"}
